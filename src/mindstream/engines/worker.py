"""What a worker does: one task after the other, in an event loop that stays; a task that is to stop is cancelled."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable
from functools import cache
from multiprocessing.connection import Connection
from typing import Any

SAVING_S = 30.0
"""So long a task that is stopped may take to save what it has done."""


class _Task:
    """The task that goes on in this process."""

    def __init__(self) -> None:
        self.idle = threading.Event()
        self.idle.set()
        self.running: tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]] | None = None


@cache
def _loop() -> asyncio.Runner:
    return asyncio.Runner()  # connections live from one task to the next


@cache
def _task() -> _Task:
    return _Task()


def carry_out(do: Callable[..., Awaitable[Any]], given: tuple[Any, ...]) -> Any:
    """Do a task in this process."""
    current = _task()
    current.idle.clear()
    try:
        return _loop().run(_doing(do, given))
    finally:
        current.running = None
        current.idle.set()


async def _doing(do: Callable[..., Awaitable[Any]], given: tuple[Any, ...]) -> Any:
    task = asyncio.current_task()
    assert task is not None
    _task().running = (asyncio.get_running_loop(), task)
    return await do(*given)


def end_with(line: Connection) -> None:
    """End this process when whoever holds the other end of a line lets go of it, or dies."""
    threading.Thread(target=_wait_for, args=(line,), daemon=True).start()


def _wait_for(line: Connection) -> None:
    try:
        line.recv_bytes()
    except (EOFError, OSError):
        current = _task()
        if (running := current.running) is not None:
            loop, task = running
            loop.call_soon_threadsafe(task.cancel)
            current.idle.wait(SAVING_S)
    os._exit(0)
