"""React to percepts: continue, act, wait, or talk; and repair objects that are not in order (Park 2023, 4.3.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mindstream.memory.store.record import Record, RecordDraft
from mindstream_town.events import Block, TasksPlanned
from mindstream_town.paper.people import react_to_people
from mindstream_town.paper.plan import begin_day
from mindstream_town.prompts.conduct import Remedy, SeeTo, ShouldAct, ShouldTalk
from mindstream_town.prompts.plans import AT_HOME
from mindstream_town.residents.converse import can_begin_talk, thoughts_of
from mindstream_town.residents.places import is_home, things_around, things_open, words_of
from mindstream_town.residents.plan import PLAN_IMPORTANCE, begin, leave_it, minutes_between, plan_day
from mindstream_town.residents.prompt_context import show
from mindstream_town.residents.sight import OCCUPIED, is_undecided, nearest_spot
from mindstream_town.residents.turn import Percept, ResidentTurn
from mindstream_town.state import ResidentState
from mindstream_town.world.tree import ARENA, parse_address, sector_of
from mindstream_town.world.world import clock

RECALLED = 8
PASSING_IMPORTANCE = 2.0
"""Importance (1 to 10) of the memory of a reaction in which the resident only waited, or left the matter to others."""


async def react_to_things(turn: ResidentTurn, others: Mapping[str, ResidentState]) -> bool:
    """Decide about the objects in sight, one after the other; return whether the resident reacted to one.

    The first reaction ends the search. A reaction is one of these:
    - the resident acts on an object,
    - the resident leaves a repair to another resident,
    - the resident postpones its own act.
    """
    if _leave_to_another(turn, others):
        return True
    for percept in _undecided(turn):
        if turn.lives_in_scenes and _is_left(turn, percept, others):
            continue
        if _put_off(turn, percept, others):
            return True
        recalled = await turn.recall(percept.text, RECALLED, touch=False)
        memories = turn.beyond_identity(each.record for each in recalled if "plan" not in each.record.keywords)
        question = _question(turn, percept, others, memories)
        if await turn.decide(percept.text, question, recalled, place=percept.place):
            await _see_to(turn, percept, question, others)
            return True
    return False


def _undecided(turn: ResidentTurn) -> list[Percept]:
    """Return the objects about which the resident must decide, dangers first.

    A resident who talks or repairs something decides only about dangers. A resident who deals with a danger in sight
    decides about nothing else.
    """
    state, step = turn.state, turn.step
    block = state.block_at(turn.setting.minute(step))
    seen_to = block.sees_to if block is not None else ""
    if any(each.place == seen_to and each.danger for each in turn.percepts if each.place):
        return []
    undecided = [each for each in turn.percepts if is_undecided(state, each) and not _is_settled(turn, each)]
    dangers = [each for each in undecided if each.danger]
    if seen_to or state.is_talking(step):
        return dangers
    return [*dangers, *(each for each in undecided if each not in dangers)]


def _is_settled(turn: ResidentTurn, percept: Percept) -> bool:
    """Return whether a resident in the mode `paper` need not decide about an object again.

    Dangers and occupied objects are never settled. Any other object is settled in one of these cases:

    - The resident's current act changes the condition of the object, or an earlier act left the object in this
      condition.
    - The town file calls the condition fine.
    - Today the resident has decided not to change its act because of this condition.
    """
    state, setting = turn.state, turn.setting
    if percept.danger or percept.object == OCCUPIED or not turn.is_paper("decider"):
        return False
    changes = state.act is not None and state.act.place == percept.place and bool(state.act.leaves)
    if changes or state.left.get(percept.place) == percept.object or setting.conditions.is_fine(percept.object):
        return True
    accepted = state.accepted.get(percept.place, -1)
    return accepted > percept.since and setting.day(accepted) == turn.day


def _leave_to_another(turn: ResidentTurn, others: Mapping[str, ResidentState]) -> bool:
    """Stop a repair if another resident began the same repair earlier; return whether it was stopped. The repair of a
    danger in sight is never stopped."""
    act = turn.state.act
    if act is None or act.why != "react" or not act.sees_to:
        return False
    if any(each.place == act.sees_to and each.danger for each in turn.percepts):
        return False
    mine = (act.since, turn.name)
    menders = ((other.act.since, name) for name, other in others.items() if other.act and _mends(other, act.sees_to))
    if not any(each < mine for each in menders):
        return False
    minute = turn.minute
    block = turn.state.block_at(minute)
    if block is None or block.sees_to != act.sees_to:
        return False
    begin(turn, leave_it(turn, block, minute), because="another sees to it")
    return True


def _is_left(turn: ResidentTurn, percept: Percept, others: Mapping[str, ResidentState]) -> bool:
    """Return whether to ignore an object: another resident repairs or uses it, or its condition is fine.

    A danger, or an object that the current act needs, is never ignored.
    """
    act, rules = turn.state.act, turn.setting.conditions
    if percept.danger or (act is not None and act.needs(percept.place)):
        return False
    taken = percept.object == OCCUPIED or rules.is_fine(percept.object)
    return taken or any(_mends(other, percept.place) for other in others.values())


def _put_off(turn: ResidentTurn, percept: Percept, others: Mapping[str, ResidentState]) -> bool:
    """Begin the next part of the plan at another place, if the planned act needs an object that is out of order.
    Return whether the part was begun.

    The part is begun only under these conditions:
    - since the object's condition began, the resident has reported the object or waited for it today,
    - the object is not a danger, and not in use,
    - the resident is not in charge of the object,
    - no other resident repairs the object.

    If the next part is sleep, the resident is at home until the time of the sleep.
    """
    state, step = turn.state, turn.step
    act, minute = state.act, turn.setting.minute(step)
    if act is None or act.why != "plan" or not act.needs(percept.place):
        return False
    if percept.danger or percept.object == OCCUPIED or _is_in_charge(turn, percept.place):
        return False
    if any(_mends(other, percept.place) for other in others.values()) or not _has_told(turn, percept):
        return False
    later = next((each for each in state.blocks if each.start > minute and each.place != act.place), None)
    if later is None:
        return False
    now = later.model_copy(update={"start": minute, "minutes": later.end - minute})
    if later.asleep:
        now = Block(start=minute, minutes=later.start - minute, what=AT_HOME, place=turn.person.home, fine=True)
    turn.write(TasksPlanned(step=step, blocks=(now,), because=percept.text))
    begin(turn, now, because=percept.text)
    return True


def _has_told(turn: ResidentTurn, percept: Percept) -> bool:
    """Return whether the resident has reported an object, or waited for it, today and since its present condition
    began."""
    midnight = turn.setting.step_at(turn.day, 0)
    return any(
        each.why == "wait"
        and each.sees_to == percept.place
        and percept.since <= midnight + each.start * turn.profile.a_minute < turn.step
        for each in turn.state.blocks
    )


def _is_in_charge(turn: ResidentTurn, place: str) -> bool:
    """Return whether the resident owns a place, or lives or works there."""
    owns = turn.name in turn.setting.rules.owners(turn.setting.addresses[place])
    return owns or is_home(turn.person, place) or turn.person.has_duty_in(sector_of(place))


def _mends(other: ResidentState, place: str) -> bool:
    return other.act is not None and other.act.why == "react" and other.act.sees_to == place


def _question(
    turn: ResidentTurn, percept: Percept, others: Mapping[str, ResidentState], memories: tuple[str, ...]
) -> ShouldAct:
    """Return the prompt that asks whether to act on an object."""
    act = turn.state.act
    assert act is not None
    place = percept.place
    return ShouldAct(
        who=turn.name,
        identity=turn.identity,
        doing=act.what,
        sees=percept.text,
        danger=percept.danger,
        uses_it=act.needs(place),
        at_it=turn.lives_in_scenes and act.needs(place),
        in_charge=_is_in_charge(turn, place),
        taken=percept.object == OCCUPIED,
        fine=turn.setting.conditions.is_fine(percept.object),
        others=tuple(sorted(name for name, other in others.items() if _mends(other, percept.place))),
        memories=memories,
    )


async def _see_to(turn: ResidentTurn, percept: Percept, why: ShouldAct, others: Mapping[str, ResidentState]) -> None:
    """Ask the model what to do about an object, change the plan accordingly, and begin the first task."""
    if turn.state.day != turn.day:
        await (begin_day if turn.is_paper() else plan_day)(turn, turn.day)
    minute = turn.minute
    shops, eateries = things_open(turn, "shop"), things_open(turn, "eat")
    things = tuple(dict.fromkeys((*_by_nearness(turn, percept), percept.place, *shops, *eateries)))
    planned = turn.state.block_at(minute)
    remedy = await turn.ask(
        SeeTo(
            who=turn.name,
            identity=turn.identity,
            sees=percept.text,
            danger=percept.danger,
            doing=planned.what if planned else why.doing,
            when=clock(minute),
            at=things.index(percept.place) + 1,
            around=tuple(map(words_of, things)),
            sells=_numbers(things, shops, percept.place),
            serves=_numbers(things, eateries, percept.place),
            in_charge=why.in_charge,
            others=why.others,
            taken=why.taken,
            aside=number_aside(things, percept.place),
            present=tuple(sorted(name for name, other in others.items() if not other.asleep)),
            waited=_minutes_waited(turn.state, percept.place, minute),
            memories=why.memories,
        )
    )
    blocks = _rewrite_plan(turn, percept, remedy, things, minute)
    turn.write(
        TasksPlanned(step=turn.step, blocks=blocks, because=f"{percept.text} ({words_of(percept.place)})"),
        await _remember(turn, percept, remedy),
    )
    begin(turn, blocks[0], because=percept.text)


def _by_nearness(turn: ResidentTurn, percept: Percept) -> list[str]:
    """Return the known objects around a percept, the nearest first."""
    distance = turn.setting.world.distance
    around = things_around(turn, percept.place)
    return sorted(around, key=lambda each: distance(nearest_spot(turn.setting, each, percept.spot), percept.spot))


def _numbers(things: Sequence[str], meant: Sequence[str], place: str) -> tuple[int, ...]:
    """Return the numbers (from 1, in `things`) of the objects in `meant` that are in another house than
    `place`."""
    return tuple(things.index(each) + 1 for each in meant if sector_of(each) != sector_of(place))


def number_aside(things: Sequence[str], place: str) -> int:
    """Return the number, from 1, of an object in another room of the house of `place`; 0: there is none.

    The resident can wait at this object.
    """
    room = parse_address(place).upto(ARENA)  # `place` can be an object or the whole room
    in_house = (n for n, each in enumerate(things, 1) if sector_of(each) == sector_of(place))
    return next((n for n in in_house if parse_address(things[n - 1]).upto(ARENA) != room), 0)


def _minutes_waited(state: ResidentState, place: str, minute: int) -> int:
    """Return for how many minutes the resident has waited for an object, in waits that ended in the last hour."""
    return sum(
        block.minutes
        for block in state.blocks
        if block.why == "wait" and block.sees_to == place and minute - 60 <= block.end <= minute
    )


def _rewrite_plan(
    turn: ResidentTurn, percept: Percept, remedy: Remedy, things: Sequence[str], minute: int
) -> tuple[Block, ...]:
    """Return the tasks of a remedy, with the walks to them.

    If the resident resumes its plan afterwards, add the current tasks, delayed. In a town that runs in scenes they are
    not added: each part of the day keeps its time.

    Blocks that are not broken down keep their ends, so that the day continues as planned.
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
                start=start,
                minutes=minutes,
                what=task.what,
                place=where,
                fine=True,
                leaves=task.condition,
                danger=task.danger,
                why="wait" if remedy.waits else "react",
                sees_to=percept.place,
            )
        )
        start, place = start + minutes, where or place
    shifts = remedy.resumes and not turn.lives_in_scenes  # in the mode "scenes", each part of the day keeps its time
    return (*blocks, *(_later(turn.state.blocks, minute, start - minute) if shifts else ()))


