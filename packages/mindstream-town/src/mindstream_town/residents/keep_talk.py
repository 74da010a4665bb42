"""What a resident remembers of a talk: sentences and appointments, taken from a typed reply."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import NamedTuple

from mindstream.memory.store.record import Record, RecordDraft
from mindstream_town.prompts.conduct import Agreed, Taken
from mindstream_town.residents.person import KEY, Appointment, appointment_of
from mindstream_town.residents.places import is_home, known_places, may_use
from mindstream_town.residents.turn import ResidentTurn
from mindstream_town.setting import Setting
from mindstream_town.world.hours import minute_of
from mindstream_town.world.tree import ARENA

PROMISE = "promise"
"""Keyword of what a resident agreed to or declined."""
IMPORTANCE = 5.0
USUAL = timedelta(hours=1)
"""Duration of an appointment whose end was not named."""


@dataclass(frozen=True)
class Kept:
    """One thing to remember of a talk.

    Attributes:
        appointment: the appointment that the text is about, if any.
        promised: the resident has agreed or declined. comes: it has agreed.
    """

    text: str
    appointment: Appointment | None = None
    promised: bool = False
    comes: bool = False

    def as_thought(self, turn: ResidentTurn, other: str, evidence: tuple[str, ...]) -> RecordDraft:
        keywords = (other.lower(), *([PROMISE] if self.promised else ()), *([KEY] if self.appointment else ()))
        data = self.appointment.as_data() if self.appointment else {}
        return RecordDraft(
            text=self.text,
            kind="thought",
            by=turn.name,
            importance=IMPORTANCE,
            evidence=evidence,
            keywords=keywords,
            data=data,
        )


class Agreement(NamedTuple):
    """An appointment that a resident has agreed to, and the sentence about it."""

    appointment: Appointment
    text: str


def meeting_places(turn: ResidentTurn, other: str = "") -> list[str]:
    """Return where a resident can meet another: known places that it may enter, and the other's home."""
    setting = turn.setting
    known = [address for address, _ in known_places(setting, turn.person, turn.state.knows, setting.when(turn.step))]
    host = setting.people.get(other)
    if host is None:
        return known
    rooms = [
        address
        for address, place in setting.addresses.items()
        if place.level == ARENA and is_home(host, address) and may_use(setting, host, address)
    ]
    return list(dict.fromkeys((*known, *sorted(rooms))))


def keep(
    turn: ResidentTurn,
    other: str,
    taken: Taken,
    told: Sequence[Record],
    places: Sequence[str],
    known: Sequence[Appointment] = (),
) -> list[Kept]:
    """Return what to remember: lessons, agreements, and every appointment that the other told.

    Args:
        told: the records that the other passed on, in the order of their numbers. places: addresses, in the same way.
        known: appointments that the resident remembers already; they are not repeated.
    """
    news = [appointment_of(record.data) for record in told]
    kept = [Kept(each.text.strip(), _of(news, each.of)) for each in taken.memo]
    kept += [_agreed(turn, other, each, _of(news, each.of), places) for each in taken.agreed]
    known = [*known, *(each.appointment for each in kept if each.appointment)]
    for record, at in zip(told, news, strict=True):
        if at is not None and not any(at.is_same(each) for each in known):
            kept.append(Kept(record.text, at))
    return [each for each in kept if each.text]


def _of(news: Sequence[Appointment | None], number: int) -> Appointment | None:
    return news[number - 1] if 0 < number <= len(news) else None


def _agreed(turn: ResidentTurn, other: str, said: Agreed, of: Appointment | None, places: Sequence[str]) -> Kept:
    """Return an agreement with its appointment: the other's, or the one described in the reply."""
    text = said.text.strip()
    at = of or _described(turn.setting.when(turn.step), said, places)
    if at is None:
        return Kept(text, None, promised=True)
    who = {find_name(turn.setting, each, (other,)) for each in (*at.who, *said.who)}
    who = who | {turn.name} if said.comes else who - {turn.name}
    host = at.host or (find_name(turn.setting, said.host, (other,)) if said.host else "")
    at = at.model_copy(update={"who": tuple(sorted(who)), "host": host})
    return Kept(text, at, promised=True, comes=said.comes)


def _described(now: datetime, said: Agreed, places: Sequence[str]) -> Appointment | None:
    """Return the appointment that a reply describes; None if it has no start."""
    if said.start is None:
        return None
    midnight = datetime.combine(said.day or now.date(), time(), UTC)
    start = midnight + timedelta(minutes=minute_of(said.start))
    end = start + USUAL if said.end is None else midnight + timedelta(minutes=minute_of(said.end))
    end = end if end > start else end + timedelta(days=1)
    place = places[said.place - 1] if 0 < said.place <= len(places) else ""
    return Appointment(what=said.what.strip() or said.text.strip(), place=place, start=start, end=end)


def find_name(setting: Setting, said: str, others: Iterable[str] = ()) -> str:
    """Return the person that a reply means: a resident or one of `others`, by full name or by an unambiguous part."""
    known = (*setting.people, *others)
    fits = [each for each in dict.fromkeys(known) if said == each] or [
        each for each in dict.fromkeys(known) if said and said.casefold() in each.casefold()
    ]
    return fits[0] if len(fits) == 1 else said
