"""A talk between two residents, line by line, and what each of them remembers of it (Park 2023, 4.3.2)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import NamedTuple

from mindstream.memory.lifecycle.importance import RateImportance
from mindstream.memory.recall.recall import Recollection
from mindstream.memory.store.record import Kind, Record, RecordDraft, normalised
from mindstream.reasoners.reflect.reflect import OWN
from mindstream_town.events import SpokenLine, Talked
from mindstream_town.prompts.conduct import Agreed, TakeFromTalk, Taken, Utter
from mindstream_town.residents.person import KEY, Appointment, appointment_of
from mindstream_town.residents.places import known_addresses, rooms_of, words_of
from mindstream_town.residents.plan import take_up
from mindstream_town.residents.prompt_context import show
from mindstream_town.residents.turn import ResidentTurn
from mindstream_town.setting import Setting
from mindstream_town.state import ResidentState
from mindstream_town.world.world import minute_of

PROMISE = "promise"
"""Keyword of memories about an agreement that the resident made or declined."""
IMPORTANCE = 5.0
USUAL = timedelta(hours=1)
"""Duration of an appointment whose end is not stated."""


@dataclass(frozen=True)
class Kept:
    """Something to remember from a talk.

    Attributes:
        appointment: the appointment that the text is about; None: none.
        promised: whether the text is about an agreement that the resident made or declined.
        comes: whether the resident agreed.
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
    """Return places where two residents can meet.

    These are the places that the first resident knows and may use, the places of the first resident's usual day, and
    the rooms of the other resident's home.
    """
    setting = turn.setting
    known, of_day = known_addresses(setting, turn.person, turn.state.knows)
    host = setting.people.get(other)
    return list(dict.fromkeys((*known, *of_day, *(rooms_of(setting, host) if host else ()))))


def keep(
    turn: ResidentTurn,
    other: str,
    taken: Taken,
    told: Sequence[Record],
    places: Sequence[str],
    known: Sequence[Appointment] = (),
) -> list[Kept]:
    """Return the resident's memories of a talk: things learned, agreements, and appointments that the other told it.

    In a fork, texts that the fork withholds from the resident are left out. If such a text is about an appointment, all
    memories of this appointment are left out.

    Args:
        told: records that the other passed on, in the order of their numbers in the prompt.
        places: addresses, in the order of their numbers in the prompt.
        known: appointments that the resident remembers already. If the other told one of them again, it is not added.
    """
    news = [appointment_of(record.data) for record in told]
    kept = [Kept(each.text.strip(), _of(news, each.of)) for each in taken.memo]
    kept += [_agreed(turn, other, each, _of(news, each.of), places) for each in taken.agreed]
    known = [*known, *(each.appointment for each in kept if each.appointment)]
    for record, at in zip(told, news, strict=True):
        if at is not None and not any(at.is_same(each) for each in known):
            kept.append(Kept(record.text, at))
    withheld = {normalised(text) for text in turn.setting.withheld.get(turn.name, ())}
    lost = [at for record, at in zip(told, news, strict=True) if at and normalised(record.text) in withheld]
    return [
        each
        for each in kept
        if each.text
        and normalised(each.text) not in withheld
        and not (each.appointment and any(at.is_same(each.appointment) for at in lost))
    ]


def _of(news: Sequence[Appointment | None], number: int) -> Appointment | None:
    return news[number - 1] if 0 < number <= len(news) else None


def _agreed(turn: ResidentTurn, other: str, said: Agreed, of: Appointment | None, places: Sequence[str]) -> Kept:
    """Return an agreement with its appointment, if there is one.

    The appointment is `of` (told by the other resident), else the appointment that `said` describes.
    """
    text = said.text.strip()
    at = of or _described(turn.when, said, places)
    if at is None:
        return Kept(text, None, promised=True)
    who = {find_name(turn.setting, each, (other,)) for each in (*at.who, *said.who)}
    who = who | {turn.name} if said.comes else who - {turn.name}
    host = at.host or (find_name(turn.setting, said.host, (other,)) if said.host else "")
    whom = {find_name(turn.setting, each) for each in said.whom} & turn.setting.people.keys()
    at = at.model_copy(update={"who": tuple(sorted(who)), "whom": tuple(sorted(whom)), "host": host})
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
    """Return the full name of the person that a reply means: a resident or one of `others`. The reply may contain the
    full name, or a part that occurs in one name only. Otherwise return the text as given."""
    known = (*setting.people, *others)
    fits = [each for each in dict.fromkeys(known) if said == each] or [
        each for each in dict.fromkeys(known) if said and said.casefold() in each.casefold()
    ]
    return fits[0] if len(fits) == 1 else said


