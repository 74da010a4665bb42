"""Positions of residents and of objects that are not in order, by arena; marks residents who may see something new.

Residents can be at different steps. A resident's position is that of its own last step. It sees only residents that are
at the same step, and objects as they were at that step.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
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


Change = tuple[int, str, Condition | None]
"""A change of an object: step, address, and the condition before the change. None: nothing was wrong with the object
before."""


def set_condition(conditions: dict[str, Condition], change: ObjectChanged) -> Change:
    """Set the condition of an object ("": nothing is wrong with it).

    Return the step, the object, and the condition of the object before.
    """
    before = conditions.get(change.place)
    if change.condition:
        conditions[change.place] = Condition(change.condition, change.step, change.danger)
    else:
        conditions.pop(change.place, None)
    return change.step, change.place, before


class Whereabouts:
    """Positions by arena. Residents cannot see into other arenas.

    Args:
        conditions: conditions of the objects that are not in order, by address.
        changes: changes of objects, from the last step that all residents have finished on.

    Attributes:
        spots: the position of each resident.
        steps: the step of each resident's position.
        marked: residents who may see something new, or whose act may have become impossible.
        entered: residents who have entered another arena and have not looked around there yet.
    """

    def __init__(self, setting: Setting, conditions: dict[str, Condition], changes: Iterable[Change] = ()) -> None:
        self.setting = setting
        self.conditions = conditions
        self.changes = list(changes)
        self.spots: dict[str, Spot] = {}
        self.steps: dict[str, int] = {}
        self.marked: set[str] = set()
        self.entered: set[str] = set()
        # for each walking resident: the first step and the tiles of the walk
        self._walking: dict[str, tuple[int, tuple[Spot, ...]]] = {}
        self._residents: dict[int, dict[str, None]] = {}
        self._odd: dict[int, dict[str, None]] = {}
        self._arena: dict[str, int] = {}
        for place in {*conditions, *(place for _, place, _ in self.changes)}:
            self._update_odd(place)

    def has_news(self, names: Iterable[str], step: int) -> bool:
        """Return whether one of these residents walks or is in `marked`, or any object has changed in this step or
        later."""
        is_still = self._walking.keys().isdisjoint(names) and self.marked.isdisjoint(names)
        return not is_still or any(each[0] >= step for each in self.changes)

    def residents_around(self, name: str) -> Collection[str]:
        """Return the residents, this one included, in the resident's arena whose positions are of the same step."""
        steps, step = self.steps, self.steps[name]
        return [other for other in self._residents[self._arena[name]] if steps[other] == step]

    def odd_around(self, name: str) -> dict[str, Condition]:
        """Return the condition of each object in a resident's arena with which something is wrong at the resident's
        step."""
        odd = self._odd.get(self._arena[name], ())
        return {place: now for place in odd if (now := self.condition(place, self.steps[name]))} if odd else {}

    def condition(self, place: str, step: int) -> Condition | None:
        """Return the condition of an object before a step; None: nothing is wrong with it."""
        if self.changes:
            for at, changed, before in self.changes:
                if changed == place and at >= step:
                    return before
        return self.conditions.get(place)

    def place(self, name: str, spot: Spot, step: int) -> None:
        """Set a resident's position at a step."""
        arena, before = self.setting.world.arena_of(spot), self._arena.get(name)
        self.spots[name], self.steps[name] = spot, step
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
        self.steps.pop(name, None)
        self._walking.pop(name, None)
        self.marked.discard(name)
        self.entered.discard(name)

    def set_off(self, name: str, act: Act, step: int) -> None:
        """Start the walk to the place of an act, unless the resident is there already."""
        self._walking.pop(name, None)
        tiles = read_walk(act.path)
        if step < act.since + len(tiles) - 1:
            self._walking[name] = act.since, tiles

    def walk(self, names: Iterable[str], step: int) -> None:
        """Move residents to a step; mark those who may see something new."""
        self.steps.update(dict.fromkeys(names, step))
        moved = []
        for name in [each for each in names if each in self._walking]:
            since, tiles = self._walking[name]
            last = len(tiles) - 1
            if step - since >= last:
                del self._walking[name]
            if (spot := tiles[max(0, min(step - since, last))]) != self.spots[name]:
                self.place(name, spot, step)
                moved.append(name)
        for name in moved:  # after all have moved, so that the result does not depend on their order
            self.mark_around(name)
        for at, place, _ in self.changes:
            if at == step - 1:
                self.marked.update(name for name in names if self._sees(name, place))

    def change(self, change: ObjectChanged) -> None:
        """Change the condition of an object.

        In the next step, residents who can see the object are added to `marked` (residents who may see something new).
        """
        self.changes.append(set_condition(self.conditions, change))
        self._update_odd(change.place)

    def forget_changes(self, step: int) -> None:
        """Remove the changes of objects before a step. All residents have finished this step, so none is at an earlier
        one."""
        if self.changes and self.changes[0][0] < step:
            old = {place for at, place, _ in self.changes if at < step}
            self.changes = [each for each in self.changes if each[0] >= step]
            for place in old:
                self._update_odd(place)

    def mark_around(self, name: str) -> None:
        """Add a resident who has moved or begun an act, and the residents who see it, to `marked`.

        Add none if the resident sees no other resident and no object with which something is wrong.
        """
        arena = self._arena[name]
        if len(self._residents[arena]) == 1 and not self._odd.get(arena):
            return
        distance, vision, spot = self.setting.world.distance, self.setting.profile.vision, self.spots[name]
        around = self.residents_around(name)
        near = [each for each in around if each != name and distance(self.spots[each], spot) <= vision]
        if near or any(self._sees(name, place) for place in self.odd_around(name)):
            self.marked.update((name, *near))

    def take_marked(self, names: Iterable[str]) -> set[str]:
        """Return which of these residents are in `marked`, and remove them from it."""
        marked = self.marked.intersection(names)
        self.marked -= marked
        return marked

    def _sees(self, name: str, place: str) -> bool:
        """Return whether an object is in sight of a resident."""
        world, vision, spot = self.setting.world, self.setting.profile.vision, self.spots[name]
        arena = self._arena[name]
        return any(
            world.arena_of(each) == arena and world.distance(each, spot) <= vision for each in self._spots_of(place)
        )

    def _update_odd(self, place: str) -> None:
        """Update the list of odd objects in the arenas of an object (`place`): add the object if it is odd, else remove
        it.

        An object is odd if it has a condition now, or if one of its changes is still in `changes`.
        """
        is_odd = place in self.conditions or any(changed == place for _, changed, _ in self.changes)
        for arena in map(self.setting.world.arena_of, self._spots_of(place)):
            if is_odd:
                self._odd.setdefault(arena, {})[place] = None
            else:
                self._odd.get(arena, {}).pop(place, None)

    def _spots_of(self, place: str) -> tuple[Spot, ...]:
        return self.setting.world.spots(self.setting.addresses[place])
