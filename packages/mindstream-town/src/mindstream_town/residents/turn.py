"""A resident's turn in a step. Its rows are written after the step, so that all residents see the same state."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel

from mindstream.clock import ManualClock, Moment
from mindstream.errors import BudgetSpent, ModelError, ReplyInvalid
from mindstream.log.events import Event
from mindstream.memory.recall.recall import Recalled, Recollection, recaller_of
from mindstream.memory.store.record import Kind, Record, RecordDraft
from mindstream.memory.store.store import Commit, Entry, Revision
from mindstream.models.decide import Probabilities, Question, decide
from mindstream.models.model import Cause, calls_for, estimate_tokens
from mindstream.models.prompt import Prompt, ask
from mindstream.models.roles import Models
from mindstream.models.rules import Rules
from mindstream_town.events import Asked, Decided, StoodIn
from mindstream_town.profile import Profile
from mindstream_town.residents.person import KEY, Appointment, Person, ResidentMemory, appointment_of
from mindstream_town.setting import Setting
from mindstream_town.state import ResidentState, applied
from mindstream_town.world.tree import Spot

R = TypeVar("R", bound=BaseModel)
OF_WORLD: tuple[Kind, ...] = ("observation", "thought")
REMEMBERED: tuple[Kind, ...] = ("observation", "thought", "note")
MAX_REASON = 300
"""Maximum characters of the reason of an event `StoodIn`."""
MOST_OPEN = 2
"""Maximum number of earlier calls in `Resident.later` that stay there when another call is added: one for a talk, and
one for the result of an act."""
DATED = 40
"""Maximum number of memories with appointments, the newest ones, that are searched."""


class StepFailed(ModelError):  # noqa: N818
    """A model call for a resident failed, so the resident's turn is not written."""


@lru_cache(maxsize=8)
def _in_words(day: date) -> str:
    return f"{day:%A, %B} {day.day}, {day.year}"


@dataclass
class Resident:
    """A resident of an open town: description, memory, models and state."""

    person: Person
    memory: ResidentMemory
    clock: ManualClock
    models: Models
    state: ResidentState
    written: Callable[[], Awaitable[None]]
    """Waits until all rows from before this step can be read."""
    later: dict[Prompt[Any], asyncio.Task[Any]] = field(default_factory=dict)
    """Calls that run beyond the turn in which they were started; see `ResidentTurn.ask_later`."""

    @property
    def name(self) -> str:
        return self.person.name

    def lives_in_scenes(self, profile: Profile) -> bool:
        """Return whether a model plans this resident's days in the mode `scenes`."""
        return profile.lives == "scenes" and profile.plans and self.models.of("planner").name != Rules.name

    def is_paper(self, profile: Profile, role: str = "planner") -> bool:
        """Return whether the resident is in the mode `paper` and a language model answers for this role."""
        return profile.lives == "paper" and self.models.of(role).name != Rules.name

    def begin(self, now: Moment) -> None:
        """Begin a turn; results of earlier or failed turns in this process are cleared."""
        self.clock.advance(now - self.clock.now())
        self.memory.begin_turn()


