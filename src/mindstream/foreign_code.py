"""Run third-party code, such as reasoners and tools: every exception that it raises becomes a ForeignFailure for its
caller."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

from mindstream.errors import MindstreamError, clipped

T = TypeVar("T")

GRACE_S = 1.0
"""Time, in seconds, that cancelled code has to stop before it is abandoned."""
MAX_MESSAGE = 500
"""Maximum number of characters of an error message."""


class ForeignFailure(Exception):  # noqa: N818 (names the outcome of a run)
    """Third-party code failed. The message says why, in one line; `cause` is the exception, if there is one."""

    def __init__(self, message: str, cause: BaseException | None = None) -> None:
        super().__init__(message)
        self.cause = cause


class Overdue(ForeignFailure):
    """The code did not end within its timeout."""


class Stopped(ForeignFailure):
    """The code was stopped by `ForeignTask.stop`."""


@dataclass(eq=False)
class ForeignTask(Generic[T]):
    """Third-party code that runs in a task of its own.

    The code may raise anything, including its own CancelledError or SystemExit, or ignore its cancellation. The caller
    gets a result or a ForeignFailure, and is cancelled only if the caller itself is cancelled.
    """

    work: Callable[[], Coroutine[Any, Any, T]]
    _task: asyncio.Task[None] | None = field(default=None, init=False)
    _outcome: asyncio.Future[_Outcome[T] | None] | None = field(default=None, init=False)
    """A future with the outcome of the code. None instead of an outcome: the code was stopped or cancelled, or its
    timeout is over."""
    _stopped: bool = field(default=False, init=False)

    async def result(self, timeout_s: float | None = None) -> T:
        """Run the code and return its result.

        Raises:
            ForeignFailure: the code raised an exception, or cancelled itself; `cause` is the exception.
            Overdue: the code did not end within `timeout_s`.
            Stopped: `stop` was called.
        """
        loop = asyncio.get_running_loop()
        self._outcome = loop.create_future()
        self._task = loop.create_task(_run(self.work, self._outcome))
        timer = None if timeout_s is None else loop.call_later(timeout_s, _settle, self._outcome)
        try:
            outcome = await self._outcome
        except asyncio.CancelledError:
            await self._end()
            raise
        finally:
            if timer is not None:
                timer.cancel()
        if outcome is None and not self._task.done():
            await self._end()
            raise Overdue(f"no result within {timeout_s:g} seconds")
        if outcome is None:
            raise (
                Stopped("stopped")
                if self._stopped
                else ForeignFailure("the code cancelled itself", asyncio.CancelledError())
            )
        if outcome.error is not None:
            raise ForeignFailure(describe(outcome.error), outcome.error)
        return outcome.value[0]

    def stop(self) -> bool:
        """Stop the code if it is running; return whether it was running."""
        if self._task is None or self._outcome is None or self._task.done():
            return False
        self._stopped = True
        # a task that is cancelled before it begins never enters `_run`, which would settle the outcome
        self._task.add_done_callback(partial(_settle, self._outcome, None))
        return self._task.cancel()

    async def _end(self) -> None:
        """Cancel the code; if it does not end within GRACE_S seconds, abandon it."""
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait({self._task}, timeout=GRACE_S)


@dataclass(slots=True)
class _Outcome(Generic[T]):
    value: tuple[T, ...] = ()
    error: BaseException | None = None


def _settle(ended: asyncio.Future[_Outcome[T] | None], outcome: _Outcome[T] | None = None, _: object = None) -> None:
    if not ended.done():
        ended.set_result(outcome)


async def _run(work: Callable[[], Coroutine[Any, Any, T]], ended: asyncio.Future[_Outcome[T] | None]) -> None:
    outcome = None
    try:
        outcome = _Outcome((await work(),))
    except (asyncio.CancelledError, KeyboardInterrupt):
        raise
    except BaseException as error:  # noqa: BLE001 (the boundary to foreign code; SystemExit would end the event loop)
        outcome = _Outcome(error=error)
    finally:
        _settle(ended, outcome)


def is_ours(error: BaseException) -> bool:
    """Return whether an exception comes from outside the foreign code and must be re-raised: the caller itself was
    cancelled, closed or interrupted."""
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is None or task.cancelling() > 0
    return isinstance(error, GeneratorExit | KeyboardInterrupt)


def describe(error: BaseException) -> str:
    """Return one line of plain text about an exception; the class name is added unless it is a MindstreamError."""
    try:
        words = " ".join(str(error).encode("utf-8", "replace").decode().split())
    except Exception:  # noqa: BLE001 (the __str__ of an error may also be foreign code)
        words = "(its message cannot be read)"
    if isinstance(error, TimeoutError) and not words:
        return "timed out"
    if not isinstance(error, MindstreamError):
        words = f"{type(error).__name__}: {words}" if words else type(error).__name__
    return clipped(words, MAX_MESSAGE)
