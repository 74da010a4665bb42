"""What a resident does about people whom it sees: it goes on, talks, waits, goes along, avoids (Park 2023, 4.3.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mindstream.memory.lifecycle.importance import RateImportance
from mindstream.memory.store.record import Record, RecordDraft, Triple
from mindstream.memory.store.store import Revision
from mindstream_town.events import Act, ActFinished, Block, IdentityRenewed, MemoriesRated, TasksPlanned
from mindstream_town.paper.prompts import AVOID, GO_ALONG, TALK, WAIT, MeetPerson, RenewIdentity
from mindstream_town.prompts.plans import Place
from mindstream_town.residents.converse import OF_OTHER, OF_PEOPLE, TELLABLE, TO_TELL, can_be_told
from mindstream_town.residents.percept import Percept
from mindstream_town.residents.places import known_places, may_use, things_around
from mindstream_town.residents.plan import begin
from mindstream_town.residents.shown import show
from mindstream_town.residents.turn import ResidentTurn
from mindstream_town.state import ResidentState
from mindstream_town.world.hours import DAY_MINUTES, clock

ASKED = ("{who}'s core characteristics", "{who}'s current daily occupation", "How {who} feels about recent progress")
"""What is asked of memory, each by itself."""
EACH = 6


async def renew_identity(turn: ResidentTurn, news: Sequence[Record] = ()) -> None:
    """Draw anew who a resident is; what it will plan and say from now on goes by it.

    Args:
        news: what it has thought in this very step.
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
    """Write a place by its names, from the widest to the narrowest: `Oak Cafe > cafe > counter`."""
    return " > ".join(address.split(":")[1:])


def known_tree(turn: ResidentTurn) -> tuple[list[str], tuple[str, ...]]:
    """Return the rooms that a resident knows and may go to, and the line of each: names, hours, what is in it."""
    known = known_places(turn.setting, turn.person, turn.state.knows, turn.setting.when(turn.step))
    return [address for address, _ in known], tuple(_line(address, place) for address, place in known)


def _line(address: str, place: Place) -> str:
    """Write a branch: `Oak Cafe > cafe (open 08:00-20:00): counter, piano`."""
    return path_of(address) + place.line.removeprefix(place.words)


def things_in(turn: ResidentTurn, place: str) -> tuple[tuple[str, ...], int]:
    """Return the things that can be used around a place, and how many of them, the first ones, are at it itself."""
    things = things_around(turn, place)
    at_it = [each for each in things if f"{each}:".startswith(f"{place}:")]
    return tuple(dict.fromkeys((*at_it, *things))), len(at_it)


