"""A plain function beside the event loop: in a thread of its own, which nobody waits for when it does not come back."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from mindstream.errors import ToolError

T = TypeVar("T")

MOST = 64
"""So many functions may run at once, those that were given up and still go on included."""

_free = threading.Semaphore(MOST)


async def run_in_thread(function: Callable[[], T]) -> T:
    """Return what the function returns; whoever stops waiting leaves it behind, for a thread cannot be stopped.

    The thread does not hold up the end of the process.

    Raises:
        ToolError: too many are going on already.
    """
    if not _free.acquire(blocking=False):
        raise ToolError(f"{MOST} functions are running and have not come back; this one is not begun")
    done: Future[tuple[T, None] | tuple[None, BaseException]] = Future()
    context = contextvars.copy_context()

    def work() -> None:
        came: tuple[T, None] | tuple[None, BaseException]
        try:
            came = context.run(function), None
        except BaseException as error:  # noqa: BLE001 (what a function raises, SystemExit too, belongs to its caller)
            came = None, error
        _free.release()
        with contextlib.suppress(RuntimeError):  # the loop of whoever waited may be gone by now
            done.set_result(came)

    done.set_running_or_notify_cancel()
    try:
        threading.Thread(target=work, name=getattr(function, "__name__", "tool"), daemon=True).start()
    except RuntimeError as full:  # the machine has no room for one more
        _free.release()
        raise ToolError(f"no thread can be started: {full}") from None
    result, error = await asyncio.wrap_future(done)
    if error is not None:
        raise error
    return result  # type: ignore[return-value]
