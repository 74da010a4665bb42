"""Build the prompts of scenes, and plan a resident's day in one reply."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from math import ceil, inf
from typing import Any, cast

from mindstream.clock import DAY_S
from mindstream.log.events import Reflected
from mindstream.memory.store.record import Kind, Record, RecordDraft, normalised
from mindstream.models.rules import Rules
from mindstream.reasoners.reflect.reflect import BY, OWN
from mindstream_town.events import Act, Block, Briefed, DayPlanned, Perceived, Resolved, ResultAsked, TasksPlanned
from mindstream_town.profile import Profile
from mindstream_town.prompts.plans import AT_HOME, BED, LEAST_AWAKE, WAKE, DayPlan, Item, Memory, Place, say_date
from mindstream_town.residents.converse import OF_PEOPLE, TELLABLE, can_be_told, find_name
from mindstream_town.residents.moving_in import SECRET
from mindstream_town.residents.person import Appointment, DayItem, Person, appointment_of
from mindstream_town.residents.places import (
    avoided_by,
    home_to_visit,
    hosts_of,
    is_common,
    is_home,
    is_let_in,
    known_addresses,
    known_places,
    words_of,
)
from mindstream_town.residents.plan import FREE, blocks_of, minutes_between, plan_note
from mindstream_town.residents.prompt_context import (
    are_alike,
    are_copies,
    cut_at_word,
    household,
    housemates,
    people_in_sight,
    runs,
    show,
    weather_on,
)
from mindstream_town.residents.sight import PEOPLE
from mindstream_town.residents.turn import ResidentTurn
from mindstream_town.scenes.prompts import (
    MOST_INSIGHTS,
    Evening,
    PlanScenes,
    ReflectScenes,
    SceneChange,
    SceneDay,
    SceneItem,
    SceneTell,
    WhatCame,
)
from mindstream_town.setting import Setting
from mindstream_town.state import ResidentState
from mindstream_town.world.tree import ARENA, OBJECT, SECTOR, parse_address, sector_of
from mindstream_town.world.world import DAY_MINUTES, clock


def identity(turn: ResidentTurn) -> str:
    """Return the description of a resident for its prompts.

    The description has the name, traits, concerns, life story, household, acquaintances and attitudes toward others. It
    has habits only if the resident has no usual day (`Person.day`).
    """
    state, person = turn.state, turn.person
    stances = (f"{stands_to(name)}{text}" for name, text in sorted(state.stances.items()))
    return "\n".join((*_described(turn, state.currently or person.currently, state.about or person.about), *stances))


def described_anyway(turn: ResidentTurn) -> str:
    """Return what a resident's description says now, and what it said at the beginning. Memories that only repeat this
    text are left out of prompts."""
    person = turn.person
    return "\n".join((identity(turn), person.currently, person.about, *person.acquaintances()))


def stands_to(name: str) -> str:
    """Return the beginning of the line of `identity` about the attitude toward another resident: `Stands to Ann: `."""
    return f"Stands to {name}: "


def public_identity(turn: ResidentTurn) -> tuple[str, ...]:
    """Return the lines of a resident's description for conversations, and one line for each person outside the
    household that the resident knew at the beginning.

    Left out are:
    - daily habits;
    - texts that the resident's model has written since the town began (`written_since`), because they may contain
      secrets;
    - the original texts that such texts replaced.
    """
    state, person = turn.state, turn.person
    is_new = state.currently not in ("", person.currently)
    lines = _described(turn, "" if is_new else person.currently, "" if state.about else person.about, for_talk=True)
    return (*lines, *acquaintances(turn).values())


def acquaintances(turn: ResidentTurn) -> dict[str, str]:
    """Return a line for each person that a resident knew at the beginning and that is not of its household, by name."""
    at_home = housemates(turn.setting, turn.person)
    return {
        each.name: f"{turn.name} knows {each.name} ({each.what})"
        for each in turn.person.relations
        if each.name not in at_home
    }


def identity_for_talk(turn: ResidentTurn, present: Collection[str]) -> str:
    """Return the description of a resident for a conversation, or for the result of an act. If the resident has a
    briefing about its secrets, only the lines that the briefing allows are included.

    Args:
        present: the people who are there. Other acquaintances of the resident are not described.
    """
    briefing, known = briefing_of(turn), acquaintances(turn)
    lines = briefing.lines if briefing else (*public_identity(turn), *written_since(turn))
    others = {line for name, line in known.items() if name not in present}
    return "\n".join(each for each in lines if each not in others)


def written_since(turn: ResidentTurn) -> tuple[str, ...]:
    """Return the texts about a resident's concerns and life that its model has written since the town began."""
    state = turn.state
    currently = state.currently if state.currently != turn.person.currently else ""
    return tuple(each for each in (currently and f"{IN_THE_MORNING}{currently}", state.about) if each)


IN_THE_MORNING = "In the morning: "
"""Prefix of the line about a resident's concerns in the prompt of a conversation. Concerns are written once a day."""


def briefing_of(turn: ResidentTurn) -> Briefed | None:
    """Return the decision of a resident with secrets about today's conversations; None: there is none yet."""
    briefing = turn.state.briefing
    return briefing if briefing and briefing.day == turn.day else None


def hides_act(turn: ResidentTurn, act: Act | Block) -> bool:
    """Return whether an act, or a part of the plan, reveals a secret of its resident."""
    briefing = briefing_of(turn)
    return act.secret or (briefing is not None and act.what in briefing.plan)


def clears(turn: ResidentTurn, *used: Record) -> bool:
    """Return whether a text that is written from the memories `used` cannot reveal a resident's secrets.

    The text may also use the public part of the description, and words of others. It reveals no secret if all of these
    hold:
    - the resident has a briefing about its secrets today;
    - the resident has never met anyone to whom it would tell something of its secrets (others repeat what they hear);
    - no memory in `used` reveals a secret (`is_clear`).
    """
    return briefing_of(turn) is not None and not turn.state.confided and all(is_clear(turn, each) for each in used)


def is_clear(turn: ResidentTurn, record: Record) -> bool:
    """Return whether a memory reveals no secret of the resident.

    A memory reveals none if it has been judged so, or if it tells of something that all could see.
    """
    return record.id in turn.state.cleared or record.about is not None


def _described(turn: ResidentTurn, currently: str, about: str, *, for_talk: bool = False) -> tuple[str, ...]:
    person = turn.person
    home = words_of(sector_of(person.home))
    with_whom = household(turn.setting, person)
    lives = f"Home: {home}, {'with ' + ', '.join(with_whom) if with_whom else 'alone'}"
    said = f"{IN_THE_MORNING if for_talk and currently else ''}{currently}"
    alone = person.model_copy(update={"relations": (), "currently": said})
    # Talks leave out daily habits. Elsewhere, `lifestyle` and `routine` would only repeat the hours of `person.day`.
    if for_talk or person.day:
        alone = alone.model_copy(update={"lifestyle": "", "routine": ""})
    known = () if for_talk else _knows(turn)
    return tuple(each for each in (*alone.identity(said).split("\n"), about, lives, *known) if each)


def _knows(turn: ResidentTurn) -> tuple[str, ...]:
    """Return two lines: the people outside its household that a resident knew at the beginning, and other people that
    it has met since. A line without names is ""."""
    known = {each.name: each.what for each in turn.person.relations}
    at_home = housemates(turn.setting, turn.person)
    before = [f"{name} ({what})" for name, what in known.items() if name not in at_home]
    since = sorted({*turn.state.scenes, *turn.state.met} - {*known, *at_home})
    return (
        f"Knew at first: {'; '.join(before)}" if before else "",
        f"Has met since: {', '.join(since)}" if since else "",
    )


def doing(turn: ResidentTurn) -> str:
    """Return a resident's act as others see it.

    For an act at a place, add:
    - the state of the object in use; on the way to another room, the destination instead;
    - whether the act is a duty;
    - whether a talk has already produced the result of the act;
    - when the act ends.
    """
    act = turn.state.act
    if act is None or not act.place:
        return act.outwardly if act else turn.doing
    at = f"{act.place.rpartition(':')[2]}: {act.state}" if act.state else ""
    here = turn.setting.world.address_at(turn.state.spot(turn.step))
    is_here = here.level >= ARENA and here.upto(ARENA) == parse_address(act.place).upto(ARENA)
    way = "" if is_here else f"on the way: {words_of(act.place)}"
    more = (
        at if act.has_arrived(turn.step) else way,
        _is_duty(turn) and "a duty",
        _is_settled(turn) and SETTLED,
        f"until {turn.setting.when(act.until):%H:%M}",
    )
    return f"{act.outwardly} ({', '.join(each for each in more if each)})"


def _is_settled(turn: ResidentTurn) -> bool:
    """Return whether a talk has already produced the result of a resident's current planned act."""
    act, block = turn.state.act, turn.state.block_at(turn.minute)
    return act is not None and block is not None and block.settled and block.what == act.what


def _is_duty(turn: ResidentTurn) -> bool:
    """Return whether a resident's usual day has a duty at this time in the house in which its current act takes
    place."""
    act, minute, date = turn.state.act, turn.setting.minute(turn.step), turn.setting.when(turn.step)
    return act is not None and any(
        each.duty
        and each.is_on(date)
        and each.start <= minute < each.end
        and sector_of(each.place) == sector_of(act.place)
        for each in turn.person.day
    )


def knows_of(turn: ResidentTurn, other: str) -> bool:
    """Return whether a resident's description names another resident or a member of the other's household."""
    described = identity(turn)
    return any(name in described for name in (other, *housemates(turn.setting, turn.setting.people[other])))


def last_met(turn: ResidentTurn, other: str) -> str:
    """Return the weekday and time of the last scene of two residents, such as `Monday 14:00`.

    "": they had no scene, or they live together.
    """
    last = None if other in housemates(turn.setting, turn.person) else turn.state.scenes.get(other)
    return "" if last is None else f"{turn.setting.when(last):%A %H:%M}"


