"""What this process keeps of users' words so as to be quick. All of it is bounded, and can be emptied in one call.

Whatever remembers words stands here: functions by `remember`, objects by `watch`; what must end with a person, as an
open mind, by `watch_end`. When something is erased for good the store calls `empty`; so does a process that notices
what another one has erased (memory/privacy_watch): for that it is known here which streams it has opened.
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


class Opener(Protocol):
    """An object that has streams open."""

    def end(self, stream: str, /) -> None:
        """Close what is open of a stream: all of it was erased."""


_functions: WeakSet[Any] = WeakSet()
_holders: WeakSet[Any] = WeakSet()
_openers: WeakSet[Any] = WeakSet()
_opened: set[str] = set()


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


def watch_end(opener: Opener) -> None:
    """Have an object told when all of a stream was erased, for as long as it lives."""
    _openers.add(opener)


def note(stream: str) -> None:
    """Note that this process has opened a stream."""
    _opened.add(stream)


def streams() -> list[str]:
    """Return the streams that this process has opened, and that were not erased since."""
    return list(_opened)


def empty(stream: str, *, whole: bool = False) -> None:
    """Forget what is remembered of a stream's words; of functions, which cannot tell whose words they saw, all.

    `whole`: all of the stream was erased, and what is open of it is closed.
    """
    for function in list(_functions):
        function.cache_clear()
    for holder in list(_holders):
        holder.forget(stream)
    if whole:
        _opened.discard(stream)
        for opener in list(_openers):
            opener.end(stream)
