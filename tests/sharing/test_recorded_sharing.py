"""Three tutors on one model, with a pool and without it, by a language mind: played back to the word.

The mind drafted the rubric and a question, answered 24 times, graded the 12 answers that were offered, and judged all
24 once more, shuffled and without a word on which were answered with the pool. One mind wrote and judged.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from mindstream.clock import ManualClock, Moment
from mindstream.coach.packs.load import load
from mindstream.coach.talker import Talker
from mindstream.memory.exemplars import Exemplars
from mindstream.memory.stream import Stream
from mindstream.models.ask import ask
from mindstream.models.model import Model
from mindstream.models.recording import Playback
from mindstream.service.pools import draft_pairs, draft_rubric
from mindstream.sharing.admission import Pair, lay_in
from mindstream.sharing.events import ExemplarJudged
from mindstream.sharing.grade_pair import GradePair, Grades
from mindstream.sharing.member import Member
from mindstream.sharing.pool import Pool
from mindstream.sharing.ranking import Retriever
from mindstream.sharing.rubric import Rubric

RECORDINGS = Path(__file__).parents[1] / "recordings"
STORY: dict[str, Any] = json.loads((RECORDINGS / "sharing.json").read_text("utf-8"))
BEGAN: Moment = 1_780_300_800.0


@dataclass
class Told:
    """What came of it: by (agent, place, with the pool) answers and what the judge gave; verdicts on offers."""

    rubric: Rubric | None = None
    question: str = ""
    answers: dict[tuple[str, int, bool], str] = field(default_factory=dict)
    offered: list[ExemplarJudged] = field(default_factory=list)
    judged: dict[tuple[str, int, bool], Grades] = field(default_factory=dict)

    def mean(self, with_pool: bool, *criteria: str) -> float:
        """Return the judge's mean points, for all criteria or for some."""
        found = [grades for (_, _, pooled), grades in self.judged.items() if pooled == with_pool]
        points = [
            each.points for grades in found for each in grades.grades if each.criterion in criteria or not criteria
        ]
        return round(sum(points) / len(found), 1)


async def answer(stream: Stream, model: Model, task: str, exemplars: Exemplars | None) -> str:
    talker = Talker(stream, load("tutor"), model, "lesson", exemplars)
    return "".join([piece async for piece in talker.speak(task, 1)])


async def share(folder: Path, model: Model, story: Mapping[str, Any] = STORY) -> Told:
    """Play the whole story: the pool is made, three agents answer without it, then with it, all is judged."""
    told, clock, tasks = Told(), ManualClock(BEGAN), story["tasks"]
    async with Pool.open(folder, "tongues", clock=clock, retriever=Retriever(), guarded=False) as pool:
        await pool.create(story["domain"], "olga")
        await lay_in(pool, [Pair(**seed) for seed in story["seeds"]], "olga")
        agents = [f"{name} {does}" for name, does in story["agents"].items()]
        told.rubric = await draft_rubric(pool, model, "olga", agents)
        await pool.freeze_rubric(told.rubric, "olga")
        (drafted,) = await draft_pairs(pool, model, [story["answer"]], "olga")
        told.question = drafted.query
        await lay_in(pool, [drafted], "olga")
        members = {name: Member(pool, name, "door", model) for name in tasks}
        streams = {name: Stream(pool.stream.store, name, pool.stream.embedder, clock) for name in tasks}

        async def put(name: str, place: int, member: Member | None) -> None:
            words = await answer(streams[name], model, tasks[name][place], member)
            told.answers[name, place, member is not None] = words

        await asyncio.gather(*(put(name, place, None) for name in tasks for place in range(4)))
        for place in range(4):
            await asyncio.gather(*(put(name, place, member) for name, member in members.items()))
            shown = {name: await member.examples(tasks[name][place]) for name, member in members.items()}
            offers = [
                member.offer(tasks[name][place], told.answers[name, place, True], shown[name])
                for name, member in members.items()
            ]
            told.offered += await asyncio.gather(*offers)

        async def judge(key: tuple[str, int, bool]) -> None:
            assert told.rubric
            query, words = tasks[key[0]][key[1]], told.answers[key]
            question = GradePair(domain=told.rubric.domain, criteria=told.rubric.criteria, query=query, answer=words)
            told.judged[key] = await ask(model, question)

        keys = sorted(told.answers)
        await asyncio.gather(*(judge(keys[at]) for at in story["shuffled"]))
    return told


async def test_three_agents_answer_with_and_without_a_pool(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    told = await share(folder, Playback(RECORDINGS / "sharing.jsonl", strict=True))
    assert told.rubric and told.rubric.threshold == 75 and len(told.rubric.criteria) == 6
    assert told.question.startswith("When do I say make and when do") and len(told.judged) == 24
    assert [each.verdict for each in told.offered] == ["admitted"] * 12
    assert (told.mean(True), told.mean(False)) == (91.9, 71.9)
    assert (told.mean(True, "Correct"), told.mean(False, "Correct")) == (28.3, 28.5)
    manner = ("Decision rule", "Practice", "Use to the other agents")
    assert (told.mean(True, *manner), told.mean(False, *manner)) == (40.6, 21.4)
