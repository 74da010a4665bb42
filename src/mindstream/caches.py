"""What this process keeps of users' words so as to be quick. All of it is bounded, and can be emptied in one call.

Whatever remembers words stands here: functions by `remember`, objects by `watch`. When something is erased for good the
store calls `empty`; so does a process that notices what another one has erased.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, ParamSpec, Protocol, TypeVar
from weakref import WeakSet

P = ParamSpec("P")
R = TypeVar("R")


class Holder(Protocol):
    """An object that holds words of one stream, or of several."""

    def forget(self, stream: str, /) -> None:
        """Let go of all words of a stream."""


_functions: WeakSet[Any] = WeakSet()
_holders: WeakSet[Any] = WeakSet()


def remember(most: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Remember what a pure function said to its last `most` arguments; what it returns must not be changeable."""

    def remembering(function: Callable[P, R]) -> Callable[P, R]:
        cached = lru_cache(most)(function)
        _functions.add(cached)
        return cached  # type: ignore[return-value]

    return remembering


def watch(holder: Holder) -> None:
    """Have an object told when words of a stream were erased, for as long as it lives."""
    _holders.add(holder)


def empty(stream: str) -> None:
    """Forget what is remembered of a stream's words; of functions, which cannot tell whose words they saw, all."""
    for function in list(_functions):
        function.cache_clear()
    for holder in list(_holders):
        holder.forget(stream)
