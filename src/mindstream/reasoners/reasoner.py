"""The protocol of all reasoners: a slot, and a way to think on an occasion that comes to a conclusion."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from pydantic import BaseModel, JsonValue

from mindstream import chance
from mindstream.clock import Moment
from mindstream.errors import InputError, ToolError
from mindstream.log.events import Logged, Observed, ToolCalled
from mindstream.memory.belief import Patch
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import Record, RecordDraft
from mindstream.memory.store.store import Entry, Revision
from mindstream.models.model import Call
from mindstream.reasoners.calls import Calls
from mindstream.reasoners.trigger import Trigger
from mindstream.text.links import links
from mindstream.tools.call import ForeignText, Observation
from mindstream.tools.given_addresses import refusal_of, ungiven
from mindstream.tools.loop import watched_call
from mindstream.tools.tool import Tool
from mindstream.tools.traits import traits_of


@dataclass(frozen=True, slots=True)
class Utterance:
    """Something the user said that a reasoner is to think about.

    Attributes:
        seq: its row in the log.
        record: the memory record of its words.
    """

    seq: int
    text: str
    record: str
    session: str
    at: Moment


Newer = Callable[[], Awaitable[Sequence[Utterance]]]


async def nothing_newer() -> Sequence[Utterance]:
    return ()


@dataclass(frozen=True)
class RunContext:
    """Why a reasoner wakes, and what it may use.

    Attributes:
        utterances: what to think about, oldest first; more than one where they came faster than it thinks.
        conversation: the last records of the talk before these utterances, oldest first, with what the Talker said.
        reply: what the Talker has said to the newest utterance already; "" where it has not.
        waits: the Talker waits for this run before it answers.
        newer: claims what was said since, so that this run thinks about it too.
        tools: what the mind lets its reasoners call.
        events: the rows of the log that woke it, oldest first: utterances, and whatever else triggers ask for.
        found: what tools have given so far; `strangers`: what of it strangers wrote. Where there is any, all that the
            run comes to is tainted. `searched`: what of it names pages that may be fetched.
    """

    slot: str
    memory: Memory
    utterances: Sequence[Utterance]
    conversation: Sequence[Record]
    reply: str = ""
    waits: bool = False
    newer: Newer = nothing_newer
    tools: Sequence[Tool] = ()
    events: Sequence[Logged] = ()
    found: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)
    searched: list[str] = field(default_factory=list)

    @property
    def session(self) -> str:
        """The session of the newest utterance; "" where there is none."""
        return self.utterances[-1].session if self.utterances else ""

    async def call(self, tool: str, /, **arguments: JsonValue) -> str:
        """Call one of `tools` and return what it gave; the log has the call.

        A run that goes on where another was broken off is given what that one's call gave.

        Raises:
            ToolError: there is no such tool, the arguments do not fit, or it failed.
        """
        found = await watched_call(Call(tool, json.dumps(arguments), chance.token()), self.tools, self)
        if found.failed:
            raise ToolError(found.text)
        return found.text

    async def take_newer(self) -> str:
        """Take what was said since the run began into it; return its words, "" where there are none."""
        return "\n".join(utterance.text for utterance in await self.newer())

    async def recorded_result(self, call: Call) -> str | None:
        """Return the result of the call in an interrupted run, or why it is refused; None: make the call."""
        if why := self._refusal(call):
            return why
        given = await self.calls.recorded_result(call)
        if given is not None:
            self.found.append(given)
            self.strangers.extend([given] * isinstance(given, ForeignText))
        return given

    async def log_call(self, call: Call) -> None:
        """Log a tool's call."""
        event = ToolCalled(slot=self.slot, tool=call.tool, arguments=call.arguments, id=call.id)
        await self.memory.commit(Entry(event, self.slot))

    async def log_observation(self, call: Call, found: Observation) -> None:
        """Log what a tool gave back."""
        if not found.failed:
            self.found.append(found.text)
        if found.foreign:
            self.strangers.append(found.text)
        if any(traits_of(tool).finds for tool in self.tools if tool.spec.name == call.tool):
            self.searched.append(found.text)
        event = Observed(
            slot=self.slot, tool=call.tool, text=found.text, failed=found.failed, foreign=found.foreign, id=call.id
        )
        await self.memory.commit(Entry(event, self.slot))

    def _refusal(self, call: Call) -> str:
        """Refuse an address that neither the user nor a search gave, once third-party content was read."""
        tool = next((each for each in self.tools if each.spec.name == call.tool), None)
        if tool is None or not self.strangers:
            return ""
        said = (each.text for each in self.conversation if each.data.get("by_user"))
        given = links([*(each.text for each in self.utterances), *said, *self.searched])
        address = ungiven(tool, call.arguments, given)
        return refusal_of(address) if address else ""

    @cached_property
    def calls(self) -> Calls:
        """The calls that runs about the same have made and not come to an end with."""
        since = min((row.seq for row in self.events), default=None)
        return Calls(self.memory, self.slot, since)


