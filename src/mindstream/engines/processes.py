"""An engine of worker processes on this machine. Each worker has its own connection, so its death affects only its own
task."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import pickle
import signal
import threading
import traceback
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from mindstream.errors import WorkerLost

SAVING_S = 30.0
"""Time for a stopped task to save its work, in seconds."""
MAX_ATTEMPTS = 4
"""Maximum number of attempts for a task whose worker dies."""
STOP, END = "stop", "end"
"""Orders to a worker, in addition to tasks. STOP: stop the running task. END: stop the running task and exit."""

R = TypeVar("R")
Task = tuple[Callable[..., Awaitable[Any]], tuple[Any, ...]]
Answer = tuple[Any, BaseException | None]
Orders = asyncio.Queue[Task | str]


@cache
def _runner() -> asyncio.Runner:
    return asyncio.Runner()  # one event loop for all tasks, so that connections stay open from one task to the next


def carry_out(do: Callable[..., Awaitable[Any]], given: tuple[Any, ...], folder: str) -> Any:
    """Run a task in this process, in the caller's working directory, because the task may use relative paths."""
    with suppress(OSError):  # the directory may not exist on another machine
        os.chdir(folder)

    async def run() -> Any:
        return await do(*given)

    return _runner().run(run())


def serve(line: Connection) -> None:
    """Run the tasks that arrive on a connection; when it is closed, stop the running task, let it save, and exit.

    The parent process handles Ctrl-C.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # the parent started this process with it blocked
    _runner().run(_serve(line))
    os._exit(0)  # do not wait for threads that a task has left running


async def _serve(line: Connection) -> None:
    orders: Orders = asyncio.Queue()
    threading.Thread(target=_listen, args=(line, orders, asyncio.get_running_loop()), daemon=True).start()
    while (order := await orders.get()) != END:
        if isinstance(order, str):
            continue  # an order to stop arrived after the task had ended
        task, next_order = asyncio.ensure_future(_answer(*order)), asyncio.ensure_future(orders.get())
        await asyncio.wait({task, next_order}, return_when=asyncio.FIRST_COMPLETED)
        if not next_order.done():
            next_order.cancel()
        elif not task.done():
            task.cancel()
        with suppress(OSError):
            line.send_bytes(await task)
        if next_order.done() and not next_order.cancelled() and next_order.result() == END:
            return


def _listen(line: Connection, orders: Orders, loop: asyncio.AbstractEventLoop) -> None:
    """Forward orders to the event loop. After the order END, or when the parent has exited, end this process within
    SAVING_S seconds, even if a task is still running."""
    with suppress(EOFError, OSError):
        while (order := line.recv()) != END:
            loop.call_soon_threadsafe(orders.put_nowait, order)
    loop.call_soon_threadsafe(orders.put_nowait, END)
    threading.Event().wait(SAVING_S)
    os._exit(0)


async def _answer(do: Callable[..., Awaitable[Any]], given: tuple[Any, ...]) -> bytes:
    """Run a task; return its pickled result and error."""
    try:
        return pickle.dumps((await do(*given), None))
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 (it is raised in the caller)
        error.add_note(f"in a worker: {traceback.format_exc()}")
        with suppress(Exception):
            pickle.loads(found := pickle.dumps((None, error)))
            return found
        return pickle.dumps((None, RuntimeError(f"{type(error).__name__}: {error}")))


class Processes:
    """Runs tasks in worker processes, each started when needed.

    At the end, or when this process dies, the workers let their tasks save their work, and exit. `concurrent.futures`
    is not used: it ends all processes if one dies. It also does not notice the death of a process that was started
    while its watcher was busy (Python 3.11: the wake-up is consumed before the process is in the list).
    """

    def __init__(self, workers: int) -> None:
        self.workers, self._turn = workers, asyncio.Semaphore(workers)
        self._all, self._idle = set[_Worker](), list[_Worker]()

    async def __aenter__(self) -> Processes:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*(each.end() for each in self._all))

    async def run(self, do: Callable[..., Awaitable[R]], *given: object) -> R:
        async with self._turn:
            for _ in range(MAX_ATTEMPTS):
                worker = self._idle.pop() if self._idle else _Worker()
                self._all.add(worker)
                try:
                    found, error = await worker.ask((do, given))
                except _GoneError:
                    self._all.remove(worker)
                    continue
                finally:
                    if worker.is_free:
                        self._idle.append(worker)
                if error is not None:
                    raise error
                answer: R = found
                return answer
        raise WorkerLost(f"{MAX_ATTEMPTS} processes died in succession while running a task")


class _GoneError(Exception):
    """A worker has died."""


class _Worker:
    """A worker process and the connection for its tasks and answers; the connection breaks if the process dies."""

    def __init__(self) -> None:
        spawning = multiprocessing.get_context("spawn")
        self._line, there = spawning.Pipe()
        self._process = spawning.Process(target=serve, args=(there,), daemon=True)
        resource_tracker.ensure_running()  # otherwise the first process would start it, which unblocks SIGINT
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # a starting process ignores Ctrl-C
        try:
            self._process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        there.close()  # otherwise the connection would not break when the process dies
        self._thread = ThreadPoolExecutor(1)
        self._sent = asyncio.Event()
        self._sent.set()
        self.is_free = True

    async def ask(self, task: Task) -> Answer:
        """Run a task; if the caller is cancelled, stop the task, and wait until it has saved its work.

        Raises:
            _GoneError: the process has died.
        """
        self.is_free = False
        self._sent.clear()
        asked = asyncio.ensure_future(self._ask(task))
        try:
            return await asyncio.shield(asked)
        except asyncio.CancelledError:
            await asyncio.shield(self._stop(asked))
            raise

    async def _ask(self, task: Task) -> Answer:
        loop = asyncio.get_running_loop()
        try:
            try:
                await loop.run_in_executor(self._thread, self._line.send, task)
            finally:
                self._sent.set()
            found: Answer = await loop.run_in_executor(self._thread, self._line.recv)
        except (EOFError, OSError):
            await self.end()
            raise _GoneError from None
        except Exception:  # the task cannot be pickled; the connection is intact
            self.is_free = True
            raise
        self.is_free = True
        return found

    async def _stop(self, asked: asyncio.Future[Answer]) -> None:
        await self._order(STOP)
        await asyncio.wait({asked}, timeout=SAVING_S)
        if not asked.done():
            self._process.kill()
        await asyncio.gather(asked, return_exceptions=True)

    async def _order(self, order: str) -> None:
        await self._sent.wait()
        with suppress(OSError):
            self._line.send(order)

    async def end(self) -> None:
        """Let the process save and exit."""
        await self._order(END)
        await asyncio.to_thread(self._process.join, SAVING_S)
        self._process.kill()
        await asyncio.to_thread(self._thread.shutdown)
        self._line.close()
