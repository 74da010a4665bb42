"""What somebody keeps of a talk: sentences, and the appointments that they tell of, by the numbers of a typed reply."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta

from mindstream.memory.store.record import Record, RecordDraft
from mindstream_town.prompts.conduct import Agreed, Taken
from mindstream_town.residents.person import KEY, Appointment, appointment_of
from mindstream_town.residents.places import is_home, known_places, may_use
from mindstream_town.residents.turn import ResidentTurn
from mindstream_town.setting import Setting
from mindstream_town.world.hours import minute_of
from mindstream_town.world.tree import ARENA

PROMISE = "promise"
"""The keyword of what somebody agreed to, or refused."""
IMPORTANCE = 5.0
USUAL = timedelta(hours=1)
"""How long something lasts of which nobody said how long."""


@dataclass(frozen=True)
class Kept:
    """Something that is kept of a talk.

    Attributes:
        appointment: what takes place, where it tells of that.
        promised: one has agreed to it, or declined. comes: agreed.
    """

    text: str
    appointment: Appointment | None = None
    promised: bool = False
    comes: bool = False

    def as_thought(self, turn: ResidentTurn, other: str, evidence: tuple[str, ...]) -> RecordDraft:
        """Return what is to be remembered of it."""
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


def meeting_places(turn: ResidentTurn, other: str = "") -> list[str]:
    """Return where one can meet another: the places that one knows and may go to, and the other's home."""
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
    """Return what is kept: what was learned, what was agreed on, and every appointment that the other told of.

    Args:
        told: the other's records that it passed on, as they were numbered. places: addresses, as they were.
        known: the appointments that one remembers already: to be told of one again is no news.
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
    """Return an agreement with its appointment: the one that was told of, or the one that the reply describes."""
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
    """Return the appointment that a reply describes; None where nobody said when it is."""
    if said.start is None:
        return None
    midnight = datetime.combine(said.day or now.date(), time(), UTC)
    start = midnight + timedelta(minutes=minute_of(said.start))
    end = start + USUAL if said.end is None else midnight + timedelta(minutes=minute_of(said.end))
    end = end if end > start else end + timedelta(days=1)
    place = places[said.place - 1] if 0 < said.place <= len(places) else ""
    return Appointment(what=said.what.strip() or said.text.strip(), place=place, start=start, end=end)


def find_name(setting: Setting, said: str, others: Iterable[str] = ()) -> str:
    """Return whom a reply means: a resident, or one of the others, by the whole name or a part that only one has."""
    known = (*setting.people, *others)
    fits = [each for each in dict.fromkeys(known) if said == each] or [
        each for each in dict.fromkeys(known) if said and said.casefold() in each.casefold()
    ]
    return fits[0] if len(fits) == 1 else said
