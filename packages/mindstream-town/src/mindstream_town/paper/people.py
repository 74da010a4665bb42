"""Reactions to people in sight in the mode `paper`, as in Park 2023 (4.3.1): continue, talk, wait, go along, or avoid.

This module also contains, for the same mode: a resident's summary of itself, places in prompts, memories of finished
acts, and ratings of memories in batches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mindstream.memory.lifecycle.importance import RateImportance
from mindstream.memory.store.record import Record, RecordDraft, Triple
from mindstream.memory.store.store import Revision
from mindstream_town.events import Act, ActFinished, Block, IdentityRenewed, MemoriesRated, TasksPlanned
from mindstream_town.paper.prompts import AVOID, GO_ALONG, TALK, WAIT, MeetPerson, RenewIdentity
from mindstream_town.prompts.plans import Place
from mindstream_town.residents.converse import OF_OTHER, can_begin_talk, thoughts_of
from mindstream_town.residents.places import known_places, may_use, things_around
from mindstream_town.residents.plan import begin
from mindstream_town.residents.prompt_context import show
from mindstream_town.residents.sight import on_the_way
from mindstream_town.residents.turn import Percept, ResidentTurn
from mindstream_town.state import ResidentState
from mindstream_town.world.world import DAY_MINUTES, clock

ASKED = ("{who}'s core characteristics", "{who}'s current daily occupation", "How {who} feels about recent progress")
"""Queries to a resident's memory, from which its summary is written."""
EACH = 6


async def renew_identity(turn: ResidentTurn, news: Sequence[Record] = ()) -> None:
    """Write a new summary of the resident, which later plans and talks use.

    Args:
        news: thoughts of this step, which are not stored yet.
    """
    recalled = [each for asked in ASKED for each in await turn.recall(asked.format(who=turn.name), EACH)]
    records = list({record.id: record for record in (*news, *(each.record for each in recalled))}.values())
    person = turn.person
    fixed = "\n".join(filter(None, (f"{person.name}, {person.age}" if person.age else person.name, person.innate)))
    reply = await turn.ask(
        RenewIdentity(
            who=turn.name,
            person=fixed,
            before=turn.state.summary,
            date=turn.date,
            memories=tuple(dict.fromkeys(record.text for record in records if "plan" not in record.keywords)),
        )
    )
    evidence = tuple(record.id for record in records)
    turn.write(IdentityRenewed(step=turn.step, summary=reply.summary.strip(), evidence=evidence))


def path_of(address: str) -> str:
    """Return the names of a place and those around it: `Oak Cafe > cafe > counter`."""
    return " > ".join(address.split(":")[1:])


def known_tree(turn: ResidentTurn) -> tuple[list[str], tuple[str, ...]]:
    """Return the addresses of the rooms that a resident knows and may enter. Also return a line for each room: names,
    hours, contents."""
    known = known_places(turn.setting, turn.person, turn.state.knows, turn.when)
    return [address for address, _ in known], tuple(_line(address, place) for address, place in known)


def _line(address: str, place: Place) -> str:
    """Return the line of a place: `Oak Cafe > cafe (open 08:00-20:00): counter, piano`."""
    return path_of(address) + place.line.removeprefix(place.words)


def things_in(turn: ResidentTurn, place: str) -> tuple[tuple[str, ...], int]:
    """Return the usable objects in the house of a place, and the number of objects at the place itself.

    The objects at the place itself come first.
    """
    things = things_around(turn, place)
    at_it = [each for each in things if f"{each}:".startswith(f"{place}:")]
    return tuple(dict.fromkeys((*at_it, *things))), len(at_it)


def descend(places: Sequence[str], said: Sequence[str]) -> str:
    """Return the place that `said` names; "" if it names no place.

    A level may be missing if the next name is unambiguous. A number alone is the position of a place in `places`.

    Args:
        places: addresses of the places in the order of the prompt.
        said: names from the widest place to the narrowest.
    """
    names = [part.strip() for each in said for part in each.replace(">", ":").split(":") if part.strip()]
    if len(names) == 1 and names[0].isdecimal():
        number = int(names[0])
        return places[number - 1] if 0 < number <= len(places) else ""
    found = ""
    for name in names:
        below = [each for each in _levels(places) if not found or each.startswith(f"{found}:")]
        fits = [each for each in below if each.rpartition(":")[2].casefold() == name.casefold()]
        highest = min((each.count(":") for each in fits), default=0)
        fits = [each for each in fits if each.count(":") == highest]
        if len(fits) != 1:
            continue  # an unknown or ambiguous name is ignored; a later name may still match
        found = fits[0]
    return found