def _later(blocks: Sequence[Block], minute: int, by: int) -> list[Block]:
    """Return the planned tasks from this minute on, delayed by `by` minutes. They end at the first gap, or at the first
    block that is not split into tasks yet."""
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


async def _remember(turn: ResidentTurn, percept: Percept, remedy: Remedy) -> tuple[Record, ...]:
    """Build the memory of what the resident does about a percept (the remedy)."""
    done = ", ".join(dict.fromkeys(task.what for task in remedy.tasks))
    text = f"{turn.name} saw that {percept.text}, and saw to it: {done}"
    weight = PASSING_IMPORTANCE if remedy.waits else PLAN_IMPORTANCE
    return await turn.build(RecordDraft(text=text, kind="observation", by=turn.name, importance=weight))


LATEST_HOUR = 23


async def react(turn: ResidentTurn, new: Sequence[Percept], others: Mapping[str, ResidentState]) -> None:
    """React to objects in sight, or else to people.

    If the resident does nothing about objects and is not talking, it reacts to the people among the new percepts, in
    order.
    """
    if await react_to_things(turn, others) or turn.state.is_talking(turn.step):
        return
    if turn.is_paper("decider") and turn.is_paper():
        await react_to_people(turn, new, others)
        return
    for percept in new:
        if percept.who and await _wants_to_talk(turn, others[percept.who]):
            turn.wish = percept.who
            return


async def _wants_to_talk(turn: ResidentTurn, other: ResidentState) -> bool:
    """Decide whether to begin a talk with another resident."""
    if turn.when.hour >= LATEST_HOUR or not can_begin_talk(turn, other):
        return False
    assert turn.state.act is not None and other.act is not None
    recalled, of_other, at_heart = await thoughts_of(turn, other.name, for_rules=turn.has_rules("decider"))
    memories = turn.beyond_identity(of_other)
    question = ShouldTalk(
        who=turn.name,
        identity=turn.identity,
        doing=turn.state.act.what,
        other=other.name,
        other_doing=other.act.what,
        when=turn.date_and_time,
        relation=turn.relation(other.name),
        memories=tuple(each for each in memories if each not in {one.text for one in at_heart}),
        news=show(at_heart),
        last_talk=turn.last_talk(other.name),
    )
    return await turn.decide(f"to talk to {other.name}", question, recalled, other=other.name)