def find_place(said: str, places: Mapping[str, str]) -> str:
    """Return the address of the place that a reply names; "" if the name is unknown or ambiguous.

    The name may also be a part of the place's name, or contain it, if only one place fits.

    Args:
        places: addresses by their names in the prompt.
    """
    name = said.split(" (")[0].split(": ")[0].strip().casefold()
    if not name:
        return ""
    by_name = {each.casefold(): address for each, address in places.items()}
    if name in by_name:
        return by_name[name]
    near = {address for each, address in by_name.items() if name in each or each in name}
    return near.pop() if len(near) == 1 else ""


def find_thing(setting: Setting, place: str, said: str) -> str:
    """Return the address of an object in a place; the place itself if it has no such object."""
    name = said.strip().casefold()
    things = {each.rpartition(":")[2].casefold(): each for each in setting.objects_in(place)}
    return things.get(name, place)


def by_words(addresses: Sequence[str]) -> dict[str, str]:
    """Return a mapping from the name of each place in words to its address."""
    return {words_of(each): each for each in addresses}


MOST_SEARCHED = 40


async def secrets_of(turn: ResidentTurn) -> list[Record]:
    """Return the memories that a resident keeps to itself; notes, such as the memories from before the town began, come
    first."""
    found = await turn.recall_about([SECRET], MOST_SEARCHED, kinds=OF_PEOPLE)
    memory = turn.resident.memory
    kept = await memory.records(sorted(turn.state.keeps)) if turn.state.keeps else []
    secret = {each.id: each for each in (*found, *kept) if is_secret(turn, each)}
    return sorted(secret.values(), key=lambda each: each.kind != "note")


def is_secret(turn: ResidentTurn, record: Record) -> bool:
    """Return whether a memory is secret, or the resident has decided to keep it to itself."""
    return bool(record.data.get(SECRET)) or record.id in turn.state.keeps


MAX_PLAN_MEMORIES, MAX_IMPORTANT = 16, 3
"""Maximum memories in the prompt of a day's plan, and of these maximum number of the most important ones of the last 24
hours."""
MAX_HABITS_AT_HOME, MAX_HABITS, MAX_ACQUAINTANCES = 600, 300, 8
"""Limits for the prompt of a day's plan. MAX_HABITS_AT_HOME: characters of a housemate's habits. MAX_HABITS: characters
of a line about where another person usually is. MAX_ACQUAINTANCES: by how much the number of such lines may exceed the
number of housemates."""
MAX_PER_QUESTION = 6
"""Maximum memories per recall query for a day's plan."""
EARLY = 45
"""A resident that would arrive fewer than this many minutes before opening time sets out later."""


async def plan_scenes(turn: ResidentTurn, day: int) -> None:
    """Plan a day with one model call, from memories, appointments, known places and the usual day."""
    date = turn.setting.when(turn.step)
    records, dated = await _come_to_mind(turn, date)
    known = _places(turn, date, dated)
    shown = tuple(each for address, each in known.items() if address.rpartition(":")[0] not in known)
    said = say_date(date)
    reply = await turn.ask(
        PlanScenes(
            who=turn.name,
            identity=identity(turn),
            date=said,
            weather=weather_on(turn.setting, turn.step),
            memories=_shown_for_plan(turn, records),
            yesterday=await _lived(turn),
            places=shown,
            usual=_usual(turn, date),
            at_home=_others_at_home(turn, date),
            habits=_habits(turn, date),
            avoids=avoided_by(turn),
        ),
        lambda: _usual_day(turn, date, dated, records),
    )
    kept = {records[number - 1].id for number in reply.keeps if 0 < number <= len(records)}
    secret = {number for number, each in enumerate(records, 1) if each.data.get(SECRET) or each.id in kept}
    broad = tuple(f"{item.start} {item.what}" for item in reply.items)
    written = await plan_note(turn, said, broad, records)
    cited = sorted({number for item in reply.items for number in item.because if 0 < number <= len(records)})
    event = DayPlanned(
        step=turn.step,
        day=day,
        currently=turn.state.currently or turn.person.currently,
        broad=broad,
        blocks=tuple(_agreed(turn, _on_opening(turn, _fine(turn, reply, list(known), day, secret)), dated)),
        records=tuple(each.id for each in written),
        cites=tuple(records[number - 1].id for number in cited),
        keeps=tuple(sorted((turn.state.keeps - {each.id for each in records}) | kept)),
        tells={
            records[each.number - 1].id: names
            for each in reply.tell
            if 0 < each.number <= len(records) and each.number not in secret and (names := _names(turn, each.to))
        },
    )
    turn.write(event, written)


def _shown_for_plan(turn: ResidentTurn, records: Sequence[Record]) -> tuple[Memory, ...]:
    """Return memories as the plan's prompt shows them.

    Each memory is shown with the weekday of its creation and, if known, what the resident will do about the memory. One
    of these remarks may follow the weekday:
    - the resident keeps the memory to itself;
    - some people still have to be told of the memory;
    - the resident has not passed it on yet.
    """
    written = [f"{datetime.fromtimestamp(each.created, UTC):%A}" for each in records]
    waiting = {id_: f"{STILL_UNTOLD} {', '.join(names)}" for id_, names in still_to_tell(turn.state).items()}
    heard = [
        KEPT if is_secret(turn, each) else waiting.get(each.id) or (UNHEARD if is_unheard(turn, each) else "")
        for each in records
    ]
    written = [f"{day}; {how}" if how else day for day, how in zip(written, heard, strict=True)]
    shown = zip(show(records, written), records, strict=True)
    return tuple(
        each.model_copy(update={"text": f"{each.text} -> {then}"}) if (then := record.data.get(THEN)) else each
        for each, record in shown
    )


async def _latest(turn: ResidentTurn, *kinds: Kind, most: int = 0) -> Sequence[Record]:
    """Return a resident's newest records of some kinds, oldest first, after its pending rows are written.

    Args:
        most: maximum records; 0: LOOKED_THROUGH.
    """
    await turn.resident.written()
    memory = turn.resident.memory
    return await memory.store.latest(memory.key, kinds, most or LOOKED_THROUGH, now=turn.now)


async def _lived(turn: ResidentTurn) -> tuple[str, ...]:
    """Return the texts of the resident's acts and results of the last 24 hours, at most MAX_LIVED, in the order of
    time. If there are more, results are preferred to acts, then more important memories to less important ones."""
    newest = await _latest(turn, "observation", "thought")
    own = [each for each in newest if each.created > turn.now - DAY_S and {DEED, OUTCOME} & each.data.keys()]
    own.sort(key=lambda each: (OUTCOME not in each.data, -(each.importance or 0.0), -each.created, each.id))
    kept = sorted(own[:MAX_LIVED], key=lambda each: (each.created, OUTCOME in each.data, each.id))
    return tuple(cut_at_word(each.text.removeprefix(f"{turn.name}: "), MAX_MEMORY_CHARACTERS) for each in kept)


def _others_at_home(turn: ResidentTurn, date: datetime) -> tuple[str, ...]:
    """Return lines about when the resident's housemates are usually at home on a date. For a housemate without a usual
    day, the line has its habits."""
    people = [turn.setting.people[name] for name in housemates(turn.setting, turn.person)]
    return tuple(
        line
        for each in people
        for line in (
            [_hours_of(each, item) for item in each.day if item.is_on(date) and is_home(turn.person, item.place)]
            if each.day
            else [_of_person(each, f"{each.lifestyle} {each.routine}", MAX_HABITS_AT_HOME)]
        )
        if line
    )


def _habits(turn: ResidentTurn, date: datetime) -> tuple[str, ...]:
    """Return lines about where other people usually are on a date: housemates, avoided people and acquaintances.

    A line lists, by room, the person's hours that the resident knows of (`_is_known_of`). If there are no such hours,
    the line is the beginning of the person's habits, and a housemate gets no line. Hours at home are left to
    `_others_at_home`. There are at most MAX_ACQUAINTANCES more lines than housemates.
    """
    near = housemates(turn.setting, turn.person)
    names = dict.fromkeys((*near, *avoided_by(turn), *(each.name for each in turn.person.relations)))
    lines = []
    for each in (turn.setting.people[name] for name in names if name in turn.setting.people and name != turn.name):
        hours = dict[str, list[str]]()
        for item in each.day:
            if item.is_on(date) and _is_known_of(turn, each, item, date):
                room = words_of(str(parse_address(item.place).upto(ARENA)))
                hours.setdefault(room, []).append(f"{clock(item.start)}-{clock(item.end)}")
        where = "; ".join(f"{room} {', '.join(times)}" for room, times in hours.items())
        routine = "" if each.name in near else _of_person(each, each.routine, MAX_HABITS)
        lines.append(f"{each.name}: {where}" if where else routine)
    return tuple(cut_at_word(line, MAX_HABITS) for line in lines if line)[: MAX_ACQUAINTANCES + len(near)]


def _is_known_of(turn: ResidentTurn, person: Person, item: DayItem, date: datetime) -> bool:
    """Return whether a resident knows of a part of another person's usual day.

    - A duty is known, unless its place is in the resident's own home.
    - Another part is known if its place is outside of the person's home, and the two live together or the resident is
      usually in the same house at that time.
    """
    if item.duty or is_home(person, item.place):
        return item.duty and not is_home(turn.person, item.place)
    house = sector_of(item.place)
    return person.name in housemates(turn.setting, turn.person) or any(
        own.is_on(date) and sector_of(own.place) == house and own.start < item.end and item.start < own.end
        for own in turn.person.day
    )


def _hours_of(person: Person, item: DayItem) -> str:
    room = str(parse_address(item.place).upto(ARENA)).rpartition(":")[2]
    return f"{person.name}: {clock(item.start)}-{clock(item.end)} {item.what} ({room})"


def _of_person(person: Person, text: str, most: int) -> str:
    """Return the beginning of a text about a person, at most `most` characters, as a line that names the person; ""
    for an empty text."""
    named = text.strip() if person.name in text or not text.strip() else f"{person.name}: {text.strip()}"
    return cut_at_word(named, most)


