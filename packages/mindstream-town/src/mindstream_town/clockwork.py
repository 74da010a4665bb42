"""The simulation of a town. In a step, only residents that have something to decide have a turn: their act has ended,
they may see something new, a user acts for them, or they may begin a talk.

A step of a group of residents has three parts. First all turns run concurrently, each on the state before the step.
Then encounters (talks) take place, in a fixed order. Then the results are written in one commit. A scheduler chooses
the groups: all residents in lock-step, or those who may perceive each other. After a crash, the town therefore resumes
after the last complete step of each group. The order in which models answer does not change the result.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from functools import partial
from itertools import repeat
from typing import NamedTuple

from mindstream.identifiers import StreamKey
from mindstream.memory.store.store import Commit, Entry
from mindstream.together import together
from mindstream_town.embody.living import Begin, Deed, Say, is_here, live_as
from mindstream_town.encounters import Encounters
from mindstream_town.events import MENDED, Act, ObjectChanged, TownReached
from mindstream_town.journal import TownState
from mindstream_town.paper import plan as paper
from mindstream_town.paper.people import finish_act, rate_ahead, rate_memories
from mindstream_town.residents.plan import ASIDE, next_act
from mindstream_town.residents.react import react, react_to_things
from mindstream_town.residents.reflection import reflect
from mindstream_town.residents.sight import dangers_of, is_news, look, people_seen, perceive
from mindstream_town.residents.turn import Percept, Resident, ResidentTurn
from mindstream_town.scenes.day import (
    find_out,
    gathers_at,
    give_up_visit,
    plan_scenes,
    reflect_before_midnight,
    reflect_in_scene,
    remember_deed,
    whom_to_meet,
)
from mindstream_town.scenes.talk import finish_scene
from mindstream_town.scheduler import FAR, RANK, Group, LockStep, Scheduler
from mindstream_town.setting import Setting
from mindstream_town.state import ResidentState
from mindstream_town.world.reach import reach_of
from mindstream_town.world.tree import OBJECT, Spot
from mindstream_town.world.whereabouts import Condition, Whereabouts

Turns = dict[str, ResidentTurn]


class Begun(NamedTuple):
    """A running step of a group.

    `marked`, `entered`: the members of the group who were in `Whereabouts.marked` and `Whereabouts.entered` before the
    step. If the step is cancelled, they are put back there.
    """

    group: Group
    marked: set[str]
    entered: set[str]


class Clockwork:
    """Runs the steps of a town; decides which residents have a turn in a step.

    Args:
        journal: key of the stream for rows that belong to no resident.
        state: conditions of objects, and the steps that residents have finished.

    Attributes:
        deeds: actions of users in the next step, by the name of the controlled resident.
    """

    def __init__(
        self, journal: StreamKey, setting: Setting, residents: Mapping[str, Resident], state: TownState
    ) -> None:
        self.journal = journal
        self.setting = setting
        self.residents = dict(sorted(residents.items()))
        self.deeds: dict[str, Deed] = {}
        self.whereabouts = Whereabouts(setting, state.conditions, state.changes)
        self._first = state.step
        self._due: dict[str, int] = {}
        self._moved: set[str] = set()
        self._embodied = {name for name, resident in self.residents.items() if resident.state.embodied}
        self._is_free = False
        self._running: dict[asyncio.Task[tuple[int, Turns, list[Commit]]], Begun] = {}
        for name, resident in self.residents.items():
            if is_here(resident):
                step = state.reached.get(name, state.step)
                self.whereabouts.place(name, resident.state.spot(max(step, 0)), step)
                self._wind(name, resident.state, step)
        self._mark_as_after(state)

    @property
    def conditions(self) -> dict[str, Condition]:
        """Conditions of the objects that are not in order, by address."""
        return self.whereabouts.conditions

    @property
    def step(self) -> int:
        """The last step that all residents have finished."""
        running = (each.group.step for each in self._running.values() if each.group.members)
        return min((*self.whereabouts.steps.values(), *running), default=self._first)

    def state(self) -> TownState:
        """Return the conditions of objects and the finished steps.

        `TownState.reached` is empty if the town runs in lock-step and all residents have finished the same step.
        """
        where, steps, low = self.whereabouts, self._steps(), self.step
        changes = [each for each in where.changes if each[0] >= low]
        state = TownState(self.setting.profile, {}, self.conditions, low, changes)
        if self._is_free or low < max(steps.values(), default=low):
            state.reached, state.marked, state.entered = steps, self._marked(), self._entered()
        return state

    def take_reached(self) -> TownReached:
        """Return an event about the residents whose last finished step has changed since the previous call.

        `reached`: these steps. `marked`: those of the residents who may see something new. `entered`: those who have
        not looked around in their arena yet.
        """
        moved, self._moved = self._moved, set()
        return TownReached(
            step=self.step,
            reached={name: step for name, step in sorted(self._steps().items()) if name in moved},
            marked=tuple(sorted(self._marked() & moved)),
            entered=tuple(sorted(self._entered() & moved)),
        )

    def _steps(self) -> dict[str, int]:
        """Return each resident's last finished step."""
        running = {name: each.group.step for each in self._running.values() for name in each.group.members}
        return {**self.whereabouts.steps, **running}

    def _marked(self) -> set[str]:
        return self.whereabouts.marked.union(*(each.marked for each in self._running.values()))

    def _entered(self) -> set[str]:
        return self.whereabouts.entered.union(*(each.entered for each in self._running.values()))

    def _mark_as_after(self, state: TownState) -> None:
        """When a town is opened, mark the residents who may have a turn in the next step. The marks are the same as if
        this process had run the last step."""
        where, step = self.whereabouts, state.step
        if state.reached:
            where.marked, where.entered = state.marked & where.spots.keys(), state.entered & where.spots.keys()
            return
        if step < 0:
            return  # before the first step all residents stay marked: they may see something new
        where.marked.clear()
        where.entered.clear()
        for name in where.spots:
            resident = self.residents[name]
            if resident.state.act and resident.state.act.since == step:
                where.mark_around(name)
            if resident.state.asleep and self._has_entered(resident.state, step):
                where.entered.add(name)

    def _has_entered(self, state: ResidentState, step: int) -> bool:
        """Return whether a sleeping resident entered another arena on its way to bed. Such a resident looks around only
        when it wakes."""
        act, arena_of = state.act, self.setting.world.arena_of
        return act is not None and any(
            arena_of(act.spot(each)) != arena_of(act.spot(each - 1))
            for each in range(act.since + 1, min(step, act.arrives) + 1)
        )

    def scheduler(self, free: bool) -> Scheduler | LockStep:
        """Return a new scheduler for the residents who are in the town; all of them count as moved in `take_reached`.

        Args:
            free: whether residents may run ahead of others who cannot affect them. While a user controls a resident,
                or a resident jumps to another position, all run in lock-step.
        """
        steps = self.whereabouts.steps
        self._moved = set(steps)
        states = [self.residents[name].state for name in steps]
        if not free or self.deeds or any(each.embodied or (each.act and ";" in each.act.path) for each in states):
            return LockStep(steps, self._first)
        reach = reach_of(self.setting.world, self.setting.profile.vision, ASIDE)
        return Scheduler(reach, steps, self._next_spots(steps))

    async def run(self, order: Scheduler | LockStep, until: int) -> AsyncGenerator[list[Commit]]:
        """Run all residents up to a step. Each time a group has finished a step, yield the group's commits.

        Raises:
            ModelError and others: a step failed. Residents whose step is unfinished keep the state that they had before
                the step.
        """
        self._is_free = order.is_free
        try:
            while True:
                for group in order.groups(until):
                    begun, step = self._note(group), self._next_step(group)
                    if step > group.limit:
                        self._rest(group.members, step := group.limit)
                    elif (turns := self._begin(group.members, step)) is not None:
                        order.skip(group, step - 1)
                        RANK.set(partial(order.rank, group))
                        self._running[asyncio.create_task(self._live(group.members, step, turns))] = begun
                        continue
                    self._hand_back(order, group, step)
                    yield []
                if not self._running:
                    return
                for task in (await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED))[0]:
                    step, turns, commits = task.result()
                    group = self._running.pop(task).group
                    commits += self._finish(group.members, step, turns)
                    self._hand_back(order, group, step)
                    yield commits
        finally:
            self._is_free = False
            await self._give_up()

    def _next_step(self, group: Group) -> int:
        """Return the next step in which something may happen to a group."""
        if self.deeds or self.whereabouts.has_news(group.members, group.step):
            return group.step + 1
        return max(group.step + 1, min(map(self._due.get, group.members, repeat(FAR)), default=0))

    def _next_spots(self, names: Iterable[str]) -> list[Spot]:
        """Return the positions of residents in their next steps."""
        steps = self.whereabouts.steps
        return [self.residents[name].state.spot(steps[name] + 1) for name in names]

    def _rest(self, names: Iterable[str], step: int) -> None:
        """Record that these residents have finished `step`, because nothing can happen to them up to this step."""
        self.whereabouts.steps.update(dict.fromkeys(names, step))

    def _hand_back(self, order: Scheduler | LockStep, group: Group, step: int) -> None:
        """Tell the scheduler that a group has finished a step."""
        self._first = max(self._first, step) if not group.members else self._first
        self._moved.update(group.members)
        order.done(group, step, self._next_spots(group.members) if order.is_free else ())
        if self.whereabouts.changes:
            self.whereabouts.forget_changes(self.step)

    def _note(self, group: Group) -> Begun:
        """Return the state that undoes a step of a group."""
        where = self.whereabouts
        return Begun(group, where.marked.intersection(group.members), where.entered.intersection(group.members))

    async def _give_up(self) -> None:
        """Cancel the running steps; return their residents to the state before these steps."""
        running, self._running = self._running, {}
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        for begun in running.values():
            self.deeds, where, names = {}, self.whereabouts, begun.group.members
            for name in names:
                where.place(name, self.residents[name].state.spot(max(begun.group.step, 0)), begun.group.step)
                self._wind(name, self.residents[name].state, begun.group.step)
            where.marked = where.marked.difference(names) | begun.marked
            where.entered = where.entered.difference(names) | begun.entered

    def _begin(self, names: Sequence[str], step: int) -> Turns | None:
        """Move a group to a step and return the turns of its residents. If no resident has a turn and no user controls
        a member of the group, return None."""
        self.whereabouts.walk(names, step)
        due, ended = self._due_by(names, step), self._ended(names, step)
        marked = self.whereabouts.take_marked(names) | self.deeds.keys()
        turns = {name: turn for name in sorted(marked | due) if (turn := self._turn(name, step, name in ended))}
        return turns if turns or not self._embodied.isdisjoint(names) else None

    def _ended(self, names: Sequence[str], step: int) -> set[str]:
        """Return the residents who are due (`_due_by`) and have no act, or whose act ends at or before this step."""
        acts = ((name, self.residents[name].state.act) for name in self._due_by(names, step))
        return {name for name, act in acts if act is None or act.until <= step}

    def _due_by(self, names: Sequence[str], step: int) -> set[str]:
        """Return the residents whose timer (`_wind`) has ended, except residents who are still talking with a user."""
        if min(self._due.values(), default=FAR) > step:
            return set()
        due = {name for name, due in zip(names, map(self._due.get, names, repeat(FAR)), strict=True) if due <= step}
        return due - self._spoken_to() if self.deeds else due

    async def _live(self, names: Sequence[str], step: int, turns: Turns) -> tuple[int, Turns, list[Commit]]:
        """Run the turns and encounters of a step; return the step, all turns by name, and the commits of the turns."""
        ended = self._ended(names, step)
        await together(*(self._live_one(turn, name in ended) for name, turn in turns.items()))
        await Encounters(self.setting, self.residents, self.whereabouts, step, turns, self.deeds).take_place()
        for name in sorted(turns.keys() - ended):
            if (turn := turns[name]).is_paper() and (
                broken_off := self.residents[name].state.act
            ) is not turn.state.act:
                await finish_act(turn, broken_off)
        turns = dict(sorted(turns.items()))  # sorted again, because encounters may have added turns
        return step, turns, [commit for turn in turns.values() if (commit := await turn.commit())]

    def _finish(self, names: Sequence[str], step: int, turns: Turns) -> list[Commit]:
        """Apply the results of a step to the residents. Return a commit of the changes of objects that they caused, if
        any."""
        self.deeds = {}
        changes = [change for name, turn in turns.items() if (change := self._left_behind(name, turn))]
        for name in names:
            if self._due.get(name, FAR) <= step:
                act = self.residents[name].state.act
                self._due.pop(name)
                if act is not None and act.until > step:  # an appointment was due
                    self._due[name] = act.until
        for name, turn in turns.items():
            self._take_over(name, turn.state, step)
        return [self.change_objects(*changes)] if changes else []

    def change_objects(self, *changes: ObjectChanged) -> Commit:
        """Apply changes of objects, and return the commit to write; also used for changes that users cause."""
        for change in changes:
            self.whereabouts.change(change)
        step = max(0, *(change.step for change in changes))
        entries = tuple(Entry(change, change.by or "town") for change in changes)
        return Commit(mind=self.journal, at=self.setting.moment(step), entries=entries)

    def _turn(self, name: str, step: int, ended: bool) -> ResidentTurn | None:
        """Return the resident's turn if it has something to decide, else None.

        A resident has something to decide if its act has ended, it sees something new, a user acts for it, or it may
        begin a talk."""
        resident, where = self.residents[name], self.whereabouts
        if name not in where.spots:
            return ResidentTurn(resident, step, self.setting, resident.state) if name in self.deeds else None
        state, percepts, places = resident.state, list[Percept](), tuple[str, ...]()
        in_scenes, has_entered = resident.lives_in_scenes(self.setting.profile), name in where.entered
        decides = ended or state.act is None or name in self.deeds
        if not state.asleep or not state.sleeps_on(self.setting.minute(step), ended):
            known = () if decides or in_scenes or has_entered else state.seen
            percepts = look(name, where, self.residents, step, known)
        elif where.odd_around(name):
            percepts = dangers_of(look(name, where, self.residents, step))
        if has_entered and (ended or not state.asleep):
            where.entered.discard(name)
            near = self.setting.places_near(where.spots[name])
            places = tuple(each for each in near if each not in state.knows)
        has_turn = decides or places or is_news(percepts, state)
        if not has_turn and not in_scenes:
            return None
        turn = ResidentTurn(resident, step, self.setting, state, percepts=percepts, places=places)
        return turn if has_turn or whom_to_meet(turn, people_seen(percepts, self.residents)) else None

    async def _live_one(self, turn: ResidentTurn, ended: bool) -> None:
        """Run a turn: apply the user's action if a user controls the resident; else the resident decides itself.
        `ended`: whether its act has ended."""
        deed = self.deeds.get(turn.name)
        if turn.state.embodied or isinstance(deed, Begin):
            await live_as(turn, deed, ended, self.whereabouts.spots)
        else:
            try:
                await live(turn, ended, self.residents)
            finally:
                turn.stop_asking()

    def _spoken_to(self) -> set[str]:
        """Return the residents who take part in a talk with a user that continues in this step."""
        talks = [
            (name, deed.to)
            for name, deed in self.deeds.items()
            if isinstance(deed, Say) and self.residents[name].state.partner == deed.to
        ]
        return {name for both in talks for name in both}

    def _left_behind(self, name: str, turn: ResidentTurn) -> ObjectChanged | None:
        """Return the change of an object that the resident's finished act causes, if any."""
        done = self.residents[name].state.act
        if done is None or done is turn.state.act or not done.leaves or not done.has_arrived(turn.step):
            return None
        address = self.setting.addresses.get(done.place)
        if address is None or address.level < OBJECT or turn.step < done.until:
            return None
        is_there = self.conditions.get(done.place)
        condition = condition_of(done)
        if condition == (is_there.text if is_there else ""):
            return None
        danger = bool(condition) and done.danger
        return ObjectChanged(step=turn.step, place=done.place, condition=condition, danger=danger, by=name)

    def _take_over(self, name: str, state: ResidentState, step: int) -> None:
        resident = self.residents[name]
        before, resident.state = resident.state, state
        (self._embodied.add if state.embodied else self._embodied.discard)(name)
        if not is_here(resident):
            self.whereabouts.remove(name)
            self._due.pop(name, None)
            return
        if name not in self.whereabouts.spots:
            self.whereabouts.place(name, state.spot(step), step)
            self.whereabouts.entered.discard(name)
        if state.act is before.act or state.act is None:
            return
        self._wind(name, state, step)
        self.whereabouts.mark_around(name)

    def _wind(self, name: str, state: ResidentState, step: int) -> None:
        """Set a resident's timer to the step at which its act ends, or at which its appointment is due (`gathers_at`).
        Start the walk to the place of the act."""
        if state.act is None:
            return
        self._due[name] = gathers_at(self.setting, state, step)
        self.whereabouts.set_off(name, state.act, max(step, 0))


