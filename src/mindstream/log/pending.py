"""What a task waits for and a thread works out."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Pending(Generic[T]):
    """Work on a connection, and the future of the task that waits for it. Made in the task's event loop."""

    def __init__(self, work: Callable[[sqlite3.Connection], T]) -> None:
        self.work = work
        self.future: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def settle(self, result: T | None, failure: BaseException | None) -> None:
        """Hand over, from any thread, what came of it. Whoever gave up waiting hears nothing."""
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self.future.get_loop().call_soon_threadsafe(_hand_over, self.future, result, failure)


def _hand_over(future: asyncio.Future[Any], result: object, failure: BaseException | None) -> None:
    if future.done():
        return
    if failure is None:
        future.set_result(result)
    else:
        future.set_exception(failure)
