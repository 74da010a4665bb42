"""What a resident knows about its surroundings: household, weather, light and people in sight."""

from __future__ import annotations

from collections.abc import Sequence

from mindstream_town.residents.person import Person
from mindstream_town.residents.turn import Percept
from mindstream_town.setting import Setting
from mindstream_town.world.tree import sector_of
from mindstream_town.world.world import light_at


def housemates(setting: Setting, person: Person) -> tuple[str, ...]:
    """Return the other residents of a person's home, sorted."""
    return tuple(sorted(setting.homes.get(sector_of(person.home), frozenset()) - {person.name}))


def household(setting: Setting, person: Person) -> tuple[str, ...]:
    """Return the household: other residents with their relation to the person, then members who are not residents."""
    known = {each.name: each.what for each in person.relations}
    people = (f"{name} ({known[name]})" if name in known else name for name in housemates(setting, person))
    others = (each for name in (person.name, *housemates(setting, person)) for each in setting.people[name].household)
    return (*people, *dict.fromkeys(others))


def people_in_sight(percepts: Sequence[Percept]) -> tuple[str, ...]:
    return tuple(sorted({each.who for each in percepts if each.who}))


def weather_on(setting: Setting, step: int) -> str:
    """Return the weather of a step's day."""
    return setting.weather.of(setting.seed, setting.day(step), setting.when(step).date())


def light_on(setting: Setting, step: int) -> str:
    """Return the light outside at a step in words."""
    return light_at(setting.when(step).hour)