OF_OTHER, TO_TELL, PROMISES, APPOINTMENTS = 6, 24, 4, 6
LETTERS_A_MINUTE = 240
"""Characters spoken per minute."""
TELLABLE: tuple[Kind, ...] = ("note", "thought")
"""Kinds of memories that residents pass on. Observations are excluded, because every resident can make them. Lines of
earlier talks are excluded too, because the thoughts derived from those talks are passed on."""
OF_PEOPLE: tuple[Kind, ...] = (*TELLABLE, "observation")


async def converse(first: ResidentTurn, second: ResidentTurn) -> None:
    """Run a talk between two residents and write its events in both turns."""
    lines: list[SpokenLine] = []
    most = first.profile.talk_lines
    minds = {turn.name: await come_to_mind(turn, other) for turn, other in ((first, second), (second, first))}
    while len(lines) < most:
        speaker, other = (first, second) if len(lines) % 2 == 0 else (second, first)
        line, ends = await say_line(speaker, other, minds[speaker.name], lines, most - len(lines))
        lines.append(line)
        if ends and len(lines) > 1:
            break
    until = talk_end(first, lines)
    for one, other in ((first, second), (second, first)):
        told, known = passed_on(lines, other.name, minds[other.name], minds[one.name])
        _, agreed = await keep_said(one, other.name, tuple(lines), until, told, known)
        for each in agreed:
            take_up(one, each.appointment, each.text)


def passed_on(
    lines: Sequence[SpokenLine], by: str, theirs: Sequence[Record], own: Sequence[Record]
) -> tuple[list[Record], tuple[str, ...]]:
    """Return the memories that a speaker passed on, and the ids of the hearer's memories with the same text.

    Args:
        theirs: memories of the speaker. own: memories of the hearer.
    """
    passed = {id_ for line in lines for id_ in line.told if line.by == by}
    told = [record for record in theirs if record.id in passed]
    texts = {normalised(record.text) for record in told}
    return told, tuple(record.id for record in own if normalised(record.text) in texts)


def spoken_drafts(
    one: str, other: str, step: int, lines: Sequence[SpokenLine], importance: float | None
) -> list[RecordDraft]:
    """Return the lines of a talk as one of the two speakers (`one`) remembers them.

    Args:
        step: the step at which the talk begins.
        importance: the importance of each line, 1 to 10; None: lines are rated later.
    """
    return [
        RecordDraft(
            text=line.text,
            kind="chat",
            by=line.by,
            episode=f"talk {step} {min(one, other)}",
            importance=importance,
            keywords=(other.lower(),),
            data={"to": other if line.by == one else one, "told": list(line.told)},
        )
        for line in lines
    ]


def talk_end(turn: ResidentTurn, lines: Sequence[SpokenLine]) -> int:
    """Return the step at which a talk of these lines ends if it begins in this turn."""
    return turn.step + minutes_of(lines) * turn.profile.a_minute


def minutes_of(lines: Sequence[SpokenLine]) -> int:
    """Return how many minutes it takes to say these lines."""
    return math.ceil(sum(len(line.text) for line in lines) / LETTERS_A_MINUTE)


async def come_to_mind(speaker: ResidentTurn, other: ResidentTurn) -> list[Record]:
    """Return the speaker's memories for a talk: memories about the other resident, memories that matter to the speaker,
    promises, and appointments. Memories that the speaker may not tell are left out."""
    found = [
        *await speaker.recall(other.name, OF_OTHER, kinds=OF_PEOPLE),
        *await speaker.recall(speaker.at_heart, TO_TELL, kinds=TELLABLE),
    ]
    dated = [record for record, _ in await speaker.recall_appointments()][:APPOINTMENTS]
    records = [*(each.record for each in found), *await speaker.recall_about([PROMISE], PROMISES), *dated]
    return list({record.id: record for record in records if can_be_told(record)}.values())


async def untold_news(turn: ResidentTurn, other: str, *, for_rules: bool = False) -> list[Record]:
    """Return the memories that matter to a resident and that another does not know yet.

    Args:
        for_rules: whether only rules read the result. Rules ignore the order of the result, so no recall is needed if
            the resident has at most TO_TELL such memories.
    """
    shared = turn.state.shared.get(other, frozenset())
    found = await turn.find(TO_TELL + 1, kinds=TELLABLE) if for_rules else []
    if not for_rules or len(found) > TO_TELL:
        found = [each.record for each in await turn.recall(turn.at_heart, TO_TELL, kinds=TELLABLE, touch=False)]
    return [record for record in found if record.id not in shared and can_be_told(record)]


async def thoughts_of(
    turn: ResidentTurn, other: str, *, for_rules: bool = False
) -> tuple[Recollection, list[Record], list[Record]]:
    """Return three results for a talk with another resident.

    1. A recall about the other resident.
    2. The newest memories about the other resident (at most OF_OTHER), then the recalled ones.
    3. News that the other resident does not know yet.

    `for_rules`: whether only rules read the results. If so, the second result is empty, and the news have no order.
    """
    about = [] if for_rules else await turn.recall_about([other], OF_OTHER)
    recalled = await turn.recall(other, OF_OTHER, kinds=OF_PEOPLE, touch=False)
    of_other = [] if for_rules else [*about, *(each.record for each in recalled)]
    return recalled, of_other, await untold_news(turn, other, for_rules=for_rules)


