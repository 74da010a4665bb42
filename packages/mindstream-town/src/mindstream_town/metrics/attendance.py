"""Attendance of an event: its guests, invitations, and the talks at it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mindstream.errors import InputError
from mindstream_town.inspect.history import History
from mindstream_town.metrics.measures import Diffusion
from mindstream_town.world.tree import Address

LEAST = 5
"""Minimum waking minutes at the place that make a resident a guest."""


@dataclass(frozen=True)
class Event:
    """An event at a place, from step `start` to before step `end`."""

    place: Address
    start: int
    end: int


@dataclass(frozen=True)
class Attendance:
    """The guests of an event.

    Attributes:
        minutes: minutes at the event, by guest.
        invited: residents who were told of the event before it began.
        came_invited: guests who heard of the event before or during it.
        invitations: speaker, hearer and step of each invitation, in order.
        talked: pairs who talked at the event, in order.
    """

    minutes: Mapping[str, int]
    invited: tuple[str, ...]
    came_invited: tuple[str, ...]
    invitations: tuple[tuple[str, str, int], ...]
    talked: tuple[tuple[str, str], ...]


def trace_attendance(history: History, event: Event, known: Diffusion) -> Attendance:
    """Return which residents attended an event, and which of them knew of it.

    Raises:
        InputError: the town has no such place, or the event ends before it begins.
    """
    if str(event.place) not in history.setting.addresses or event.end <= event.start:
        raise InputError(
            f"an event needs a place of the town and an end after its start, not {event.place} and {event.end}"
        )
    minutes = {name: count for name in history.names if (count := minutes_at(history, event, name)) >= LEAST}
    told = {each.name: each.step for each in known.knowers if each.how == "told" and each.step < event.end}
    return Attendance(
        minutes,
        tuple(sorted(name for name, step in told.items() if step < event.start)),
        tuple(name for name in minutes if name in told),
        tuple(_invitations(history, event, known)),
        tuple(_talks(history, event)),
    )


def minutes_at(history: History, event: Event, name: str) -> int:
    """Return the number of waking minutes that a resident spent at the event."""
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
