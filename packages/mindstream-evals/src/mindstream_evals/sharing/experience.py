"""The forms in which agents keep their experience for others: a pool, a notes file, or extracted facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, get_args

import numpy as np
from pydantic import Field

from mindstream.frozen import Frozen
from mindstream.memory.recall.exemplars import Example
from mindstream.models.embedders.embedder import embedder
from mindstream.models.model import Model
from mindstream.models.prompt import Prompt, ask
from mindstream.service.lessons import write_procedure
from mindstream.sharing.admission import Pair, admit_work
from mindstream.sharing.exemplar import question_id
from mindstream.sharing.lessons import Line, Verdict, learn, shorten_work
from mindstream.sharing.member import Member

Arm: TypeAlias = Literal["none", "exemplars", "lessons", "both", "notes", "facts"]
ARMS: tuple[Arm, ...] = get_args(Arm)
POOLED: tuple[Arm, ...] = ("exemplars", "lessons", "both")
FACTS = 10
"""Maximum number of extracted facts in an agent's prompt, and in the prompt that extracts facts. The most similar facts
are chosen."""


@dataclass(frozen=True)
class Attempts:
    """The attempts at a training task: all messages, calls and results, and the verdict.

    Attributes:
        shown: ids of the lessons that the first prompt contained.
        calls: step and text of the calls of the last attempt; answer: its answer.
        accepted: whether the last answer was right.
    """

    question: str
    work: tuple[Line, ...]
    verdict: Verdict
    shown: tuple[str, ...]
    calls: tuple[tuple[str, str], ...]
    answer: str
    accepted: bool

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Attempts:
        """Read attempts that `dataclasses.asdict` has written as JSON."""
        return cls(
            row["question"],
            tuple(Line(**each) for each in row["work"]),
            Verdict(**row["verdict"]),
            tuple(row["shown"]),
            tuple((step, call) for step, call in row["calls"]),
            row["answer"],
            row["accepted"],
        )


class Experience(Protocol):
    """What agents know from earlier tasks."""

    async def examples(self, arm: Arm, question: str) -> list[Example]:
        """Return the examples that an agent in this condition (`arm`) is shown before a question."""

    async def learn(self, done: Attempts) -> dict[str, Any]:
        """Learn from the attempts at a training task. Return the row to store: `noted` says what changed, and the other
        fields are the new state, if there is one."""

    def load(self, row: Mapping[str, Any]) -> None:
        """Restore the state from the row of the last training task."""


@dataclass(frozen=True)
class Pooled:
    """Lessons and accepted work in a pool, whose log is durable; a task that was learned from is not learned again."""

    member: Member
    model: Model
    judge: str

    async def examples(self, arm: Arm, question: str) -> list[Example]:
        """Return the examples for a question that an arm of the comparison uses: lessons, exemplars, or both."""
        found = await self.member.examples(question)
        return [each for each in found if arm == "both" or bool(each.lessons) == (arm == "lessons")]

    async def learn(self, done: Attempts) -> dict[str, Any]:
        """Learn from a judged attempt; return a note of what changed.

        The verdict changes the lessons, unless the question was judged before. Accepted work is stored as an exemplar.
        """
        pool, agent, steps, noted = self.member.pool, self.member.agent, tuple[str, ...](), "learned before"
        if not (await pool.state()).lessons.is_judged(question_id(done.question)):
            learned = await learn(
                pool, self.model, done.question, done.work, done.verdict, writer=agent, shown=done.shown
            )
            steps, noted = learned.steps, str(learned)
        if done.accepted:
            pair = Pair(done.question, write_procedure(done.calls, done.answer, steps))
            await admit_work(pool, pair, agent, self.judge)
        return {"noted": noted}

    def load(self, row: Mapping[str, Any]) -> None:
        """Do nothing: the pool has its own state."""


class KeepNotes(Prompt[str]):
    """Bring a notes file up to date after a task; the reply is the whole file."""

    role = "scorer"
    reply_tokens = 4_000

    notes: str
    task: str
    work: tuple[str, ...]
    verdict: str


@dataclass
class NotesFile:
    """A plain notes file: the model rewrites it after each task, and agents are shown the whole of it."""

    model: Model
    notes: str = ""

    async def examples(self, arm: Arm, question: str) -> list[Example]:  # noqa: ARG002
        """Return the whole notes file as one example; []: the file is empty."""
        return [Example(f"notes.md:\n{self.notes}")] if self.notes else []

    async def learn(self, done: Attempts) -> dict[str, Any]:
        """Let the model rewrite the notes, from the attempts at a training task."""
        work, verdict = shorten_work(done.work), str(done.verdict)
        prompt = KeepNotes(notes=self.notes, task=done.question, work=work, verdict=verdict)
        reply = (await ask(self.model, prompt, "scorer")).strip()
        self.notes = self.notes if reply.strip("`. ") == "UNCHANGED" else reply
        return {"noted": f"{len(self.notes)} characters", "notes": self.notes}

    def load(self, row: Mapping[str, Any]) -> None:
        """Restore the notes from a stored row."""
        self.notes = row["notes"]


class WorkFact(Frozen):
    """A fact from a conversation; `replaces`: numbers of known facts that it updates."""

    text: str = Field(min_length=1, max_length=500)
    replaces: tuple[int, ...] = ()


class WorkFacts(Frozen):
    """The new facts of a conversation."""

    facts: tuple[WorkFact, ...] = ()


class ExtractWorkFacts(Prompt[WorkFacts]):
    """Which facts of a conversation are worth remembering? In the manner of mem0 (Chhikara 2025)."""

    role = "scorer"

    known: tuple[str, ...]
    conversation: tuple[str, ...]


@dataclass
class ExtractedFacts:
    """Facts that a model extracts from a conversation, in the manner of mem0.

    The model reads what users and agents said, without calls and verdicts. An agent's prompt shows the facts most
    similar to the question.
    """

    model: Model
    facts: list[str] = field(default_factory=list)

    async def examples(self, arm: Arm, question: str) -> list[Example]:  # noqa: ARG002
        """Return one example, whose text lists the facts most similar to the question; [] if there are no facts."""
        found = await self._nearest(question)
        return [Example("\n".join(["Known facts:", *(f"- {each}" for each in found)]))] if found else []

    async def learn(self, done: Attempts) -> dict[str, Any]:
        """Extract facts from the conversation. The new facts are added, or replace known facts."""
        said = tuple(f"{each.by}: {each.text}" for each in done.work if each.by in ("user", "agent"))
        known = await self._nearest("\n".join(said))
        found = await ask(self.model, ExtractWorkFacts(known=tuple(known), conversation=said), "scorer")
        gone = {known[n - 1] for each in found.facts for n in each.replaces if 0 < n <= len(known)}
        self.facts = [each for each in self.facts if each not in gone] + [each.text for each in found.facts]
        return {"noted": f"{len(found.facts)} new facts", "facts": self.facts}

    def load(self, row: Mapping[str, Any]) -> None:
        """Restore the facts."""
        self.facts = list(row["facts"])

    async def _nearest(self, text: str) -> Sequence[str]:
        if len(self.facts) <= FACTS:
            return list(self.facts)
        asked, *rest = np.asarray(await embedder().embed([text, *self.facts]))
        order = np.argsort(-(np.asarray(rest) @ asked), kind="stable")[:FACTS]
        return [self.facts[at] for at in order]
