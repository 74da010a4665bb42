"""Registry of this process's caches of users' words. All are bounded, and emptied by one call.

Cached functions register by `remember`, objects by `watch`; objects that must end with a user, such as an open mind,
by `watch_end`. When data are permanently deleted the store calls `empty`; so does a process that learns of an
erasure by another one (memory/privacy_watch), for which the opened streams are recorded here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from functools import lru_cache
from typing import Any, ParamSpec, Protocol, TypeVar
from weakref import WeakSet

P = ParamSpec("P")
R = TypeVar("R")


class Holder(Protocol):
    """An object that holds words of one or more streams."""

    def forget(self, stream: str, /) -> None:
        """Drop all words of a stream."""


class Opener(Protocol):
    """An object that has streams open."""

    def end(self, stream: str, before: int | None, /) -> None:
        """Close everything opened of a stream before that erasure (None: at any time): the whole stream was erased."""


_functions: WeakSet[Any] = WeakSet()
_holders: WeakSet[Any] = WeakSet()
_openers: WeakSet[Any] = WeakSet()
_opened: dict[str, int] = {}
_erased_here: dict[tuple[str, int], None] = {}
MAX_ERASURES = 1_000
"""Maximum number of own erasures that are remembered; older ones are applied a second time."""
_changing = threading.Lock()
"""Held while one of these sets grows or is copied, because event loops in several threads open streams."""


def _each(of: WeakSet[Any]) -> list[Any]:
    with _changing:
        return list(of)


def _add(to: WeakSet[Any], one: object) -> None:
    with _changing:
        to.add(one)


def remember(most: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Cache the results of a pure function for its last `most` arguments; results must be immutable."""

    def remembering(function: Callable[P, R]) -> Callable[P, R]:
        cached = lru_cache(most)(function)
        _add(_functions, cached)
        return cached  # type: ignore[return-value]

    return remembering


def watch(holder: Holder) -> None:
    """Notify an object, as long as it exists, when words of a stream are erased."""
    _add(_holders, holder)


def watch_end(opener: Opener) -> None:
    """Notify an object, as long as it exists, when a whole stream is erased."""
    _add(_openers, opener)


def note(stream: str, upto: int = 0) -> None:
    """Record that this process has opened a stream, when erasures were known up to that number."""
    _opened[stream] = max(upto, _opened.get(stream, 0))


def note_erasure(digest: str, number: int) -> None:
    """Record that this process itself erased a part of a stream, and has emptied its caches."""
    _erased_here[digest, number] = None
    while len(_erased_here) > MAX_ERASURES:
        del _erased_here[next(iter(_erased_here))]


def was_erased_here(digest: str, number: int) -> bool:
    """Return whether an erasure was made by this process."""
    return (digest, number) in _erased_here


def streams() -> list[str]:
    """Return the streams that this process has opened and that were not erased since."""
    return list(_opened)


def empty(stream: str, *, whole: bool = False, before: int | None = None, without: Collection[object] = ()) -> None:
    """Drop cached words of a stream. Cached functions do not know whose words they hold, so they are emptied
    completely.

    Args:
        whole: the whole stream was erased, and everything that has it open is closed.
        without: holders that have dropped the words already.
        before: the number of that erasure if another process made it: a stream opened later is a new one.
    """
    for function in _each(_functions):
        function.cache_clear()
    for holder in _each(_holders):
        if not any(holder is each for each in without):
            holder.forget(stream)
    if whole:
        if before is None or _opened.get(stream, 0) < before:
            _opened.pop(stream, None)
        for opener in _each(_openers):
            opener.end(stream, before)
