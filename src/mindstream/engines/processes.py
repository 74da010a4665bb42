"""Processes of this machine: a pool that is made anew when one of them dies."""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
from collections.abc import Awaitable, Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import Connection
from typing import TypeVar

from mindstream.engines.worker import carry_out, end_with
from mindstream.errors import WorkerLost

R = TypeVar("R")
TRIES = 4
"""So often a task is begun whose worker dies."""


class Processes:
    """So many processes; they save and end when this is left, and when this process dies."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._turn = asyncio.Semaphore(workers)

    async def __aenter__(self) -> Processes:
        self._spawning = multiprocessing.get_context("spawn")
        self._end, self._held = self._spawning.Pipe(duplex=False)
        self._pool = self._open()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._held.close()
        await asyncio.to_thread(self._pool.shutdown, cancel_futures=True)
        self._end.close()

    def _open(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            self.workers, mp_context=self._spawning, initializer=begin_worker, initargs=(self._end,)
        )

    async def run(self, do: Callable[..., Awaitable[R]], *given: object) -> R:
        async with self._turn:
            for _ in range(TRIES):
                pool = self._pool
                try:
                    return await asyncio.wrap_future(pool.submit(carry_out, do, given))
                except BrokenProcessPool:  # all tasks of this pool are told so: the first of them opens another
                    if self._pool is pool:
                        self._pool = self._open()
                        await asyncio.to_thread(pool.shutdown)
        raise WorkerLost(f"{TRIES} processes died, one after the other, at the same task")


def begin_worker(line: Connection) -> None:
    """Begin a worker: Ctrl-C is for the process that it works for."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with(line)