def _usual_day(
    turn: ResidentTurn, date: datetime, dated: Sequence[Appointment], records: Sequence[Record] = ()
) -> SceneDay:
    """Return a plan that replaces a reply that could not be parsed: the usual day and the appointments that the
    resident has agreed to. What the resident keeps to itself, and what it has to tell, stays as it was.

    Args:
        records: the memories in the prompt.
    """
    agreed = [each for each in dated if turn.name in (each.host, *each.who)]
    parts = [
        *((each.start, each.end, each.what, each.place) for each in turn.person.day if each.is_on(date)),
        *((at.start.hour * 60 + at.start.minute, at.end.hour * 60 + at.end.minute, at.what, at.place) for at in agreed),
    ]
    items = [
        SceneItem.model_validate({"from": clock(start), "to": clock(end), "what": what, "place": words_of(place)})
        for start, end, what, place in sorted(parts)
        if start < end
    ]
    home = SceneItem.model_validate({"from": clock(WAKE), "to": clock(BED), "what": AT_HOME})
    numbers, waiting = {each.id: n for n, each in enumerate(records, 1)}, still_to_tell(turn.state)
    return SceneDay.model_construct(
        items=items or [home],
        keeps=[n for id_, n in numbers.items() if id_ in turn.state.keeps],
        tell=[SceneTell(number=numbers[id_], to=list(names)) for id_, names in waiting.items() if id_ in numbers],
    )


async def _come_to_mind(turn: ResidentTurn, date: datetime) -> tuple[list[Record], list[Appointment]]:
    """Return the memories for a day's plan, and the appointments of that day."""
    untold = await _untold(turn, still_to_tell(turn.state))
    today = [(each, at) for each, at in await turn.recall_appointments() if at.start.date() == date.date()]
    later = [each for each, at in await turn.recall_appointments() if at.start.date() > date.date()][:3]
    found = [
        *await turn.recall(f"What has {turn.name} planned, agreed on or promised?", MAX_PER_QUESTION, kinds=OF_PEOPLE),
        *await turn.recall(turn.at_heart, MAX_PER_QUESTION, kinds=OF_PEOPLE),
    ]
    news = [each for each in await known_from_the_start(turn) if _is_untold(turn, each)][: 2 * MAX_NEWS]
    insights = await _newest_insights(turn)
    recent = (await important_today(turn))[:MAX_IMPORTANT]
    records = [*(each for each, _ in today), *untold, *insights, *news, *later, *recent]
    records += [each.record for each in found]
    known, false = described_anyway(turn), await disproved(turn)
    worth = (each for each in records if each.text not in known and each.id not in false)
    fresh = {each.id: each for each in worth if not _is_known_anyway(each)}
    return without_repeats(without_past(turn, fresh.values()))[:MAX_PLAN_MEMORIES], [at for _, at in today]


def still_to_tell(state: ResidentState) -> dict[str, tuple[str, ...]]:
    """Return the ids of the memories that a resident has to pass on. Each has the names of the people to whom the
    resident has not told the memory yet."""
    waiting = {
        id_: tuple(name for name in names if id_ not in state.shared.get(name, ()))
        for id_, names in state.tells.items()
    }
    return {id_: names for id_, names in waiting.items() if names}


async def to_tell(turn: ResidentTurn, other: str) -> list[Record]:
    """Return the memories that a resident still has to tell another one."""
    return await _untold(turn, [id_ for id_, names in still_to_tell(turn.state).items() if other in names])


async def _untold(turn: ResidentTurn, ids: Collection[str]) -> list[Record]:
    return list(await turn.resident.memory.records(sorted(ids))) if ids else []


async def _newest_insights(turn: ResidentTurn) -> list[Record]:
    """Return the newest MOST_INSIGHTS insights that state what the resident will do about them, the oldest first.

    Only the newest LOOKED_THROUGH thoughts, and the thoughts of this turn, are searched.
    """
    of_this_turn = [record for entry in turn.rows for record in entry.records]
    newest = (*await _latest(turn, "thought"), *of_this_turn)
    return [each for each in newest if each.by == BY and THEN in each.data][-MOST_INSIGHTS:]


async def known_from_the_start(turn: ResidentTurn) -> list[Record]:
    """Return the memories from before the town began, and those added by users, that a resident may tell.

    Memories shown to be false are left out. The most important come first.
    """
    notes = await _latest(turn, "note")
    false = await disproved(turn)
    told = [each for each in notes if _is_from_the_start(turn, each) and each.id not in false]
    return sorted(told, key=lambda each: (-(each.importance or 0.0), each.id))


async def disproved(turn: ResidentTurn) -> set[str]:
    """Return the ids of memories that newer memories of the resident show to be false, and of copies of these memories
    that are older than the newest correction."""
    newest = await _latest(turn, "thought", most=MAX_CORRECTIONS)
    corrections = [each for each in newest if isinstance(each.data.get(CORRECTS), list)]
    false = {str(id_) for each in corrections for id_ in cast("list[object]", each.data[CORRECTS])}
    if not false:
        return false
    until = max(each.created for each in corrections)
    words = [runs(each.text) for each in await turn.resident.memory.records(sorted(false))]
    older = [each for each in await _latest(turn, *OF_A_DAY) if each.created < until]
    return false | {each.id for each in older if any(are_copies(runs(each.text), other) for other in words)}


async def important_today(turn: ResidentTurn) -> list[Record]:
    """Return the memories of the last 24 hours that conversations may show and whose importance is at least IMPORTANT.
    Notes are left out. The most important memory comes first."""
    since = turn.now - DAY_S
    worth = [each for each in await worth_telling(turn) if each.created > since and each.kind != "note"]
    return [each for each in worth if (each.importance or 0.0) >= IMPORTANT]


async def worth_telling(turn: ResidentTurn) -> list[Record]:
    """Return the memories that conversations may show, the most important first. Only the LOOKED_THROUGH newest
    memories are searched.

    These are left out:
    - memories that may not be told (`can_be_told`), which include plans and private thoughts;
    - secrets;
    - everyday events;
    - what the resident's description says.
    """
    newest = await _latest(turn, "note", "observation", "thought")
    kept = [each for each in newest if can_be_told(each) and not is_secret(turn, each) and not is_everyday(each)]
    known = described_anyway(turn)
    kept = [each for each in kept if "background" not in each.data and each.text not in known]
    return sorted(kept, key=lambda each: (-(each.importance or 0.0), each.id))


def is_everyday(record: Record) -> bool:
    """Return whether a memory is about an everyday act."""
    return record.kind == "observation" and (record.importance or 0.0) <= (
        PASSING_DEED if DEED in record.data else PEOPLE
    )


def is_unheard(turn: ResidentTurn, record: Record) -> bool:
    """Return whether a record is a memory from before the town began, or added by a user, that the resident has told no
    one yet. False if the resident keeps the memory to itself."""
    return _is_untold(turn, record) and not is_secret(turn, record)


def _is_untold(turn: ResidentTurn, record: Record) -> bool:
    return _is_from_the_start(turn, record) and not any(record.id in ids for ids in turn.state.shared.values())


def _is_from_the_start(turn: ResidentTurn, record: Record) -> bool:
    """Return whether a memory was there before the town began, or was added by a user (`Town.whisper`). False if the
    memory may not be passed on, or repeats the description."""
    described = record.text.strip() in (turn.person.learned.strip(), turn.person.currently.strip())
    return record.kind == "note" and not record.evidence and can_be_told(record) and not described


def without_past(turn: ResidentTurn, records: Iterable[Record]) -> list[Record]:
    """Return memories without those of appointments that are over, and without repetitions of an appointment."""
    kept, when = list[Record](), turn.setting.when(turn.step)
    seen = list[Appointment]()
    for each in records:
        at = appointment_of(each.data)
        if at is not None and (at.end <= when or any(at.is_same(other) for other in seen)):
            continue
        seen += [at] if at is not None else []
        kept.append(each)
    return kept


def without_repeats(records: Iterable[Record]) -> list[Record]:
    """Return memories without repetitions.

    An act is left out if its result is also in the list. A memory is left out if an earlier memory in the list has a
    similar text and the same evidence (the same conversation). Memories of appointments are not compared.
    """
    every = list(records)
    settled = {id_ for each in every if OUTCOME in each.data for id_ in each.evidence}
    kept, told = list[Record](), dict[tuple[str, ...], list[set[str]]]()
    for each in every:
        words = runs(each.text)
        earlier = told.setdefault(each.evidence, []) if each.evidence and appointment_of(each.data) is None else []
        if (DEED in each.data and each.id in settled) or any(are_alike(words, other) for other in earlier):
            continue
        earlier.append(words)
        kept.append(each)
    return kept


def _is_known_anyway(record: Record) -> bool:
    return bool({"background", DEED} & record.data.keys()) or "plan" in record.keywords


def _places(turn: ResidentTurn, date: datetime, dated: Sequence[Appointment]) -> dict[str, Place]:
    """Return the places for a day's plan, by address: places that the resident knows, places of appointments that it
    may go to, and homes of acquaintances that it may visit."""
    known = dict(known_places(turn.setting, turn.person, turn.state.knows, date))
    for at in dated:
        if at.place and is_let_in(turn.setting, turn.person, at):
            known.setdefault(at.place, Place(words=words_of(at.place), address=at.place))
    acquainted = {each.name for each in turn.person.relations} | turn.state.scenes.keys() | turn.state.met.keys()
    people = turn.setting.people.values()
    acquainted -= {each.name for each in people if any(at.avoids and at.name == turn.name for at in each.relations)}
    for name in sorted(acquainted - {*avoided_by(turn)}):
        home = home_to_visit(turn.setting, name)
        hosts = tuple(sorted(hosts_of(turn.setting, turn.person, home) & acquainted))
        if hosts:
            known.setdefault(home, Place(words=words_of(home), hosts=hosts, address=home))
    return known


def _usual(turn: ResidentTurn, date: datetime) -> tuple[str, ...]:
    return tuple(
        f"{clock(each.start)}-{clock(each.end)} {each.what} ({words_of(each.place)}{', duty' if each.duty else ''})"
        for each in turn.person.day
        if each.is_on(date)
    )


