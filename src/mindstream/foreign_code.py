"""Foreign code at arm's length: whatever a reasoner or a tool raises is one failure, and never its caller's end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from mindstream.errors import MindstreamError

T = TypeVar("T")

GRACE_S = 1.0
"""How long code that is told to stop may take to do so, before it is left behind."""
LONGEST = 500
"""So many characters of an error's words are kept."""


class ForeignFailure(Exception):  # noqa: N818 (what the run is, not what went wrong)
    """Foreign code came to no result; the message says why, in one line. `cause` is what it raised, if anything."""

    def __init__(self, message: str, cause: BaseException | None = None) -> None:
        super().__init__(message)
        self.cause = cause


class Overdue(ForeignFailure):
    """It took longer than it may."""


class Stopped(ForeignFailure):
    """Somebody stopped it (see `ForeignTask.stop`)."""


@dataclass(eq=False)
class ForeignTask(Generic[T]):
    """Foreign code in a task of its own.

    It may raise what it likes, a CancelledError or SystemExit of its own included, or go on after it was told to stop:
    its caller gets a result or `ForeignFailure`, and is cancelled only when somebody really cancels it.
    """

    work: Callable[[], Coroutine[Any, Any, T]]
    _task: asyncio.Task[_Outcome[T]] | None = field(default=None, init=False)
    _stopped: bool = field(default=False, init=False)

    async def result(self, timeout_s: float | None = None) -> T:
        """Run it and return what it returns.

        Raises:
            ForeignFailure: it raised something, which is its `cause`.
            Overdue: it took longer than `timeout_s`.
            Stopped: `stop` was called.
        """
        self._task = asyncio.create_task(_outcome(self.work))
        try:
            await asyncio.wait({self._task}, timeout=timeout_s)
        except asyncio.CancelledError:
            await self._end()
            raise
        if not self._task.done():
            await self._end()
            raise Overdue(f"no result within {timeout_s:g} seconds")
        if self._task.cancelled():
            raise (
                Stopped("stopped") if self._stopped else ForeignFailure("it cancelled itself", asyncio.CancelledError())
            )
        outcome = self._task.result()
        if outcome.error is not None:
            raise ForeignFailure(describe(outcome.error), outcome.error)
        return outcome.value[0]

    def stop(self) -> bool:
        """Stop it, if it is going on; return whether it was."""
        if self._task is None or self._task.done():
            return False
        self._stopped = True
        return self._task.cancel()

    async def _end(self) -> None:
        """Cancel it, and leave it behind where it does not care."""
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait({self._task}, timeout=GRACE_S)


@dataclass(frozen=True, slots=True)
class _Outcome(Generic[T]):
    value: tuple[T, ...] = ()
    error: BaseException | None = None


async def _outcome(work: Callable[[], Coroutine[Any, Any, T]]) -> _Outcome[T]:
    try:
        return _Outcome((await work(),))
    except (asyncio.CancelledError, KeyboardInterrupt):
        raise
    except BaseException as error:  # noqa: BLE001 (the outermost edge of foreign code; SystemExit would end the loop)
        return _Outcome(error=error)


def is_ours(error: BaseException) -> bool:
    """Tell whether something raised is to be passed on: the caller was really cancelled, closed or interrupted."""
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is None or task.cancelling() > 0
    return isinstance(error, GeneratorExit | KeyboardInterrupt)


def describe(error: BaseException) -> str:
    """Say in one line of plain text what was raised: the house's own errors in their words, others with their class."""
    try:
        words = " ".join(str(error).encode("utf-8", "replace").decode().split())
    except Exception:  # noqa: BLE001 (an error's own __str__ is foreign code too)
        words = "(its words cannot be read)"
    if isinstance(error, TimeoutError) and not words:
        return "it took too long, and was given up"
    if not isinstance(error, MindstreamError):
        words = f"{type(error).__name__}: {words}" if words else type(error).__name__
    return words if len(words) <= LONGEST else words[: LONGEST - 1] + "…"
