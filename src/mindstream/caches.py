"""What this process keeps of users' words so as to be quick. All of it is bounded, and can be emptied in one call.

Whatever remembers words stands here: functions by `remember`, objects by `watch`; what must end with a person, as an
open mind, by `watch_end`. When something is erased for good the store calls `empty`; so does a process that notices
what another one has erased (memory/privacy_watch): for that it is known here which streams it has opened.
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
    """An object that holds words of one stream, or of several."""

    def forget(self, stream: str, /) -> None:
        """Let go of all words of a stream."""


class Opener(Protocol):
    """An object that has streams open."""

    def end(self, stream: str, before: int | None, /) -> None:
        """Close what was opened of a stream before that erasure, None: whenever: all of it was erased."""


_functions: WeakSet[Any] = WeakSet()
_holders: WeakSet[Any] = WeakSet()
_openers: WeakSet[Any] = WeakSet()
_opened: dict[str, int] = {}
_erased_here: dict[tuple[str, int], None] = {}
MOST_ERASURES = 1_000
"""Own erasures that are remembered; of older ones the process lets go once more."""
_changing = threading.Lock()
"""Held where one of these sets grows or is copied: event loops of several threads have streams open."""


def _each(of: WeakSet[Any]) -> list[Any]:
    with _changing:
        return list(of)


def _add(to: WeakSet[Any], one: object) -> None:
    with _changing:
        to.add(one)


def remember(most: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Remember what a pure function said to its last `most` arguments; what it returns must not be changeable."""

    def remembering(function: Callable[P, R]) -> Callable[P, R]:
        cached = lru_cache(most)(function)
        _add(_functions, cached)
        return cached  # type: ignore[return-value]

    return remembering


def watch(holder: Holder) -> None:
    """Have an object told when words of a stream were erased, for as long as it lives."""
    _add(_holders, holder)


def watch_end(opener: Opener) -> None:
    """Have an object told when all of a stream was erased, for as long as it lives."""
    _add(_openers, opener)


def note(stream: str, upto: int = 0) -> None:
    """Note that this process has opened a stream, when erasures were known up to that number."""
    _opened[stream] = max(upto, _opened.get(stream, 0))


def note_erasure(digest: str, number: int) -> None:
    """Note that this process erased a part of a stream itself, and let go of it when it did."""
    _erased_here[digest, number] = None
    while len(_erased_here) > MOST_ERASURES:
        del _erased_here[next(iter(_erased_here))]


def was_erased_here(digest: str, number: int) -> bool:
    """Tell whether an erasure was this process's own."""
    return (digest, number) in _erased_here


def streams() -> list[str]:
    """Return the streams that this process has opened, and that were not erased since."""
    return list(_opened)


def empty(stream: str, *, whole: bool = False, before: int | None = None, without: Collection[object] = ()) -> None:
    """Forget what is remembered of a stream's words; of functions, which cannot tell whose words they saw, all.

    Args:
        whole: all of the stream was erased, and what is open of it is closed.
        without: holders that have let go of the words already.
        before: the number of that erasure, where it is heard of later: what was opened since is a new beginning.
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