def _levels(places: Sequence[str]) -> list[str]:
    """Return the places and all places that contain them, without the world."""
    parts = (each.split(":") for each in places)
    return list(dict.fromkeys(":".join(names[: n + 1]) for names in parts for n in range(1, len(names))))


def narrowed(turn: ResidentTurn, place: str) -> str:
    """Return the first known room of a house; return any other place unchanged."""
    if place.count(":") != 1:
        return place
    rooms, _ = known_tree(turn)
    return next((each for each in rooms if each.startswith(f"{place}:")), place)


AT_ONCE = 60
"""Maximum memories rated in one call."""


async def finish_act(turn: ResidentTurn, act: Act | None) -> None:
    """Remember an act that has ended or was interrupted, if it lasted a minute or more. If the resident had not reached
    its place, only the walk is listed among what it did today.

    Sleep, talks, waiting and a user's commands are not remembered. An act that continues an equal act is remembered
    once.
    """
    if act is None or act.asleep or act.why in ("talk", "wait", ""):
        return
    minutes = (turn.step - act.since) * turn.profile.step_s // 60
    if not minutes:
        return
    has_arrived = act.has_arrived(turn.step)
    what = act.what if has_arrived else on_the_way(act.place)
    is_new = has_arrived and (not turn.state.done or turn.state.done[-1].what != what)
    draft = RecordDraft(
        text=f"{turn.name} is {act.what}",
        kind="observation",
        by=turn.name,
        about=Triple(turn.name, "is", act.what),
        keywords=tuple(dict.fromkeys((turn.name.lower(), act.what.lower()))),
        data={"place": act.place} if act.place else {},
    )
    records = await turn.build(draft) if is_new else ()
    start, ids = turn.setting.minute(act.since), tuple(record.id for record in records)
    turn.write(ActFinished(step=turn.step, what=what, start=start, minutes=minutes, records=ids), records)


def is_own_act(turn: ResidentTurn, record: Record) -> bool:
    """Return whether a memory is about the resident's own act."""
    return record.about is not None and record.about.subject == turn.name


async def rate_ahead(turn: ResidentTurn) -> None:
    """Start the rating that `rate_memories` needs later in this turn: it does not depend on what the resident does."""
    if _is_to_rate(turn) and (asked := _to_rate(turn, await _unrated(turn))):
        turn.ask_ahead(asked)


async def rate_memories(turn: ResidentTurn, *, at_once: bool = False) -> None:
    """Rate up to AT_ONCE unrated memories from before this step.

    Args:
        at_once: rate the memories now. False: rate them only if a new hour of the day has begun both since the first
            unrated memory was written and since the last rating.
    """
    if not _is_to_rate(turn, at_once):
        return
    records, ids = await _unrated(turn), turn.resident.state.unrated[:AT_ONCE]
    asked = _to_rate(turn, records)
    of_text = dict(zip(asked.memories, (await turn.ask(asked)).ratings, strict=True)) if asked else {}
    turn.revisions += [Revision(id=record.id, importance=float(of_text[record.text])) for record in records]
    ratings = {record.id: of_text[record.text] for record in records}
    gathered = float(sum(ratings.values()))
    event = MemoriesRated(
        step=turn.step, records=ids, ratings=tuple(ratings.get(each, 0) for each in ids), gathered=gathered
    )
    turn.write(event)


def _is_to_rate(turn: ResidentTurn, at_once: bool = False) -> bool:
    setting, state = turn.setting, turn.resident.state
    is_over = setting.minute(turn.step) // 60 != setting.minute(state.unrated_since) // 60
    return bool(state.unrated) and state.unrated[0] in turn.state.unrated and (at_once or is_over)


async def _unrated(turn: ResidentTurn) -> list[Record]:
    await turn.resident.written()
    return await turn.resident.memory.records(turn.resident.state.unrated[:AT_ONCE])


def _to_rate(turn: ResidentTurn, records: Sequence[Record]) -> RateImportance | None:
    texts = tuple(dict.fromkeys(record.text for record in records))
    return RateImportance(who=turn.name, memories=texts) if texts else None


TOLD, WAITED, ALONG, SOON = 6, 5, 60, 60
"""TOLD: maximum number of news items in the prompt. WAITED: minutes that a resident waits for a person. ALONG: maximum
minutes that it joins another's activity. SOON: maximum minutes by which it leaves early to avoid a person."""


