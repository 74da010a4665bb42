"""Run a resident's turn in one of three modes: by rules, in scenes, or step by step as in Park 2023."""

from __future__ import annotations

from collections.abc import Mapping

from mindstream_town.paper import plan as paper
from mindstream_town.paper.people import finish_act, rate_memories
from mindstream_town.residents.plan import next_act
from mindstream_town.residents.react import react, react_to_things
from mindstream_town.residents.reflection import reflect
from mindstream_town.residents.sight import people_seen, perceive
from mindstream_town.residents.turn import Resident, ResidentTurn
from mindstream_town.scenes.day import (
    give_up_visit,
    plan_scenes,
    reflect_before_midnight,
    reflect_in_scene,
    remember_deed,
    whom_to_meet,
)


async def live(turn: ResidentTurn, ended: bool, residents: Mapping[str, Resident]) -> None:
    """Run a turn: perceive, react, plan, reflect.

    Args:
        ended: whether the act has ended. residents: all residents in their state before the step.
    """
    turn.resident.begin(turn.now)
    is_paper = turn.is_paper()
    if is_paper and ended:
        await finish_act(turn, turn.state.act)
    new = await perceive(turn)
    if turn.lives_in_scenes:
        await live_in_scenes(turn, ended, residents)
        return
    go_on = paper.next_act if is_paper else next_act
    if turn.state.act is None:
        await go_on(turn)
        return
    await react(turn, new, people_seen(turn.percepts, residents))
    if ended and turn.state.act is residents[turn.name].state.act:  # no reaction has replaced the act
        await go_on(turn)
    if is_paper:
        await rate_memories(turn)
    await reflect(turn)


async def live_in_scenes(turn: ResidentTurn, ended: bool, residents: Mapping[str, Resident]) -> None:
    """React to objects, follow the day's plan, remember finished acts, reflect, and choose a resident to talk with."""
    before, others = turn.state.act, people_seen(turn.percepts, residents)
    day = turn.day
    if turn.state.day != day:
        await reflect_before_midnight(turn)
        await plan_scenes(turn, day)
    reacts = before is not None and await react_to_things(turn, others)
    if before is None or (ended and not reacts):
        await remember_deed(turn)
        give_up_visit(turn)
        await next_act(turn)
    await reflect_in_scene(turn, before)
    turn.wish = "" if reacts else whom_to_meet(turn, others)
