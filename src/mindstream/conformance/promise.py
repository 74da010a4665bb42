"""A promise: one thing that whoever implements a protocol has to keep."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias, TypeVar

T = TypeVar("T")

Factory: TypeAlias = Callable[[], AbstractAsyncContextManager[T]]
"""Opens a fresh one each time, and closes it."""
Promise: TypeAlias = Callable[[Factory[T]], Awaitable[None]]


async def keep(promises: Sequence[Promise[T]], open_one: Factory[T]) -> list[str]:
    """Try promises, one after the other; return the names of what is kept.

    Raises:
        AssertionError: one is not kept; the message names it.
    """
    kept = []
    for promise in promises:
        name = getattr(promise, "__name__", str(promise)).replace("_", " ")
        try:
            await promise(open_one)
        except Exception as error:  # whatever is raised where nothing should be breaks the promise
            what = str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
            raise AssertionError(f"not kept: {name}: {what}") from error
        kept.append(name)
    return kept


def expect(holds: bool, wanted: str) -> None:
    """Go on where something holds; `python -O` does not skip it.

    Raises:
        AssertionError: it does not hold; the message says what was wanted.
    """
    if not holds:
        raise AssertionError(wanted)


async def expect_error(kind: type[Exception], awaited: Awaitable[object], wanted: str) -> Exception:
    """Return the error of that kind that something raises.

    Raises:
        AssertionError: it raises another, or none.
    """
    try:
        await awaited
    except kind as error:
        return error
    except Exception as error:
        raise AssertionError(f"{wanted}: {kind.__name__}, not {type(error).__name__}: {error}") from error
    raise AssertionError(f"{wanted}: {kind.__name__}, and nothing was raised")