def descend(places: Sequence[str], said: Sequence[str]) -> str:
    """Return the place that names lead to, down from the widest; "" where they lead nowhere.

    A name may stand at any level where only one place there has it. A number alone is that of one of the places.

    Args:
        places: the addresses that were shown, in their order.
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
            continue  # no such name down there, or more than one: the rest may still lead on
        found = fits[0]
    return found


def _levels(places: Sequence[str]) -> list[str]:
    """Return all places on the way down to these, each once; not the world itself."""
    parts = (each.split(":") for each in places)
    return list(dict.fromkeys(":".join(names[: n + 1]) for names in parts for n in range(1, len(names))))


def narrowed(turn: ResidentTurn, place: str) -> str:
    """Return a room of a house that was meant as a whole: the first that is known."""
    if place.count(":") != 1:
        return place
    rooms, _ = known_tree(turn)
    return next((each for each in rooms if each.startswith(f"{place}:")), place)


AT_ONCE = 60
"""So many memories are rated in one call at most."""


async def finish_act(turn: ResidentTurn, act: Act | None) -> None:
    """Remember what has been done, when it is over or broken off; sleep and talks are kept otherwise, or not at all.

    Who does the same for longer remembers it once.
    """
    if act is None or act.asleep or act.why in ("talk", "wait", "") or not act.has_arrived(turn.step):
        return
    minutes = (turn.step - act.since) * turn.profile.step_s // 60
    if not minutes:
        return
    is_new = not turn.state.done or turn.state.done[-1].what != act.what
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
    turn.write(ActFinished(step=turn.step, what=act.what, start=start, minutes=minutes, records=ids), records)


def is_own_act(turn: ResidentTurn, record: Record) -> bool:
    """Tell whether a memory is of what the resident itself did."""
    return record.about is not None and record.about.subject == turn.name


async def rate_memories(turn: ResidentTurn, *, at_once: bool = False) -> None:
    """Rate what has gathered unrated before this step, when an hour of the clock is over, or at once."""
    setting, state = turn.setting, turn.resident.state
    ids = state.unrated[:AT_ONCE]
    is_over = setting.minute(turn.step) // 60 != setting.minute(state.unrated_since) // 60
    if not ids or ids[0] not in turn.state.unrated or not (at_once or is_over):
        return
    await turn.resident.written()
    memory = turn.resident.memory
    records = await memory.store.records(memory.key, ids)
    texts = tuple(dict.fromkeys(record.text for record in records))
    rated = await turn.ask(RateImportance(who=turn.name, memories=texts)) if texts else None
    of_text = dict(zip(texts, rated.ratings, strict=True)) if rated else {}
    turn.revisions += [Revision(id=record.id, importance=float(of_text[record.text])) for record in records]
    ratings = {record.id: of_text[record.text] for record in records}
    gathered = float(sum(ratings.values()))
    event = MemoriesRated(
        step=turn.step, records=ids, ratings=tuple(ratings.get(each, 0) for each in ids), gathered=gathered
    )
    turn.write(event)


TOLD, WAITED, ALONG, SOON = 6, 5, 60, 60
"""News that are shown; minutes that one waits, goes along at most, and leaves early at most."""


async def react_to_people(turn: ResidentTurn, new: Sequence[Percept], others: Mapping[str, ResidentState]) -> None:
    """Decide about each who is new, the nearest first, until one changes what is done; who has waited decides anew."""
    act = turn.state.act
    waited_for = act.sees_to if act is not None and act.why == "wait" and turn.step >= act.until else ""
    names = dict.fromkeys([*([waited_for] if waited_for in others else []), *(each.who for each in new if each.who)])
    for name in names:
        if _is_out_of_question(turn, others[name], name == waited_for):
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


def _is_out_of_question(turn: ResidentTurn, other: ResidentState, waited: bool) -> bool:
    state, step = turn.state, turn.step
    return (
        not turn.profile.talks
        or state.asleep
        or other.asleep
        or other.act is None
        or state.act is None
        or other.is_talking(step)
        or (state.rested.get(other.name, 0) > step and not waited)
        or other.rested.get(turn.name, 0) > step
        or "react" in (state.act.why, other.act.why)
    )


async def _choose(turn: ResidentTurn, other: ResidentState) -> str:
    assert turn.state.act is not None and other.act is not None
    about = await turn.recall_about([other.name], OF_OTHER)
    recalled = await turn.recall(other.name, OF_OTHER, kinds=OF_PEOPLE, touch=False)
    shared = turn.state.shared.get(other.name, frozenset())
    at_heart = [
        each.record
        for each in await turn.recall(turn.at_heart, TO_TELL, kinds=TELLABLE, touch=False)
        if each.record.id not in shared and can_be_told(each.record)
    ]
    if turn.relation(other.name):  # who one is, acquaintances know
        unsaid = set(turn.beyond_identity(at_heart))
        at_heart = [each for each in at_heart if each.text in unsaid]
    at_heart = at_heart[:TOLD]
    of_other = [each for each in (*about, *(one.record for one in recalled)) if not is_own_act(turn, each)]
    memories = turn.beyond_identity(of_other)
    minute = turn.setting.minute(turn.step)
    later = next((each for each in turn.state.blocks if each.start > minute and not each.asleep), None)
    question = MeetPerson(
        who=turn.name,
        identity=turn.identity,
        doing=turn.state.act.what,
        other=other.name,
        other_doing=other.act.what,
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
    """Stay for some minutes; then decide anew. What was to be done in them is left out."""
    act, minute = turn.state.act, turn.setting.minute(turn.step)
    assert act is not None
    block = Block(
        start=minute, minutes=WAITED, what=f"waiting for {name}", place=act.place, fine=True, why="wait", sees_to=name
    )
    turn.write(TasksPlanned(step=turn.step, blocks=(block,), because=WAIT))
    begin(turn, block, because=f"{WAIT}: {name}")


def _go_along(turn: ResidentTurn, other: ResidentState) -> bool:
    """Do what the other does, where it does it, as long as it does, an hour at most; tell whether one may."""
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
    """Go on early to what is planned next elsewhere, if it is soon; tell whether it is."""
    act, minute = turn.state.act, turn.setting.minute(turn.step)
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
