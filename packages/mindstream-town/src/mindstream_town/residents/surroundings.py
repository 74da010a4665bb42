"""What a resident knows of its surroundings without being told: its household, the weather and light, who is in sight,
what is open today."""

from __future__ import annotations

from collections.abc import Sequence

from mindstream_town.residents.percept import Percept
from mindstream_town.residents.person import Person
from mindstream_town.setting import Setting
from mindstream_town.world.tree import sector_of
from mindstream_town.world.world import light_at


def housemates(setting: Setting, person: Person) -> tuple[str, ...]:
    """Name the residents who live in the same home, in order."""
    return tuple(sorted(setting.homes.get(sector_of(person.home), frozenset()) - {person.name}))


def household(setting: Setting, person: Person) -> tuple[str, ...]:
    """Say who lives in the same home, each with what they are to the person; babies and pets as the file tells them."""
    known = {each.name: each.what for each in person.relations}
    people = (f"{name} ({known[name]})" if name in known else name for name in housemates(setting, person))
    others = (each for name in (person.name, *housemates(setting, person)) for each in setting.people[name].household)
    return (*people, *dict.fromkeys(others))


def people_in_sight(percepts: Sequence[Percept]) -> tuple[str, ...]:
    """Name who can be seen, in order."""
    return tuple(sorted({each.who for each in percepts if each.who}))


def weather_on(setting: Setting, step: int) -> str:
    """Say the weather of a step's day."""
    return setting.weather.of(setting.seed, setting.day(step), setting.when(step).date())


def light_on(setting: Setting, step: int) -> str:
    """Say how light it is outside at a step."""
    return light_at(setting.when(step).hour)
