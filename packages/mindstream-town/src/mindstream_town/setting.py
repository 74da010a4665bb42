"""The constant part of a town: world, people, rules of places, profile, start and seed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property

from mindstream import chance
from mindstream.clock import Moment
from mindstream.text.words import terms
from mindstream_town.profile import Profile
from mindstream_town.residents.person import Person
from mindstream_town.world.rules import PlaceRules
from mindstream_town.world.tree import ARENA, OBJECT, Address, Spot, sector_of
from mindstream_town.world.world import Conditions, Weather, World

START = datetime(2023, 2, 13, tzinfo=UTC).timestamp()
"""The beginning of the town in the paper: Monday, February 13, 2023, midnight."""


@dataclass(frozen=True)
class Setting:
    """A town without its events; `start` is the time of step 0."""

    name: str
    world: World
    people: Mapping[str, Person]
    rules: PlaceRules = field(default_factory=PlaceRules)
    profile: Profile = field(default_factory=Profile)
    seed: int = 0
    start: Moment = START
    conditions: Conditions = field(default_factory=Conditions)
    weather: Weather = field(default_factory=Weather)
    withheld: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For a fork: for each resident, by name, the texts that the resident does not remember if others tell them."""
    _near: dict[Spot, tuple[str, ...]] = field(default_factory=dict, repr=False, compare=False)

    def with_people(self, *people: Person) -> Setting:
        """Return the same town with additional people."""
        return replace(self, people={**self.people, **{person.name: person for person in people}})

    def moment(self, step: int) -> Moment:
        return self.start + step * self.profile.step_s

    def when(self, step: int) -> datetime:
        """Return the town's time of a step."""
        return datetime.fromtimestamp(self.moment(step), UTC)

    def day(self, step: int) -> int:
        """Return the number of days between the first step's date and this step's date."""
        return (self.when(step).date() - self.when(0).date()).days

    def minute(self, step: int) -> int:
        """Return the minute of the day at a step."""
        when = self.when(step)
        return when.hour * 60 + when.minute

    def step_at(self, day: int, minute: int) -> int:
        """Return the first step at or after a minute of a day; day 0 is the first day."""
        first = self.when(0).replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
        return self.step_at_moment(first + day * 86_400 + minute * 60)

    def step_at_moment(self, moment: Moment) -> int:
        """Return the first step at or after a moment."""
        return -int(-(moment - self.start) // self.profile.step_s)

    def draw(self, *key: object) -> float:
        """Return a number from 0 to below 1 that depends only on the town's seed and the key."""
        return chance.fraction(self.seed, *key)

    @cached_property
    def name_words(self) -> frozenset[str]:
        """The stemmed words of the residents' names."""
        return frozenset(word for name in self.people for word in terms(name))

    @cached_property
    def addresses(self) -> Mapping[str, Address]:
        """The addresses of all places by their text."""
        return {str(each): each for each in self.world.places}

    def objects_in(self, place: str) -> tuple[str, ...]:
        """Return the addresses of the objects in a place."""
        return self._objects.get(place, ())

    def rooms_in(self, sector: str) -> list[str]:
        """Return the addresses of the rooms (arenas) in a sector, sorted."""
        return self._rooms.get(sector, [])

    @cached_property
    def _rooms(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for address, place in sorted(self.addresses.items()):
            if place.level == ARENA:
                found.setdefault(sector_of(address), []).append(address)
        return found

    @cached_property
    def _objects(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, list[str]] = {}
        for address in self.world.places:
            if address.level == OBJECT:
                for level in (1, 2, 3):
                    found.setdefault(str(address.upto(level)), []).append(str(address))
        return {place: tuple(objects) for place, objects in found.items()}

    @cached_property
    def homes(self) -> Mapping[str, frozenset[str]]:
        """Names of residents by the address of their home, and by the address of the house it is in."""
        found: dict[str, set[str]] = {}
        for name, person in self.people.items():
            for place in {person.home, sector_of(person.home)}:
                found.setdefault(place, set()).add(name)
        return {place: frozenset(names) for place, names in found.items()}

    @cached_property
    def known(self) -> dict[str, tuple[Person, Collection[str], tuple[Sequence[str], Sequence[str]]]]:
        """Cache of `known_addresses`: for each name, the person, the known addresses, and the last result."""
        return {}

    @cached_property
    def uses(self) -> dict[str, tuple[Person, dict[str, bool]]]:
        """Cache of `may_use`: for each name, the person and the result for each place."""
        return {}

    def places_near(self, spot: Spot) -> tuple[str, ...]:
        """Return the addresses in sight of a spot, sorted; other arenas are represented by their houses.

        As in the published code of Park 2023, walls do not block the view.
        """
        found = self._near.get(spot)
        if found is None:
            here = self.world.address_at(spot).upto(ARENA)
            around = self.world.places_around(spot, self.profile.vision)
            seen = {each if each.is_within(here) else each.upto(2) for each in around}
            wider = {address.upto(level) for address in seen for level in (2, 3)}
            found = self._near[spot] = tuple(sorted(str(each) for each in seen | wider if each.level > 1))
        return found
