"""What prompts show of a resident's memories and of its surroundings: household, weather, light and people in sight."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mindstream.memory.store.record import Record, normalised
from mindstream_town.prompts.plans import Memory
from mindstream_town.residents.person import Person, appointment_of
from mindstream_town.residents.places import words_of
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


LONGEST = 600
"""Maximum characters of a memory in a prompt."""


def cut_at_word(text: str, most: int) -> str:
    """Return at most this many characters of a text, cut between two words if it has spaces, with an ellipsis."""
    if len(text) <= most:
        return text
    kept = text[: most - 1]
    return f"{kept.rpartition(' ')[0].rstrip() or kept}…"


def show(records: Iterable[Record], written: Sequence[str] = ()) -> tuple[Memory, ...]:
    """Return memories with their appointments, as prompts show them.

    Args:
        written: the date of each memory in words; empty: no dates are shown.
    """
    shown = []
    for number, record in enumerate(records):
        at = appointment_of(record.data)
        where = words_of(at.place) if at and at.place else ""
        shown.append(
            Memory(
                text=cut_at_word(record.text, LONGEST),
                written=written[number] if written else "",
                importance=record.importance or 0.0,
                appointment=at,
                where=where,
            )
        )
    return tuple(shown)


ALIKE = 0.75
"""Minimum similarity of two texts that count as a repetition: the share of four-letter runs of the shorter text that
the longer text contains."""


def repeats(text: str, others: Iterable[str]) -> bool:
    """Return whether a text repeats one of others almost word for word."""
    words = runs(text)
    return any(are_alike(words, runs(other)) for other in others)


def runs(text: str) -> set[str]:
    """Return the runs of four letters in a text. Shorter runs do not tell texts apart: long texts of one language share
    most of their pairs of letters."""
    letters = normalised(text)
    return {letters[at : at + 4] for at in range(max(1, len(letters) - 3))}


def are_alike(one: set[str], other: set[str]) -> bool:
    """Return whether two texts are alike. Each text is given as the set of its runs of four letters.

    They are alike if the larger set contains at least the share ALIKE of the smaller set.
    """
    return len(one & other) >= ALIKE * min(len(one), len(other))


def are_copies(one: set[str], other: set[str]) -> bool:
    """Return whether two texts say the same in almost the same words. Each text is given as the set of its runs of four
    letters.

    They do if each set contains at least the share ALIKE of the other.
    """
    return len(one & other) >= ALIKE * max(len(one), len(other))
