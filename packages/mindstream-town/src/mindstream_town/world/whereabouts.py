"""Where everybody is in a town and where something is not as it should be, and so who could see something new."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from mindstream_town.compat import sees_idle
from mindstream_town.events import Act, ObjectChanged
from mindstream_town.setting import Setting
from mindstream_town.world.routes import read_walk
from mindstream_town.world.world import Spot


class Condition(NamedTuple):
    """An object is not as it should be: in words, since a step; and whether that is a danger."""

    text: str
    since: int
    danger: bool = False


class Whereabouts:
    """Who stands where at the step that is being done, by arenas: nobody sees into another.

    Args:
        conditions: of objects that are not as they should be, by address.

    Attributes:
        spots: where each resident stands.
        marked: who could see something new, or may not be able to do what it began.
        entered: who came into another arena and has not looked around in it.
    """

    def __init__(self, setting: Setting, conditions: dict[str, Condition]) -> None:
        self.setting = setting
        self.conditions = conditions
        self.spots: dict[str, Spot] = {}
        self.marked: set[str] = set()
        self.entered: set[str] = set()
        self._walking: dict[str, tuple[int, tuple[Spot, ...]]] = {}  # since which step, and over which tiles
        self._residents: dict[int, dict[str, None]] = {}
        self._odd: dict[int, dict[str, None]] = {}
        self._arena: dict[str, int] = {}
        for place in conditions:
            self._sort_in(place)

    @property
    def is_anybody_walking(self) -> bool:
        return bool(self._walking)

    def residents_around(self, name: str) -> Collection[str]:
        """Return who is in somebody's arena, itself too."""
        return self._residents[self._arena[name]].keys()

    def odd_around(self, name: str) -> Collection[str]:
        """Return the objects in somebody's arena that are not as they should be."""
        return self._odd.get(self._arena[name], {}).keys()

    def place(self, name: str, spot: Spot) -> None:
        """Let somebody stand on a spot."""
        arena, before = self.setting.world.arena_of(spot), self._arena.get(name)
        self.spots[name] = spot
        if arena != before:
            if before is not None:
                del self._residents[before][name]
            self._residents.setdefault(arena, {})[name] = None
            self._arena[name] = arena
            self.marked.add(name)
            self.entered.add(name)

    def remove(self, name: str) -> None:
        """Let somebody be nowhere."""
        arena = self._arena.pop(name, None)
        if arena is not None:
            del self._residents[arena][name]
        self.spots.pop(name, None)
        self._walking.pop(name, None)
        self.marked.discard(name)
        self.entered.discard(name)

    def set_off(self, name: str, act: Act, step: int) -> None:
        """Let somebody be on its way to where it does something, unless it is there."""
        self._walking.pop(name, None)
        tiles = read_walk(act.path)
        if step < act.since + len(tiles) - 1:
            self._walking[name] = act.since, tiles

    def walk(self, step: int) -> None:
        """Move whoever is on the way, and mark who could see something new by it."""
        moved = []
        for name, (since, tiles) in tuple(self._walking.items()):
            at, last = step - since, len(tiles) - 1
            if at >= last:
                del self._walking[name]
            if (spot := tiles[max(0, min(at, last))]) != self.spots[name]:
                self.place(name, spot)
                moved.append(name)
        for name in moved:  # when all have moved, so that it does not matter who was first
            self._mark_near(name)

    def change(self, change: ObjectChanged) -> None:
        """Let an object be in another condition, and mark who could see it."""
        if change.condition:
            self.conditions[change.place] = Condition(change.condition, change.step, change.danger)
        else:
            self.conditions.pop(change.place, None)
        self._sort_in(change.place)
        self.mark_at(change.place)

    def mark_around(self, name: str) -> None:
        """Mark who could see what somebody does now; itself too, where it may not be able to do it."""
        if self._has_company(name):
            self.marked.update(self.residents_around(name))

    def mark_at(self, place: str) -> None:
        """Mark who could see an object."""
        arena = self.setting.world.arena_of(self._spots_of(place)[0])
        self.marked.update(self._residents.get(arena, ()))

    def take_marked(self) -> set[str]:
        """Return who is marked, and mark nobody any more."""
        marked, self.marked = self.marked, set()
        return marked

    def _mark_near(self, name: str) -> None:
        """Mark somebody who moved, and those who see it."""
        if self._has_company(name) or sees_idle(self.setting.profile):
            distance, vision = self.setting.world.distance, self.setting.profile.vision
            self.marked.add(name)
            self.marked.update(
                other
                for other in self.residents_around(name)
                if distance(self.spots[other], self.spots[name]) <= vision
            )

    def _has_company(self, name: str) -> bool:
        """Tell whether anybody else, or an object that is not as it should be, is in somebody's arena."""
        return len(self.residents_around(name)) > 1 or bool(self.odd_around(name))

    def _sort_in(self, place: str) -> None:
        """Keep in which arenas an object is not as it should be."""
        for arena in map(self.setting.world.arena_of, self._spots_of(place)):
            if place in self.conditions:
                self._odd.setdefault(arena, {})[place] = None
            else:
                self._odd.get(arena, {}).pop(place, None)

    def _spots_of(self, place: str) -> tuple[Spot, ...]:
        return self.setting.world.spots(self.setting.addresses[place])
