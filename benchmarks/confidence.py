"""Calibration of the confidence in recalled records: how often a hit with confidence p is right.

    python benchmarks/confidence.py --locomo FILE --talks FILE FILE --json      # the talks as benchmarks/talks.py
    python benchmarks/confidence.py --json                                      # made-up memories alone
    python benchmarks/confidence.py … --fit                                     # the constants of Calibration

Protocol: half of the questions (every second one; the others are held out, `--held-out` asks these) of each
conversation, each conversation a memory of its own; and questions about other conversations, which have no answer in
it and together count a third as much. Made-up memories hold 3 to 50 of the notes of confidence.json, and are asked
two questions a note: in its words, and in others. `small`: notes of all kinds; `person`: 3 to 20 notes about one
person, and questions about that person without an answer (not part of the fit). `ece`: expected calibration error of
the first hits, ten bins of equal width; `ece_answerable`: of questions that have an answer; `ece_all`: of the ten best
hits.
`share_small_above_.3`: of right first hits of `small`, those with a confidence above .3. `unanswered_above_.3`: of
first hits of questions without an answer, those with a confidence above .3, among them those with a certainty near 0.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from locomo_data import conversations
from numpy.typing import NDArray
from talks_data import Message, Question, Talk, read_talks, stream_of

from mindstream.memory.memory import Memory
from mindstream.memory.recall.ranking import CALIBRATION, NO_EVIDENCE, log_odds
from mindstream.memory.recall.recall import Recollection
from mindstream.memory.store.record import RecordDraft
from mindstream.models.embedders.embedder import Embedder
from mindstream.models.embedders.embedder import embedder as embedder_named

HITS, SEEDS, ASKED = 10, 10, 8
SIZES = {"small": (3, 5, 10, 20, 35, 50), "person": (3, 4, 6, 10, 15, 20)}
UNANSWERED, SAMPLED = 1 / 3, 2
"""Total weight of the questions without an answer, relative to those with one, and their number."""
FACTORS = {"recency", "importance", "strength"}
"""Parts that the policy multiplies with; the others add up to the relevance."""
FIRST = 20.0
"""How much a first hit counts in the fit, compared with the nine hits behind it together."""
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Hit:
    """A returned record: its signs and limit for the fit, the recall's certainty, its confidence, whether it is
    evidence, the weight of its question."""

    signs: tuple[float, ...]
    limit: float
    certainty: float
    confidence: float
    is_right: bool
    is_first: bool
    has_answer: bool
    weight: float


def hits_of(found: Recollection, size: int, evidence: frozenset[str], key: str, weight: float) -> Iterator[Hit]:
    """Yield the ten best hits of a question."""
    relevances = [sum(value for name, value in hit.parts.items() if name not in FACTORS) for hit in found]
    for at, hit in enumerate(found[:HITS]):
        gap = relevances[at] - max(relevances[:at] + relevances[at + 1 :], default=0.0)
        signs = (
            1.0, log_odds(found.certainty), math.log(min(size, CALIBRATION.largest)),
            math.copysign(math.log1p(abs(gap)), gap), math.log1p(max(relevances[at], 0)),
        )  # fmt: skip
        told = hit.record.data.get(key, hit.record.id)
        limit = CALIBRATION.limit(found.certainty, hit.parts["vector"])
        yield Hit(
            signs,
            limit,
            found.certainty,
            hit.confidence,
            told in evidence,
            at == 0,
            bool(evidence),
            1.0 if evidence else weight,
        )


async def ask_talks(talks: Sequence[Talk], embedder: Embedder, held_out: bool) -> list[Hit]:
    """Ask each talk half of its questions, and questions of the other talks."""
    hits = list[Hit]()
    for talk in talks:
        own = talk.questions[held_out::2]
        foreign = [each for other in talks if other is not talk for each in other.questions[held_out::2]]
        foreign = random.Random(talk.name).sample(foreign, min(len(foreign), SAMPLED * len(own)))
        weight = UNANSWERED * len(own) / max(1, len(foreign))
        async with stream_of(talk, embedder) as stream:
            for question in (*own, *foreign):
                found = await stream.recall(question.text, HITS + 1, touch=False)
                evidence = question.evidence if question in own else frozenset()
                hits += hits_of(found, len(talk.messages), evidence, "message", weight)
    return hits


async def ask_small(embedder: Embedder, held_out: bool, name: str = "small") -> list[Hit]:
    """Ask made-up memories; `held_out`: other ones."""
    notes: list[list[str]] = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))[name]
    hits = list[Hit]()
    for seed in range(SEEDS):
        chance = random.Random(seed + SEEDS * held_out)
        for size in SIZES[name]:
            chosen = chance.sample(range(len(notes)), size)
            others = [at for at in range(len(notes)) if at not in chosen]
            own = chance.sample(chosen, min(size, ASKED))
            foreign = chance.sample(others, min(len(others), SAMPLED * len(own)))
            weight = UNANSWERED * len(own) / max(1, len(foreign))
            with tempfile.TemporaryDirectory() as folder:
                async with Memory.open(folder, "ann", embed=embedder) as memory:
                    await memory.retain_all([RecordDraft(text=notes[at][0], data={"at": str(at)}) for at in chosen])
                    for at in (*own, *foreign):
                        evidence = frozenset([str(at)]) if at in own else frozenset[str]()
                        for question in notes[at][1:]:
                            found = await memory.recall(question, HITS + 1, touch=False)
                            hits += hits_of(found, size, evidence, "at", weight)
    return hits


def error(hits: Sequence[Hit]) -> float:
    """Return the expected calibration error."""
    sure, weight = np.array([hit.confidence for hit in hits]), np.array([hit.weight for hit in hits])
    off = weight * (sure - np.array([hit.is_right for hit in hits], float))
    bins = np.minimum((sure * 10).astype(int), 9)
    return round(sum(abs(float(np.sum(off[bins == each]))) for each in range(10)) / float(weight.sum()), 4)


def summary(sets: Mapping[str, Sequence[Hit]]) -> dict[str, Any]:
    """Return what is printed."""
    small = [hit.confidence for hit in sets["small"] if hit.is_first and hit.is_right]
    return {
        "questions": {name: sum(hit.is_first for hit in hits) for name, hits in sets.items()},
        "ece": {name: error([hit for hit in hits if hit.is_first]) for name, hits in sets.items()},
        "ece_answerable": {
            name: error([hit for hit in hits if hit.is_first and hit.has_answer]) for name, hits in sets.items()
        },
        "ece_all": {name: error(hits) for name, hits in sets.items()},
        "share_small_above_.3": round(float(np.mean(np.array(small) > 0.3)), 4),
        "unanswered_above_.3": {name: wrongly_sure(hits) for name, hits in sets.items()},
    }


def wrongly_sure(hits: Sequence[Hit]) -> dict[str, float]:
    """Return how many first hits of questions without an answer have a confidence above .3: their share, and the number
    of those with a certainty near 0."""
    sure = [hit for hit in hits if hit.is_first and not hit.has_answer]
    above = [hit for hit in sure if hit.confidence > 0.3]
    return {
        "share": round(len(above) / max(1, len(sure)), 4),
        "certainty_near_0": sum(hit.certainty < NO_EVIDENCE for hit in above),
    }


def fit(sets: Mapping[str, Sequence[Hit]]) -> Floats:
    """Fit the coefficients of the first function by Fisher scoring, with the limit given; each set counts the same."""
    weights = []
    for hits in sets.values():
        count = np.array([hit.weight * (FIRST if hit.is_first else 1 / (HITS - 1)) for hit in hits])
        weights.append(count / count.sum())
    every, weight = [hit for hits in sets.values() for hit in hits], np.concatenate(weights)
    signs, right = np.array([hit.signs for hit in every]), np.array([hit.is_right for hit in every], float)
    limit, found = np.array([hit.limit for hit in every]), np.zeros(len(every[0].signs))
    for _ in range(200):
        first = 1 / (1 + np.exp(-signs @ found))
        sure = np.minimum(first * limit, 1 - 1e-9)
        slope = signs.T @ (weight * (1 - first) * (sure - right) / (1 - sure)) + 1e-5 * found
        curve = (signs * (weight * sure * (1 - first) ** 2 / (1 - sure))[:, None]).T @ signs + 1e-5 * np.eye(len(found))
        found -= 0.5 * np.linalg.solve(curve, slope)
    return found


def locomo(path: Path) -> list[Talk]:
    """Read LoCoMo as talks."""
    return [
        Talk(
            each.name,
            tuple(
                Message(str(r.data["turn"]), r.episode, r.created, r.by, r.text, r.by == each.records[0].by)
                for r in each.records
            ),
            tuple(Question(asked.text, str(asked.category), asked.gold) for asked in each.questions),
        )
        for each in conversations(path)
    ]


async def measure(asked: argparse.Namespace) -> dict[str, Sequence[Hit]]:
    """Ask all sets."""
    embedder = embedder_named(asked.embedder)
    sets: dict[str, Sequence[Hit]] = {name: await ask_small(embedder, asked.held_out, name) for name in SIZES}
    files = {path.stem: read_talks(path) for path in asked.talks} | ({"locomo": locomo(asked.locomo)} if asked.locomo else {})  # fmt: skip # noqa: E501
    for name, talks in files.items():
        sets[name] = await ask_talks(talks, embedder, asked.held_out)
    return sets


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--locomo", type=Path, help="LoCoMo's file")
    parser.add_argument("--talks", type=Path, nargs="*", default=[], help="files of conversations with questions")
    parser.add_argument("--embedder", default="wordllama")
    parser.add_argument("--held-out", action="store_true", help="ask the other half of the questions")
    parser.add_argument("--fit", action="store_true", help="fit and print the constants")
    parser.add_argument("--json", action="store_true", help="accepted for consistency: the output is always JSON")
    asked = parser.parse_args()
    sets = asyncio.run(measure(asked))
    result = summary(sets)
    if asked.fit:
        names = [field.name for field in fields(CALIBRATION)]
        found = fit({name: hits for name, hits in sets.items() if name != "person"})
        result["fit"] = dict(zip(names, map(float, np.round(found, 3)), strict=False))
        result["constants"] = asdict(CALIBRATION)
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