def _fine(turn: ResidentTurn, reply: SceneDay, places: Sequence[str], day: int, secret: Collection[int]) -> list[Block]:
    """Return the items of a reply as the blocks of a day, without gaps. The blocks are marked `fine`: they are not
    broken down into tasks.

    Args:
        secret: numbers of the secret memories in the prompt. An item that is based on such a memory is secret.
    """
    named, by_address = by_words(places), dict[tuple[str, str], SceneItem]()
    where: list[str] = []
    items = []
    spans = reply.spans()
    for start, end, each in spans:
        place = find_place(each.place, named) or turn.person.home
        place = find_thing(turn.setting, place, each.thing) if each.thing else place
        where.append(place)
        by_address[each.what, place] = each
        minutes = max(5, end - start)
        items.append(Item.model_construct(start=each.start, minutes=minutes, what=each.what, place=len(where), keeps=0))
    wake = spans[0][0]
    bed = min(max(end for _, end, _ in spans), wake + DAY_MINUTES - LEAST_AWAKE)
    plan = DayPlan.model_construct(wake=clock(wake % DAY_MINUTES), bed=clock(bed), items=items, currently="")
    blocks, opened = [], 0
    for block in blocks_of(turn, plan, where, [], day):
        item = None if block.asleep else by_address.get((block.what, block.place))
        told: dict[str, object] = {"fine": True}
        if item:
            opened += bool(item.open.strip())
            told |= {"busy": item.busy, "weight": item.weight, "state": item.state.strip(), "seen": item.seen.strip()}
            told |= {"open": item.open.strip() if opened <= MAX_OPEN else ""}
            told |= {"secret": any(number in secret for number in item.because), "whom": _names(turn, item.whom)}
        blocks.append(block.model_copy(update=told))
    return blocks


def _names(turn: ResidentTurn, said: Sequence[str]) -> tuple[str, ...]:
    """Return the full names of other residents that a reply means; unknown names are left out."""
    found = (find_name(turn.setting, each) for each in said)
    return tuple(sorted({each for each in found if each in turn.setting.people and each != turn.name}))


def _agreed(turn: ResidentTurn, blocks: Sequence[Block], dated: Sequence[Appointment]) -> list[Block]:
    """Add the participants of the appointments that the resident has agreed to, and return the blocks.

    Each appointment is assigned to one block in the same house (in any house if the appointment has no place). Of
    these, the block with the most minutes in common is chosen; it must have at least two. A block with several
    appointments gets the participants of all of them.
    """
    marked = list(blocks)
    for at in dated:
        if turn.name not in (at.host, *at.who):
            continue
        start = at.start.hour * 60 + at.start.minute
        end = start + (at.end - at.start).seconds // 60
        shared = [
            (min(each.end, end) - max(each.start, start), -number)
            for number, each in enumerate(marked)
            if not each.asleep and (not at.place or sector_of(at.place) == sector_of(each.place))
        ]
        minutes, number = max(shared, default=(0, 0))
        if minutes > 1:
            block = marked[-number]
            who = tuple(sorted({*at.who, at.host, *block.agreed} - {""}))
            whom = tuple(sorted({*block.whom, *at.whom} - {turn.name}))
            marked[-number] = block.model_copy(update={"agreed": who, "whom": whom})
    return marked


def _on_opening(turn: ResidentTurn, blocks: Sequence[Block]) -> list[Block]:
    """Delay arrivals less than EARLY minutes before opening time; until then the resident continues its previous
    activity."""
    moved = list(blocks)
    for at in range(1, len(moved)):
        before, block = moved[at - 1], moved[at]
        way = max(0, minutes_between(turn, before.place, block.place) - 2)
        later = _opens_in(turn, block, block.start + way)
        if 0 < later < min(block.minutes, EARLY):
            moved[at - 1] = before.model_copy(update={"minutes": before.minutes + later})
            moved[at] = block.model_copy(update={"start": block.start + later, "minutes": block.minutes - later})
    return moved


def _opens_in(turn: ResidentTurn, block: Block, minute: int) -> int:
    """Return how many minutes after `minute` a resident may enter a block's place.

    0: at once, or not within EARLY minutes, or the resident sleeps in this block, or the place is unknown.
    """
    setting = turn.setting
    address = setting.addresses.get(block.place)
    if address is None or block.asleep:
        return 0
    midnight = setting.step_at(setting.day(turn.step), 0)
    for later in range(EARLY):
        if setting.rules.may_enter(
            turn.name, address, setting.when(midnight + (minute + later) * setting.profile.a_minute)
        ):
            return later
    return 0


MAX_DAY_PARTS = 3
"""Maximum parts of the rest of the day in a prompt; later parts are shown only if they are appointments, or done with
others."""
MIN_REMAINING_MINUTES = 5
"""A part of the day that ends within this many minutes, and has no partners, is not shown in a prompt."""


def rest_of_day(turn: ResidentTurn) -> tuple[Block, ...]:
    """Return the current and later parts of today's plan for a prompt; () if the town does not run in scenes.

    These are the first MAX_DAY_PARTS parts, and later ones that are appointments or are done with other people.
    Sleep, free time, reactions, and parts that end within MIN_REMAINING_MINUTES and have no partners are left out.
    """
    minute = turn.setting.minute(turn.step)
    ahead = (
        each
        for each in turn.state.blocks
        if each.end > minute + MIN_REMAINING_MINUTES * (not each.whom) and each.why == "plan"
    )
    awake = [each for each in ahead if not each.asleep and each.what != FREE] if turn.lives_in_scenes else []
    return tuple(each for number, each in enumerate(awake) if number < MAX_DAY_PARTS or each.agreed or each.whom)


def duties_of_tomorrow(turn: ResidentTurn) -> tuple[str, ...]:
    """Return the duties of the next day that the resident does not have today, as lines for a prompt."""
    today = turn.setting.when(turn.step)
    tomorrow = today + timedelta(days=1)
    return tuple(
        f"{tomorrow:%A} {clock(each.start)}-{clock(each.end)} {each.what} ({words_of(each.place)})"
        for each in turn.person.day
        if each.duty and each.is_on(tomorrow) and not each.is_on(today) and turn.lives_in_scenes
    )


def line_of(block: Block, *, outwardly: bool = False) -> str:
    """Return a part of a day as a line: `16:00 fetching water (yard of the Mill)`.

    `outwardly`: describe the act as others see it, and leave out the place, which may reveal more than they see.
    """
    what = block.seen if outwardly else block.what
    place = "" if outwardly else block.place
    more = (words_of(str(parse_address(place).upto(ARENA))) if place else "", SETTLED if block.settled else "")
    where = f" ({'; '.join(each for each in more if each)})" if any(more) else ""
    return f"{clock(block.start % DAY_MINUTES)} {cut_at_word(what, MAX_MEMORY_CHARACTERS)}{where}"


def change_day(turn: ResidentTurn, changes: Mapping[int, SceneChange], blocks: Mapping[int, Block], why: str) -> None:
    """Change parts of the day's plan as a talk has decided. A part that has already begun is replaced only from now on.

    Args:
        changes: changes by the numbers of the parts in the prompt. blocks: parts by these numbers.
        why: the reason, in words.
    """
    minute, setting = turn.setting.minute(turn.step), turn.setting
    known, of_day = known_addresses(setting, turn.person, turn.state.knows)
    named = by_words([*known, *of_day])
    for number, change in changes.items():
        block = blocks.get(number)
        if block is None or change.becomes.strip() == block.what:
            continue
        start, whom = max(block.start, minute), _names(turn, change.whom)
        new = Block(
            start=start,
            minutes=block.end - start,
            what=change.becomes.strip(),
            fine=True,
            place=_place(turn, change.place, block.place, named),
            whom=whom,
            weight=block.weight if whom else 0,
            secret=block.secret,
            seen=change.becomes.strip() if block.secret else "",
        )
        turn.write(TasksPlanned(step=turn.step, blocks=(new,), because=why[:300]))


def mark_settled(turn: ResidentTurn, block: Block) -> None:
    """Mark a part of the plan as settled."""
    if block in turn.state.blocks:
        now = block.model_copy(update={"settled": True, "open": ""})
        turn.write(TasksPlanned(step=turn.step, blocks=(now,)))


def close_questions(turn: ResidentTurn, blocks: Iterable[Block], others: Collection[str]) -> None:
    """Close the questions of planned acts that a talk with the residents `others` has answered.

    The act is marked as settled (an appointment is not), and its open question is removed. No model is then asked for
    the result, and the resident does not speak to `others` about it again. An act with further partners stays open for
    them. An act that has not begun, and was planned in order to speak to `others`, is dropped (`_instead_of`).
    """
    minute = turn.setting.minute(turn.step)
    for block in blocks:
        is_waiting = block.open or block.whom or not (block.agreed or block.settled)
        if is_waiting and block.end > minute and block in turn.state.blocks:
            start, left = max(block.start, minute), tuple(name for name in block.whom if name not in others)
            now: dict[str, object] = {"start": start, "minutes": block.end - start, "whom": left}
            if not left:
                now |= {"open": "", "settled": not block.agreed}  # the resident still goes to an appointment
                now |= {"weight": min(block.weight, PASSING_DEED)}  # low, because the talk itself is remembered
            if block.start > minute and block.whom and not (left or block.agreed):
                now = _instead_of(turn, block)
            turn.write(TasksPlanned(step=turn.step, blocks=(block.model_copy(update=now),)))


def _instead_of(turn: ResidentTurn, block: Block) -> dict[str, object]:
    """Return what a resident does instead of a later act that has become needless, as values for its block: its duty at
    that time, or free time at the place of the act before."""
    date, blocks = turn.setting.when(turn.step), turn.state.blocks
    duties = (each for each in turn.person.day if each.duty and each.is_on(date))
    duty = next((each for each in duties if each.start <= block.start < each.end), None)
    before = max((each for each in blocks if each.end <= block.start), key=lambda each: each.end, default=block)
    what, place = (duty.what, duty.place) if duty else (FREE, before.place)
    now = Block(start=block.start, minutes=block.minutes, what=what, place=place, fine=True)
    return {name: getattr(now, name) for name in Block.model_fields}


