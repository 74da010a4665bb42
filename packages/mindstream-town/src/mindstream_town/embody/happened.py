"""Derive the events that a controlled resident experiences from its log rows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Protocol

from mindstream.frozen import Frozen
from mindstream.log.events import Logged
from mindstream.memory.store.record import Record
from mindstream.memory.store.store import Store, read_log
from mindstream_town.embody.living import Deed
from mindstream_town.events import (
    Acted,
    Declined,
    Overheard,
    Perceived,
    Released,
    Spoke,
    SpokenLine,
    Talked,
    TasksPlanned,
)
from mindstream_town.residents.turn import Resident
from mindstream_town.setting import Setting
from mindstream_town.world.hours import DAY_MINUTES, clock
from mindstream_town.world.whereabouts import Condition


class OpenTown(Protocol):
    """The part of the interface of `Town` that a controlled resident needs."""

    setting: Setting
    store: Store
    residents: dict[str, Resident]

    @property
    def step(self) -> int:
        """The last finished step."""

    @property
    def conditions(self) -> Mapping[str, Condition]:
        """Conditions of the objects that are not in order, by address."""

    async def live_with(
        self, deeds: Mapping[str, Deed], until: int, stop: Callable[[], bool], on_step: Callable[[int], None]
    ) -> None:
        """Run the next step with users' actions; then run up to a step, or until `stop` returns True."""

    async def save(self) -> None:
        """Write the state of all residents."""

    async def whisper(self, name: str, text: str) -> Record:
        """Add a thought to a resident's memory."""

    async def set_object(self, place: str, condition: str, by: str = "", danger: bool | None = None) -> bool:
        """Change the condition of an object, given in words; return whether the condition is a danger."""


TOLD = tuple(each.kind for each in (Perceived, Overheard, Spoke, Talked, Declined, TasksPlanned, Acted, Released))


class Happening(Frozen):
    """An event from the view of a controlled resident.

    Attributes:
        kind: saw, heard, said, did, talked (a talk is over), agreed, left, or unanswered (`who` did not answer; `text`:
            the resident's partner).
        waited: the partner has waited for an answer of the resident and has stopped waiting.
    """

    step: int
    time: str
    kind: str
    who: str = ""
    text: str = ""
    waited: bool = False


async def happenings(town: OpenTown, resident: Resident, since: int) -> AsyncIterator[Happening]:
    """Yield the resident's events after a step, in order."""
    await resident.written()
    setting, telling = town.setting, _Telling(resident.name)
    first = setting.moment(since)
    async for row in read_log(town.store, resident.memory.key, kinds=TOLD):
        step = round((row.at - setting.start) / setting.profile.step_s)
        when = {"step": step, "time": setting.when(step).isoformat()}
        for each in telling.tell(row):
            if row.at > first:
                yield Happening.model_validate(each | when)


def _told(kind: str, who: str = "", text: str = "", waited: bool = False) -> dict[str, object]:
    return {"kind": kind, "who": who, "text": text, "waited": waited}


class _Telling:
    """Converts log rows to events in order; it remembers which lines of a talk it has yielded already."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._told: list[SpokenLine] = []
        self._stood = -1
        """The step at which the resident last began to wait for its user."""

    def tell(self, row: Logged) -> Iterator[dict[str, object]]:
        """Yield the events of a row."""
        match row.event:
            case Perceived():
                yield from (_told("saw", subject, f"{subject} {verb} {what}") for subject, verb, what in row.event.seen)
            case Overheard() if row.event.said:
                yield _told("heard", row.event.speakers[0], row.event.said)
            case Spoke() | Talked() | Declined():
                yield from self._tell_talk(row.event)
            case TasksPlanned() if row.event.because:
                planned = (f"{clock(each.start % DAY_MINUTES)} {each.what}" for each in row.event.blocks)
                yield _told("agreed", "", "; ".join(planned))
            case Acted() if row.event.act.why in ("", "plan", "react"):
                yield _told("did", "", row.event.act.what)
            case Acted() if row.event.act.why == "wait":
                self._stood = row.event.step
            case Released():
                yield _told("left", row.event.person)

    def _tell_talk(self, event: Spoke | Talked | Declined) -> Iterator[dict[str, object]]:
        if isinstance(event, Spoke):
            self._told.append(event.line)
            yield self._line(event.line, event.partner)
            return
        before, self._told = self._told, []
        waited = self._stood == event.step and event.lines[-1].by != self.name
        if isinstance(event, Talked):
            yield _told("talked", event.partner, "", waited)
            return
        yield from (self._line(line, event.partner) for line in event.lines if line not in before)
        yield _told("unanswered", event.by, event.partner, waited)

    def _line(self, line: SpokenLine, partner: str) -> dict[str, object]:
        return _told("said", partner, line.text) if line.by == self.name else _told("heard", line.by, line.text)
