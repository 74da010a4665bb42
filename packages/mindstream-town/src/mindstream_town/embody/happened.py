"""What somebody as whom a person lives has lived through, told from its rows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import NamedTuple, Protocol

from pydantic import BaseModel, ConfigDict

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
    """A town that can be lived in: `Town`, as far as a person in it needs it."""

    setting: Setting
    store: Store
    residents: dict[str, Resident]

    @property
    def step(self) -> int:
        """The last step that is done."""

    @property
    def conditions(self) -> Mapping[str, Condition]:
        """The conditions of objects that are not as they should be, by address."""

    async def live_with(
        self, deeds: Mapping[str, Deed], until: int, stop: Callable[[], bool], on_step: Callable[[int], None]
    ) -> None:
        """Let people do something in the next step, and live up to a step, or to one after which it is to stop."""

    async def save(self) -> None:
        """Write the state of all."""

    async def whisper(self, name: str, text: str) -> Record:
        """Put a thought into somebody's memory."""

    async def set_object(self, place: str, condition: str, by: str = "", danger: bool | None = None) -> bool:
        """Put an object into a condition, in words."""


TOLD = tuple(each.kind for each in (Perceived, Overheard, Spoke, Talked, Declined, TasksPlanned, Acted, Released))


class Happening(BaseModel):
    """Something that one has lived through.

    Attributes:
        kind: saw, heard, said, did, talked (a talk is over), unanswered (by `who`; `text`: the other), agreed, left.
        waited: the other has waited for what one says, and waits no longer.
    """

    model_config = ConfigDict(frozen=True)

    step: int
    time: str
    kind: str
    who: str = ""
    text: str = ""
    waited: bool = False


async def happenings(town: OpenTown, resident: Resident, since: int) -> AsyncIterator[Happening]:
    """Yield what somebody has lived through after a step, in order."""
    await resident.written()
    setting, key, telling = town.setting, resident.memory.key, _Telling(resident.name)
    first = setting.moment(since)
    async for row in read_log(town.store, key, kinds=TOLD):
        told = list(telling.tell(row))
        if row.at > first:
            step = round((row.at - setting.start) / setting.profile.step_s)
            time = setting.when(step).isoformat()
            for each in told:
                yield Happening(step=step, time=time, kind=each.kind, who=each.who, text=each.text, waited=each.waited)


class _Told(NamedTuple):
    kind: str
    who: str = ""
    text: str = ""
    waited: bool = False


class _Telling:
    """Tells the rows of somebody in order, and knows what of a talk was told line by line."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._told: list[SpokenLine] = []
        self._stood = -1
        """The step at which it last came to the end of what it did, and did nothing else."""

    def tell(self, row: Logged) -> Iterator[_Told]:
        """Yield what a row is to whose it is."""
        match row.event:
            case Perceived():
                yield from (_Told("saw", subject, f"{subject} {verb} {what}") for subject, verb, what in row.event.seen)
            case Overheard() if row.event.said:
                yield _Told("heard", row.event.speakers[0], row.event.said)
            case Spoke() | Talked() | Declined():
                yield from self._tell_talk(row.event)
            case TasksPlanned() if row.event.because:
                planned = (f"{clock(each.start % DAY_MINUTES)} {each.what}" for each in row.event.blocks)
                yield _Told("agreed", "", "; ".join(planned))
            case Acted() if row.event.act.why in ("", "plan", "react"):
                yield _Told("did", "", row.event.act.what)
            case Acted() if row.event.act.why == "wait":
                self._stood = row.event.step
            case Released():
                yield _Told("left", row.event.person)

    def _tell_talk(self, event: Spoke | Talked | Declined) -> Iterator[_Told]:
        if isinstance(event, Spoke):
            self._told.append(event.line)
            yield self._line(event.line, event.partner)
            return
        before, self._told = self._told, []
        waited = self._stood == event.step and event.lines[-1].by != self.name
        if isinstance(event, Talked):
            yield _Told("talked", event.partner, "", waited)
            return
        yield from (self._line(line, event.partner) for line in event.lines if line not in before)
        yield _Told("unanswered", event.by, event.partner, waited)

    def _line(self, line: SpokenLine, partner: str) -> _Told:
        return _Told("said", partner, line.text) if line.by == self.name else _Told("heard", line.by, line.text)
