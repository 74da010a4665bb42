"""Recall of evidence: which messages of a long talk, of people or with an assistant, answer a question.

    python benchmarks/talks.py --data FILE [--embedder NAME] [--ablate] [--leave-one-out] [--together | --as-it-went]

The file: one of `mindstream memory evaluate` (LoCoMo, LongMemEval, BEAM), or a list of talks with `messages` (id,
session, at, by, role, text) and `questions` (text, type, evidence).
Protocol: every talk is a stream of its own, written and asked through the public interface as a mind writes its talk;
the question as it stands, asked after the last message. recall_at k: the share of a question's evidence messages among
the first k, averaged over all questions that have evidence; its interval is of 95 %, by resampling whole talks.
`bm25_recall_at`: the same with BM25 alone (k1 1.2, b 0.75) over the same words, stop words left out and stemmed.
`assistant_evidence`: the questions of which the assistant wrote at least one piece of evidence. `floor_auroc`: how
often a question of this talk gets more certainty than one of the file's other talks.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from rich.console import Console
from rich.progress import track

from mindstream.clock import DAY_S, ManualClock
from mindstream.memory.evaluation.forms import AskedTalk, TalkMessage, TalkQuestion, read_talks
from mindstream.memory.memory import Memory
from mindstream.memory.recall import question as question_of_recall
from mindstream.memory.recall.policies import Bounded, Candidates, Cosine, Generative, Policy, Ranking, best
from mindstream.memory.recall.question import Persons
from mindstream.memory.recall.recall import Recaller
from mindstream.memory.recall.relevance import Weights, weights_for
from mindstream.memory.store.record import RecordDraft
from mindstream.memory.store.validation import fitted_text
from mindstream.models.embedders.embedder import Embedder
from mindstream.models.embedders.named import embedder as embedder_named
from mindstream.text.lexical import Lexical, resisting, saturated
from mindstream.text.words import terms

KS = (1, 5, 10, 20, 50)
K1, B = 1.2, 0.75
AT_MOST_ELSEWHERE = 20
"""So many questions of each other talk are asked of a talk, to measure the floor."""
RESAMPLES = 4000
BARE = {"next_to": 0, "second": 0, "same_speaker": 0, "answer": 0, "episode": 0, "who": 0, "dates": 0, "verbosity": 0}
CHOSEN_AMONG = itertools.product((10.0, 16.0, 22.0, 28.0), (1.0, 1.25, 1.5), (0.5, 0.67, 0.85))


@dataclass(frozen=True)
class Outcome:
    """What came of a question: ours and BM25's share of evidence at each of KS; was the first of the right session?"""

    talk: str
    type: str
    assisted: bool
    ours: list[float]
    words: list[float]
    session: float
    certainty: float
    took_ms: float

    @property
    def at_10(self) -> float:
        return self.ours[KS.index(10)]


@dataclass
class Found:
    """What came of a file: outcomes, certainties of questions of other talks, and by what is left out or put in."""

    outcomes: list[Outcome] = field(default_factory=list)
    elsewhere: list[float] = field(default_factory=list)
    without: dict[str, list[list[float]]] = field(default_factory=dict)
    chosen: dict[Weights, dict[str, list[list[float]]]] = field(default_factory=dict)


def read(path: Path) -> list[AskedTalk]:
    """Read a file of talks; questions without evidence are left out."""
    found = json.loads(path.read_text("utf-8"))
    talks = [_own(each) for each in found] if "messages" in found[0] else read_talks(path)[1]
    return [replace(talk, questions=tuple(each for each in talk.questions if each.evidence)) for talk in talks]


def _own(found: Mapping[str, Any]) -> AskedTalk:
    messages = tuple(
        TalkMessage(
            each["id"], each["session"], datetime.fromisoformat(each["at"]).replace(tzinfo=UTC).timestamp(),
            each["by"], each["text"], each["role"] == "user",
        )
        for each in found["messages"]
    )  # fmt: skip
    known = {message.id for message in messages}
    asked = (
        TalkQuestion(f"{n}", each["text"], each["type"], "", evidence=frozenset(each["evidence"]) & known)
        for n, each in enumerate(found["questions"])
    )
    return AskedTalk(found["id"], messages, tuple(asked))