def _place(turn: ResidentTurn, said: str, before: str, named: Mapping[str, str]) -> str:
    """Return the new place of a part of the plan, given the place that a reply names (`said`). If the reply names no
    place, or a place that contains the old one (`before`), the old place stays. If the name is unknown or ambiguous,
    return the home.
    """
    place = find_place(said, named) if said.strip() else before
    return before if f"{before}:".startswith(f"{place}:") and place else place or turn.person.home


DAILY, AGREED, PASSING_DEED = 1, 5, 3
"""DAILY: importance of an act if the plan does not state it. AGREED: minimum importance of an appointment.
PASSING_DEED: memories of the resident's own acts up to this importance are not shown in talks."""
DEED, OUTCOME, THEN, CORRECTS = "deed", "outcome", "then", "corrects"
"""Keys in `Record.data`. `deed` marks an act of the resident. `outcome` marks the result of an act. `then` contains
what the resident will do about an insight. `corrects` contains the ids of memories that this memory shows to be
false."""
UNHEARD = "not passed on yet"
STILL_UNTOLD, TELL_NOW = "still to be told to", "to be told now"
KEPT, SETTLED = "kept to oneself", "settled already"
IMPORTANT = 6
"""Minimum importance (1 to 10) of memories of the last 24 hours that come up in each talk."""
MAX_NEWS, MAX_OPEN, MAX_LIVED = 3, 2, 10
"""MAX_NEWS: maximum number, in a prompt, of untold memories that the resident has had since the town began. For a plan,
a memory is untold if the resident has told no one of it; for a talk, if the resident has not told the partner of it.
MAX_OPEN: maximum number of acts in a plan whose result is left open. MAX_LIVED: maximum number of acts and results of
the last 24 hours in a prompt."""
LONGEST_LINE = 500
"""Maximum characters of a memory, including its appointment, in the prompt that asks for an act's result."""
MAX_CORRECTIONS = 1_000
"""Maximum number of newest thoughts that are searched for corrections of earlier memories."""
OPEN_MEMORIES, OUTCOMES = 6, 2
"""In the prompt that asks for the result of an act: memories per query (OPEN_MEMORIES), and maximum number of earlier
results at the place (OUTCOMES)."""


async def remember_deed(turn: ResidentTurn) -> None:
    """Remember the current act, which has ended.

    If the act is a talk, remember instead the appointment that the talk interrupted, provided that the appointment
    ended during the talk.

    Only reactions and acts of the plan (except sleep) are remembered, and only if the resident reached their place.

    The memory names:
    - the people in sight;
    - the partners of an appointment who did not come;
    - the people there that the resident had to speak to (`whom_to_speak_to`), but did not talk with;
    - the act's partners (`Act.whom`) that the resident did not meet;
    - the hosts of a visit, if none of them was at home.

    If the act reached its planned end and has an open question, a model is asked for the result, except in three cases:
    - No host was at home.
    - A person that the resident had to speak to was there. Then only a talk with this person can produce the result.
    - The daily budget does not suffice.
    """
    act = turn.state.act
    if act is not None and act.why == "talk":
        act = _appointment_before(turn, act)
    if act is None or act.asleep or act.why not in ("plan", "react") or not act.has_arrived(turn.step):
        return
    setting, seen = turn.setting, people_in_sight(turn.percepts)
    when = f"{setting.when(act.since):%H:%M}-{setting.when(turn.step):%H:%M}"
    where = ", ".join(each for each in (words_of(act.place) if act.place else "", when) if each)
    more = [f"there: {', '.join(seen)}"] if seen else []
    present, met = await _present(turn, act), _met_at(turn, act)
    partners = [each for each in act.agreed if each != turn.name] if _is_over(turn, act) else []
    absent = [each for each in partners if each not in present]
    if absent:
        more.append(f"{', '.join(absent)} did not come")
    asked = whom_to_speak_to(setting, act, turn.name) & present
    if unasked := sorted(asked - met):
        more.append(f"no talk with {', '.join(unasked)} came about")
    hosts = _hosts(turn, act)
    alone = {*act.whom} - present - {*absent} - hosts if _is_over(turn, act) else set[str]()
    if alone:  # leave out people that the resident saw there during the act or in the hour before
        alone -= await _noticed(turn, act, AN_HOUR)
    if alone:
        more.append(f"did not meet {', '.join(sorted(alone))}")
    turned_away = bool(hosts) and not hosts & present
    if turned_away:
        more.append(f"{', '.join(sorted(hosts))}: not at home")
    text = f"{turn.name}: {act.what} ({'; '.join((where, *more))})"
    importance = float(max(act.weight or DAILY, AGREED if act.agreed else DAILY))
    if (spoken_to := {*partners, *asked} & present) and spoken_to <= met:
        importance = min(importance, PASSING_DEED)
    is_open = act.open != "" and turn.step >= act.until and not turned_away and not asked
    data: dict[str, Any] = {
        "place": act.place,
        SECRET: hides_act(turn, act),
    }
    (record,) = await turn.build(
        RecordDraft(
            text=text,
            kind="observation",
            by=turn.name,
            importance=importance,
            keywords=(turn.name.lower(), *(each.lower() for each in (*seen, *absent))),
            data={DEED: True} | {key: value for key, value in data.items() if value},
        )
    )
    is_planned = act.why == "plan"  # the model that words a reaction knows the secrets, so its text may hint at them
    clear = (record.id,) if is_planned and clears(turn) and not is_secret(turn, record) else ()
    turn.write(Perceived(step=turn.step, seen=(), records=(record.id,), gathered=importance, clears=clear), (record,))
    if is_open and has_left(turn.state, turn.profile):
        await _ask_for_result(turn, act, record, seen)


def _appointment_before(turn: ResidentTurn, talk: Act) -> Act | None:
    """Return the appointment that a talk has interrupted, as an act. None: there is none, the appointment is not over
    yet, or the resident is not in the house of the appointment now."""
    setting, began = turn.setting, min(talk.since, turn.state.scenes.get(turn.state.partner, talk.since))
    block = turn.state.block_at(setting.minute(began)) if setting.day(began) == turn.day else None
    if block is None or not block.agreed or block.end > turn.minute or block.asleep or not block.place:
        return None
    here = setting.world.address_at(turn.state.spot(turn.step))
    if here.level < SECTOR or sector_of(str(here)) != sector_of(block.place):
        return None
    midnight = setting.step_at(turn.day, 0)
    since, until = (midnight + minute * turn.profile.a_minute for minute in (block.start, block.end))
    same = {key: getattr(block, key) for key in ("what", "place", "weight", "open", "agreed", "whom", "seen", "secret")}
    return talk.model_copy(update={"why": "plan", "since": since, "until": until} | same)


async def _present(turn: ResidentTurn, act: Act) -> frozenset[str]:
    """Return the residents in sight now, and residents that were met in a scene or seen in the act's house. The meeting
    or sighting must be after the act began, or at most SHORTLY_BEFORE minutes before."""
    noticed = await _noticed(turn, act, SHORTLY_BEFORE)
    return frozenset({*people_in_sight(turn.percepts), *noticed, *_met_at(turn, act)} & turn.setting.people.keys())


async def _noticed(turn: ResidentTurn, act: Act, before: int) -> set[str]:
    """Return the residents and objects seen in the act's house after the act began, or at most `before` minutes
    before."""
    since = turn.setting.moment(_began(turn, act) - before * turn.profile.a_minute)
    house = sector_of(act.place) if act.place else ""
    return {
        each.about.subject
        for each in await _latest(turn, "observation")
        if each.about and each.created >= since and house and sector_of(str(each.data.get("place", ""))) == house
    }


def _met_at(turn: ResidentTurn, act: Act) -> frozenset[str]:
    """Return the residents whose last scene with this resident was not long before the act, or later.

    "Not long" is at most SHORTLY_BEFORE minutes before the act began.
    """
    since = _began(turn, act) - SHORTLY_BEFORE * turn.profile.a_minute
    return frozenset(name for name, step in turn.state.scenes.items() if step >= since)


def _began(turn: ResidentTurn, act: Act) -> int:
    return began(turn.setting, turn.state.model_copy(update={"act": act}), turn.step)


def _is_over(turn: ResidentTurn, act: Act) -> bool:
    """Return whether the plan has no block for this minute, or the block of another act. If not, the act may still
    continue."""
    block = turn.state.block_at(turn.setting.minute(turn.step))
    return block is None or (block.what, block.agreed) != (act.what, act.agreed)


def began(setting: Setting, state: ResidentState, step: int) -> int:
    """Return the step at which the plan's block of a resident's current act began. The block may have begun before the
    act, if talks have interrupted it. For an act without a block, return the step at which the act began."""
    act, before = state.act, max(0, step - 1)
    if act is None:
        return step
    minute, day = setting.minute(before), setting.day(before)
    block = state.block_at(minute) if state.day == day else None
    return setting.step_at(day, block.start) if block and block.what == act.what else act.since


def _hosts(turn: ResidentTurn, act: Act) -> frozenset[str]:
    """Return the inhabitants of the place that a resident visits; empty without a visit."""
    return hosts_of(turn.setting, turn.person, act.place) if act.place and act.why == "plan" else frozenset()


def give_up_visit(turn: ResidentTurn) -> None:
    """Send a visitor home for the rest of a visit if it has arrived and no inhabitant of the place is in sight."""
    act, minute = turn.state.act, turn.setting.minute(turn.step)
    block = turn.state.block_at(minute)
    if act is None or block is None or (block.what, block.place) != (act.what, act.place):
        return
    hosts = _hosts(turn, act)
    if act.has_arrived(turn.step) and hosts and not hosts & {*people_in_sight(turn.percepts)}:
        back = Block(start=minute, minutes=block.end - minute, what=AT_HOME, place=turn.person.home, fine=True)
        turn.write(TasksPlanned(step=turn.step, blocks=(back,), because=f"{act.what}: nobody is at home"[:300]))


