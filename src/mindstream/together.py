"""Run coroutines concurrently."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

T = TypeVar("T")


async def together(*works: Coroutine[Any, Any, T]) -> list[T]:
    """Run coroutines concurrently and return their results in the order of the arguments.

    If a coroutine fails, cancel the others and raise its error. If several fail, raise the first error, not an
    exception group.
    """
    if len(works) == 1:
        return [await works[0]]
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in works]
    except BaseExceptionGroup as failed:
        error = failed.exceptions[0]
        raise error from error.__cause__
    return [task.result() for task in tasks]


async def cancel_all(*tasks: asyncio.Future[Any]) -> None:
    """Cancel tasks, and wait until all of them have ended. Their results and errors are ignored."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def background(work: Coroutine[Any, Any, object]) -> AsyncIterator[None]:
    """Run a coroutine as a task during the `with` block; at its end, cancel the task and wait until it has ended."""
    task = asyncio.ensure_future(work)
    try:
        yield
    finally:
        await cancel_all(task)
