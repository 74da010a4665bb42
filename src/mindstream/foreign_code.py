"""Run third-party code (reasoners, tools): whatever it raises becomes one kind of failure and does not end its
caller."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from mindstream.errors import MindstreamError

T = TypeVar("T")

GRACE_S = 1.0
"""Time, in seconds, that cancelled code has to stop before it is abandoned."""
MAX_MESSAGE = 500
"""Maximum number of characters of an error message."""


class ForeignFailure(Exception):  # noqa: N818 (names the outcome of a run)
    """Third-party code failed; the message says why, in one line. `cause` is the exception, if there is one."""

    def __init__(self, message: str, cause: BaseException | None = None) -> None:
        super().__init__(message)
        self.cause = cause


class Overdue(ForeignFailure):
    """It exceeded its timeout."""


class Stopped(ForeignFailure):
    """It was stopped by `ForeignTask.stop`."""


@dataclass(eq=False)
class ForeignTask(Generic[T]):
    """Third-party code in a task of its own.

    It may raise anything, including its own CancelledError or SystemExit, or continue after it was cancelled: its
    caller gets a result or `ForeignFailure`, and is cancelled only if the caller itself is cancelled.
    """

    work: Callable[[], Coroutine[Any, Any, T]]
    _task: asyncio.Task[_Outcome[T]] | None = field(default=None, init=False)
    _stopped: bool = field(default=False, init=False)

    async def result(self, timeout_s: float | None = None) -> T:
        """Run it and return its result.

        Raises:
            ForeignFailure: it raised something, which is the `cause`.
            Overdue: it exceeded `timeout_s`.
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
        """Stop it if it is running; return whether it was."""
        if self._task is None or self._task.done():
            return False
        self._stopped = True
        return self._task.cancel()

    async def _end(self) -> None:
        """Cancel it, and abandon it if it does not stop."""
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
    """Return whether an exception must be re-raised: the caller was really cancelled, closed or interrupted."""
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is None or task.cancelling() > 0
    return isinstance(error, GeneratorExit | KeyboardInterrupt)


def describe(error: BaseException) -> str:
    """Return one line of plain text about an exception: mindstream's own errors by their message, others with their
    class."""
    try:
        words = " ".join(str(error).encode("utf-8", "replace").decode().split())
    except Exception:  # noqa: BLE001 (an error's own __str__ is foreign code too)
        words = "(its message cannot be read)"
    if isinstance(error, TimeoutError) and not words:
        return "timed out"
    if not isinstance(error, MindstreamError):
        words = f"{type(error).__name__}: {words}" if words else type(error).__name__
    return words if len(words) <= MAX_MESSAGE else words[: MAX_MESSAGE - 1] + "…"
