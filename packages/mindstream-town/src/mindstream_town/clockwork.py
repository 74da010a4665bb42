"""The scheduler of a town. In a step, only residents whose act has ended or who may see something new have a turn.

A step has three parts. First all turns run concurrently, each on the state of the town before the step. Then encounters
(talks) take place, in the order of names. Then the results are written in one commit. So a town resumes after the last
complete step after a crash, and the order in which models answer does not change the result.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Collection, Coroutine, Mapping, Sequence

from mindstream.log.names import StreamKey
from mindstream.memory.store.store import Commit, Entry
from mindstream_town.embody.living import Begin, Deed, Say, is_here, live_as
from mindstream_town.encounters import Encounters
from mindstream_town.events import MENDED, Act, ObjectChanged
from mindstream_town.paper.people import finish_act
from mindstream_town.residents.percept import Percept
from mindstream_town.residents.sight import dangers_of, is_news, look, people_seen
from mindstream_town.residents.turn import Resident, ResidentTurn
from mindstream_town.scenes.day import whom_to_meet
from mindstream_town.setting import Setting
from mindstream_town.state import ResidentState
from mindstream_town.ways import live
from mindstream_town.world.whereabouts import Condition, Whereabouts


class Clockwork:
    """Decides who has a turn at which step.

    Args:
        journal: key of the stream for rows that belong to no resident.
        conditions: conditions of the objects that are not in order, by address.
        step: the last finished step; -1: none.
        changed: addresses of the objects that changed in that step.

    Attributes:
        deeds: actions of users in the next step, by the resident that the user controls.
    """

    def __init__(
        self,
        journal: StreamKey,
        setting: Setting,
        residents: Mapping[str, Resident],
        conditions: dict[str, Condition],
        step: int = -1,
        changed: Collection[str] = (),
    ) -> None:
        self.journal = journal
        self.setting = setting
        self.residents = dict(sorted(residents.items()))
        self.step = step
        self.changed = set(changed)
        self.deeds: dict[str, Deed] = {}
        self.whereabouts = Whereabouts(setting, conditions)
        self._timers: list[tuple[int, str]] = []
        self._due: dict[str, int] = {}
        for name, resident in self.residents.items():
            if is_here(resident):
                self.whereabouts.place(name, resident.state.spot(max(step, 0)))
                self._wind(name, resident.state)
        self._mark_as_after(step)

    @property
    def conditions(self) -> dict[str, Condition]:
        """Conditions of the objects that are not in order, by address."""
        return self.whereabouts.conditions

    def _mark_as_after(self, step: int) -> None:
        """Mark the residents who may have a turn in the next step, as if this process had run the last step."""
        where = self.whereabouts
        if step < 0:
            return  # before the first step all residents are marked
        where.marked.clear()
        where.entered.clear()
        for name, resident in self.residents.items():
            if not is_here(resident):
                continue
            if resident.state.act and resident.state.act.since == step:
                where.mark_around(name)
            if resident.state.asleep and self._has_entered(resident.state, step):
                where.entered.add(name)
        for place in self.changed:
            where.mark_at(place)

    def _has_entered(self, state: ResidentState, step: int) -> bool:
        """Return whether a sleeping resident entered another arena on its way to bed. Such a resident looks around only
        when it wakes."""
        act, arena_of = state.act, self.setting.world.arena_of
        return act is not None and any(
            arena_of(act.spot(each)) != arena_of(act.spot(each - 1))
            for each in range(act.since + 1, min(step, act.arrives) + 1)
        )

    def next_step(self) -> int:
        """Return the next step in which something may happen."""
        if self.whereabouts.is_anybody_walking or self.whereabouts.marked or self.deeds:
            return self.step + 1
        while self._timers and self._due.get(self._timers[0][1]) != self._timers[0][0]:
            heapq.heappop(self._timers)
        return max(self.step + 1, self._timers[0][0]) if self._timers else self.step + 1

    def rest_until(self, step: int) -> None:
        """Skip the steps up to this one, in which nothing can happen."""
        if step > self.step:
            self.step = step
            self.changed.clear()

    async def advance(self, step: int) -> list[Commit]:
        """Run a step and return its commits; return no commits if no resident had a turn.

        Raises:
            ModelError and others: the residents and conditions stay as before the step, but this object cannot be used
                on.
        """
        self.step = step
        self.changed.clear()
        self.whereabouts.walk(step)
        ended = self._ended(step) - self._spoken_to()
        marked = self.whereabouts.take_marked() | self.deeds.keys()
        turns = {name: turn for name in sorted(marked | ended) if (turn := self._turn(name, step, name in ended))}
        if not turns and not any(resident.state.embodied for resident in self.residents.values()):
            return []
        await _all_of([self._live(turn, name in ended) for name, turn in turns.items()])
        await Encounters(self.setting, self.residents, self.whereabouts, step, turns, self.deeds).take_place()
        self.deeds = {}
        for name in sorted(turns.keys() - ended):
            if (turn := turns[name]).is_paper() and (
                broken_off := self.residents[name].state.act
            ) is not turn.state.act:
                await finish_act(turn, broken_off)
        turns = dict(sorted(turns.items()))  # encounters may have added turns of other residents
        commits = [commit for turn in turns.values() if (commit := await turn.commit())]
        changes = [change for name, turn in turns.items() if (change := self._left_behind(name, turn))]
        for name, turn in turns.items():
            self._take_over(name, turn.state)
        if changes:
            commits.append(self.change_objects(*changes))
        return commits

    def change_objects(self, *changes: ObjectChanged) -> Commit:
        """Apply changes of objects that come from outside the simulation, and return the commit to write."""
        for change in changes:
            self.whereabouts.change(change)
            self.changed.add(change.place)
        step = max(0, *(change.step for change in changes))
        entries = tuple(Entry(change, change.by or "town") for change in changes)
        return Commit(mind=self.journal, at=self.setting.moment(step), entries=entries)

    def _ended(self, step: int) -> set[str]:
        """Return the residents whose act ends at or before this step."""
        ended = set()
        while self._timers and self._timers[0][0] <= step:
            due, name = heapq.heappop(self._timers)
            if self._due.get(name) == due:
                ended.add(name)
        return ended

    def _turn(self, name: str, step: int, ended: bool) -> ResidentTurn | None:
        """Return a turn if the resident's act has ended or the resident sees something new; else None."""
        resident, where = self.residents[name], self.whereabouts
        if name not in where.spots:
            return ResidentTurn(resident, step, self.setting, resident.state) if name in self.deeds else None
        state, percepts, places = resident.state, list[Percept](), tuple[str, ...]()
        if not state.asleep or not state.sleeps_on(self.setting.minute(step), ended):
            percepts = look(name, where, self.residents, step)
        elif where.odd_around(name):
            percepts = dangers_of(look(name, where, self.residents, step))
        if name in where.entered and (ended or not state.asleep):
            where.entered.discard(name)
            near = self.setting.places_near(where.spots[name])
            places = tuple(each for each in near if each not in state.knows)
        has_turn = ended or state.act is None or places or is_news(percepts, state) or name in self.deeds
        if not has_turn and not resident.lives_in_scenes(self.setting.profile):
            return None
        turn = ResidentTurn(resident, step, self.setting, state, percepts=percepts, places=places)
        return turn if has_turn or whom_to_meet(turn, people_seen(percepts, self.residents)) else None

    async def _live(self, turn: ResidentTurn, ended: bool) -> None:
        """Run a turn: apply the user's action if a user controls the resident; else the resident decides itself."""
        deed = self.deeds.get(turn.name)
        if turn.state.embodied or isinstance(deed, Begin):
            await live_as(turn, deed, ended, self.whereabouts.spots)
        else:
            await live(turn, ended, self.residents)

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
        if done is None or done is turn.state.act or not done.place or not done.has_arrived(turn.step):
            return None
        is_there = self.conditions.get(done.place)
        condition = condition_of(done)
        if not done.leaves or turn.step < done.until or condition == (is_there.text if is_there else ""):
            return None
        danger = bool(condition) and done.danger
        return ObjectChanged(step=turn.step, place=done.place, condition=condition, danger=danger, by=name)

    def _take_over(self, name: str, state: ResidentState) -> None:
        resident = self.residents[name]
        before, resident.state = resident.state, state
        if not is_here(resident):
            self.whereabouts.remove(name)
            self._due.pop(name, None)
            return
        if name not in self.whereabouts.spots:
            self.whereabouts.place(name, state.spot(self.step))
            self.whereabouts.entered.discard(name)
        if state.act is before.act or state.act is None:
            return
        self._wind(name, state)
        self.whereabouts.mark_around(name)

    def _wind(self, name: str, state: ResidentState) -> None:
        """Set the timer for the end of a resident's act, and start the walk to its place."""
        if state.act is None:
            return
        self._due[name] = state.act.until
        heapq.heappush(self._timers, (state.act.until, name))
        self.whereabouts.set_off(name, state.act, max(self.step, 0))


async def _all_of(lives: Sequence[Coroutine[None, None, None]]) -> None:
    """Run all coroutines concurrently; if one fails, cancel the others and raise its error."""
    if len(lives) == 1:
        return await lives[0]
    try:
        async with asyncio.TaskGroup() as group:
            for each in lives:
                group.create_task(each)
    except BaseExceptionGroup as failed:
        error = failed.exceptions[0]
        raise error from error.__cause__


def condition_of(act: Act) -> str:
    """Return the condition in which an act leaves its object; "": the object is in order."""
    return "" if act.leaves == MENDED else act.leaves.strip()
