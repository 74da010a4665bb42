"""What a town is beside its residents: its world, rules of places, constants, time and seed. None of it changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property

from mindstream import chance
from mindstream.clock import Moment
from mindstream.text.words import terms
from mindstream_town.compat import is_unseen_edge
from mindstream_town.profile import Profile
from mindstream_town.residents.person import Person
from mindstream_town.world.rules import PlaceRules
from mindstream_town.world.tree import ARENA, OBJECT, Address, sector_of
from mindstream_town.world.world import Conditions, Spot, Weather, World

START = datetime(2023, 2, 13, tzinfo=UTC).timestamp()
"""The morning on which the paper's town begins."""


@dataclass(frozen=True)
class Setting:
    """A town without what happens in it.

    Attributes:
        start: the moment of step 0.
    """

    name: str
    world: World
    people: Mapping[str, Person]
    rules: PlaceRules = field(default_factory=PlaceRules)
    profile: Profile = field(default_factory=Profile)
    seed: int = 0
    start: Moment = START
    conditions: Conditions = field(default_factory=Conditions)
    weather: Weather = field(default_factory=Weather)
    _near: dict[Spot, tuple[str, ...]] = field(default_factory=dict, repr=False, compare=False)

    def with_people(self, *people: Person) -> Setting:
        """Return the same town with some people more."""
        return replace(self, people={**self.people, **{person.name: person for person in people}})

    def moment(self, step: int) -> Moment:
        """Return the moment of a step."""
        return self.start + step * self.profile.step_s

    def when(self, step: int) -> datetime:
        """Return the town's time of a step."""
        return datetime.fromtimestamp(self.moment(step), UTC)

    def day(self, step: int) -> int:
        """Return how many midnights lie between the first step's day and this one's."""
        return (self.when(step).date() - self.when(0).date()).days

    def minute(self, step: int) -> int:
        """Return the minute of the day."""
        when = self.when(step)
        return when.hour * 60 + when.minute

    def step_at(self, day: int, minute: int) -> int:
        """Return the first step at or after a minute of a day (counted from the first one's midnight)."""
        first = self.when(0).replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
        return self.step_at_moment(first + day * 86_400 + minute * 60)

    def step_at_moment(self, moment: Moment) -> int:
        """Return the first step at or after a moment."""
        return -int(-(moment - self.start) // self.profile.step_s)

    def draw(self, *key: object) -> float:
        """Draw a number in [0, 1) by the town's seed: the same for the same key, whoever asks first."""
        return chance.fraction(self.seed, *key)

    @cached_property
    def name_words(self) -> frozenset[str]:
        """The words of the residents' names, stemmed."""
        return frozenset(word for name in self.people for word in terms(name))

    @cached_property
    def addresses(self) -> Mapping[str, Address]:
        """Every address of the world by its text."""
        return {str(each): each for each in self.world.places}

    def objects_in(self, place: str) -> tuple[str, ...]:
        """Name the objects of a place, by address."""
        return self._objects.get(place, ())

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
        """Who lives in a place, by the addresses of homes and of the sectors around them."""
        found: dict[str, set[str]] = {}
        for name, person in self.people.items():
            for place in {person.home, sector_of(person.home)}:
                found.setdefault(place, set()).add(name)
        return {place: frozenset(names) for place, names in found.items()}

    @cached_property
    def uses(self) -> dict[str, tuple[Person, dict[str, bool]]]:
        """By a person's name: the person, and whether it may use each place that was asked about (see `may_use`)."""
        return {}

    def places_near(self, spot: Spot) -> tuple[str, ...]:
        """Name the places in sight of a spot, in order: of other arenas only the houses they are in.

        As the published code does it, one sees through walls.
        """
        found = self._near.get(spot)
        if found is None:
            near = self.world.near(spot, self.profile.vision)
            seen = {self.world.address_at(each) for each in near if not is_unseen_edge(self.world, each, self.profile)}
            if not self.profile.compat:
                here = self.world.address_at(spot).upto(ARENA)
                seen = {each if each.is_within(here) else each.upto(2) for each in seen}
            wider = {address.upto(level) for address in seen for level in (2, 3)}
            found = self._near[spot] = tuple(sorted(str(each) for each in seen | wider if each.level > 1))
        return found