def joined(talks: Sequence[AskedTalk]) -> AskedTalk:
    """Return talks as one long one."""
    messages = tuple(
        replace(each, id=f"{talk.id} {each.id}", session=f"{talk.id} {each.session}")
        for talk in talks for each in talk.messages
    )  # fmt: skip
    questions = tuple(
        replace(each, evidence=frozenset(f"{talk.id} {id_}" for id_ in each.evidence))
        for talk in talks for each in talk.questions
    )  # fmt: skip
    return AskedTalk("together", messages, questions)


def share_found(evidence: frozenset[str], found: Sequence[str]) -> list[float]:
    """Return the share of the evidence among the first of what was found, at each of KS."""
    return [len(evidence & set(found[:k])) / len(evidence) for k in KS]


class Control:
    """BM25 alone, as any library has it, over the same words."""

    def __init__(self, messages: Sequence[TalkMessage]) -> None:
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


@asynccontextmanager
async def stream_of(talk: AskedTalk, embedder: Embedder, as_it_went: bool) -> AsyncIterator[Memory]:
    """Write a talk to a stream of its own, which is gone afterwards: at its end, or on the clock of its sessions."""
    clock = ManualClock(talk.messages[0].at)
    with tempfile.TemporaryDirectory() as folder:
        async with Memory.open(folder, "talk", embed=embedder, clock=clock, seed=1) as stream:
            for _, said in itertools.groupby(talk.messages, key=lambda each: as_it_went and each.session):
                session = list(said)
                clock.advance(max(0.0, (session[0].at if as_it_went else talk.ends) - clock.now()))
                await stream.retain_all([_draft(each) for each in session])
            clock.advance(max(0.0, talk.ends - clock.now()))
            await stream.recall("warm", 1, touch=False)
            yield stream


def _draft(said: TalkMessage) -> RecordDraft:
    by_user = {} if said.by_user is None else {"by_user": said.by_user}
    return RecordDraft(
        text=fitted_text(said.text), kind="chat", by=said.by, episode=said.session, created=said.at,
        data={"message": said.id, **by_user},
    )  # fmt: skip


async def ask(stream: Memory, talk: AskedTalk) -> list[Outcome]:
    """Ask a talk its own questions."""
    control, outcomes = Control(talk.messages), list[Outcome]()
    sessions = {message.id: message.session for message in talk.messages}
    assistants = {message.id for message in talk.messages if message.by_user is False}
    for asked in talk.questions:
        began = time.perf_counter()
        await stream.recall(asked.text, 10, touch=False)
        took_ms = (time.perf_counter() - began) * 1000
        found = await stream.recall(asked.text, KS[-1], touch=False)
        ids = [str(each.record.data["message"]) for each in found]
        outcomes.append(
            Outcome(
                talk.id, asked.type, bool(asked.evidence & assistants), share_found(asked.evidence, ids),
                share_found(asked.evidence, control.find(asked.text, KS[-1])),
                float(sessions[ids[0]] in {sessions[id_] for id_ in asked.evidence}), found.certainty, took_ms,
            )
        )  # fmt: skip
    return outcomes


