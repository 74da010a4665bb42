"""Positions of residents and of objects that are not in order, by arena; marks residents who may see something new."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from mindstream_town.events import Act, ObjectChanged
from mindstream_town.setting import Setting
from mindstream_town.world.routes import read_walk
from mindstream_town.world.tree import Spot


class Condition(NamedTuple):
    """The condition of an object that is not in order: text, step of its beginning, and whether it is a danger."""

    text: str
    since: int
    danger: bool = False


class Whereabouts:
    """Positions by arena in the current step. Residents cannot see into other arenas.

    Args:
        conditions: conditions of the objects that are not in order, by address.

    Attributes:
        spots: the position of each resident.
        marked: residents who may see something new, or whose act may have become impossible.
        entered: residents who have entered another arena and have not looked around there yet.
    """

    def __init__(self, setting: Setting, conditions: dict[str, Condition]) -> None:
        self.setting = setting
        self.conditions = conditions
        self.spots: dict[str, Spot] = {}
        self.marked: set[str] = set()
        self.entered: set[str] = set()
        self._walking: dict[str, tuple[int, tuple[Spot, ...]]] = {}  # for each walk: first step and tiles
        self._residents: dict[int, dict[str, None]] = {}
        self._odd: dict[int, dict[str, None]] = {}
        self._arena: dict[str, int] = {}
        for place in conditions:
            self._update_odd(place)

    @property
    def is_anybody_walking(self) -> bool:
        return bool(self._walking)

    def residents_around(self, name: str) -> Collection[str]:
        """Return the residents in the arena of a resident, including that resident."""
        return self._residents[self._arena[name]].keys()

    def odd_around(self, name: str) -> Collection[str]:
        """Return the objects in a resident's arena that are not in order."""
        return self._odd.get(self._arena[name], {}).keys()

    def place(self, name: str, spot: Spot) -> None:
        """Set a resident's position."""
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
        """Remove a resident from the town."""
        arena = self._arena.pop(name, None)
        if arena is not None:
            del self._residents[arena][name]
        self.spots.pop(name, None)
        self._walking.pop(name, None)
        self.marked.discard(name)
        self.entered.discard(name)

    def set_off(self, name: str, act: Act, step: int) -> None:
        """Start the walk to the place of an act, unless the resident is there already."""
        self._walking.pop(name, None)
        tiles = read_walk(act.path)
        if step < act.since + len(tiles) - 1:
            self._walking[name] = act.since, tiles

    def walk(self, step: int) -> None:
        """Move all residents that walk, and mark those who may see something new."""
        moved = []
        for name, (since, tiles) in tuple(self._walking.items()):
            at, last = step - since, len(tiles) - 1
            if at >= last:
                del self._walking[name]
            if (spot := tiles[max(0, min(at, last))]) != self.spots[name]:
                self.place(name, spot)
                moved.append(name)
        for name in moved:  # after all have moved, so that the result does not depend on their order
            self._mark_near(name)

    def change(self, change: ObjectChanged) -> None:
        """Change the condition of an object, and mark the residents who may see it."""
        if change.condition:
            self.conditions[change.place] = Condition(change.condition, change.step, change.danger)
        else:
            self.conditions.pop(change.place, None)
        self._update_odd(change.place)
        self.mark_at(change.place)

    def mark_around(self, name: str) -> None:
        """Mark the residents who may see a resident's act, and the resident itself, whose act may be impossible."""
        if self._has_company(name):
            self.marked.update(self.residents_around(name))

    def mark_at(self, place: str) -> None:
        """Mark the residents who may see an object."""
        arena = self.setting.world.arena_of(self._spots_of(place)[0])
        self.marked.update(self._residents.get(arena, ()))

    def take_marked(self) -> set[str]:
        """Return the marked residents and clear the marks."""
        marked, self.marked = self.marked, set()
        return marked

    def _mark_near(self, name: str) -> None:
        """Mark a resident who has moved, and the residents who can see it."""
        if self._has_company(name):
            distance, vision = self.setting.world.distance, self.setting.profile.vision
            self.marked.add(name)
            self.marked.update(
                other
                for other in self.residents_around(name)
                if distance(self.spots[other], self.spots[name]) <= vision
            )

    def _has_company(self, name: str) -> bool:
        """Return whether the arena of a resident contains another resident, or an object that is not in order."""
        return len(self.residents_around(name)) > 1 or bool(self.odd_around(name))

    def _update_odd(self, place: str) -> None:
        """Add an object to the arenas' lists of objects that are not in order; remove it if it is in order again."""
        for arena in map(self.setting.world.arena_of, self._spots_of(place)):
            if place in self.conditions:
                self._odd.setdefault(arena, {})[place] = None
            else:
                self._odd.get(arena, {}).pop(place, None)

    def _spots_of(self, place: str) -> tuple[Spot, ...]:
        return self.setting.world.spots(self.setting.addresses[place])
