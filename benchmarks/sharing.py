"""Measure whether a pool's retriever learns from admissions: the memory sharing experiment, without a model (Gao 2024).

    python benchmarks/sharing.py --data DIR --json [--embedder NAME] [--model NAME] [--seeds N] [--control NAME]

DIR contains the published pairs. The tests are asked of a single pool of nine genres; a test counts only if neither its
question nor its answer is in the pool or the stream. Genre labels are used for scoring only. `--model` compares the
sources of p(not Y | (x, y), X) on a few admissions. Controls that must not gain: `shuffled` (random labels),
`published` (ten candidates, pairs scrambled as in the published code).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sharing_data import Experiment, load, load_own
from sharing_sources import compare_sources, scrambled, shuffled

from mindstream.arrays import Floats
from mindstream.clock import SystemClock
from mindstream.identifiers import StreamName
from mindstream.memory.memory import Memory
from mindstream.memory.recall.recall import recaller_of
from mindstream.memory.store.record import RecordDraft
from mindstream.memory.store.sqlite import SqliteStore
from mindstream.models.embedders.embedder import Embedder, width_of
from mindstream.models.embedders.embedder import embedder as named
from mindstream.sharing.retriever import Head, LearnedRetriever, Recipe, rouge_l
from mindstream.text.lexical import Lexical
from mindstream.text.words import terms

SCORES = ("p_at_1", "p_at_3", "ndcg_at_10")
PORTIONS = 5


class Asked:
    """An experiment's tests with their vectors, scored against its pool."""

    def __init__(self, of: Experiment, vectors: dict[str, Floats]) -> None:
        self.of = of
        self.pool = vectors["pool"]
        self._tests = vectors["tests"]
        self._genres = np.array([each.genre for each in of.pool])
        self._wanted = np.array([each.genre for each in of.tests])
        overlap = np.array([[rouge_l(item.answer, test.answer) for item in of.pool] for test in of.tests])
        self.overlap = overlap
        self._gain = 0.5 * overlap + 0.5 * np.clip(vectors["test answers"] @ vectors["pool answers"].T, 0, 1)

    def near(self, head: Head) -> Floats:
        return head.ask(self._tests) @ head.project(self.pool).T

    def by_words(self) -> Floats:
        index = Lexical()
        for item in self.of.pool:
            index.add(terms(f"{item.query}\n{item.answer}"))
        return np.stack([index.scores(terms(test.query)) for test in self.of.tests])

    def macro(self, values: NDArray[np.float64]) -> float:
        return float(np.mean([values[self._wanted == genre].mean() for genre in np.unique(self._wanted)]))

    def by_genre(self, near: Floats) -> dict[str, float]:
        right = self._genres[near.argmax(1)] == self._wanted
        return {str(genre): round(float(right[self._wanted == genre].mean()), 3) for genre in np.unique(self._wanted)}

    def scores(self, near: Floats) -> dict[str, float]:
        """Return P@1, P@3 and nDCG@10 of a ranking, each as the mean over the genres."""
        order = np.argsort(-near, axis=1, kind="stable")
        right = self._genres[order] == self._wanted[:, None]
        weights = 1 / np.log2(np.arange(2, 12))
        gained = np.take_along_axis(self._gain, order[:, :10], 1) @ weights[: order.shape[1]]
        best = -np.sort(-self._gain, axis=1)[:, :10] @ weights[: order.shape[1]]
        found = {"p_at_1": right[:, 0] * 1.0, "p_at_3": right[:, :3].mean(1), "ndcg_at_10": gained / best}
        return {name: round(self.macro(values), 4) for name, values in found.items()}

    def copied(self, near: Floats, genres: Sequence[str] = ()) -> dict[str, float]:
        """Return ROUGE-L, by genre, of the answer copied from the top exemplar."""
        taken = self.overlap[np.arange(len(near)), near.argmax(1)]
        return {g: float(taken[self._wanted == g].mean()) for g in genres or np.unique(self._wanted)}


async def prepare(of: Experiment, embedder: Embedder) -> Asked:
    texts = {
        "pool": [each.query for each in of.pool], "pool answers": [each.answer for each in of.pool],
        "tests": [each.query for each in of.tests], "test answers": [each.answer for each in of.tests],
    }  # fmt: skip
    return Asked(of, {name: await embedder.embed(each) for name, each in texts.items()})


class Timed(LearnedRetriever):
    """Measure the time to learn from an admission whose scores are known."""

    took_ms: list[float]

    def learn(self, admitted: str) -> Any:
        start = time.perf_counter()
        found = super().learn(admitted)
        self.took_ms.append((time.perf_counter() - start) * 1000)
        return found


async def train(
    of: Experiment, embedder: Embedder, seed: int, spoil: Callable[[Timed], None], recipe: Recipe, asked: Asked
) -> tuple[Timed, list[dict[str, float]]]:
    """Seed a retriever with the pool and stream the problems; return it and its scores, before and after each fifth."""
    retriever = Timed(embedder, await width_of(embedder), recipe=recipe, seed=seed)
    retriever.took_ms = []
    spoil(retriever)
    curve = [asked.scores(asked.near(retriever.version.head))]
    await retriever.seed_with(of.pool)
    curve.append(asked.scores(asked.near(retriever.version.head)))
    coming = of.shuffled(seed)
    for portion in np.array_split(np.arange(len(coming)), PORTIONS):
        for at in portion:
            await retriever.admitted(coming[at])
        curve.append(asked.scores(asked.near(retriever.version.head)))
    return retriever, curve