async def _ask_for_result(turn: ResidentTurn, act: Act, deed: Record, near: Sequence[str]) -> None:
    """Ask a model for the result of an act with an open question; `find_out` remembers it.

    The prompt contains earlier results at the same place, and memories about the matter.
    """
    earlier = [each for each in await recent_outcomes(turn) if act.place and each.data.get("place") == act.place]
    recalled = [
        each.record
        for query in (act.open, f"{act.open} {act.what}")
        for each in await turn.recall(query, OPEN_MEMORIES, kinds=TELLABLE)
    ]
    described, when = identity(turn), datetime.fromtimestamp(deed.created, UTC)
    if not hides_act(turn, act):
        described = identity_for_talk(turn, near)
        recalled = [each for each in recalled if not is_secret(turn, each) and each.id not in turn.state.hinted]
    known = {
        normalised(each.text): each
        for each in (*earlier[:OUTCOMES], *recalled)
        if "plan" not in each.keywords and "background" not in each.data and each.text not in described
    }
    used = without_repeats(each for each in known.values() if each.created <= deed.created)
    prompt = WhatCame(
        who=turn.name,
        identity=described,
        did=act.what,
        question=act.open,
        when=f"{when:%A, %B} {when.day}, {when.year}, {when:%H:%M}",
        place=words_of(act.place) if act.place else "",
        near=tuple(near),
        things=_things(turn, act.place),
    )
    turn.ask_later(_with_memories(prompt, used))
    turn.write(
        ResultAsked(
            step=turn.step,
            prompt=prompt.model_dump_json(exclude_defaults=True),
            used=tuple(each.id for each in used),
            record=deed.id,
            near=tuple(near),
            place=act.place,
            secret=hides_act(turn, act),
            is_clear=clears(turn, *used),
        )
    )


def _things(turn: ResidentTurn, place: str) -> tuple[str, ...]:
    """Return the objects in the room of a place, each with its condition if that is known to the resident."""
    setting = turn.setting
    room = str(parse_address(place).upto(ARENA)) if place else ""
    seen = {each.place: each.object for each in turn.percepts if not each.who}
    words = ((each.rpartition(":")[2], seen.get(each, "")) for each in setting.objects_in(room))
    return tuple(f"{name} ({state})" if state else name for name, state in words)


def _with_memories(prompt: WhatCame, used: Sequence[Record]) -> WhatCame:
    lines = tuple(cut_at_word(each.line, LONGEST_LINE) for each in show(used))
    return prompt.model_copy(update={"memories": lines})


async def find_out(turn: ResidentTurn) -> None:
    """Remember the result of an act, if a model was asked for one."""
    if (asked := turn.state.result) is None:
        return
    await turn.resident.written()
    known = {each.id: each for each in await turn.resident.memory.records(list(asked.used))}
    used = [known[id_] for id_ in asked.used if id_ in known]  # the others have been forgotten since
    prompt = _with_memories(WhatCame.model_validate_json(asked.prompt), used)
    came = await turn.reply_to(prompt, turn.resident) or Rules().answer(prompt)
    turn.count_later(prompt, came)
    about = {key: value for key, value in (("place", asked.place), (SECRET, asked.secret)) if value}
    (record,) = await turn.build(outcome_draft(turn.name, came.text, came.weight, (asked.record,), asked.near, about))
    clear = (record.id,) if asked.is_clear and not is_secret(turn, record) else ()
    gathered = record.importance or 0.0
    turn.write(
        Perceived(step=turn.step, seen=(), records=(record.id,), gathered=gathered, clears=clear, result=True),
        (record,),
    )


async def recent_outcomes(turn: ResidentTurn) -> list[Record]:
    """Return the results of acts among the newest LOOKED_THROUGH thoughts and those of this turn, the newest first."""
    newest = [*(record for row in turn.rows for record in row.records), *await _latest(turn, "thought")]
    return sorted((each for each in newest if OUTCOME in each.data), key=lambda each: (-each.created, each.id))


def outcome_draft(
    name: str,
    text: str,
    weight: float,
    evidence: tuple[str, ...],
    others: Iterable[str],
    about: Mapping[str, Any] | None = None,
) -> RecordDraft:
    """Return the draft of a memory of an act's result. `weight`: importance of the memory (1 to 10). `about`: more
    data, such as the act's place."""
    return RecordDraft(
        text=text.strip(),
        kind="thought",
        by=name,
        importance=float(weight),
        keywords=tuple(each.lower() for each in (name, *others)),
        evidence=evidence,
        data={OUTCOME: True} | dict(about or {}),
    )


REST_AT_HOME, REST, REST_BEFORE_ERRAND = 180, 100, 10
"""Minimum minutes between two scenes of the same two residents. REST_AT_HOME: if they are of one household. REST: if
not. REST_BEFORE_ERRAND: in either case, if one of them has come to speak to the other (`is_errand_to`)."""
AN_HOUR, MOST_AN_HOUR = 60, 2
RESERVED = 2
"""Number of a day's model calls that are reserved for the evening."""
TALK_TOKENS, RESERVED_TOKENS, EVENING_TOKENS = 2_000, 1_000, 2_400
"""TALK_TOKENS: approximate tokens of a resident's part of a talk with lines. RESERVED_TOKENS: tokens that are kept free
for each reserved call (`reserved_calls`), enough for a resident's part of a short request. EVENING_TOKENS: approximate
maximum tokens of an evening's reflection."""
LATEST_GATHERING = 45
"""An appointment of more than two residents: its result is asked for at most this many minutes after its beginning."""
LATEST_HOUR = 23
SHORTLY_BEFORE = 10
"""Time before an act or an appointment with another resident, in minutes. A talk with this resident, or a sight of it,
within this time counts as part of the act or the appointment."""


def keep_appointment(setting: Setting, step: int, state: ResidentState, other: ResidentState) -> bool:
    """Return whether an appointment of two residents with each other is due now (`is_appointment_due`), and their daily
    budgets suffice for a talk. From weight WORTH_LINES on, the talk may use the evening's tokens."""
    both = (state, other)
    weight = max((each.act.weight for each in both if each.act), default=0)
    return is_appointment_due(setting, step, state, other) and all(
        has_left(each, setting.profile, own=TALK_TOKENS, matters=weight >= WORTH_LINES) for each in both
    )


def settles_in_short(setting: Setting, step: int, state: ResidentState, other: ResidentState) -> bool:
    """Return whether two residents settle the purpose of their meeting by a short request for the result, without a
    talk.

    - An appointment (`is_appointment_due`) is settled in this way if a budget allows no talk.
    - An errand (`is_errand_to`) is settled in this way if a budget allows no talk.
    - An errand that is too unimportant for a talk (WORTH_LINES) is always settled in this way.

    Both budgets must allow the request (`_affords_short`). An errand that may reveal a secret is settled only in a
    talk, because the request would show the act.
    """
    both = (state, other)
    if is_appointment_due(setting, step, state, other):
        weight = max(each.act.weight for each in both if each.act)
        is_possible = all(_affords_short(each, setting, step, max(weight, AGREED)) for each in both)
        return is_possible and not keep_appointment(setting, step, state, other)
    errands = _errands(setting, step, state, other)
    if not all(_affords_short(each, setting, step, _weight_of(errands)) for each in both):
        return False
    if any(
        each.act and (each.act.secret or (each.briefing and each.act.what in each.briefing.plan)) for each in errands
    ):
        return False
    weight = _weight_of(errands)
    return bool(errands) and (weight < WORTH_LINES or not _afford_talk(setting, step, state, other, weight))


def _affords_short(state: ResidentState, setting: Setting, step: int, weight: int) -> bool:
    """Return whether a resident's daily budget allows a short request, in addition to later meetings that matter more.

    From weight DECISIVE on, the request may use all tokens that are left, whatever they are reserved for.
    """
    calls, tokens = state.asked
    of_errand = not (state.act and state.act.agreed)  # the request at an appointment is among the reserved calls
    ahead = (
        (reserved_calls(setting, step, state, above=weight) + of_errand) * RESERVED_TOKENS if weight < DECISIVE else 0
    )
    evening = EVENING_TOKENS // 2 if weight < DECISIVE else 0
    return calls < setting.profile.day_calls and tokens + ahead + evening < setting.profile.day_tokens


def tells_in_passing(setting: Setting, step: int, state: ResidentState, other: ResidentState) -> bool:
    """Return whether a resident tells the other its news in passing, without a model.

    It does if all of these hold:
    - It has news for the other (`has_to_tell`).
    - The budget of one of the two allows no talk, neither about the news nor about an errand of one to the other.
    """
    if not has_to_tell(setting, step, state, other.name):
        return False
    weight = max(NEWS, _weight_of(_errands(setting, step, state, other)))
    return not _afford_talk(setting, step, state, other, weight)


def _errands(setting: Setting, step: int, state: ResidentState, other: ResidentState) -> list[ResidentState]:
    """Return those of two residents that have come to speak to the other (`is_errand_to`)."""
    both = (state, other)
    return [one for one, two in (both, both[::-1]) if is_errand_to(setting, one, two.name, step)]


def is_appointment_due(setting: Setting, step: int, state: ResidentState, other: ResidentState) -> bool:
    """Return whether an appointment of two residents with each other is due now.

    Both must be at the appointment and awake, and neither may be in a talk. The other conditions are:
    - appointment of two people: they have not talked at the appointment yet;
    - appointment of more than two people: it is not settled yet, and either half of its time or LATEST_GATHERING
      minutes have passed.
    """
    acts = [act for act in (state.act, other.act) if act and act.why == "plan" and act.has_arrived(step)]
    both = {state.name, other.name}
    if len(acts) < 2 or any(each.asleep or not both <= {*each.agreed} for each in acts):
        return False
    if any(each.is_talking(step) for each in (state, other)):
        return False
    minute = setting.minute(step)
    blocks = [block for each in (state, other) if (block := each.block_at(minute)) is not None]
    if len({*acts[0].agreed, *acts[1].agreed}) > 2:
        is_open = len(blocks) == 2 and not any(each.settled for each in blocks)
        return is_open and minute >= max(each.start for each in blocks) + min(map(_wait_of, blocks))
    block = state.block_at(minute)
    began = setting.step_at(setting.day(step), block.start) if block else step
    since = began - SHORTLY_BEFORE * setting.profile.a_minute
    return not any(one.scenes.get(two.name, -1) >= since for one, two in ((state, other), (other, state)))


