"""Measure recall of evidence in conversations of people and with an assistant: which messages answer a question.

    python benchmarks/talks.py --data FILE [--embedder NAME] [--ablate] [--together] --json

FILE is a list of conversations with `messages` (id, session, at, by, role, text) and `questions` (text, type,
evidence). Protocol: every conversation is a separate stream, written and queried through the public interface in the
way a mind writes its conversation; the question is used verbatim, at the time of the last message. `recall_at` k: the
share of a question's evidence messages among the first k, averaged over all questions that have evidence.
`bm25_recall_at`: the same with BM25 alone (k1 1.2, b 0.75) over the same words, stemmed and without stop words.
`assistant_evidence`: the questions with at least one piece of evidence written by the assistant. `floor_auroc`: the
probability that a question of this conversation gets more certainty than one of the file's other conversations.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import patch

import numpy as np
from talks_data import Message, Talk, joined, read_talks, stream_of

from mindstream.memory.memory import Memory
from mindstream.memory.recall import ranking as question_of_recall
from mindstream.memory.recall.ranking import Persons, Weights, weights_for
from mindstream.memory.recall.recall import Recaller
from mindstream.models.embedders.embedder import Embedder
from mindstream.models.embedders.embedder import embedder as embedder_named
from mindstream.text.lexical import Lexical, resisting, saturated
from mindstream.text.words import terms

KS = (5, 10, 20, 50)
K1, B = 1.2, 0.75
AT_MOST_ELSEWHERE = 20
"""Number of questions of each other conversation that are asked, to measure the certainty floor."""
T = TypeVar("T")


@dataclass
class Outcomes:
    """The results of the questions: share of evidence at each of KS, ours and BM25's; certainties; milliseconds."""

    types: list[str] = field(default_factory=list)
    assisted: list[bool] = field(default_factory=list)
    ours: list[list[float]] = field(default_factory=list)
    words: list[list[float]] = field(default_factory=list)
    took_ms: list[float] = field(default_factory=list)
    certainties: list[float] = field(default_factory=list)
    certainties_elsewhere: list[float] = field(default_factory=list)


def share_found(evidence: frozenset[str], found: Sequence[str]) -> list[float]:
    """Return the share of the evidence among the first k results, for each k of KS."""
    return [len(evidence & set(found[:k])) / len(evidence) for k in KS]