async def ask_elsewhere(stream: Memory, talk: AskedTalk, talks: Sequence[AskedTalk]) -> list[float]:
    """Ask a talk some questions of each other talk; return how certain it is."""
    certainties = []
    for other in talks:
        if other is not talk:
            step = max(1, len(other.questions) // AT_MOST_ELSEWHERE)
            for question in other.questions[::step][:AT_MOST_ELSEWHERE]:
                certainties.append((await stream.recall(question.text, 1, touch=False)).certainty)
    return certainties


async def shares_found(
    stream: Memory, talk: AskedTalk, embedder: Embedder, weights: Weights, policy: Policy | None = None
) -> list[list[float]]:
    """Return the share of evidence found for each question of a talk, with these weights, ranked so."""
    recaller, rows = Recaller(stream.store, embedder, weights=weights), []
    for asked in talk.questions:
        found = await recaller.recall(stream.key, asked.text, KS[-1], now=stream.clock.now(), policy=policy)
        rows.append(share_found(asked.evidence, [str(each.record.data["message"]) for each in found.returned]))
    return rows


@dataclass(frozen=True)
class Decay:
    """Relevance times 0.5^(age / half-life): what an unbounded recency factor does."""

    half_life_days: float

    def rank(self, candidates: Candidates, n: int) -> Ranking:
        rows = candidates.rows
        signals = candidates.signals(rows)
        age_days = (candidates.now - signals.accessed) / DAY_S
        return best(rows, signals.relevance * 0.5 ** (age_days / self.half_life_days), n)


POLICIES: dict[str, Policy] = {
    "relevance alone": Bounded(0, 0, 0),
    "bounded (default)": Bounded(),
    "generative, weights 1 1 1": Generative(),
    "generative, the authors' code 0.5 2 3": Generative(0.5, 2, 3, 0.99),
    "cosine": Cosine(),
    **{f"times 0.5^(age/{days} d), unbounded": Decay(days) for days in (365, 90, 30, 7)},
}


def variants(full: Weights) -> dict[str, Weights]:
    """Name what is left out or put in, one at a time."""
    return {
        "all parts": full,
        "without verbosity": replace(full, verbosity=0),
        "without the share that long records lend": replace(full, lends_all=float("inf")),
        "without neighbours": replace(full, next_to=0, second=0, same_speaker=0, answer=0),
        "without question to answer": replace(full, answer=full.next_to),
        "without episode": replace(full, episode=0),
        "without who": replace(full, who=0),
        "without dates": replace(full, dates=0),
        "without vectors": replace(full, vector=0),
        "vectors and words alone": replace(full, **BARE),
        "words alone (BM25)": replace(full, vector=0, **BARE),
        "with the prior against questions (corpus-specific, off)": replace(full, question=-1.5),
        "with the prior for openings (corpus-specific, off)": replace(full, opening=3),
        "with both priors": replace(full, question=-1.5, opening=3),
    }


async def ask_without(stream: Memory, talk: AskedTalk, embedder: Embedder) -> dict[str, list[list[float]]]:
    """Ask a talk its questions with one part of the ranking left out at a time, and by each policy."""
    full = weights_for(embedder.name)
    found = {name: await shares_found(stream, talk, embedder, each) for name, each in variants(full).items()}
    for name, part, nothing in (
        ("without pronouns", "find_persons", lambda _: Persons(False, False)),
        ("without nicknames", "find_bearer", lambda *_: -1),
    ):
        with patch.object(question_of_recall, part, nothing):
            found[name] = await shares_found(stream, talk, embedder, full)
    for name, policy in POLICIES.items():
        found[name] = await shares_found(stream, talk, embedder, full, policy)
    return found


async def measure(talks: Sequence[AskedTalk], embedder: Embedder, asked: argparse.Namespace) -> dict[str, Any]:
    """Ask all questions of all talks."""
    tried = [Weights(vector=a, episode=b, who=c) for a, b, c in CHOSEN_AMONG] if asked.leave_one_out else []
    found = Found()
    for talk in track(talks, "talks", console=Console(stderr=True)):
        async with stream_of(talk, embedder, asked.as_it_went) as stream:
            found.outcomes += await ask(stream, talk)
            found.elsewhere += await ask_elsewhere(stream, talk, talks)
            for name, rows in (await ask_without(stream, talk, embedder)).items() if asked.ablate else ():
                found.without.setdefault(name, []).extend(rows)
            for weights in tried:
                rows = await shares_found(stream, talk, embedder, weights)
                found.chosen.setdefault(weights, {})[talk.id] = rows
    result = summary(found)
    if asked.ablate:
        result["floors"] = floors(found)
        result["ablation_at_10"] = {name: at_10(rows) for name, rows in found.without.items()}
    if asked.leave_one_out:
        result["leave_one_out"] = left_out(found.chosen)
    return result


def shares(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Average over questions."""
    session = statistics.fmean(each.session for each in outcomes)
    ours = averages(each.ours for each in outcomes)
    return {"questions": len(outcomes), "recall_at": ours, "session_hit_at_1": round(session, 4)}


def averages(rows: Iterable[Sequence[float]]) -> dict[str, float]:
    """Average each of KS over questions."""
    return {str(k): round(float(share), 4) for k, share in zip(KS, np.mean(list(rows), axis=0), strict=True)}


def at_10(rows: Iterable[Sequence[float]]) -> float:
    """Average recall at 10 over questions."""
    found = [row[KS.index(10)] for row in rows]
    return round(statistics.fmean(found), 4) if found else 0.0


def interval(outcomes: Sequence[Outcome], of: Callable[[Outcome], float]) -> list[float]:
    """Return the 95 % interval of a mean, by resampling whole talks."""
    groups = [[of(each) for each in outcomes if each.talk == name] for name in sorted({o.talk for o in outcomes})]
    sums, counts = np.array([sum(group) for group in groups]), np.array([len(group) for group in groups])
    drawn = np.random.default_rng(0).integers(len(groups), size=(RESAMPLES, len(groups)))
    means = sums[drawn].sum(1) / counts[drawn].sum(1)
    return [round(float(edge), 4) for edge in np.percentile(means, [2.5, 97.5])]


def area(own: Sequence[float], other: Sequence[float]) -> float | None:
    """Return how often one of the own is above one of the others: the area under the ROC curve."""
    if not own or not other:
        return None
    ordered, mine = np.sort(other), np.array(own)
    below, upto = np.searchsorted(ordered, mine), np.searchsorted(ordered, mine, "right")
    return round(float(np.mean(below + upto) / 2 / len(other)), 4)


def summary(found: Found) -> dict[str, Any]:
    """Return what is printed."""
    outcomes = found.outcomes
    assisted = [each for each in outcomes if each.assisted]
    p50, p95 = np.percentile([each.took_ms for each in outcomes], [50, 95])
    return shares(outcomes) | {
        "recall_at_10_interval": interval(outcomes, lambda each: each.at_10),
        "session_hit_at_1_interval": interval(outcomes, lambda each: each.session),
        "bm25_recall_at": averages(each.words for each in outcomes),
        "by_type": {
            type_: shares([o for o in outcomes if o.type == type_]) for type_ in sorted({o.type for o in outcomes})
        },
        "by_talk": {name: shares([o for o in outcomes if o.talk == name]) for name in {o.talk: 0 for o in outcomes}},
        "assistant_evidence": {
            "questions": len(assisted), "recall_at_10": at_10(each.ours for each in assisted),
            "bm25": at_10(each.words for each in assisted),
        },
        "floor_auroc": area([each.certainty for each in outcomes], found.elsewhere),
        "p50_ms": round(float(p50), 3), "p95_ms": round(float(p95), 3),
    }  # fmt: skip


def floors(found: Found) -> dict[str, dict[str, float]]:
    """Return what a floor costs: recall at 10, and the share of questions from elsewhere that get no answer."""
    own, other = np.array([each.certainty for each in found.outcomes]), np.array(found.elsewhere)
    at = np.array([each.at_10 for each in found.outcomes])
    return {
        str(floor): {
            "recall_at_10": round(float(np.mean(at * (own >= floor))), 4),
            "silent_elsewhere": round(float(np.mean(other < floor)), 4) if len(other) else 0.0,
        }
        for floor in (0.0, 0.1, 0.15, 0.2, 0.3, 0.5)
    }


def left_out(tried: Mapping[Weights, Mapping[str, Sequence[Sequence[float]]]]) -> dict[str, float]:
    """Choose the main weights on all talks but one, and score that one; for each."""
    held_out: list[Sequence[float]] = []
    for name in next(iter(tried.values())):

        def elsewhere(weights: Weights, name: str = name) -> float:
            return at_10(row for other, rows in tried[weights].items() if other != name for row in rows)

        held_out += tried[max(tried, key=elsewhere)][name]
    return averages(held_out)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a file of talks with questions")
    parser.add_argument("--embedder", default="wordllama", help="wordllama, st:NAME-OR-FOLDER, …")
    parser.add_argument("--ablate", action="store_true", help="each part left out, each policy, and what a floor costs")
    parser.add_argument("--leave-one-out", action="store_true", help="weights chosen on the other talks, too")
    parser.add_argument("--together", action="store_true", help="all talks of the file in one stream")
    parser.add_argument("--as-it-went", action="store_true", help="each session is written at its time: recency counts")
    parser.add_argument("--json", action="store_true", help="the form of what is printed; there is no other")
    asked = parser.parse_args()
    if not asked.data.exists():
        raise SystemExit(f"{asked.data} is not there")
    talks = read(asked.data)
    talks = [joined(talks)] if asked.together else talks
    print(json.dumps(asyncio.run(measure(talks, embedder_named(asked.embedder), asked)), indent=1))


if __name__ == "__main__":
    main()