def gathers_at(setting: Setting, state: ResidentState, step: int) -> int:
    """Return the step at which a resident's current act needs attention next.

    - The act is an appointment of more than two people, or an errand to several people, and is not due yet: the step at
      which the act is due.
    - Otherwise: the end of the act.
    """
    act = state.act
    assert act is not None  # callers call this only for a resident that has an act
    is_of_several = len(act.agreed) > 2 or len(whom_to_speak_to(setting, act, state.name)) > 1
    if not is_of_several or act.why != "plan" or (block := state.block_at(setting.minute(step))) is None:
        return act.until
    due = setting.step_at(setting.day(step), block.start + _wait_of(block))
    return due if step < due < act.until else act.until


def waits_for_partners(setting: Setting, state: ResidentState, step: int) -> bool:
    """Return whether a resident still waits for partners of its errand to several people (see `gathers_at`)."""
    minute = setting.minute(step)
    block = state.block_at(minute)
    return block is not None and minute < block.start + _wait_of(block)


def partners_of_errand(setting: Setting, state: ResidentState, step: int) -> frozenset[str]:
    """Return the partners whom a resident has come to speak to, if there are several and the act is no secret."""
    act = state.act
    if act is None or act.secret or (state.briefing and act.what in state.briefing.plan):
        return frozenset()
    partners = whom_to_speak_to(setting, act, state.name)
    left = frozenset(name for name in partners if is_errand_to(setting, state, name, step))
    return left if len(partners) > 1 else frozenset()


