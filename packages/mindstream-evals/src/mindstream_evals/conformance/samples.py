"""Sample records and commits for the suites, and their assertions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import wraps
from typing import TypeAlias, TypeVar

import numpy as np

from mindstream.identifiers import StreamName
from mindstream.log.events import Remembered
from mindstream.memory.store.record import Kind, Record, Triple, new_id
from mindstream.memory.store.store import Commit, Entry

T = TypeVar("T")

Factory: TypeAlias = Callable[[], AbstractAsyncContextManager[T]]
"""Opens a new object under test as an async context manager."""
Promise: TypeAlias = Callable[[Factory[T]], Awaitable[None]]


class Promises(list[Promise[T]]):
    """Promises of one kind of object, in the order of their definition."""

    def add(self, check: Callable[[T], Awaitable[None]]) -> Promise[T]:
        """Add a check to the list of promises (required behaviours); a decorator. The stored function opens a new
        object and passes it to the check."""

        @wraps(check)
        async def promise(open_one: Factory[T]) -> None:
            async with open_one() as opened:
                await check(opened)

        self.append(promise)
        return promise


async def keep(promises: Sequence[Promise[T]], open_one: Factory[T]) -> list[str]:
    """Check that an object keeps all promises, in order; return their names.

    Raises:
        AssertionError: a promise is broken; the message names it.
    """
    kept = []
    for promise in promises:
        name = getattr(promise, "__name__", str(promise)).replace("_", " ")
        try:
            await promise(open_one)
        except Exception as error:  # an unexpected error breaks the promise
            what = str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
            raise AssertionError(f"promise not kept: {name}: {what}") from error
        kept.append(name)
    return kept


def expect(holds: bool, wanted: str) -> None:
    """Assert a condition, also under `python -O`.

    Raises:
        AssertionError: the condition is false; the message is the expectation.
    """
    if not holds:
        raise AssertionError(wanted)


async def expect_error(kind: type[Exception], awaited: Awaitable[object], wanted: str) -> Exception:
    """Return the error that an awaitable raises, which must be of the expected kind.

    Raises:
        AssertionError: the awaitable raises another error, or none.
    """
    try:
        await awaited
    except kind as error:
        return error
    except Exception as error:
        found = f"{type(error).__name__}: {error}"
        raise AssertionError(f"{wanted}: expected {kind.__name__}, not {found}") from error
    raise AssertionError(f"{wanted}: expected {kind.__name__}, but no error was raised")


ANN, BOB = StreamName("user", "ann").key, StreamName("user", "bob").key
THEN, LATER, NOW = 1e9, 2e9, 3e9


def build_record(text: str, kind: Kind = "note") -> Record:
    return Record(
        id=new_id(THEN),
        stream=ANN,
        kind=kind,
        text=text,
        created=THEN,
        accessed=THEN,
        importance=5.0,
        by=ANN,
        about=Triple(ANN, "drinks", "tea"),
        keywords=("tea",),
        evidence=("x",),
        data={"a": [1, "二"]},
        embedder="e",
        vector=np.arange(4, dtype=np.float16),
    )


def build_version(number: int) -> Record:
    return replace(build_record(f"plan {number}", "plan"), slot="plan", version=number)


def build_event() -> Remembered:
    return Remembered(count=1, kinds={"note": 1})


def build_writing(*records: Record, at: float = THEN) -> Commit:
    return Commit(mind=records[0].stream, at=at, entries=(Entry(build_event(), ANN, records),))
