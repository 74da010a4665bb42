"""A resident's turn: what it makes of a step. Nothing is written before it is over: all see the same moment."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel

from mindstream.clock import ManualClock, Moment
from mindstream.errors import BudgetSpent, ModelError
from mindstream.log.events import Event
from mindstream.memory.recall.recall import Recalled, Recollection, recaller_of
from mindstream.memory.store.record import Kind, Record, RecordDraft
from mindstream.memory.store.store import Commit, Entry, Revision
from mindstream.models.ask import ask
from mindstream.models.cause import Cause, calls_for
from mindstream.models.decide import Question, decide
from mindstream.models.prompt import Prompt
from mindstream.models.roles import Models
from mindstream.models.rules import Rules
from mindstream.models.shorten import estimate_tokens
from mindstream_town.compat import lookup_words
from mindstream_town.events import Asked, Decided
from mindstream_town.profile import Profile
from mindstream_town.residents.percept import Percept
from mindstream_town.residents.person import KEY, Appointment, Person, ResidentMemory, appointment_of
from mindstream_town.setting import Setting
from mindstream_town.state import ResidentState, applied

R = TypeVar("R", bound=BaseModel)
OF_WORLD: tuple[Kind, ...] = ("observation", "thought")
REMEMBERED: tuple[Kind, ...] = ("observation", "thought", "note")
DATED = 40
"""So many of the newest memories of appointments are looked through."""


class StepFailed(ModelError):  # noqa: N818
    """A model gave a resident no answer that can be used: nothing of the step has happened."""


@dataclass
class Resident:
    """Somebody who lives in a town: a person, a memory, models, and a state."""

    person: Person
    memory: ResidentMemory
    clock: ManualClock
    models: Models
    state: ResidentState
    written: Callable[[], Awaitable[None]]
    """Returns when all that has happened before this step can be read."""

    @property
    def name(self) -> str:
        """What it is called."""
        return self.person.name

    def lives_in_scenes(self, profile: Profile) -> bool:
        """Tell whether a model plans its days, in scenes."""
        in_scenes = profile.lives == "scenes" and profile.plans and not profile.compat
        return in_scenes and self.models.of("planner").name != Rules.name

    def begin(self, now: Moment) -> None:
        """Begin a turn: nothing of what this process did before it, or of one that failed, counts in it."""
        self.clock.advance(now - self.clock.now())
        self.memory.begin_turn()


@dataclass
class ResidentTurn:
    """What one resident makes of one step.

    Attributes:
        state: as its rows so far make it.
        rows: what is to be written, in order.
        percepts: what it can see.
        places: addresses in sight that it did not know.
        wish: whom it wants to talk to; "" nobody.
        calls, tokens: what was asked of models in it, where a budget counts it.
        revisions: what changes of memories that were there before.
        by: the person by whom what it does is marked; "": itself.
    """

    resident: Resident
    step: int
    setting: Setting
    state: ResidentState
    rows: list[Entry] = field(default_factory=list)
    percepts: Sequence[Percept] = ()
    places: tuple[str, ...] = ()
    wish: str = ""
    calls: int = 0
    tokens: int = 0
    revisions: list[Revision] = field(default_factory=list)
    by: str = ""
    _recalled: dict[tuple[str, int, tuple[Kind, ...] | None], Recollection] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.resident.name

    @property
    def profile(self) -> Profile:
        return self.setting.profile

    @property
    def person(self) -> Person:
        return self.resident.person

    @property
    def now(self) -> float:
        """The town's moment of this step."""
        return self.setting.moment(self.step)

    @property
    def lives_in_scenes(self) -> bool:
        """Whether a model plans its days, in scenes."""
        return self.resident.lives_in_scenes(self.profile)

    @property
    def identity(self) -> str:
        """Who it is, as of today, in a few lines."""
        return self.person.identity(self.state.currently, self.state.summary)

    def is_paper(self, role: str = "planner") -> bool:
        """Tell whether it lives step by step as in Park 2023, as far as a role goes: a model answers for it."""
        profile = self.profile
        return profile.lives == "paper" and not profile.compat and self.resident.models.of(role).name != Rules.name

    @property
    def doing(self) -> str:
        """What it does, in words."""
        return self.state.act.what if self.state.act else "at home"

    @property
    def date(self) -> str:
        """The town's date, as people say it."""
        when = self.setting.when(self.step)
        return f"{when:%A, %B} {when.day}, {when.year}"

    @property
    def date_and_time(self) -> str:
        """The town's date and time of the day."""
        return f"{self.date}, {self.setting.when(self.step):%H:%M}"

    def beyond_identity(self, records: Iterable[Record]) -> tuple[str, ...]:
        """Return the texts of memories, each once, without what stands in the identity anyway."""
        said = "\n".join((self.identity, *self.person.acquaintances()))
        return tuple(dict.fromkeys(record.text for record in records if record.text not in said))

    @property
    def at_heart(self) -> str:
        """What is asked of memory for what this resident would tell others."""
        return f"What matters to {self.name} these days, and is worth telling?"

    def relation(self, other: str) -> str:
        """Return as what it knows somebody from before; "" where it did not."""
        return next((each.what for each in self.person.relations if each.name == other), "")

    def last_talk(self, other: str) -> str:
        """Return when it talked with somebody before: "today", "before"; "" never."""
        met = self.state.met.get(other)
        if met is None:
            return ""
        return "today" if self.setting.day(met) == self.setting.day(self.step) else "before"

    def write(self, event: Event, records: Sequence[Record] = ()) -> None:
        """Let something happen: it is written when the step is over, and counts in this turn from now on."""
        self.rows.append(Entry(event, self.by or self.name, tuple(records)))
        self.state = applied(self.state, event, self.profile)

    async def build(self, *news: RecordDraft) -> tuple[Record, ...]:
        """Make records of this moment, to be written with an event."""
        if any(new.evidence for new in news):
            await self.resident.written()
        return tuple(await self.resident.memory.build_records(news))

    async def recall(
        self, query: str, k: int = 0, *, kinds: tuple[Kind, ...] | None = None, touch: bool = True
    ) -> Recollection:
        """Return what comes to mind: of the stream as it was before this step.

        Args:
            touch: False: it only crosses the mind, and is remembered no better for it.
        """
        if not self.profile.recalls or not query.strip():
            return Recollection()
        memory, asked = self.resident.memory, (query, k, kinds)
        if asked not in self._recalled:
            await self.resident.written()
            found = await memory.recall(query, k or self.profile.recalled, kinds=kinds, touch=False)
            self._recalled[asked] = found
        found = self._recalled[asked]
        if found.touch is not None and (touch or self.profile.compat):
            memory.touch_later(found.touch)
        return found

    async def recall_about(self, words: Sequence[str], k: int, *, kinds: tuple[Kind, ...] = OF_WORLD) -> list[Record]:
        """Return the newest of what it remembers that has one of these words among its keywords, newest first."""
        if not self.profile.recalls:
            return []
        await self.resident.written()
        memory = self.resident.memory
        recaller = recaller_of(memory.store, memory.embedder)
        return await recaller.about(
            memory.key, lookup_words(words, self.profile), k, now=memory.clock.now(), kinds=kinds
        )

    async def recall_appointments(self) -> list[tuple[Record, Appointment]]:
        """Return what it remembers of what takes place and is not over, the newest first."""
        when = self.setting.when(self.step)
        records = await self.recall_about([KEY], DATED, kinds=REMEMBERED)
        told = ((record, appointment_of(record.data)) for record in records)
        return [(record, at) for record, at in told if at is not None and at.end > when]

    async def ask(self, prompt: Prompt[R]) -> R:
        """Return a typed answer.

        Raises:
            StepFailed: whoever answers gave none that can be used; nobody stands in.
            BudgetSpent: no more may be asked.
        """
        model = self.resident.models.of(prompt.role)
        if isinstance(model, Rules):
            return model.answer(prompt)
        with self.failing(prompt.label()):
            reply = await ask(model, prompt)
        self._count(prompt, reply.model_dump_json(exclude_defaults=True))
        return reply

    def _count(self, prompt: Prompt[Any], reply: str) -> None:
        """Count a call, where a budget does; as long as its words are, whoever answers."""
        if self.lives_in_scenes:
            self.calls += 1
            self.tokens += estimate_tokens(reply) + sum(estimate_tokens(each.text) for each in prompt.messages())

    @contextmanager
    def failing(self, prompt: str) -> Iterator[None]:
        """Say of a call whose it is, and of an answer that cannot be had or used to what it would have been."""
        try:
            with calls_for(Cause(resident=self.name, step=self.step)):
                yield
        except BudgetSpent:
            raise
        except ModelError as error:
            raise StepFailed(f"{self.name} got no answer to {prompt!r} on {self.date_and_time}: {error}") from error

    async def decide(
        self, about: str, question: Question, recalled: Iterable[Recalled], *, other: str = "", place: str = ""
    ) -> bool:
        """Decide by how probable a yes is and a draw; a row says so.

        Args:
            recalled: what came to mind of it.
            other: whom it is about. place: which object.

        Raises:
            StepFailed, BudgetSpent: see `ask`.
        """
        with self.failing(question.label()):
            p = (await decide(self.resident.models.of(question.role), question))["yes"]
        self._count(question, "yes")
        yes = self.setting.draw("decide", self.step, self.name, about) < p
        brought_up = tuple((each.record.id, round(each.score, 4)) for each in recalled)
        self.write(
            Decided(
                step=self.step,
                about=about,
                other=other,
                place=place,
                question=question.label(),
                p=round(p, 4),
                yes=yes,
                recalled=brought_up,
            )
        )
        return yes

    async def choose(
        self, about: str, question: Question, acts: Sequence[str], recalled: Iterable[Recalled], other: str
    ) -> str:
        """Choose among a question's answers by how probable each is and a draw; a row says so.

        Args:
            acts: the answers that are no going on: after any other, nothing of it is asked again for a while.
            recalled: what came to mind of it. other: whom it is about.

        Raises:
            StepFailed, BudgetSpent: see `ask`.
        """
        with self.failing(question.label()):
            weights = await decide(self.resident.models.of(question.role), question)
        drawn, choice = self.setting.draw("decide", self.step, self.name, about), question.answers()[0]
        for answer in question.answers():
            if (drawn := drawn - weights[answer]) < 0:
                choice = answer
                break
        brought_up = tuple((each.record.id, round(each.score, 4)) for each in recalled)
        self.write(
            Decided(
                step=self.step,
                about=about,
                other=other,
                question=question.label(),
                p=round(weights[choice], 4),
                yes=choice in acts,
                recalled=brought_up,
                choice=choice,
            )
        )
        return choice

    async def commit(self) -> Commit | None:
        """Return what is to be written of this turn; None: nothing."""
        if self.calls or self.tokens:
            self.write(Asked(step=self.step, calls=self.calls, tokens=self.tokens))
        revisions = [*await self.resident.memory.take_touched(self.resident.written), *self.revisions]
        if not self.rows and not revisions:
            return None
        return Commit(mind=self.resident.memory.key, at=self.now, entries=tuple(self.rows), revisions=tuple(revisions))
