"""Who was at an event, by whose word, who prepared it, and who talked there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mindstream.errors import InputError
from mindstream.text.words import terms
from mindstream.town.events import Acted
from mindstream.town.history import History
from mindstream.town.metrics.diffusion import Diffusion, trace_fact
from mindstream.town.metrics.fact import Fact
from mindstream.town.world.address import Address

LEAST = 5
"""So many minutes somebody must be there, awake: who only passes by does not attend."""
PREPARING = frozenset(terms("arrange bake cook decorate gather help order organize prepare set"))


@dataclass(frozen=True)
class Event:
    """Something that takes place: a fact in words, where, and between which steps; the last is not of it."""

    fact: Fact
    place: Address
    start: int
    end: int


@dataclass(frozen=True)
class Attendance:
    """Who had to do with an event.

    Attributes:
        minutes: there, of each who attended.
        invited: who knew of it when it began, those who knew it from the beginning aside.
        came_invited: who of them attended.
        prepared: what somebody did for it before it began, in the words of the act.
        invitations: who told whom of it, and at which step, in order.
        talked: pairs who talked there, in order of their talks.
    """

    minutes: Mapping[str, int]
    invited: tuple[str, ...]
    came_invited: tuple[str, ...]
    prepared: Mapping[str, tuple[str, ...]]
    invitations: tuple[tuple[str, str, int], ...]
    talked: tuple[tuple[str, str], ...]


def trace_attendance(history: History, event: Event, diffusion: Diffusion | None = None) -> Attendance:
    """Find who was at an event and how it came about.

    Raises:
        InputError: the town has no such place, or the event ends before it begins.
    """
    if str(event.place) not in history.setting.addresses or event.end <= event.start:
        raise InputError(
            f"an event needs a place of the town and an end after its start, not {event.place} and {event.end}"
        )
    known = diffusion or trace_fact(history, event.fact)
    hosts = {knower.name for knower in known.knowers if knower.how == "beginning"}
    minutes = {name: count for name in history.names if (count := _minutes(history, event, name)) >= LEAST}
    invited = [each.name for each in known.knowers if each.name not in hosts and each.step < event.start]
    knew_in_time = {each.name for each in known.knowers if each.step < event.end}
    return Attendance(
        minutes,
        tuple(sorted(invited)),
        tuple(name for name in minutes if name in knew_in_time - hosts),
        {name: acts for name in history.names if (acts := _prepared(history, event, name))},
        tuple(_invitations(history, event)),
        tuple(_talks(history, event)),
    )


def _minutes(history: History, event: Event, name: str) -> int:
    """Count the minutes that somebody was there, awake."""
    a_minute = history.setting.profile.a_minute
    steps = range(event.start, min(event.end, history.step + 1), a_minute)
    return sum(
        not history.state(name, step).asleep and history.place(name, step).is_within(event.place) for step in steps
    )


def _prepared(history: History, event: Event, name: str) -> tuple[str, ...]:
    """Return what somebody did for an event before it: acts whose words name it and a way to prepare something."""
    core = event.fact.core
    done = []
    for step, acted in history.events(name, Acted):
        words = set(terms(acted.act.what))
        if step < event.start and words & core and words & PREPARING:
            done.append(acted.act.what)
    return tuple(dict.fromkeys(done))


def _invitations(history: History, event: Event) -> list[tuple[str, str, int]]:
    told: dict[tuple[str, str], int] = {}
    for name, talk in history.talks():
        for line in talk.lines:
            if talk.step < event.end and event.fact.is_in(line.text, line.by):
                told.setdefault((line.by, talk.partner if line.by == name else name), talk.step)
    return [(*pair, step) for pair, step in told.items()]


def _talks(history: History, event: Event) -> Sequence[tuple[str, str]]:
    return [
        (name, talk.partner)
        for name, talk in history.talks()
        if event.start <= talk.step < event.end and history.place(name, talk.step).is_within(event.place)
    ]
