"""Measure whether feedback improves on similarity, on the published single pool with one exemplar before each answer.

    python benchmarks/pool_utility.py --data DIR --json [--seeds N] [--shots K]

Some questions are asked in rounds, with 200 feedbacks in all. An exemplar is good for a question if the quality of its
answer (half ROUGE-L, half cosine, to the true answer) is among the best tenth of the pool. A feedback tells whether the
first exemplar is good, and is flipped one time in five. `again`: P@1 on those questions; `new`: P@1 on the other
questions; each by quality and by genre, minus the same by similarity. `noise`: feedback without information.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sharing_data import Experiment, load, load_own

from mindstream.models.embedders.embedder import embedder as named
from mindstream.sharing.admission import Pair, lay_in
from mindstream.sharing.pool import Pool
from mindstream.sharing.ranking import Retriever
from mindstream.sharing.retriever import rouge_l

FEEDBACKS, QUESTIONS, FLIPPED = 200, (25, 50, 100), 0.2
KINDS = ("flipped", "noise", "never flipped")


class Quality:
    """The exemplars that are good for each test, and those of its genre."""

    def __init__(self, of: Experiment, near: NDArray[np.float64]) -> None:
        overlap = np.array([[rouge_l(item.answer, test.answer) for item in of.pool] for test in of.tests])
        quality = 0.5 * overlap + 0.5 * np.clip(near, 0, 1)
        self.good = (quality >= np.quantile(quality, 0.9, axis=1)[:, None]) & (quality > 0)
        self.right = np.array([[item.genre == test.genre for item in of.pool] for test in of.tests])


async def play(of: Experiment, quality: Quality, kind: str, questions: int, shots: int, seed: int) -> dict[str, float]:
    """Give all feedbacks; return the gains."""
    draw = np.random.default_rng(seed)
    order = [int(at) for at in draw.permutation(len(of.tests))]
    again, new = order[:questions], order[questions:]
    with tempfile.TemporaryDirectory() as folder:
        async with Pool.open(folder, "feedback", retriever=Retriever()) as pool:
            await pool.create("nine genres", "olga", form="bare")
            laid = await lay_in(pool, [Pair(each.query, each.answer) for each in of.pool], "olga")
            row = {each.id: at for at, each in enumerate(laid)}
            before = {at: await _first(pool, row, of.tests[at].query) for at in order}
            for n in range(FEEDBACKS):
                at = again[n % questions]
                shown = await pool.recall(of.tests[at].query, shots, reader="ann")
                value = float(np.mean([quality.good[at, row[each.id]] for each in shown]))
                if kind == "noise":
                    value = float(draw.random() < 0.5)
                elif kind == "flipped" and draw.random() < FLIPPED:
                    value = 1 - value
                await pool.helped([each.id for each in shown], value, "ann", of.tests[at].query)
            after = {at: await _first(pool, row, of.tests[at].query) for at in order}
    return {
        f"{which}_{name}": float(np.mean([float(truth[at, after[at]]) - float(truth[at, before[at]]) for at in some]))
        for which, some in (("again", again), ("new", new))
        for name, truth in (("good", quality.good), ("genre", quality.right))
    }


async def _first(pool: Pool, row: dict[str, int], query: str) -> int:
    return row[(await pool.recall(query, 1, reader="ann"))[0].id]


def summary(found: Sequence[dict[str, float]]) -> dict[str, Any]:
    return {
        name: {"mean": round(float(np.mean([each[name] for each in found])), 3),
               "worst": round(min(each[name] for each in found), 3)}
        for name in found[0]
    }  # fmt: skip


async def run(args: argparse.Namespace) -> dict[str, Any]:
    of = load_own() if args.own else load(args.data)[0]
    embedder = named(args.embedder)
    vectors = [
        np.asarray(await embedder.embed([each.answer for each in some]), np.float64) for some in (of.tests, of.pool)
    ]
    quality = Quality(of, vectors[0] @ vectors[1].T)
    result: dict[str, Any] = {"tests": len(of.tests), "pool": len(of.pool), "seeds": args.seeds, "shots": args.shots}
    for questions in (each for each in QUESTIONS if each <= len(of.tests)):
        for kind in KINDS:
            found = [await play(of, quality, kind, questions, args.shots, seed) for seed in range(args.seeds)]
            result[f"{questions} questions, {kind}"] = summary(found)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the published pairs")
    parser.add_argument("--json", action="store_true", help="accepted for uniformity; the output is always JSON")
    parser.add_argument("--embedder", default="wordllama")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--shots", type=int, default=1)
    parser.add_argument("--own", action="store_true", help="the project's own genres instead of the published ones")
    print(json.dumps(asyncio.run(run(parser.parse_args())), ensure_ascii=False))


if __name__ == "__main__":
    main()