@dataclass
class ResidentTurn:
    """One resident's turn in one step.

    Attributes:
        state: the state after the rows of this turn.
        rows: rows to write, in order.
        percepts: what the resident has in sight.
        places: addresses in sight that the resident did not know.
        wish: name of the other resident that this one wants to talk to; "": none.
        calls, tokens: model calls and tokens used in this turn, for the daily budget. They are counted only if the town
            runs in scenes.
        overheard: if a scene ends in this turn: the other people in it, the line that people near by overhear ("":
            none), the importance of the line, and whether the line cannot reveal a secret; else None.
        revisions: changes of existing memories.
        by: the user who controls the resident and is the author of the rows; "": the resident is the author.
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
    overheard: tuple[tuple[str, ...], str, float, bool] | None = None
    revisions: list[Revision] = field(default_factory=list)
    by: str = ""
    _recalled: dict[tuple[str, int, tuple[Kind, ...] | None], Recollection] = field(default_factory=dict)
    _built: set[str] = field(default_factory=set)
    """The ids of the records of this turn, which are written after it."""
    _ahead: dict[Prompt[Any], asyncio.Task[Any]] = field(default_factory=dict)

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
        """The moment of this step in the town's time."""
        return self.setting.moment(self.step)

    @property
    def when(self) -> datetime:
        """The town's time of this step."""
        return self.setting.when(self.step)

    @property
    def day(self) -> int:
        """The number of this step's day."""
        return self.setting.day(self.step)

    @property
    def minute(self) -> int:
        """The minute of the day."""
        return self.setting.minute(self.step)

    @property
    def spot(self) -> Spot:
        """The resident's position."""
        return self.state.spot(self.step)

    @property
    def lives_in_scenes(self) -> bool:
        return self.resident.lives_in_scenes(self.profile)

    @property
    def identity(self) -> str:
        """The resident's description with its present concerns and its summary of itself."""
        return self.person.identity(self.state.currently, self.state.summary)

    def is_paper(self, role: str = "planner") -> bool:
        return self.resident.is_paper(self.profile, role)

    def has_rules(self, role: str) -> bool:
        """Return whether rules answer for this role, not a model; rules read no texts of memories."""
        return isinstance(self.resident.models.of(role), Rules)

    @property
    def doing(self) -> str:
        return self.state.act.what if self.state.act else "at home"

    @property
    def date(self) -> str:
        """The date in words."""
        return _in_words(self.when.date())

    @property
    def date_and_time(self) -> str:
        when = self.when
        return f"{_in_words(when.date())}, {when.hour:02}:{when.minute:02}"

    def beyond_identity(self, records: Iterable[Record]) -> tuple[str, ...]:
        """Return the texts of memories, each once, without those that the identity or the relations contain already."""
        said = "\n".join((self.identity, *self.person.acquaintances()))
        return tuple(dict.fromkeys(record.text for record in records if record.text not in said))

    @property
    def at_heart(self) -> str:
        """Query for memories that matter to the resident now and that it would tell others."""
        return f"What matters to {self.name} these days, and is worth telling?"

    def relation(self, other: str) -> str:
        """Return the relation to another person; "" if there is none."""
        return next((each.what for each in self.person.relations if each.name == other), "")

    def last_talk(self, other: str) -> str:
        """Return when the resident last talked with another: "today", "before", or "" for never."""
        met = self.state.met.get(other)
        if met is None:
            return ""
        return "today" if self.setting.day(met) == self.day else "before"

    def write(self, event: Event, records: Sequence[Record] = ()) -> None:
        """Add a row; it is written with the step, and changes the state of this turn at once."""
        self.rows.append(Entry(event, self.by or self.name, tuple(records)))
        self.state = applied(self.state, event, self.profile)

    async def build(self, *news: RecordDraft) -> tuple[Record, ...]:
        """Build records with the time of this step, to be written with an event."""
        if any(not self._built.issuperset(new.evidence) for new in news):
            await self.resident.written()
        records = tuple(await self.resident.memory.build_records(news, self._built))
        self._built.update(record.id for record in records)
        return records

    async def recall(
        self, query: str, k: int = 0, *, kinds: tuple[Kind, ...] | None = None, touch: bool = True
    ) -> Recollection:
        """Recall from the memory as it was before this step. Return nothing if the query is blank, or if residents of
        this town recall nothing (`profile.recalls`).

        Args:
            k: maximum number of memories; 0: `profile.recalled`.
            touch: whether the recall counts as use and strengthens the memories.
        """
        if not self.profile.recalls or not query.strip():
            return Recollection()
        memory, asked = self.resident.memory, (query, k, kinds)
        if asked not in self._recalled:
            await self.resident.written()
            most = k or self.profile.recalled
            found = await memory.recall(query, most, kinds=kinds, touch=False, confidence=False)
            self._recalled[asked] = found
        found = self._recalled[asked]
        if found.touch is not None and touch:
            memory.touch_later(found.touch)
        return found

    async def find(self, n: int, *, kinds: tuple[Kind, ...]) -> list[Record]:
        """Return the n newest memories of some kinds, newest first, as they were before this step. [] if residents of
        this town recall nothing (`profile.recalls`)."""
        if not self.profile.recalls:
            return []
        await self.resident.written()
        return await self.resident.memory.find(n, kinds=kinds)

    async def recall_about(self, words: Sequence[str], k: int, *, kinds: tuple[Kind, ...] = OF_WORLD) -> list[Record]:
        """Return the k newest memories with one of these keywords, newest first.

        []: residents recall nothing in this town (`profile.recalls`), or there is no such memory.
        """
        if not self.profile.recalls:
            return []
        await self.resident.written()
        memory = self.resident.memory
        recaller = recaller_of(memory.store, memory.embedder)
        return await recaller.about(memory.key, words, k, now=memory.clock.now(), kinds=kinds)

    async def recall_appointments(self) -> list[tuple[Record, Appointment]]:
        """Return the remembered appointments that are not over, the newest memory first."""
        records = await self.recall_about([KEY], DATED, kinds=REMEMBERED)
        told = ((record, appointment_of(record.data)) for record in records)
        return [(record, at) for record, at in told if at is not None and at.end > self.when]

    async def ask(self, prompt: Prompt[R], instead: Callable[[], R] | None = None) -> R:
        """Return a typed answer of the model for the prompt's role.

        If rules answer for the role, return their answer. If the model's answer cannot be parsed, even after the model
        saw the error, write the event `StoodIn` and return the result of `instead`. If `instead` is None, return the
        answer of the rule that answers this prompt without a model.

        Raises:
            StepFailed: the model did not answer; no rule replaces an unavailable model.
            BudgetSpent: the budget is spent.
        """
        model = self.resident.models.of(prompt.role)
        if isinstance(model, Rules):
            return model.answer(prompt)
        with self.failing(prompt.label()):
            try:
                reply = await (self._ahead.pop(prompt, None) or ask(model, prompt))
            except ReplyInvalid as error:
                self._go_on_without(prompt, error)
                reply = instead() if instead else Rules().answer(prompt)
        self._count(prompt, reply.model_dump_json(exclude_defaults=True))
        return reply

    def ask_ahead(self, prompt: Prompt[Any]) -> None:
        """Start the model call of a prompt that this turn will certainly ask later; `ask` then waits for its reply. If
        rules answer the prompt, do nothing.

        Everything that depends on the reply happens in `ask`, so the rows of the turn keep their order.
        """
        if not self.has_rules(prompt.role):
            self._ahead[prompt] = self._start(prompt)

    def ask_later(self, prompt: Prompt[Any]) -> None:
        """Start and count the model call of a prompt whose reply a later turn needs; see `reply_to`."""
        if not self.has_rules(prompt.role):
            later = self.resident.later
            task = later.get(prompt) or self._start(prompt)  # a failed step that is repeated has started it already
            self.resident.later = dict([*later.items()][-MOST_OPEN:]) | {prompt: task}
            self.calls += self.lives_in_scenes

    async def reply_to(self, prompt: Prompt[R], asker: Resident) -> R | None:
        """Return the reply to a prompt that a resident (`asker`) has asked with `ask_later`. After a restart of the
        process, the prompt is asked again. None: the reply cannot be parsed.

        Raises:
            StepFailed: the model did not answer; no rule replaces an unavailable model.
            BudgetSpent: the budget is spent.
        """
        model = asker.models.of(prompt.role)
        if isinstance(model, Rules):
            return model.answer(prompt)
        task = asker.later.get(prompt) or asker.later.setdefault(prompt, self._start(prompt))
        with self.failing(prompt.label()):
            try:
                reply: R = await asyncio.shield(task)
            except ReplyInvalid as error:
                if asker is self.resident:
                    self._go_on_without(prompt, error)
                return None
            except ModelError:
                asker.later.pop(prompt, None)
                raise
        return reply

    def _start(self, prompt: Prompt[Any]) -> asyncio.Task[Any]:
        with self.failing(prompt.label()):
            task = asyncio.create_task(ask(self.resident.models.of(prompt.role), prompt))
        # if the turn fails, nothing else reads the exception
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return task

    def stop_asking(self) -> None:
        """Cancel the calls that were started ahead and are not needed any more, because the turn has ended or
        failed."""
        for task in self._ahead.values():
            task.cancel()

    def _go_on_without(self, prompt: Prompt[Any], error: ReplyInvalid) -> None:
        """Log that a reply could not be parsed."""
        self.write(StoodIn(step=self.step, prompt=prompt.label(), reason=str(error)[:MAX_REASON]))

    def _count(self, prompt: Prompt[Any], reply: str) -> None:
        """Count a call for the daily budget if the town runs in scenes. The tokens are estimated from the texts, so
        that the count does not depend on the model."""
        if self.lives_in_scenes:
            self.calls += 1
            self.tokens += estimate_tokens(reply) + sum(estimate_tokens(each.text) for each in prompt.messages())

    def count_later(self, prompt: Prompt[Any], reply: BaseModel, *, both: bool = False) -> None:
        """Count the tokens of a call whose reply `reply_to` has returned; `ask_later` has counted the call.

        Args:
            both: whether two residents share the call, and each counts half of the tokens.
        """
        if not self.has_rules(prompt.role):
            tokens, calls = self.tokens, self.calls
            self._count(prompt, reply.model_dump_json(exclude_defaults=True))
            self.calls, self.tokens = calls, tokens + (self.tokens - tokens) // (1 + both)

    @contextmanager
    def failing(self, prompt: str) -> Iterator[None]:
        """Attribute model calls to this resident and step, and convert model errors except BudgetSpent into StepFailed
        with the prompt's name."""
        try:
            with calls_for(Cause(resident=self.name, step=self.step)):
                yield
        except BudgetSpent:
            raise
        except ModelError as error:
            raise StepFailed(
                f"the prompt {prompt!r} for {self.name} on {self.date_and_time} failed: {error}"
            ) from error

    async def decide(
        self, about: str, question: Question, recalled: Iterable[Recalled], *, other: str = "", place: str = ""
    ) -> bool:
        """Decide a yes-or-no question: get the probability, draw, and write the decision.

        Args:
            recalled: memories that the decision is based on.
            other: the resident that the decision is about. place: the object that it is about.

        Raises:
            StepFailed: the model did not answer; no rule replaces an unavailable model.
            BudgetSpent: the budget is spent.
        """
        weights, drawn = await self._weigh(about, question)
        self._count(question, "yes")
        yes = drawn < weights["yes"]
        self._write_decision(about, question, recalled, weights["yes"], yes, other=other, place=place)
        return yes

    async def choose(
        self, about: str, question: Question, acts: Sequence[str], recalled: Iterable[Recalled], other: str
    ) -> str:
        """Choose among a question's answers: get their probabilities, draw, and write the decision.

        Args:
            acts: answers that count as a yes. After any other answer, the resident does not decide about `other` again
                for a while.
            recalled: memories that the decision is based on.
            other: the resident that the decision is about.

        Raises:
            StepFailed: the model did not answer; no rule replaces an unavailable model.
            BudgetSpent: the budget is spent.
        """
        weights, drawn = await self._weigh(about, question)
        choice = question.answers()[0]
        for answer in question.answers():
            if (drawn := drawn - weights[answer]) < 0:
                choice = answer
                break
        self._write_decision(about, question, recalled, weights[choice], choice in acts, other=other, choice=choice)
        return choice

    async def _weigh(self, about: str, question: Question) -> tuple[Probabilities, float]:
        """Return the probability of each answer, and the random number to compare them with."""
        with self.failing(question.label()):
            try:
                weights = await decide(self.resident.models.of(question.role), question)
            except ReplyInvalid as error:
                self._go_on_without(question, error)
                weights = await decide(Rules(), question)
        return weights, self.setting.draw("decide", self.step, self.name, about)

    def _write_decision(
        self, about: str, question: Question, recalled: Iterable[Recalled], p: float, yes: bool, **more: str
    ) -> None:
        brought_up = tuple((each.record.id, round(each.score, 4)) for each in recalled)
        self.write(
            Decided(
                step=self.step,
                about=about,
                question=question.label(),
                p=round(p, 4),
                yes=yes,
                recalled=brought_up,
                **more,
            )
        )

    async def commit(self) -> Commit | None:
        """Return the commit of this turn; None if the turn changed nothing. The commit includes a row for the use of
        models, if there was any, and the effects of recalls on memories."""
        if self.calls or self.tokens:
            self.write(Asked(step=self.step, calls=self.calls, tokens=self.tokens))
        revisions = [*await self.resident.memory.take_touched(self.resident.written), *self.revisions]
        if not self.rows and not revisions:
            return None
        return Commit(mind=self.resident.memory.key, at=self.now, entries=tuple(self.rows), revisions=tuple(revisions))


class Percept(NamedTuple):  # made in less time than a frozen dataclass
    """Something that a resident has in sight, as subject, predicate and object.

    Attributes:
        who: the resident that the percept is about; "" for an object.
        place: address of the object, or of the resident's activity.
        since: step at which the condition began. danger: whether the condition is a danger.
        passing: whether the state lasts only while the object is in use, so that no decision is needed.
    """

    subject: str
    predicate: str
    object: str
    spot: Spot
    who: str = ""
    place: str = ""
    since: int = 0
    danger: bool = False
    passing: bool = False

    @property
    def triple(self) -> tuple[str, str, str]:
        return self[:3]

    @property
    def text(self) -> str:
        return f"{self.subject} {self.predicate} {self.object}"