async def slowdown(retriever: Timed, of: Experiment, embedder: Embedder) -> dict[str, float]:
    """Compare recall's median with and without continuous training, in turns."""
    took: dict[bool, list[float]] = {False: [], True: []}
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(folder)
        stream = Memory(store, "pool", embedder, SystemClock())
        recaller = recaller_of(store, embedder)
        await stream.retain_all([RecordDraft(text=each.query, kind="exemplar") for each in (*of.pool, *of.stream)])
        for turn in range(12):
            stop = threading.Event()
            trainer = threading.Thread(target=_train_until, args=(retriever, stop))
            if turn % 2:
                trainer.start()
            for test in of.tests[:60]:
                start = time.perf_counter()
                await recaller.recall(StreamName("user", "pool").key, test.query, 3, now=0.0, policy=retriever.policy)
                took[bool(turn % 2)].append(time.perf_counter() - start)
                await asyncio.sleep(0.002)
            stop.set()
            if turn % 2:
                trainer.join()
        await store.close()
    idle, busy = np.median(took[False]), np.median(took[True])
    return {"recall_ms": round(float(idle) * 1000, 3), "recall_slowdown": round(float(busy / idle - 1), 3)}


def _train_until(retriever: Timed, stop: threading.Event) -> None:
    while not stop.is_set():
        retriever.learn("")


def mean_of(found: Sequence[dict[str, float]]) -> dict[str, float]:
    return {name: round(float(np.mean([each[name] for each in found])), 4) for name in found[0]}


def worst_of(found: Sequence[dict[str, float]]) -> dict[str, float]:
    return {name: min(each[name] for each in found) for name in found[0]}


async def pools(single: Asked, domains: dict[str, Asked], heads: dict[str, Head]) -> dict[str, Any]:
    """Compare copied answers from domain pools with those from one pool of the same size."""
    found: dict[str, dict[str, float]] = {"single": {}, "domain": {}}
    first: dict[str, float] = {}
    for name, asked in domains.items():
        near = asked.near(heads[name])
        found["domain"] |= asked.copied(near)
        first |= asked.by_genre(near)
    found["single"] = single.copied(single.near(heads["single"]))
    both = sorted(found["single"].keys() & found["domain"].keys())
    rouge: dict[str, Any] = {kind: round(float(np.mean([of[g] for g in both])), 4) for kind, of in found.items()}
    rouge["by_genre"] = {g: [round(found["domain"][g], 3), round(found["single"][g], 3)] for g in both}
    return {"rouge_l": rouge, "domain_p_at_1": first}


def spoiler(control: str) -> Callable[[Timed], None]:
    return {"": lambda _: None, "shuffled": shuffled, "published": scrambled}[control]


async def run(args: argparse.Namespace) -> dict[str, Any]:
    embedder = named(args.embedder)
    single, by_domain = load(args.data)
    if args.own:
        single = load_own()
    recipe = Recipe(candidates=10) if args.control == "published" else Recipe()
    asked = await prepare(single, embedder)
    trained = [await train(single, embedder, seed, spoiler(args.control), recipe, asked) for seed in range(args.seeds)]
    retriever, curves = trained[0][0], [curve for _, curve in trained]
    last = [curve[-1] for curve in curves]
    result: dict[str, Any] = mean_of(last) | {
        "worst": worst_of(last),
        "untrained": curves[0][0],
        "bm25": asked.scores(asked.by_words()),
        "curve": [mean_of([curve[at] for curve in curves]) for at in range(PORTIONS + 2)],
        "admission_ms_p50": round(float(np.median(np.concatenate([r.took_ms for r, _ in trained]))), 2),
        "versions": [r.version.number for r, _ in trained],
        "by_genre": asked.by_genre(asked.near(retriever.version.head)),
        "tests": len(single.tests), "embedder": embedder.name, "seeds": args.seeds,
    }  # fmt: skip
    if not args.control and not args.own:
        domains = {name: await prepare(of, embedder) for name, of in by_domain.items()}
        heads = {"single": retriever.version.head}
        for name, of in by_domain.items():
            heads[name] = (await train(of, embedder, 0, spoiler(""), recipe, domains[name]))[0].version.head
        result |= await pools(asked, domains, heads)
        result |= await slowdown(retriever, single, embedder)
    if args.model:
        result["sources"] = await compare_sources(args.model, embedder, [*single.pool, *single.stream])
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the published pairs")
    parser.add_argument("--json", action="store_true", help="accepted for uniformity; the output is always JSON")
    parser.add_argument("--embedder", default="wordllama")
    parser.add_argument("--model", default="", help="gguf:FILE or local: compare the sources of p(not Y)")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--own", action="store_true", help="the project's own genres instead of the published ones")
    parser.add_argument("--control", choices=("", "shuffled", "published"), default="")
    print(json.dumps(asyncio.run(run(parser.parse_args())), ensure_ascii=False))


if __name__ == "__main__":
    main()