def can_begin_talk(turn: ResidentTurn, other: ResidentState, *, has_waited: bool = False) -> bool:
    """Return whether two residents in sight of each other could talk; `has_waited`: the first has waited for the
    other."""
    state, step = turn.state, turn.step
    return (
        turn.profile.talks
        and not (state.asleep or other.asleep or other.is_talking(step))
        and state.act is not None
        and other.act is not None
        and (has_waited or state.rested.get(other.name, 0) <= step)
        and other.rested.get(turn.name, 0) <= step
        and "react" not in (state.act.why, other.act.why)
    )


def can_be_told(record: Record) -> bool:
    """Return whether a memory may be told to others: no secret, no self-description, no private thought, no plan."""
    return not {"background", "secret", OWN} & record.data.keys() and "plan" not in record.keywords


async def say_line(
    speaker: ResidentTurn, other: ResidentTurn, memories: Sequence[Record], lines: Sequence[SpokenLine], left: int
) -> tuple[SpokenLine, bool]:
    shared = speaker.state.shared.get(other.name, frozenset())
    said = {id_ for line in lines for id_ in line.told}
    reply = await speaker.ask(
        Utter(
            who=speaker.name,
            identity=speaker.identity,
            other=other.name,
            relation=speaker.relation(other.name),
            situation=f"It is {speaker.date_and_time}. {speaker.name} is {speaker.doing}.",
            memories=show(memories),
            told=tuple(n for n, record in enumerate(memories, 1) if record.id in shared or record.id in said),
            lines=tuple(map(str, lines)),
            left=left,
            last_talk=speaker.last_talk(other.name),
            day=speaker.state.broad,
        )
    )
    told = tuple(memories[n - 1].id for n in dict.fromkeys(reply.passes_on) if 0 < n <= len(memories))
    return SpokenLine(by=speaker.name, text=reply.text.strip(), told=told), reply.ends


def _is_busy(turn: ResidentTurn, record: Record) -> bool:
    """Return whether the resident has a duty at the time of the appointment in a record."""
    at = appointment_of(record.data)
    return at is not None and turn.person.is_on_duty(at)


async def keep_said(
    one: ResidentTurn,
    other: str,
    lines: tuple[SpokenLine, ...],
    until: int,
    told: Sequence[Record],
    known: tuple[str, ...],
    *,
    rates: bool = True,
) -> tuple[str, list[Agreement]]:
    """Write a talk, and what the resident learned from it, into the resident's stream.

    Args:
        until: the step at which the talk ends.
        told: memories that the other passed on.
        known: ids of the resident's memories that the other also told, and therefore knows.
        rates: whether to rate the importance of the talk now; False: it is rated later, together with other memories.

    Returns:
        The topic of the talk, and the appointments that the resident has agreed to.
    """
    places = meeting_places(one, other)
    taken = await one.ask(
        TakeFromTalk(
            who=one.name,
            other=other,
            date=one.date,
            lines=tuple(map(str, lines)),
            identity=one.identity,
            told=show(told),
            places=tuple(map(words_of, places)),
            day=one.state.broad,
            busy=tuple(number for number, record in enumerate(told, 1) if _is_busy(one, record)),
        )
    )
    about, importance = f"{one.name} talked with {other} about {taken.about}", None
    if rates:
        rated = await one.ask(RateImportance(who=one.name, memories=(about,)))
        importance = float(rated.ratings[0])
    spoken = await one.build(*spoken_drafts(one.name, other, one.step, lines, importance))
    evidence = tuple(each.id for each in spoken)
    kept = keep(one, other, taken, told, places, [at for _, at in await one.recall_appointments()])
    await one.resident.written()
    same = await one.resident.memory.find_same("thought", [each.text for each in kept])
    learned = {normalised(each.text): each.as_thought(one, other, evidence) for each in reversed(kept)}
    met = RecordDraft(
        text=about, kind="observation", by=one.name, importance=importance, evidence=evidence, keywords=(other.lower(),)
    )
    of_talk, *thoughts = await one.build(met, *(learned[words] for words in reversed(learned) if words not in same))
    records = (*spoken, of_talk, *thoughts)
    event = Talked(
        step=one.step,
        partner=other,
        lines=lines,
        until=until,
        records=tuple(record.id for record in records),
        known=tuple(dict.fromkeys((*known, *(record.id for record in same.values())))),
        gathered=importance or 0.0,
        unrated=() if rates else (of_talk.id,),
    )
    one.write(event, records)
    return taken.about, [Agreement(each.appointment, each.text) for each in kept if each.appointment and each.comes]
