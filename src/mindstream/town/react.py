"""What a resident makes of what it sees: it goes on, talks, waits, or acts (Park 2023, 4.3.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mindstream.memory.recall import Recalled
from mindstream.memory.record import New, Record
from mindstream.town.converse import OF_OTHER, OF_PEOPLE, TELLABLE, TO_TELL
from mindstream.town.events import Block, Decided, TasksPlanned
from mindstream.town.perceive import is_undecided
from mindstream.town.percept import Percept
from mindstream.town.places import is_home, things_around, things_open, words_of
from mindstream.town.plan import (
    DUTIES,
    PLAN_IMPORTANCE,
    begin,
    leave_it,
    minutes_between,
    plan_day,
)
from mindstream.town.prompts.see_to import Remedy, SeeTo
from mindstream.town.prompts.should_act import ShouldAct
from mindstream.town.prompts.should_talk import ShouldTalk
from mindstream.town.rules.conditions import is_danger
from mindstream.town.sight import nearest_spot
from mindstream.town.state import ResidentState
from mindstream.town.turn import Turn

LATEST_HOUR = 23
RECALLED = 8
PASSING_IMPORTANCE = 2.0
"""Of the memory of what was only waited for."""


async def react(turn: Turn, new: Sequence[Percept], others: Mapping[str, ResidentState]) -> None:
    """Decide about what it sees: things first, since they cannot wait, then people who are new, the nearest first."""
    if _another_mends_it(turn, others):
        return
    for percept in _undecided(turn):
        if await _acts(turn, percept, others):
            return
    if turn.state.is_talking(turn.step):
        return
    for percept in new:
        if percept.who and await _wants_to_talk(turn, others[percept.who]):
            turn.wish = percept.who
            return


def _undecided(turn: Turn) -> list[Percept]:
    """Return the things to decide about now, dangers first; who talks or sees to something already has eyes for
    dangers only, and who fights one for nothing else."""
    state, step = turn.state, turn.step
    block = state.block_at(turn.setting.minute(step))
    seen_to = block.sees_to if block is not None else ""
    if any(each.place == seen_to and is_danger(each.object) for each in turn.percepts if each.place):
        return []
    undecided = [each for each in turn.percepts if is_undecided(state, each)]
    dangers = [each for each in undecided if is_danger(each.object)]
    if seen_to or state.is_talking(step):
        return dangers
    return [*dangers, *(each for each in undecided if each not in dangers)]


def _another_mends_it(turn: Turn, others: Mapping[str, ResidentState]) -> bool:
    """Leave it to another who is at it already, the one who was first; tell whether it did."""
    act = turn.state.act
    if act is None or act.why != "react" or not act.sees_to:
        return False
    if any(each.place == act.sees_to and is_danger(each.object) for each in turn.percepts):
        return False
    mine = (act.since, turn.name)
    if not any((other.act.since, name) < mine for name, other in others.items() if _mends(other, act.sees_to)):  # type: ignore[union-attr]
        return False
    minute = turn.setting.minute(turn.step)
    block = turn.state.block_at(minute)
    if block is None or block.sees_to != act.sees_to:
        return False
    begin(turn, leave_it(turn, block, minute), because="another sees to it")
    return True


def _mends(other: ResidentState, place: str) -> bool:
    return other.act is not None and other.act.why == "react" and other.act.sees_to == place


async def _acts(turn: Turn, percept: Percept, others: Mapping[str, ResidentState]) -> bool:
    """Decide about a thing that is not as it should be; if so, what is planned for now changes."""
    act = turn.state.act
    assert act is not None
    recalled = await turn.recall(percept.text, RECALLED, touch=False)
    memories = turn.beyond_identity(each.record for each in recalled if "plan" not in each.record.keywords)
    in_charge = is_home(turn.person, percept.place) or (
        act.what.startswith(DUTIES) and _sector(act.place) == _sector(percept.place)
    )
    helpers = tuple(sorted(name for name, other in others.items() if _mends(other, percept.place)))
    question = ShouldAct(
        who=turn.name, identity=turn.identity, doing=act.what, sees=percept.text,
        uses_it=act.needs(percept.place), in_charge=in_charge, others=helpers, memories=memories,
    )  # fmt: skip
    if not await _decided(turn, percept.text, question, recalled, place=percept.place):
        return False
    if turn.state.day != turn.setting.day(turn.step):
        await plan_day(turn, turn.setting.day(turn.step))
    minute = turn.setting.minute(turn.step)
    shops, eateries = things_open(turn, "shop"), things_open(turn, "eat")
    things = tuple(dict.fromkeys((*_by_nearness(turn, percept), percept.place, *shops, *eateries)))
    planned = turn.state.block_at(minute)
    remedy = await turn.ask(
        SeeTo(
            who=turn.name, identity=turn.identity, sees=percept.text, doing=planned.what if planned else act.what,
            when=f"{minute // 60:02d}:{minute % 60:02d}", at=things.index(percept.place) + 1,
            around=tuple(map(words_of, things)), sells=_numbers(things, shops, percept.place),
            serves=_numbers(things, eateries, percept.place), in_charge=in_charge, others=helpers,
            present=tuple(sorted(name for name, other in others.items() if not other.asleep)),
            waited=_minutes_waited(turn.state, percept.place, minute), memories=memories,
        )
    )  # fmt: skip
    blocks = _rewrite_plan(turn, percept, remedy, things, minute)
    turn.write(
        TasksPlanned(step=turn.step, blocks=blocks, because=f"{percept.text} ({words_of(percept.place)})"),
        await _remember(turn, percept, remedy),
    )
    begin(turn, blocks[0], because=percept.text)
    return True


def _by_nearness(turn: Turn, percept: Percept) -> list[str]:
    """Return the things it knows around what it sees, the nearest first."""
    distance = turn.setting.world.distance
    around = things_around(turn, percept.place)
    return sorted(around, key=lambda each: distance(nearest_spot(turn.setting, each, percept.spot), percept.spot))


def _numbers(things: Sequence[str], meant: Sequence[str], place: str) -> tuple[int, ...]:
    """Return the numbers of things, without those in the house where it was seen."""
    return tuple(things.index(each) + 1 for each in meant if _sector(each) != _sector(place))


def _minutes_waited(state: ResidentState, place: str, minute: int) -> int:
    """Return how long somebody has waited for a thing in the last hour."""
    return sum(
        block.minutes
        for block in state.blocks
        if block.why == "wait" and block.sees_to == place and minute - 60 <= block.end <= minute
    )


def _rewrite_plan(
    turn: Turn, percept: Percept, remedy: Remedy, things: Sequence[str], minute: int
) -> tuple[Block, ...]:
    """Return what is done about it, with the ways there; then the tasks at hand, that much later.

    What is planned in broad strokes keeps its end; so the day goes on as planned.
    """
    act = turn.state.act
    assert act is not None
    blocks: list[Block] = []
    start, place = minute, act.place or turn.person.home
    for task in remedy.tasks:
        where = things[task.place - 1] if 0 < task.place <= len(things) else ""
        minutes = task.minutes + (minutes_between(turn, place, where) if where else 0)
        blocks.append(
            Block(
                start=start, minutes=minutes, what=task.what, place=where, fine=True, leaves=task.leaves,
                why="wait" if remedy.waits else "react", sees_to=percept.place,
            )
        )  # fmt: skip
        start, place = start + minutes, where or place
    return (*blocks, *(_later(turn.state.blocks, minute, start - minute) if remedy.resumes else ()))


def _later(blocks: Sequence[Block], minute: int, by: int) -> list[Block]:
    """Return the tasks from this minute on, as far as the plan is broken down, that much later."""
    later: list[Block] = []
    at = minute
    for block in blocks:
        if block.end <= at:
            continue
        if block.start > at or not block.fine:
            break
        later.append(block.model_copy(update={"start": at + by, "minutes": block.end - at}))
        at = block.end
    return later


async def _remember(turn: Turn, percept: Percept, remedy: Remedy) -> tuple[Record, ...]:
    """Make the memory of what was done about something; what goes by plan is remembered as the plan."""
    done = ", ".join(dict.fromkeys(task.what for task in remedy.tasks))
    text = f"{turn.name} saw that {percept.text}, and saw to it: {done}"
    weight = PASSING_IMPORTANCE if remedy.waits else PLAN_IMPORTANCE
    return await turn.build(New(text=text, kind="observation", by=turn.name, importance=weight))


def _sector(place: str) -> str:
    return ":".join(place.split(":")[:2])


async def _wants_to_talk(turn: Turn, other: ResidentState) -> bool:
    """Decide whether to begin to talk with somebody who is near."""
    profile, state, step = turn.profile, turn.state, turn.step
    out_of_question = (
        not profile.talks or state.asleep or other.asleep or other.act is None or other.is_talking(step)
        or turn.setting.when(step).hour >= LATEST_HOUR or state.rested.get(other.name, 0) > step
        or other.rested.get(turn.name, 0) > step or state.act is None
        or "react" in (state.act.why, other.act.why)
    )  # fmt: skip
    if out_of_question:
        return False
    assert state.act is not None and other.act is not None
    about = await turn.recall_about([other.name], OF_OTHER)
    recalled = await turn.recall(other.name, OF_OTHER, kinds=OF_PEOPLE, touch=False)
    shared = state.shared.get(other.name, frozenset())
    at_heart = [
        each.record
        for each in await turn.recall(turn.at_heart, TO_TELL, kinds=TELLABLE, touch=False)
        if each.record.id not in shared
        and not each.record.data.get("background")
        and "plan" not in each.record.keywords
    ]
    news = tuple(each.text for each in at_heart)
    memories = turn.beyond_identity([*about, *(each.record for each in recalled)])
    question = ShouldTalk(
        who=turn.name, identity=turn.identity, doing=state.act.what, other=other.name,
        other_doing=other.act.what, when=turn.date_and_time, relation=turn.relation(other.name),
        memories=tuple(each for each in memories if each not in news), news=news,
        last_talk=turn.last_talk(other.name),
    )  # fmt: skip
    return await _decided(turn, f"to talk to {other.name}", question, recalled, other.name)


async def _decided(
    turn: Turn,
    about: str,
    question: ShouldAct | ShouldTalk,
    recalled: Sequence[Recalled],
    other: str = "",
    place: str = "",
) -> bool:
    p = await turn.decide(question)
    yes = turn.setting.draw("decide", turn.step, turn.name, about) < p
    brought_up = tuple((each.record.id, round(each.score, 4)) for each in recalled)
    turn.write(
        Decided(
            step=turn.step,
            about=about,
            other=other,
            place=place,
            question=question.label(),
            p=round(p, 4),
            yes=yes,
            recalled=brought_up,
        )
    )
    return yes
