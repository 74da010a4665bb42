"""Measure recall of evidence on LoCoMo: which turns of a long conversation answer a question.

    python benchmarks/locomo.py --data FILE --json [--embedder NAME] [--ablate]

Protocol: every conversation is a separate stream in a real store; the unit is the turn (its words and the description
of its picture); gold is the evidence that the data names; the question is used verbatim, without category or hint, at
the time of the last session. `recall_at` k: the share of a question's evidence among the first k, averaged over
questions.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from locomo_data import Conversation, conversations

from mindstream.clock import DAY_S
from mindstream.identifiers import StreamName
from mindstream.log.events import Remembered
from mindstream.memory.recall.ranking import (
    Bounded,
    Candidates,
    Cosine,
    Generative,
    Policy,
    Ranking,
    Weights,
    best,
    weights_for,
)
from mindstream.memory.recall.recall import Recaller
from mindstream.memory.store.sqlite import SqliteStore
from mindstream.memory.store.store import Commit, Entry
from mindstream.models.embedders.embedder import Embedder
from mindstream.models.embedders.embedder import embedder as embedder_named

KS = (1, 5, 10, 20, 50)
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
RESAMPLES = 4000
BARE = Weights(vector=0, next_to=0, second=0, same_speaker=0, answer=0, episode=0, who=0, dates=0, verbosity=0)


@dataclass(frozen=True)
class Outcome:
    """The result of a question: recall at each k of KS, and whether the first record is from the correct session."""

    conversation: str
    category: int
    recall: tuple[float, ...]
    session: float


async def remember(store: SqliteStore, conversation: Conversation, embedder: Embedder) -> None:
    """Write a conversation's turns."""
    vectors = (await embedder.embed([record.text for record in conversation.records])).astype(np.float16)
    records = tuple(
        replace(record, embedder=embedder.name, vector=vector)
        for record, vector in zip(conversation.records, vectors, strict=True)
    )
    entry = Entry(Remembered(count=len(records), kinds={"chat": len(records)}), "benchmark", records)
    await store.commit(Commit(mind=StreamName("user", conversation.name).key, at=records[-1].created, entries=(entry,)))


async def ask(recaller: Recaller, conversation: Conversation, policy: Policy | None = None) -> list[Outcome]:
    """Ask all questions of a conversation."""
    outcomes, now = [], conversation.records[-1].created
    for question in conversation.questions:
        found = await recaller.recall(
            StreamName("user", conversation.name).key, question.text, KS[-1], now=now, policy=policy
        )
        turns = [str(each.record.data["turn"]) for each in found.returned]
        recall = tuple(len(question.gold & set(turns[:k])) / len(question.gold) for k in KS)
        session = turns[0].split(":")[0] in {turn.split(":")[0] for turn in question.gold}
        outcomes.append(Outcome(conversation.name, question.category, recall, float(session)))
    return outcomes


async def timed(recaller: Recaller, conversation: Conversation) -> list[float]:
    """Return the milliseconds per question for ten records, embedding included."""
    now, took = conversation.records[-1].created, []
    for question in conversation.questions:
        start = time.perf_counter()
        await recaller.recall(StreamName("user", conversation.name).key, question.text, 10, now=now)
        took.append((time.perf_counter() - start) * 1000)
    return took