Writing = tuple[Sequence[Entry], Sequence[Revision]]


@dataclass(frozen=True, slots=True)
class BeliefPatch:
    """What changes in a belief: a value replaces, a list adds, null clears (see memory/belief).

    Attributes:
        shape: what the belief of this slot is made of.
        evidence: ids of the records that it rests on.
    """

    slot: str
    shape: type[BaseModel]
    patch: Patch
    evidence: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Briefing:
    """What whoever speaks is told by whoever thinks; it speaks from it in its own words.

    Attributes:
        stands: how it stands: what is going on, what holds.
        ask: the one thing worth finding out next.
        offer: what to say now, as it could be said.
        care: a caution, or what not to say.
    """

    stands: str = ""
    ask: str = ""
    offer: str = ""
    care: str = ""

    def __str__(self) -> str:
        parts = {"how it stands": self.stands, "ask": self.ask, "offer": self.offer, "care": self.care}
        return "\n".join(f"{name}: {text}" for name, text in parts.items() if text)

    def __bool__(self) -> bool:
        return bool(self.stands or self.ask or self.offer or self.care)


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a reasoner has come to; written in one commit with the end of its work, or not at all.

    Attributes:
        thought: in a few words, for people to read; "" where it woke by itself and there was nothing: no row is
            written.
        model: who thought it.
        records: what is to be remembered of it; `by` is the slot where it is not said.
        beliefs: what changes in beliefs; merged into what is believed when it is written, whoever else wrote.
        write: makes what else is to be written against what is believed at that moment; called again on a conflict.
        briefing: what the Talker is to speak from.
        follow_up: what the mind should say unasked, if the Talker has already spoken.
    """

    thought: str
    model: str = ""
    records: Sequence[RecordDraft] = ()
    beliefs: Sequence[BeliefPatch] = ()
    write: Callable[[], Awaitable[Writing]] | None = None
    briefing: Briefing = Briefing()
    follow_up: str = ""


class Reasoner(Protocol):
    """Whoever thinks behind the talk (Christakopoulou 2024): `Mind.open(reasoners=[…])` takes some."""

    @property
    def slot(self) -> str:
        """Name the part of memory that it writes; at most one run per slot goes on at a time."""

    @property
    def trigger(self) -> Trigger:
        """Say when it wakes."""

    @property
    def timeout_s(self) -> float:
        """Say for how many seconds a run may think."""

    async def think(self, context: RunContext) -> RunResult:
        """Think about what was heard.

        Whatever it raises is the failure of this run: what is believed stays as it is, the work is tried again, a
        bounded number of times, and is then set aside. Where it raises that its model cannot be had, the work rests
        until that is there again.
        """


def checked_reasoner(reasoner: Reasoner) -> Reasoner:
    """Return a reasoner that has all that one has.

    Raises:
        InputError: something is missing, or is no such thing; the message says what.
    """
    name = reasoner.__name__ if isinstance(reasoner, type) else type(reasoner).__name__
    slot, timeout_s = getattr(reasoner, "slot", None), getattr(reasoner, "timeout_s", None)
    if isinstance(reasoner, type):
        lack = f"an instance: {name}()"
    elif not isinstance(slot, str) or not slot:
        lack = "a slot, the name of the part of memory that it writes"
    elif not isinstance(getattr(reasoner, "trigger", None), Trigger):
        lack = "a trigger that says when it wakes, as Trigger(every=1)"
    elif not isinstance(timeout_s, int | float) or not timeout_s > 0:
        lack = "timeout_s, the seconds that a run may think, above 0"
    elif not callable(getattr(reasoner, "think", None)):
        lack = "async def think(self, context: RunContext) -> RunResult"
    else:
        return reasoner
    raise InputError(f"the reasoner {name} needs {lack}")