def condition_of(act: Act) -> str:
    """Return the condition in which an act leaves its object; "": nothing is wrong with it."""
    return "" if act.leaves == MENDED else act.leaves.strip()


async def live(turn: ResidentTurn, ended: bool, residents: Mapping[str, Resident]) -> None:
    """Run a turn: perceive, react, plan, reflect.

    Args:
        ended: whether the act has ended. residents: all residents in their state before the step.
    """
    turn.resident.begin(turn.now)
    is_paper = turn.is_paper()
    if is_paper and turn.state.act is not None:
        await rate_ahead(turn)
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
    """Run a turn in a town that runs in scenes.

    The steps, each only if there is a reason for it:
    1. Finish a scene that is over, or that a danger in sight interrupts.
    2. Find out the result of an act that has ended.
    3. Plan a new day.
    4. React to objects.
    5. Remember a finished act, and begin the next act of the plan.
    6. Reflect.
    7. Choose a resident to talk with.

    `ended`: whether the act has ended.
    """
    before, others = turn.state.act, people_seen(turn.percepts, residents)
    day, scene = turn.day, turn.state.scene
    if scene and (turn.step >= scene.until or dangers_of(turn.percepts)):
        await finish_scene(turn, scene, residents[scene.partner])
        if turn.state.is_talking(turn.step):
            before, ended = turn.state.act, False
    if before is None or ended:
        await find_out(turn)
    if turn.state.day != day:
        await reflect_before_midnight(turn)
        await plan_scenes(turn, day)
    reacts = before is not None and await react_to_things(turn, others)
    if before is None or (ended and not reacts):
        await remember_deed(turn)
        give_up_visit(turn)
        await next_act(turn)
    if turn.state.asleep:
        await find_out(turn)
    await reflect_in_scene(turn, before)
    turn.wish = "" if reacts else whom_to_meet(turn, others)
