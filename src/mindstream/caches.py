"""Registry of this process's caches of users' words. All caches are bounded, and one call empties them.

Cached functions register by `remember`, objects with words by `watch`, and objects that must be closed when a user is
erased, such as an open mind, by `watch_end`. When data is permanently deleted, the store calls `empty`. When another
process has erased data, `ErasureWatch` (memory/store/sql_store) calls `empty`; for this, the module records the streams
that this process has opened.
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
        """Drop all words of a stream that the object holds."""


class Opener(Protocol):
    """An object that has streams open."""

    def end(self, stream: str, before: int | None, /) -> None:
        """Close the object if it uses a stream that was erased as a whole.

        Args:
            before: number of the erasure; an object that opened the stream later is not closed. None: close in any
                case.
        """


_functions: WeakSet[Any] = WeakSet()
_holders: WeakSet[Any] = WeakSet()
_openers: WeakSet[Any] = WeakSet()
_opened: dict[str, int] = {}
_erased_here: dict[tuple[str, int], None] = {}
MAX_ERASURES = 1_000
"""Maximum number of erasures by this process that are remembered. An erasure that is no longer remembered is applied a
second time, which does no harm."""
_changing = threading.Lock()
"""Lock held while a set of registered functions or objects grows or is copied: event loops in several threads may open
streams at the same time."""


def _each(of: WeakSet[Any]) -> list[Any]:
    with _changing:
        return list(of)


def _add(to: WeakSet[Any], one: object) -> None:
    with _changing:
        to.add(one)


def remember(most: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that caches the results of a pure function for the last `most` different arguments. Results
    must be immutable."""

    def remembering(function: Callable[P, R]) -> Callable[P, R]:
        cached = lru_cache(most)(function)
        _add(_functions, cached)
        return cached  # type: ignore[return-value]

    return remembering


def watch(holder: Holder) -> None:
    """Call `holder.forget` when words of a stream are erased, as long as the holder exists."""
    _add(_holders, holder)


def watch_end(opener: Opener) -> None:
    """Call `opener.end` when a whole stream is erased, as long as the opener exists."""
    _add(_openers, opener)


def note(stream: str, upto: int = 0) -> None:
    """Record that this process has opened a stream; `upto`: the number of the last erasure at that time."""
    _opened[stream] = max(upto, _opened.get(stream, 0))


def note_erasure(digest: str, number: int) -> None:
    """Record that this process itself made an erasure, so that the erasure is not applied to its caches again.

    Args:
        digest: digest that stands for the stream.
        number: number of the erasure.
    """
    _erased_here[digest, number] = None
    while len(_erased_here) > MAX_ERASURES:
        del _erased_here[next(iter(_erased_here))]


def was_erased_here(digest: str, number: int) -> bool:
    """Return whether this process itself made the erasure with this digest and number."""
    return (digest, number) in _erased_here


def streams() -> list[str]:
    """Return the streams that this process has opened and that were not erased since."""
    return list(_opened)


def empty(stream: str, *, whole: bool = False, before: int | None = None, without: Collection[object] = ()) -> None:
    """Drop cached words of a stream.

    Cached functions are emptied completely, because they do not know whose words they hold.

    Args:
        whole: the whole stream was erased: every object that has it open is closed.
        before: the number of the erasure if another process made it. Uses of the stream that were opened later belong
            to a new stream and stay open.
        without: holders that have already dropped the words.
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