class Control:
    """BM25 alone, as in any library, over the same words."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._ids = [message.id for message in messages]
        self._index = Lexical()
        for message in messages:
            self._index.add(terms(message.text))

    def find(self, text: str, k: int) -> list[str]:
        """Return the ids of the k best messages."""
        found = self._index.matches_of(list(dict.fromkeys(terms(text))))
        resistance = resisting(self._index.lengths(found.documents), self._index.mean_length, K1, B)
        weights = saturated(found.times, resistance, self._index.idf_of(found), K1)
        scores = np.bincount(found.documents, weights, len(self._ids))
        return [self._ids[at] for at in np.argsort(-scores, kind="stable")[:k]]


async def ask(stream: Memory, talk: Talk, outcomes: Outcomes) -> None:
    """Ask a conversation its own questions."""
    control = Control(talk.messages)
    assistants = {message.id for message in talk.messages if not message.by_user}
    for question in talk.questions:
        began = time.perf_counter()
        await stream.recall(question.text, 10, touch=False)
        outcomes.took_ms.append((time.perf_counter() - began) * 1000)
        found = await stream.recall(question.text, KS[-1], touch=False)
        outcomes.types.append(question.type)
        outcomes.assisted.append(bool(question.evidence & assistants))
        outcomes.ours.append(share_found(question.evidence, [str(each.record.data["message"]) for each in found]))
        outcomes.words.append(share_found(question.evidence, control.find(question.text, KS[-1])))
        outcomes.certainties.append(found.certainty)


async def ask_elsewhere(stream: Memory, talk: Talk, talks: Sequence[Talk], outcomes: Outcomes) -> None:
    """Ask a conversation some questions of each other conversation."""
    for other in talks:
        if other is not talk:
            step = max(1, len(other.questions) // AT_MOST_ELSEWHERE)
            for question in other.questions[::step][:AT_MOST_ELSEWHERE]:
                found = await stream.recall(question.text, 1, touch=False)
                outcomes.certainties_elsewhere.append(found.certainty)


def shares(rows: Iterable[Sequence[float]]) -> dict[str, float]:
    """Average over questions."""
    return {str(k): round(float(share), 4) for k, share in zip(KS, np.mean(list(rows), axis=0), strict=True)}


def at_10(rows: Iterable[Sequence[float]]) -> float:
    """Average recall at 10 over questions."""
    found = [row[KS.index(10)] for row in rows]
    return round(statistics.fmean(found), 4) if found else 0.0


def area(own: Sequence[float], other: Sequence[float]) -> float | None:
    """Return the probability that one of the own values exceeds one of the others: the area under the ROC curve."""
    if not own or not other:
        return None
    ordered, mine = np.sort(other), np.array(own)
    below, upto = np.searchsorted(ordered, mine), np.searchsorted(ordered, mine, "right")
    return round(float(np.mean(below + upto) / 2 / len(other)), 4)


def summary(outcomes: Outcomes) -> dict[str, Any]:
    """Return what is printed."""
    ours, words, assisted = outcomes.ours, outcomes.words, outcomes.assisted
    return {
        "questions": len(ours),
        "recall_at": shares(ours),
        "bm25_recall_at": shares(words),
        "by_type_at_10": {
            type_: at_10(row for row, each in zip(ours, outcomes.types, strict=True) if each == type_)
            for type_ in sorted(set(outcomes.types))
        },
        "assistant_evidence": {
            "questions": sum(assisted),
            "recall_at_10": at_10(row for row, by in zip(ours, assisted, strict=True) if by),
            "bm25": at_10(row for row, by in zip(words, assisted, strict=True) if by),
        },
        "floor_auroc": area(outcomes.certainties, outcomes.certainties_elsewhere),
        "p50_ms": round(statistics.median(outcomes.took_ms), 3),
    }


def progress(items: Sequence[T], name: str) -> Iterator[T]:
    """Yield items, and print the progress on standard error."""
    for done, item in enumerate(items):
        drawn = "#" * (30 * done // len(items))
        print(f"\r{name} [{drawn:30}] {done}/{len(items)}", end="", file=sys.stderr, flush=True)
        yield item
    print(f"\r{name} [{'#' * 30}] {len(items)}/{len(items)}", file=sys.stderr)


async def measure(talks: list[Talk], embedder: Embedder, ablate: bool) -> dict[str, Any]:
    """Ask all questions of all conversations."""
    outcomes = Outcomes()
    without: dict[str, list[list[float]]] = {}
    for talk in progress(talks, "talks"):
        async with stream_of(talk, embedder) as stream:
            await ask(stream, talk, outcomes)
            await ask_elsewhere(stream, talk, talks, outcomes)
            if ablate:
                for name, rows in (await ask_without(stream, talk, embedder)).items():
                    without.setdefault(name, []).extend(rows)
    result = summary(outcomes)
    if ablate:
        result["floors"] = floors(outcomes)
        result["ablation_at_10"] = {name: at_10(rows) for name, rows in without.items()}
    return result


def floors(outcomes: Outcomes) -> dict[str, dict[str, float]]:
    """Return the cost of a certainty floor: recall at 10, and the share of foreign questions that get no answer."""
    own, other = np.array(outcomes.certainties), np.array(outcomes.certainties_elsewhere)
    at = np.array([row[KS.index(10)] for row in outcomes.ours])
    return {
        str(floor): {
            "recall_at_10": round(float(np.mean(at * (own >= floor))), 4),
            "silent_elsewhere": round(float(np.mean(other < floor)), 4) if len(other) else 0.0,
        }
        for floor in (0.0, 0.1, 0.15, 0.2, 0.3, 0.5)
    }


async def ask_without(stream: Memory, talk: Talk, embedder: Embedder) -> dict[str, list[list[float]]]:
    """Ask a conversation its questions with one part of the ranking left out at a time."""
    full = weights_for(embedder.name)
    variants = {
        "all parts": full,
        "without verbosity": replace(full, verbosity=0),
        "without the share that long records lend": replace(full, lends_all=float("inf")),
        "without neighbours": replace(full, next_to=0, second=0, same_speaker=0, answer=0),
        "without question to answer": replace(full, answer=full.next_to),
        "without episode": replace(full, episode=0),
        "without who": replace(full, who=0),
        "without dates": replace(full, dates=0),
        "without vectors": replace(full, vector=0),
        "vectors and words alone": replace(
            full, next_to=0, second=0, same_speaker=0, answer=0, episode=0, who=0, dates=0, verbosity=0
        ),
    }
    found = {name: await shares_found(stream, talk, embedder, weights) for name, weights in variants.items()}
    for name, part, nothing in (
        ("without pronouns", "find_persons", lambda _: Persons(False, False)),
        ("without nicknames", "find_bearer", lambda *_: -1),
    ):
        with patch.object(question_of_recall, part, nothing):
            found[name] = await shares_found(stream, talk, embedder, full)
    return found


async def shares_found(stream: Memory, talk: Talk, embedder: Embedder, weights: Weights) -> list[list[float]]:
    """Return the share of evidence found for each question of a conversation, with these weights."""
    recaller, rows = Recaller(stream.store, embedder, weights=weights), []
    for question in talk.questions:
        found = await recaller.recall(stream.key, question.text, KS[-1], now=stream.clock.now())
        rows.append(share_found(question.evidence, [str(each.record.data["message"]) for each in found.returned]))
    return rows


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a file of conversations with questions")
    parser.add_argument("--embedder", default="wordllama", help="wordllama, st:NAME-OR-FOLDER, …")
    parser.add_argument("--ablate", action="store_true", help="also measure without each part, and the cost of a floor")
    parser.add_argument("--together", action="store_true", help="all conversations of the file in one stream")
    parser.add_argument("--json", action="store_true", help="accepted for uniformity; the output is always JSON")
    asked = parser.parse_args()
    if not asked.data.exists():
        raise SystemExit(f"{asked.data} is not there")
    talks = read_talks(asked.data)
    talks = [joined(talks)] if asked.together else talks
    result = asyncio.run(measure(talks, embedder_named(asked.embedder), asked.ablate))
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