def shares(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Average over questions."""
    recall = np.mean([outcome.recall for outcome in outcomes], axis=0)
    return {
        "questions": len(outcomes),
        "recall_at": {str(k): round(float(share), 4) for k, share in zip(KS, recall, strict=True)},
        "session_hit_at_1": round(statistics.fmean(outcome.session for outcome in outcomes), 4),
    }


def interval(outcomes: Sequence[Outcome], measure: Callable[[Outcome], float]) -> list[float]:
    """Return the 95 % interval of a mean, by resampling whole conversations."""
    groups = [
        [measure(outcome) for outcome in outcomes if outcome.conversation == name]
        for name in sorted({outcome.conversation for outcome in outcomes})
    ]
    sums, counts = np.array([sum(group) for group in groups]), np.array([len(group) for group in groups])
    drawn = np.random.default_rng(0).integers(len(groups), size=(RESAMPLES, len(groups)))
    means = sums[drawn].sum(1) / counts[drawn].sum(1)
    return [round(float(edge), 4) for edge in np.percentile(means, [2.5, 97.5])]


def at_10(outcome: Outcome) -> float:
    """Return a question's recall at 10."""
    return outcome.recall[KS.index(10)]


async def measured(data: list[Conversation], store: SqliteStore, embedder: Embedder) -> dict[str, Any]:
    """Measure the defaults."""
    recaller = Recaller(store, embedder)
    outcomes = [outcome for each in data for outcome in await ask(recaller, each)]
    took = [ms for each in data for ms in await timed(recaller, each)]
    result = shares(outcomes)
    result["recall_at_10_interval"] = interval(outcomes, at_10)
    result["session_hit_at_1_interval"] = interval(outcomes, lambda outcome: outcome.session)
    result["by_category"] = {
        name: shares([outcome for outcome in outcomes if outcome.category == category])
        for category, name in CATEGORIES.items()
        if any(outcome.category == category for outcome in outcomes)
    }
    result["by_conversation"] = {
        each.name: shares([o for o in outcomes if o.conversation == each.name]) for each in data
    }
    result["search_p50_ms"] = round(float(np.percentile(took, 50)), 3)
    result["search_p95_ms"] = round(float(np.percentile(took, 95)), 3)
    result["embedder"] = embedder.name
    return result


async def left_out(data: list[Conversation], store: SqliteStore, embedder: Embedder) -> dict[str, Any]:
    """For each conversation, choose the main weights on all others and score it."""
    tried: dict[Weights, dict[str, list[Outcome]]] = {}
    for vector, episode, who in itertools.product((10.0, 16.0, 22.0, 28.0), (1.0, 1.25, 1.5), (0.5, 0.67, 0.85)):
        weights = Weights(vector=vector, episode=episode, who=who)
        recaller = Recaller(store, embedder, weights=weights)
        tried[weights] = {each.name: await ask(recaller, each) for each in data}
    held_out: list[Outcome] = []
    for each in data:

        def elsewhere(weights: Weights, name: str = each.name) -> float:
            others = [outcome for other, found in tried[weights].items() if other != name for outcome in found]
            return statistics.fmean(map(at_10, others)) if others else 0.0

        held_out += tried[max(tried, key=elsewhere)][each.name]
    return shares(held_out) | {"recall_at_10_interval": interval(held_out, at_10)}


@dataclass(frozen=True)
class Decay:
    """Relevance times 0.5^(age / half-life): what an unbounded recency factor does."""

    half_life_days: float

    def rank(self, candidates: Candidates, n: int) -> Ranking:
        rows = candidates.rows
        signals = candidates.signals(rows)
        age_days = (candidates.now - signals.accessed) / DAY_S
        return best(rows, signals.relevance * 0.5 ** (age_days / self.half_life_days), n)


def variants(embedder: str) -> tuple[dict[str, Weights], dict[str, Policy]]:
    """Return the variants: one part removed or added at a time, and the ranking policies."""
    full = weights_for(embedder)
    weights = {
        "all parts": full,
        "words alone (BM25)": BARE,
        "without neighbours": replace(full, next_to=0, second=0, same_speaker=0),
        "without question to answer": replace(full, answer=full.next_to),
        "without episode": replace(full, episode=0),
        "without who": replace(full, who=0),
        "without dates": replace(full, dates=0),
        "without vectors": replace(full, vector=0),
        "earlier questions count in full": replace(full, asks=0),
        "with the prior for openings (corpus-specific, off)": replace(full, opening=3),
    }
    policies: dict[str, Policy] = {
        "relevance alone": Bounded(0, 0, 0),
        "bounded (default)": Bounded(),
        "generative, weights 1 1 1": Generative(),
        "generative, the authors' code 0.5 2 3": Generative(0.5, 2, 3, 0.99),
        "cosine": Cosine(),
        **{f"times 0.5^(age/{days} d), unbounded": Decay(days) for days in (365, 90, 30, 7)},
    }
    return weights, policies


async def ablated(data: list[Conversation], store: SqliteStore, embedder: Embedder) -> dict[str, Any]:
    """Measure each part and each policy."""
    parts, policies = variants(embedder.name)
    found: dict[str, Any] = {"parts": {}, "policies": {}}
    for name, weights in parts.items():
        recaller = Recaller(store, embedder, weights=weights, policy=Bounded(0, 0, 0))
        found["parts"][name] = shares([outcome for each in data for outcome in await ask(recaller, each)])
    recaller = Recaller(store, embedder)
    for name, policy in policies.items():
        found["policies"][name] = shares([outcome for each in data for outcome in await ask(recaller, each, policy)])
    return found


async def run(path: Path, name: str, ablate: bool, leave_one_out: bool) -> dict[str, Any]:
    """Measure recall on a file of conversations."""
    data, embedder = conversations(path), embedder_named(name)
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(folder)
        for each in data:
            await remember(store, each, embedder)
        result = await measured(data, store, embedder)
        if leave_one_out:
            result["leave_one_out"] = await left_out(data, store, embedder)
        if ablate:
            result["ablation"] = await ablated(data, store, embedder)
        await store.close()
    return result


def line(name: str, found: dict[str, Any]) -> str:
    """Write a result as a row."""
    return (
        f"{name:58}"
        + "".join(f"{100 * share:7.1f}" for share in found["recall_at"].values())
        + (f"{100 * found['session_hit_at_1']:9.1f}")
    )


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a file in the form of locomo10.json")
    parser.add_argument("--embedder", default="wordllama", help="wordllama, st:NAME-OR-FOLDER, …")
    parser.add_argument("--ablate", action="store_true", help="also measure each part and each policy")
    parser.add_argument("--leave-one-out", action="store_true", help="also choose weights on the other conversations")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    if not asked.data.exists():
        raise SystemExit(f"{asked.data} is not there; it comes from github.com/snap-research/LoCoMo (CC BY-NC 4.0)")
    result = asyncio.run(run(asked.data, asked.embedder, asked.ablate, asked.leave_one_out))
    if asked.json:
        print(json.dumps(result, indent=1))
        return
    print(f"{'% of evidence among the first':58}" + "".join(f"{k:7}" for k in KS) + "  session@1")
    print(line(f"{result['questions']} questions, {result['embedder']}", result))
    for group in ("by_category", "by_conversation"):
        for name, found in result[group].items():
            print(line(f"  {name} ({found['questions']})", found))
    if "leave_one_out" in result:
        print(line("leave one out", result["leave_one_out"]))
    for group, rows in result.get("ablation", {}).items():
        print(group)
        for name, found in rows.items():
            print(line(f"  {name}", found))
    print(f"search: p50 {result['search_p50_ms']} ms, p95 {result['search_p95_ms']} ms")


if __name__ == "__main__":
    main()