def _wait_of(block: Block) -> int:
    """Return how many minutes after its beginning an appointment of more than two residents is due."""
    return min(LATEST_GATHERING, block.minutes // 2)


def may_meet(setting: Setting, step: int, state: ResidentState, other: ResidentState) -> bool:
    """Return whether two residents in sight of each other may begin a scene now, settle something in short, or tell
    news in passing. They may never do so from LATEST_HOUR on.

    Special cases:
    - At an appointment with each other, the two may do so even if they are busy or have met shortly before.
    - A resident that has come to speak to the other (`is_errand_to`) may begin one scene during the act for which it
      has come. The last scene of the two must then be at least REST_BEFORE_ERRAND minutes ago.
    - A resident that has to tell the other something (`has_to_tell`) may do so even if the share of the budget that is
      free at this hour (`pace`) is spent, and in passing if no budget allows a talk (`tells_in_passing`).
    """
    if not setting.profile.talks or setting.when(step).hour >= LATEST_HOUR:
        return False
    in_short = settles_in_short(setting, step, state, other)
    if keep_appointment(setting, step, state, other) or (in_short and is_appointment_due(setting, step, state, other)):
        return True
    both = (state, other)
    errands = _errands(setting, step, state, other)
    if not in_short and not _afford_talk(setting, step, state, other, _weight_of(errands)):
        errands = []  # the two cannot speak about the errand; the news can still be told
    tells = not errands and any(has_to_tell(setting, step, one, two.name) for one, two in (both, both[::-1]))
    in_short |= tells and any(tells_in_passing(setting, step, one, two) for one, two in (both, both[::-1]))
    weight = _weight_of(errands) or NEWS * tells
    if not in_short and not _afford_talk(setting, step, state, other, weight):
        return False
    if not all(can_be_spoken_to(each, setting, step) and _is_guest_or_home(each, setting, step) for each in both):
        return False
    last = max(state.scenes.get(other.name, -1), other.scenes.get(state.name, -1))
    if last >= 0 and any(
        last >= began(setting, one, step) - SHORTLY_BEFORE * setting.profile.a_minute for one in errands
    ):
        return False
    rest = REST_BEFORE_ERRAND * setting.profile.a_minute if errands else _rest(setting, state.name, other.name)
    return last < 0 or step - last >= rest


def _weight_of(errands: Sequence[ResidentState]) -> int:
    """Return the greatest weight of the acts for which these residents have come to speak to another; 0 without any."""
    return max((each.act.weight or WORTH_AT_HOME for each in errands if each.act), default=0)


NEWS, WORTH_A_TALK, WORTH_AT_HOME, WORTH_LINES, DECISIVE = 3, 4, 5, 6, 8
"""Weights of talks, and minimum weights of acts that are done with others (1 to 10).

NEWS: weight of a talk in which a resident tells what it has to tell (`has_to_tell`). WORTH_A_TALK: weight from which an
act needs a talk with its partners; plans give 4 to acts that ask, tell or settle something. WORTH_AT_HOME: the same,
for partners of the same household. WORTH_LINES: weight from which an act needs a talk with lines; below, a short
request gives the result. DECISIVE: weight from which a short request may use the evening's tokens. An act with an open
question, or an act that was agreed on, needs a talk at any weight.
"""


def whom_to_speak_to(setting: Setting, act: Act | Block, name: str) -> frozenset[str]:
    """Return the partners (`whom`) that a resident (`name`) has to speak to for an act or a part of a plan.

    The result is empty unless the act was agreed on, has an open question, or has at least the weight WORTH_A_TALK. If
    the weight is the only reason and is less than WORTH_AT_HOME, partners of the same household are left out.
    """
    if not act.whom or not (act.open or act.agreed or act.weight >= WORTH_A_TALK):
        return frozenset()
    matters = act.open or act.agreed or act.weight >= WORTH_AT_HOME
    return frozenset(act.whom) - {*(() if matters else housemates(setting, setting.people[name]))}


def is_errand_to(setting: Setting, state: ResidentState, other: str, step: int) -> bool:
    """Return whether a resident has reached the place of a planned act for which it still has to speak to another."""
    act, block = state.act, state.block_at(setting.minute(step))
    if act is None or act.why != "plan" or act.asleep or not act.has_arrived(step):
        return False
    is_left = block is None or block.what != act.what or other in block.whom  # a talk removes the partners of the block
    return is_left and other in whom_to_speak_to(setting, act, state.name)


def has_to_tell(setting: Setting, step: int, state: ResidentState, other: str) -> bool:
    """Return whether a resident has to tell another resident (`other`) something now. False if the two have met today,
    or have an appointment or a planned talk later today."""
    if not any(other in names for names in still_to_tell(state).values()):
        return False
    met = state.scenes.get(other, -1) >= setting.step_at(setting.day(step), 0)
    return not met and other not in _will_be_seen(setting, step, state)


def _will_be_seen(setting: Setting, step: int, state: ResidentState) -> set[str]:
    """Return those with whom a resident has an appointment or a planned talk later today."""
    ahead = [each for each in state.blocks if each.start > setting.minute(step)]
    return {name for each in ahead for name in (*each.agreed, *whom_to_speak_to(setting, each, state.name))}


def _is_at_limit(setting: Setting, step: int, state: ResidentState) -> bool:
    """Return whether a resident has had the maximum of scenes in the last hour."""
    lately = [each for each in state.scenes.values() if step - each < AN_HOUR * setting.profile.a_minute]
    return len(lately) >= MOST_AN_HOUR


def is_sought(turn: ResidentTurn, other: str) -> bool:
    """Return whether a resident's current act is done with another resident or is a visit to the other's home."""
    act = turn.state.act
    return act is not None and (other in act.whom or other in _hosts(turn, act))


def can_be_spoken_to(state: ResidentState, setting: Setting, step: int) -> bool:
    """Return whether a resident is awake, not in bed, not talking, not busy and not reacting to an event."""
    act = state.act
    return (
        act is not None
        and not act.asleep
        and not _is_in_bed(setting, step, state)
        and act.why in ("plan", "wait")
        and not act.busy
        and not state.is_talking(step)
    )


def _afford_talk(setting: Setting, step: int, state: ResidentState, other: ResidentState, errand: int) -> bool:
    """Return whether the daily budgets of both residents allow a talk of the two now (`affords`)."""
    both = (state, other)
    return all(affords(one, setting, step, errand, two.name if errand else "") for one, two in (both, both[::-1]))


def affords(state: ResidentState, setting: Setting, step: int, errand: int = 0, partner: str = "") -> bool:
    """Return whether a resident's daily budget allows a talk now. Enough must be left for today's appointments and for
    later planned talks that matter more.

    From weight WORTH_LINES on, a talk may use the evening's tokens.

    At a chance meeting, the resident must also be below the limit of scenes per hour, and the talk must fit into the
    share of the budget that is free at this hour (`pace`).

    Args:
        errand: the weight of the act, or of the news (NEWS), for which one of the two has to speak to the other; 0:
            they meet by chance.
        partner: the name of the other, if the talk is what a current appointment with it is for: nothing is reserved
            for that appointment then.
    """
    # a chance meeting must leave one more model call unspent than an errand must
    ahead = reserved_calls(setting, step, state, above=errand, partner=partner) + (not errand)
    if not has_left(state, setting.profile, reserved=ahead, own=TALK_TOKENS, matters=errand >= WORTH_LINES):
        return False
    return bool(errand) or (
        not _is_at_limit(setting, step, state) and has_left(state, setting.profile, pace(setting.minute(step)))
    )


def _is_in_bed(setting: Setting, step: int, state: ResidentState) -> bool:
    """Return whether a resident does something in its bed."""
    act, bed = state.act, setting.addresses.get(setting.people[state.name].bed)
    return (
        act is not None and bed is not None and bed.level == OBJECT and act.place == str(bed) and act.has_arrived(step)
    )


def reserved_calls(setting: Setting, step: int, state: ResidentState, *, above: float = inf, partner: str = "") -> int:
    """Return the number of model calls that are reserved for the rest of today.

    Reserved are:
    - one call for each appointment that is not over, whatever its weight, except the current one with `partner`;
    - one call for each later part of the plan for which the resident has to speak to another, if the weight of the part
      is greater than `above`.
    """
    minute = setting.minute(step)
    return sum(
        bool(
            each.end > minute
            and {*each.agreed} - {state.name}
            and not (each.start <= minute and partner in each.agreed)
        )
        or bool(each.weight > above and each.start > minute and whom_to_speak_to(setting, each, state.name))
        for each in state.blocks
    )


def _is_guest_or_home(state: ResidentState, setting: Setting, step: int) -> bool:
    """Return whether a resident can be met where it is now. It can be met at its destination, outdoors, and in a room
    that is open to all or contains the destination. It cannot be met in a room through which it only walks."""
    act, here = state.act, setting.world.address_at(state.spot(step))
    if act is None or act.has_arrived(step) or here.level < SECTOR:
        return act is not None
    room = here.upto(min(here.level, ARENA))
    return f"{act.place}:".startswith(f"{room}:") or is_common(setting, room)


MORNING, EVENING = 8 * 60, 19 * 60
AT_FIRST, AT_LAST = 0.35, 0.65
"""Shares of the daily budget up to which a resident may begin talks at chance meetings (`pace`): AT_FIRST until
MORNING, rising to AT_LAST at EVENING. MORNING and EVENING are minutes of the day."""


def pace(minute: int) -> float:
    """Return, for a minute of the day, the share of the daily budget up to which a resident may begin talks at chance
    meetings.

    The budget is counted in model calls and tokens, without the part that is reserved for the evening. The rest of it
    is left for planned talks, and for talks that others begin with the resident on purpose.
    """
    passed = (minute - MORNING) / (EVENING - MORNING)
    return AT_FIRST + (AT_LAST - AT_FIRST) * min(1.0, max(0.0, passed))


def has_left(
    state: ResidentState,
    profile: Profile,
    share: float = 1.0,
    reserved: int = 0,
    own: int = 0,
    matters: bool = False,
) -> bool:
    """Return whether this share of the daily budget allows another talk, of `own` tokens, in addition to `reserved`
    calls.

    The calls that are reserved for the evening are not counted; the evening's tokens are counted only for a talk that
    matters.
    """
    calls, tokens = state.asked
    most = share * (profile.day_tokens - (0 if matters else EVENING_TOKENS))
    is_called = calls + reserved < ceil(share * (profile.day_calls - RESERVED))
    return is_called and tokens + own + reserved * RESERVED_TOKENS < most


def _rest(setting: Setting, one: str, other: str) -> int:
    homes = {sector_of(setting.people[name].home) for name in (one, other)}
    return (REST_AT_HOME if len(homes) == 1 else REST) * setting.profile.a_minute


def whom_to_meet(turn: ResidentTurn, others: Mapping[str, ResidentState]) -> str:
    """Return the resident in sight to meet now; "": none.

    The order:
    1. residents at an appointment with this one;
    2. residents to whom it has come to speak (`is_errand_to`);
    3. residents to whom it has to tell something (`has_to_tell`);
    4. partners in its act, and hosts of its visit (`is_sought`);
    5. all others.

    Among equals the least recently met comes first, then the nearest. A resident does not approach people that it
    avoids, except for an appointment.
    """
    where = turn.setting, turn.step, turn.state
    seen = [each.who for each in turn.percepts if each.who in others and may_meet(*where, others[each.who])]
    agreed = [each for each in seen if is_appointment_due(*where, others[each])] if seen else []
    liked = [each for each in seen if each not in avoided_by(turn)] if seen else []
    errand = [each for each in liked if is_errand_to(turn.setting, turn.state, each, turn.step)]
    told = [each for each in liked if has_to_tell(*where[:2], turn.state, each)] if liked and turn.state.tells else []
    named = [each for each in liked if is_sought(turn, each)] if liked else []
    return min(agreed or errand or told or named or liked, key=lambda name: turn.state.scenes.get(name, -1), default="")


OF_A_DAY: tuple[Kind, ...] = ("observation", "thought", "note")
LOOKED_THROUGH, MAX_EVENING_MEMORIES, MAX_EVENING_PER_QUESTION = 120, 14, 3
MIN_EVIDENCE = 2
"""Minimum number of memories that an insight must cite as evidence, unless the prompt shows fewer."""
MAX_MEMORY_CHARACTERS = 400
"""Maximum characters of a memory, or of an activity of the day's plan, in a prompt."""
MIN_IMPORTANCE = 10.0
"""Minimum total importance of the memories since the last reflection, for a reflection at bedtime or midnight."""


async def reflect_in_scene(turn: ResidentTurn, before: Act | None) -> None:
    """Reflect when the resident goes to bed, if the summed importance of the memories since its last reflection reaches
    MIN_IMPORTANCE.

    Args:
        before: the act at the beginning of the turn.
    """
    act = turn.state.act
    to_bed = act is not None and act.asleep and before is not None and not before.asleep
    if to_bed and turn.profile.reflects and turn.state.gathered >= MIN_IMPORTANCE:
        await think_about_the_day(turn)


async def reflect_before_midnight(turn: ResidentTurn) -> None:
    """Reflect before the next day is planned, if all of these hold:

    - the resident is awake;
    - residents of this town reflect (`profile.reflects`);
    - the importance of the memories since the last reflection adds up to at least MIN_IMPORTANCE.
    """
    act = turn.state.act
    if act is not None and not act.asleep and turn.profile.reflects and turn.state.gathered >= MIN_IMPORTANCE:
        await think_about_the_day(turn)


async def think_about_the_day(turn: ResidentTurn) -> None:
    """Ask a model for insights from the day's most important memories, and update the texts about the resident's
    present concerns and life. Without memories, skip this. In any case, first find out the result of an act that waits
    for it."""
    await find_out(turn)
    await turn.resident.written()
    records = await _evening_come_to_mind(turn)
    if not records:
        return
    evening = await turn.ask(
        ReflectScenes(
            who=turn.name,
            identity="\n".join(_described(turn, "", "", for_talk=True)),
            when=turn.date_and_time,
            memories=tuple(_shown(turn, each) for each in records),
            about=turn.state.about or turn.person.about,
            currently=turn.state.currently or turn.person.currently,
        )
    )
    thoughts = await turn.build(*_thoughts(turn, evening, records))
    upto = (await turn.resident.memory.columns()).ids[-1]
    told = tuple(each.id for each in thoughts)
    model = turn.resident.models.of(ReflectScenes.role).name
    turn.write(Reflected(upto=upto, questions=(), thoughts=told, model=model), thoughts)
    currently, about = evening.currently.strip(), evening.about.strip()
    if currently or about:
        turn.write(Resolved(step=turn.step, currently=currently or turn.state.currently, about=about))


async def _evening_come_to_mind(turn: ResidentTurn) -> list[Record]:
    """Return the results of acts and the most important memories of the last 24 hours, and memories related to the
    resident's concerns, in the order of time. Descriptions, plans, and memories of appointments that are over are left
    out."""
    memory = turn.resident.memory
    newest = await memory.store.latest(memory.key, ("observation", "thought"), LOOKED_THROUGH, now=turn.now)
    false = await disproved(turn)
    own = [
        each for each in newest if each.created > turn.now - DAY_S and not _is_in_passing(each) and each.id not in false
    ]
    own = without_repeats(without_past(turn, own))
    own.sort(key=lambda each: (OUTCOME not in each.data, -(each.importance or 0.0), -each.created, each.id))
    recalled = await turn.recall(turn.at_heart, MAX_EVENING_PER_QUESTION, kinds=OF_A_DAY)
    fresh = {normalised(each.text): each for each in (*own[:MAX_EVENING_MEMORIES], *(each.record for each in recalled))}
    known = described_anyway(turn)
    plain = (
        each
        for each in fresh.values()
        if not ("background" in each.data or "plan" in each.keywords or each.text in known or each.id in false)
    )
    return sorted(without_repeats(without_past(turn, plain)), key=lambda each: (each.created, each.id))


def _is_in_passing(record: Record) -> bool:
    """Return whether a memory only says what another resident was seen doing."""
    return record.about is not None and (record.importance or 0.0) <= PEOPLE


def _shown(turn: ResidentTurn, record: Record) -> str:
    kept = f" ({KEPT})" if is_secret(turn, record) else ""
    day = f"{datetime.fromtimestamp(record.created, UTC):%A}"
    (shown,) = show((record,))
    return f"{day}: {cut_at_word(shown.line, MAX_MEMORY_CHARACTERS)}{kept}"


def _thoughts(turn: ResidentTurn, evening: Evening, records: Sequence[Record]) -> list[RecordDraft]:
    """Return insights as thoughts with their evidence.

    An insight is secret if the model says so, or if a secret is among its evidence. An insight that cites fewer than
    MIN_EVIDENCE memories only repeats a memory, and is left out. If there are fewer memories than that, an insight must
    cite all.
    """
    drafts = list[RecordDraft]()
    for each in evening.insights:
        numbers = [number for number in dict.fromkeys(each.because) if 0 < number <= len(records)]
        evidence = [records[number - 1] for number in numbers]
        if len(evidence) < min(MIN_EVIDENCE, len(records)):
            continue
        secret = each.secret or any(is_secret(turn, record) for record in evidence)
        own = turn.name.casefold() in each.text.casefold()
        names = [name.lower() for name in turn.setting.people if name in each.text]
        data: dict[str, Any] = {key: True for key, holds in ((OWN, own), (SECRET, secret)) if holds}
        data |= {THEN: each.then.strip()} if each.then.strip() else {}
        drafts.append(
            RecordDraft(
                text=each.text.strip(),
                kind="thought",
                by=BY,
                importance=float(each.weight),
                keywords=tuple(dict.fromkeys((*names, *([SECRET] if secret else [])))),
                evidence=tuple(record.id for record in evidence),
                data=data,
            )
        )
    return drafts