async def react_to_people(turn: ResidentTurn, new: Sequence[Percept], others: Mapping[str, ResidentState]) -> None:
    """Decide about each person who has come into sight, the nearest first, until a decision changes the act.

    A resident that has waited for a person decides about that person again, before the others.
    """
    act = turn.state.act
    waited_for = act.sees_to if act is not None and act.why == "wait" and turn.step >= act.until else ""
    names = dict.fromkeys([*([waited_for] if waited_for in others else []), *(each.who for each in new if each.who)])
    for name in names:
        if not can_begin_talk(turn, others[name], has_waited=name == waited_for):
            continue
        match await _choose(turn, others[name]):
            case "talk":
                turn.wish = name
                return
            case "wait" if name != waited_for:
                _wait_for(turn, name)
                return
            case "go along":
                if _go_along(turn, others[name]):
                    return
            case "avoid":
                if _avoid(turn, name):
                    return
            case _:
                pass


async def _choose(turn: ResidentTurn, other: ResidentState) -> str:
    assert turn.state.act is not None and other.act is not None
    recalled, every, at_heart = await thoughts_of(turn, other.name)
    if turn.relation(other.name):  # an acquaintance knows the resident's identity already
        unsaid = set(turn.beyond_identity(at_heart))
        at_heart = [each for each in at_heart if each.text in unsaid]
    at_heart = at_heart[:TOLD]
    memories = turn.beyond_identity(each for each in every if not is_own_act(turn, each))
    minute = turn.minute
    later = next((each for each in turn.state.blocks if each.start > minute and not each.asleep), None)
    question = MeetPerson(
        who=turn.name,
        identity=turn.identity,
        doing=turn.state.act.what,
        other=other.name,
        other_doing=next((each.object for each in turn.percepts if each.who == other.name), other.act.what),
        when=turn.date_and_time,
        relation=turn.relation(other.name),
        next=f"{clock(later.start)} {later.what}" if later else "",
        news=show(at_heart),
        memories=tuple(each for each in memories if each not in {one.text for one in at_heart})[:OF_OTHER],
        last_talk=turn.last_talk(other.name),
    )
    acts = (TALK, WAIT, GO_ALONG)
    return await turn.choose(f"what to do about {other.name}", question, acts, recalled, other.name)


def _wait_for(turn: ResidentTurn, name: str) -> None:
    """Wait for some minutes, then decide again. The plan for these minutes is dropped."""
    act, minute = turn.state.act, turn.minute
    assert act is not None
    block = Block(
        start=minute, minutes=WAITED, what=f"waiting for {name}", place=act.place, fine=True, why="wait", sees_to=name
    )
    turn.write(TasksPlanned(step=turn.step, blocks=(block,), because=WAIT))
    begin(turn, block, because=f"{WAIT}: {name}")


def _go_along(turn: ResidentTurn, other: ResidentState) -> bool:
    """Join another resident's activity for at most an hour; return False if it has no place that this resident may
    enter."""
    act, setting = other.act, turn.setting
    if act is None or act.place not in setting.addresses or not may_use(setting, turn.person, act.place):
        return False
    minute = setting.minute(turn.step)
    ends = minute + max(WAITED, min(ALONG, (act.until - turn.step) * turn.profile.step_s // 60))
    block = Block(start=minute, minutes=min(ends, DAY_MINUTES) - minute, what=act.what, place=act.place, fine=True)
    turn.write(TasksPlanned(step=turn.step, blocks=(block,), because=f"{GO_ALONG}: {other.name}"))
    begin(turn, block, because=f"{GO_ALONG}: {other.name}")
    return True


def _avoid(turn: ResidentTurn, name: str) -> bool:
    """Leave early for the next activity in another room, if it begins within SOON minutes. Return whether there is such
    an activity."""
    act, minute = turn.state.act, turn.minute
    assert act is not None
    room = act.place.split(":")[:3]
    soon = (each for each in turn.state.blocks if minute < each.start <= minute + SOON and not each.asleep)
    later = next((each for each in soon if each.place.split(":")[:3] != room), None)
    if later is None:
        return False
    early = later.model_copy(update={"start": minute, "minutes": later.end - minute})
    turn.write(TasksPlanned(step=turn.step, blocks=(early,), because=f"{AVOID}: {name}"))
    walks = early.model_copy(update={"minutes": later.start - minute})
    begin(turn, walks, because=f"{AVOID}: {name}")
    return True
