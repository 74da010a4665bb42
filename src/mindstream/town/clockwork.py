"""The clock of a town, in lock-step: who can see something new or has come to an end of something has a turn; all
others go on as they do, and cost nothing.

A step has three parts. All who have a turn take it at once, each from the town as the step found it; then who wishes to
talk and can be talked to does so, in the order of names; then everything is one commit. So a process that dies anywhere
goes on from the last whole step, and whoever is quicker changes nothing.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Collection, Coroutine, Mapping, Sequence
from typing import NamedTuple

from mindstream.memory.store import Commit, Entry
from mindstream.town.compat import sees_idle
from mindstream.town.converse import converse
from mindstream.town.events import Act, ObjectChanged
from mindstream.town.occupancy import find_taken
from mindstream.town.perceive import (
    dangers_of,
    idle_things,
    is_in_sight,
    is_news,
    nearest,
    perceive,
    see_thing,
    sleeps_on,
)
from mindstream.town.percept import Percept
from mindstream.town.plan import next_act
from mindstream.town.react import react
from mindstream.town.reflection import reflect
from mindstream.town.setting import Setting
from mindstream.town.state import ResidentState
from mindstream.town.turn import Resident, Turn
from mindstream.town.world.world import Spot


class Condition(NamedTuple):
    """An object is not as it should be: in words, since a step."""

    text: str
    since: int


class Clockwork:
    """Who has a turn at which step.

    Args:
        conditions: of objects that are not as they should be, by address.
        step: the last step that is done; -1: none.
        changed: the objects that came into another condition in it, by address.
    """

    def __init__(
        self, setting: Setting, residents: Mapping[str, Resident], conditions: dict[str, Condition], step: int = -1,
        changed: Collection[str] = (),
    ) -> None:  # fmt: skip
        self.setting = setting
        self.residents = dict(sorted(residents.items()))
        self.conditions = conditions
        self.step = step
        self.changed = set(changed)
        self._timers: list[tuple[int, str]] = []
        self._due: dict[str, int] = {}
        self._walking: dict[str, Act] = {}
        self._spots: dict[str, Spot] = {}
        self._arenas: dict[int, dict[str, None]] = {}
        self._arena: dict[str, int] = {}
        self._odd: dict[int, dict[str, None]] = {}
        self._marked: set[str] = set()
        self._entered: set[str] = set()
        for place in conditions:
            self._note_condition(place)
        for name, resident in self.residents.items():
            self._place(name, resident.state.spot(max(step, 0)))
            self._wind(name, resident.state)
        self._mark_as_after(step)

    def _mark_as_after(self, step: int) -> None:
        """Mark who has a turn next by what the step before it did, as if this process had done it."""
        self._marked.clear()
        self._entered.clear()
        if step < 0:
            self._entered.update(self.residents)
            self._marked.update(self.residents)
        for name, resident in self.residents.items():
            if resident.state.act and resident.state.act.since == step:
                self._mark_arena(name)
            if resident.state.asleep and self._has_entered(name, step):
                self._entered.add(name)
        for place in self.changed:
            self._marked.update(self._arenas.get(self._arena_of_object(place), ()))

    def _has_entered(self, name: str, step: int) -> bool:
        """Tell whether somebody who went to bed came into another arena on the way: it looks around when it wakes."""
        act, arena_of = self.residents[name].state.act, self.setting.world.arena_of
        return act is not None and any(
            arena_of(act.spot(each)) != arena_of(act.spot(each - 1))
            for each in range(act.since + 1, min(step, act.arrives) + 1)
        )

    def _mark_arena(self, name: str) -> None:
        """Mark who could see what somebody does now; itself too, where it may not be able to do it."""
        arena = self._arena[name]
        if len(self._arenas[arena]) > 1 or self._odd.get(arena):
            self._marked.update(self._arenas[arena])

    def next_step(self) -> int:
        """Return the next step in which something may happen."""
        if self._walking or self._marked:
            return self.step + 1
        while self._timers and self._due.get(self._timers[0][1]) != self._timers[0][0]:
            heapq.heappop(self._timers)
        return max(self.step + 1, self._timers[0][0]) if self._timers else self.step + 1

    def rest_until(self, step: int) -> None:
        """Let nothing happen up to a step, where nothing can."""
        if step > self.step:
            self.step = step
            self.changed.clear()

    async def advance(self, step: int) -> list[Commit]:
        """Let a step happen; return what is to be written of it, nothing where nobody had a turn.

        Raises (ModelError and others): residents and conditions are as before the step, but this clockwork is not.
        """
        self.step = step
        self.changed.clear()
        self._walk(step)
        ended = self._ended(step)
        marked, self._marked = self._marked, set()
        turns = {name: turn for name in sorted(marked | ended) if (turn := self._turn(name, step, name in ended))}
        await _all_of([self._live(turn, name in ended) for name, turn in turns.items()])
        await self._encounters(turns, step)
        commits = [commit for name in sorted(turns) if (commit := await turns[name].commit())]
        changes = [change for name in sorted(turns) if (change := self._left_behind(name, turns[name]))]
        for name in sorted(turns):
            self._take_over(name, turns[name].state)
        if changes:
            commits.append(self.change_objects(*changes))
        return commits

    def change_objects(self, *changes: ObjectChanged) -> Commit:
        """Let objects be in another condition from now on; return what is to be written of it."""
        for change in changes:
            if change.condition:
                self.conditions[change.place] = Condition(change.condition, change.step)
            else:
                self.conditions.pop(change.place, None)
            self._note_condition(change.place)
            self.changed.add(change.place)
            self._marked.update(self._arenas.get(self._arena_of_object(change.place), ()))
        step = max(0, *(change.step for change in changes))
        entries = tuple(Entry(change, change.by or "town") for change in changes)
        return Commit(mind="town", at=self.setting.moment(step), entries=entries)

    def _note_condition(self, place: str) -> None:
        """Keep in which arenas something is not as it should be."""
        for arena in map(self.setting.world.arena_of, self._spots_of(place)):
            if place in self.conditions:
                self._odd.setdefault(arena, {})[place] = None
            else:
                self._odd.get(arena, {}).pop(place, None)

    # Who stands where.

    def _walk(self, step: int) -> None:
        """Move whoever is on the way, and mark who could see something new by it."""
        moved = {name: spot for name, act in self._walking.items() if (spot := act.spot(step)) != self._spots[name]}
        self._walking = {name: act for name, act in self._walking.items() if step < act.arrives}
        for name, spot in moved.items():
            self._place(name, spot)
        for name, spot in moved.items():  # when all have moved, so that it does not matter who was first
            self._mark_around(name, spot)

    def _place(self, name: str, spot: Spot) -> None:
        arena, before = self.setting.world.arena_of(spot), self._arena.get(name)
        self._spots[name] = spot
        if arena != before:
            if before is not None:
                del self._arenas[before][name]
            self._arenas.setdefault(arena, {})[name] = None
            self._arena[name] = arena
            self._marked.add(name)
            self._entered.add(name)

    def _mark_around(self, name: str, spot: Spot) -> None:
        arena = self._arena[name]
        if len(self._arenas[arena]) > 1 or self._odd.get(arena) or sees_idle(self.setting.profile):
            distance, vision = self.setting.world.distance, self.setting.profile.vision
            self._marked.add(name)
            self._marked.update(
                other for other in self._arenas[arena] if distance(self._spots[other], spot) <= vision
            )  # fmt: skip

    def _arena_of_object(self, place: str) -> int:
        return self.setting.world.arena_of(self._spots_of(place)[0])

    def _spots_of(self, place: str) -> tuple[Spot, ...]:
        return self.setting.world.spots(self.setting.addresses[place])

    def _ended(self, step: int) -> set[str]:
        """Return whose act has come to its end."""
        ended = set()
        while self._timers and self._timers[0][0] <= step:
            due, name = heapq.heappop(self._timers)
            if self._due.get(name) == due:
                ended.add(name)
        return ended

    # Turns.

    def _turn(self, name: str, step: int, ended: bool) -> Turn | None:
        """Return a turn where somebody has come to an end of something or sees something new; else None."""
        resident, places, percepts = self.residents[name], tuple[str, ...](), list[Percept]()
        state, odd = resident.state, self._odd.get(self._arena[name])
        if not sleeps_on(state, self.setting.minute(step), ended):
            percepts = self._percepts(name)
        elif odd:
            percepts = dangers_of(self._percepts(name))
        if name in self._entered and (ended or not state.asleep):
            self._entered.discard(name)
            near = self.setting.places_near(self._spots[name])
            places = tuple(each for each in near if each not in state.knows)
        has_turn = ended or state.act is None or places or is_news(percepts, state)
        return Turn(resident, step, self.setting, state, percepts=percepts, places=places) if has_turn else None

    def _percepts(self, name: str) -> list[Percept]:
        """Return what somebody can see: people and odd things in its arena, within its vision, the nearest first."""
        if not self.setting.profile.observes:
            return []
        spot, arena, profile = self._spots[name], self._arena[name], self.setting.profile
        seen = [
            Percept(*self._deed(other, act), self._spots[other], who=other, place=act.place)
            for other in self._arenas[arena]
            if other != name and is_in_sight(self.setting, spot, self._spots[other])
            and (act := self.residents[other].state.act)
        ]  # fmt: skip
        for place in self._odd.get(arena, ()):
            if odd := see_thing(self.setting, spot, place, *self.conditions[place]):
                seen.append(odd)
        if sees_idle(profile):
            seen += idle_things(self.setting, spot, self.conditions)
        else:
            seen += find_taken(self.setting, self.residents[name].state, spot, self._others(seen), self.step)
        with_whom = self.residents[name].state.partner  # whom one talks to is no news
        noticed = nearest(seen, spot, profile.attention)
        dangers = dangers_of(seen) if self._odd.get(arena) else []
        return [
            *(each for each in dangers if each not in noticed),
            *(each for each in noticed if not with_whom or each.who != with_whom),
        ]

    def _others(self, percepts: Sequence[Percept]) -> dict[str, ResidentState]:
        """Return those whom somebody sees."""
        return {each.who: self.residents[each.who].state for each in percepts if each.who}

    def _deed(self, name: str, act: Act) -> tuple[str, str, str]:
        """Return what is seen of somebody: subject, predicate, object; a talk of two is one thing to see."""
        partner = self.residents[name].state.partner
        if act.why != "talk" or self.setting.profile.compat or name < partner:
            return name, "is", act.what
        return partner, "is", f"talking with {name}"

    async def _live(self, turn: Turn, ended: bool) -> None:
        """Perceive, react, plan, reflect."""
        turn.resident.begin(turn.now)
        new = await perceive(turn)
        if turn.state.act is None:
            await next_act(turn)
            return
        await react(turn, new, self._others(turn.percepts))
        if ended and turn.state.act is self.residents[turn.name].state.act:  # nothing else has come between
            await next_act(turn)
        await reflect(turn)

    async def _encounters(self, turns: dict[str, Turn], step: int) -> None:
        """Let those talk who wish to, in the order of their names, each with one other at most."""
        busy: set[str] = set()
        for name in sorted(turns):
            wish = turns[name].wish
            if not wish or {name, wish} & busy:
                continue
            if wish not in turns:
                other = self.residents[wish]
                other.begin(turns[name].now)
                turns[wish] = Turn(other, step, self.setting, other.state)
            busy |= {name, wish}
            await converse(turns[name], turns[wish])

    def _left_behind(self, name: str, turn: Turn) -> ObjectChanged | None:
        """Return in which condition somebody leaves what it was done with."""
        done = self.residents[name].state.act
        if done is None or done is turn.state.act or not done.place or not done.has_arrived(turn.step):
            return None
        is_there = self.conditions.get(done.place)
        condition = condition_of(done)
        if not done.leaves or turn.step < done.until or condition == (is_there.text if is_there else ""):
            return None
        return ObjectChanged(step=turn.step, place=done.place, condition=condition, by=name)

    def _take_over(self, name: str, state: ResidentState) -> None:
        before = self.residents[name].state
        self.residents[name].state = state
        if state.act is before.act or state.act is None:
            return
        self._wind(name, state)
        self._mark_arena(name)

    def _wind(self, name: str, state: ResidentState) -> None:
        """Set the moment at which somebody comes to an end, and whether it is on its way."""
        if state.act is None:
            return
        self._due[name] = state.act.until
        heapq.heappush(self._timers, (state.act.until, name))
        self._walking.pop(name, None)
        if not state.act.has_arrived(max(self.step, 0)):
            self._walking[name] = state.act


async def _all_of(lives: Sequence[Coroutine[None, None, None]]) -> None:
    """Wait for all; where one fails the others are broken off, and its error is raised."""
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
    """Return the condition in which an act leaves its object: "" where that is as it should be."""
    return "" if act.leaves.strip().lower() in ("", "idle", "ok", "repaired", "as it should be") else act.leaves.strip()
