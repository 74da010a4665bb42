"""Who was at an event, by whose word, and who talked there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mindstream.errors import InputError
from mindstream_town.inspect.history import History
from mindstream_town.metrics.measures import Diffusion
from mindstream_town.world.tree import Address

LEAST = 5
"""So many minutes somebody must be there, awake: who only passes by does not attend."""


@dataclass(frozen=True)
class Event:
    """Something that takes place: where, and between which steps; the last is not of it."""

    place: Address
    start: int
    end: int


@dataclass(frozen=True)
class Attendance:
    """Who had to do with an event.

    Attributes:
        minutes: there, of each who attended.
        invited: who had been told of it when it began.
        came_invited: who of those who were told, before it or while it lasted, attended.
        invitations: who told whom of it, and at which step, in order.
        talked: pairs who talked there, in order of their talks.
    """

    minutes: Mapping[str, int]
    invited: tuple[str, ...]
    came_invited: tuple[str, ...]
    invitations: tuple[tuple[str, str, int], ...]
    talked: tuple[tuple[str, str], ...]


def trace_attendance(history: History, event: Event, known: Diffusion) -> Attendance:
    """Find who was at an event, and who of them knew of it.

    Raises:
        InputError: the town has no such place, or the event ends before it begins.
    """
    if str(event.place) not in history.setting.addresses or event.end <= event.start:
        raise InputError(
            f"an event needs a place of the town and an end after its start, not {event.place} and {event.end}"
        )
    minutes = {name: count for name in history.names if (count := _minutes(history, event, name)) >= LEAST}
    told = {each.name: each.step for each in known.knowers if each.how == "told" and each.step < event.end}
    return Attendance(
        minutes,
        tuple(sorted(name for name, step in told.items() if step < event.start)),
        tuple(name for name in minutes if name in told),
        tuple(_invitations(history, event, known)),
        tuple(_talks(history, event)),
    )


def _minutes(history: History, event: Event, name: str) -> int:
    """Count the minutes that somebody was there, awake."""
    a_minute = history.setting.profile.a_minute
    steps = range(event.start, min(event.end, history.step + 1), a_minute)
    return sum(
        not history.state(name, step).asleep and history.place(name, step).is_within(event.place) for step in steps
    )


def _invitations(history: History, event: Event, known: Diffusion) -> list[tuple[str, str, int]]:
    told: dict[tuple[str, str], int] = {}
    for name, talk in history.talks():
        for line in talk.lines:
            if talk.step < event.end and any((line.by, id_) in known.records for id_ in line.told):
                told.setdefault((line.by, talk.partner if line.by == name else name), talk.step)
    return [(*pair, step) for pair, step in told.items()]


def _talks(history: History, event: Event) -> Sequence[tuple[str, str]]:
    return [
        (name, talk.partner)
        for name, talk in history.talks()
        if event.start <= talk.step < event.end and history.place(name, talk.step).is_within(event.place)
    ]
