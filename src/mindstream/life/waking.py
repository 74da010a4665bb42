"""What wakes a life: its user, a task that can be worked on, a standing order; otherwise it rests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, tzinfo

from mindstream.clock import DAY_S, Moment
from mindstream.errors import InputError
from mindstream.life.schedule import ActiveHours, Order, read_order
from mindstream.life.state import LifeState

MISSED = 10_000
"""Maximum number of missed periods that are counted; then the order begins anew."""


@dataclass(frozen=True, slots=True)
class DueOrder:
    """A due standing order: its number, from 1, and its last due moment."""

    number: int
    order: Order
    due: Moment


@dataclass(frozen=True)
class Rhythm:
    """When a life may act by itself.

    Attributes:
        hours: only then, unless its user speaks; None: always.
        beat_s: minimum interval of looking for work of its own, when nothing can be done; None: never.
    """

    hours: ActiveHours | None = None
    zone: tzinfo = UTC
    beat_s: float | None = None

    def is_active(self, now: Moment) -> bool:
        return self.hours is None or self.hours.is_active(now)

    def due_orders(self, state: LifeState, now: Moment) -> list[DueOrder]:
        """Return the standing orders that are due; missed periods count once."""
        found = []
        for number, order in known_orders(state.orders):
            due = self._last_due(order, state.beats.get(number, state.ordered), now)
            if due is not None:
                found.append(DueOrder(number, order, due))
        return found

    def next_wake(self, state: LifeState, now: Moment) -> Moment | None:
        """Return when there will be something to do; None: not before a person acts."""
        if state.halted:
            return None
        times = [
            order.next_after(state.beats.get(number, state.ordered), self.zone)
            for number, order in known_orders(state.orders)
        ]
        if (due := state.ledger.next_due()) is not None:
            times.append(due)
        if (look := self.next_look(state)) is not None:
            times.append(look)
        if state.unread or any(state.ledger.to_do(now)):
            times.append(now)
        if not times:
            return None
        at = max(now, min(times))
        return self.hours.next_active(at) if self.hours else at

    def next_look(self, state: LifeState) -> Moment | None:
        """Return when it may next look for work of its own; None: never.

        After a look that found nothing, it skips one interval, and the rest of the day unless M2 said when to look
        again or
        anything was done since.
        """
        if self.beat_s is None:
            return None
        if not state.idle:
            return state.looked + self.beat_s if state.looked else 0.0
        tomorrow = state.looked + DAY_S - state.looked % DAY_S
        return max(state.looked + 2 * self.beat_s, tomorrow if state.idle_until is None else state.idle_until)

    def _last_due(self, order: Order, since: Moment, now: Moment) -> Moment | None:
        due = order.next_after(since, self.zone)
        if due > now:
            return None
        for _ in range(MISSED):
            after = order.next_after(due, self.zone)
            if after > now:
                return due
            due = after
        return now


def known_orders(orders: Sequence[str]) -> Iterator[tuple[int, Order]]:
    """Yield valid standing orders with their numbers, from 1."""
    for number, text in enumerate(orders, 1):
        with suppress(InputError):
            yield number, read_order(text)


def unknown_orders(orders: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield invalid standing orders (an earlier version may have allowed them) with their numbers and how to write
    them."""
    for number, text in enumerate(orders, 1):
        try:
            read_order(text)
        except InputError as error:
            yield number, str(error)
