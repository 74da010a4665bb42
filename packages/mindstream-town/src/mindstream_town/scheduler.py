"""Schedulers of a simulation: in lock-step, or out of order.

Out of order, a resident may run ahead of those who cannot affect it.

As in AI Metropolis (Xie 2024), residents of the same step who may perceive each other form a group, which runs a step
together. A group waits only for residents at an earlier step who could come near enough before the group's next step.
A resident who is ahead delays no one. The calls of models wait in a queue: the call on which most residents wait goes
first.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from contextvars import ContextVar
from typing import NamedTuple, Protocol

import numpy as np

from mindstream.arrays import Ints
from mindstream.models.model import Model, Part, Request
from mindstream_town.world.tree import Spot

FAR = 2**40
"""A step that no resident reaches."""


class Apart(Protocol):
    """Computes how many steps residents are apart: how soon one could perceive another, or change what the other
    perceives."""

    def __call__(self, spot: Spot, across: Ints, down: Ints) -> Ints:
        """Return, for each resident, the least number of steps before it can affect or perceive a resident at `spot`.

        The positions of the residents are `across` and `down`; the resident at `spot` does not move. To affect a
        resident means to change what it perceives. 0: both residents must run together.
        """


class Group(NamedTuple):
    """Residents who run together, by name.

    Attributes:
        step: the last step that the group has finished.
        limit: the last step that the group may run without waiting for other residents.
    """

    members: tuple[str, ...]
    step: int
    limit: int


class Scheduler:
    """Runs residents out of order, the earliest first.

    Args:
        steps: the last finished step of each resident, by name.
        spots: the position of each resident in its next step.
    """

    is_free = True

    def __init__(self, apart: Apart, steps: Mapping[str, int], spots: Iterable[Spot]) -> None:
        self.names = tuple(steps)
        self.steps: Ints = np.array([*steps.values()], dtype=np.int64)
        self.across, self.down = np.array([*spots], dtype=np.int64).reshape(-1, 2).T.copy()
        self._apart = apart
        self._numbers = {name: number for number, name in enumerate(self.names)}
        self._open = set(range(len(self.names)))
        """Numbers of the residents that are neither running nor known to wait for another."""
        self._waiting: dict[int, set[int]] = {}
        """For each resident that others wait for: one member of each waiting group."""

    def groups(self, last: int) -> Iterator[Group]:
        """Yield the groups of residents that may run now, with limits of at most the step `last`. The caller reports
        each finished step with `done`."""
        while ready := [number for number in self._open if self.steps[number] < last]:
            for number in sorted(ready, key=self.steps.__getitem__):
                if number not in self._open or self.steps[number] >= last:
                    continue
                members, limit, blocker = self._group(number)
                self._open.difference_update(members)
                if limit > self.steps[number]:
                    names = tuple(self.names[member] for member in sorted(members))
                    yield Group(names, int(self.steps[number]), min(limit, last))
                else:
                    self._waiting.setdefault(blocker, set()).add(number)

    def done(self, group: Group, step: int, spots: Sequence[Spot]) -> None:
        """Record that a group has finished a step; `spots`: the positions of its members in the next one."""
        for name, (x, y) in zip(group.members, spots, strict=True):
            number = self._numbers[name]
            self.steps[number], self.across[number], self.down[number] = step, x, y
            self._open.add(number)
            self._open |= self._waiting.pop(number, set())

    def skip(self, group: Group, step: int) -> None:
        """Record that nothing happened to a group up to `step`; it runs the next one now."""
        for number in map(self._numbers.__getitem__, group.members if step > group.step else ()):
            self.steps[number] = step
            self._open |= self._waiting.pop(number, set())

    def rank(self, group: Group) -> tuple[int, int]:
        """Return the key by which groups are sorted in a queue; the group with the lowest key goes first.

        This is the group for which most residents wait; of equal groups, the one at the earliest step.
        """
        found, left = set[int](), [self._numbers[name] for name in group.members]
        while left:
            waiting = self._waiting.get(left.pop(), set()) - found
            found |= waiting
            left += waiting
        return -len(found), group.step

    def _group(self, first: int) -> tuple[list[int], int, int]:
        """Return the group of a resident, the last step that the group may run, and the resident that sets this limit.

        The group consists of the residents who must take this step together.
        """
        step, members, until = self.steps[first], [first], np.full(len(self.steps), FAR)
        for member in members:  # the loop adds members
            spot = int(self.across[member]), int(self.down[member])
            meets = self.steps + self._apart(spot, self.across, self.down)
            near = np.flatnonzero((meets <= step) & (self.steps == step)).tolist()
            members += (each for each in near if each not in members)
            np.minimum(until, meets, out=until)
        until[members] = FAR
        blocker = int(until.argmin())
        return members, int(until[blocker]), blocker


class LockStep:
    """Runs all residents at the earliest step together.

    Args:
        steps: the last finished step of each resident, by name; the caller keeps it up to date.
        first: the last finished step if there are no residents.
    """

    is_free = False

    def __init__(self, steps: Mapping[str, int], first: int) -> None:
        self._steps, self._first, self._runs = steps, first, False

    def groups(self, last: int) -> Iterator[Group]:
        """Yield all residents at the earliest step as one group, if this step is before `last`.

        No further group is yielded until `done` is called.
        """
        while not self._runs and (step := min(self._steps.values(), default=self._first)) < last:
            self._runs = True
            ahead = [each for each in self._steps.values() if each > step]
            members = [n for n, at in self._steps.items() if at == step] if ahead else self._steps
            yield Group(tuple(sorted(members)), step, min((last, *ahead)))

    def done(self, group: Group, step: int, spots: Sequence[Spot]) -> None:  # noqa: ARG002
        """Record that the group has finished a step."""
        self._first, self._runs = max(self._first, step), False

    def skip(self, group: Group, step: int) -> None:
        """Do nothing: no other group waits."""

    def rank(self, group: Group) -> tuple[int, int]:
        """Return a group's place in a queue: the earliest step comes first."""
        return 0, group.step


Rank = Callable[[], tuple[int, int]]
RANK: ContextVar[Rank] = ContextVar("rank", default=lambda: (0, 0))
"""A function that returns the current place of the running step in the queue of model calls (see `Scheduler.rank`).

The call with the lowest place goes first.
"""


class Slots:
    """Limits the number of simultaneous calls; calls that wait get a free slot in the order of `RANK`."""

    def __init__(self, most: int) -> None:
        self._free = most
        self._queue: list[tuple[Rank, asyncio.Future[None]]] = []

    async def __aenter__(self) -> None:
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._queue.append((RANK.get(), turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the slot was granted in the meantime
                self._release()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._release()

    def _release(self) -> None:
        self._queue = [each for each in self._queue if not each[1].done()]
        if not self._queue:
            self._free += 1
            return
        first = min(self._queue, key=lambda each: each[0]())
        first[1].set_result(None)


class Queued:
    """A model whose calls wait for a slot."""

    def __init__(self, model: Model, slots: Slots) -> None:
        self.name, self._model, self._slots = model.name, model, slots

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        async with self._slots, aclosing(self._model.reply(request)) as parts:
            async for part in parts:
                yield part
