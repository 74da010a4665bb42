"""Processes of this machine, each with a line of its own: one that dies takes nothing with it that others wait for."""

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
"""So long a task that is stopped may take to save what it has done."""
STOP, END = "stop", "end"
"""What a worker is told beside tasks: stop what is under way; and let that be the last."""

Task = tuple[Callable[..., Awaitable[Any]], tuple[Any, ...]]
Answer = tuple[Any, BaseException | None]
Orders = asyncio.Queue[Task | str]


@cache
def _loop() -> asyncio.Runner:
    return asyncio.Runner()  # connections live from one task to the next


def carry_out(do: Callable[..., Awaitable[Any]], given: tuple[Any, ...], folder: str) -> Any:
    """Do a task in this process, in the folder of whoever gives it: paths may be told from there."""
    with suppress(OSError):  # on another machine it need not be there
        os.chdir(folder)
    return _loop().run(_doing(do, given))


async def _doing(do: Callable[..., Awaitable[Any]], given: tuple[Any, ...]) -> Any:
    return await do(*given)


def serve(line: Connection) -> None:
    """Do the tasks that come over a line, until it is let go of: then stop, save, end. Ctrl-C is for the other end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # blocked since it was begun
    _loop().run(_serve(line))
    os._exit(0)  # a thread that a task left does not hold it


async def _serve(line: Connection) -> None:
    orders: Orders = asyncio.Queue()
    threading.Thread(target=_listen, args=(line, orders, asyncio.get_running_loop()), daemon=True).start()
    while (order := await orders.get()) != END:
        if isinstance(order, str):
            continue  # it came as the task ended
        doing, heard = asyncio.ensure_future(_answer(*order)), asyncio.ensure_future(orders.get())
        await asyncio.wait({doing, heard}, return_when=asyncio.FIRST_COMPLETED)
        if not heard.done():
            heard.cancel()
        elif not doing.done():
            doing.cancel()
        with suppress(OSError):
            line.send_bytes(await doing)
        if heard.done() and not heard.cancelled() and heard.result() == END:
            return


def _listen(line: Connection, orders: Orders, loop: asyncio.AbstractEventLoop) -> None:
    """Pass on what comes; at the end, and where nobody is there any more, end, whatever the task does."""
    with suppress(EOFError, OSError):
        while (order := line.recv()) != END:
            loop.call_soon_threadsafe(orders.put_nowait, order)
    loop.call_soon_threadsafe(orders.put_nowait, END)
    threading.Event().wait(SAVING_S)
    os._exit(0)


async def _answer(do: Callable[..., Awaitable[Any]], given: tuple[Any, ...]) -> bytes:
    """Do a task; return what comes of it, as it travels."""
    try:
        return pickle.dumps((await do(*given), None))
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 (it is raised where the task was given)
        error.add_note(f"in a worker: {traceback.format_exc()}")
        return _travelling(error)


def _travelling(error: BaseException) -> bytes:
    with suppress(Exception):
        pickle.loads(found := pickle.dumps((None, error)))
        return found
    return pickle.dumps((None, RuntimeError(f"{type(error).__name__}: {error}")))


R = TypeVar("R")
TRIES = 4
"""So often a task is begun whose worker dies."""


class Processes:
    """So many processes, each begun when it is needed; they save and end when this is left, and when this process dies.

    Not `concurrent.futures`: when one of its processes dies it ends all others, and one that is begun while its watcher
    looks elsewhere dies unnoticed (Python 3.11: the wake-up is taken before the process is in the list).
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._turn = asyncio.Semaphore(workers)
        self._all, self._idle = set[_Worker](), list[_Worker]()

    async def __aenter__(self) -> Processes:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*(each.end() for each in self._all))

    async def run(self, do: Callable[..., Awaitable[R]], *given: object) -> R:
        async with self._turn:
            for _ in range(TRIES):
                worker = self._idle.pop() if self._idle else self._begin()
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
        raise WorkerLost(f"{TRIES} processes died, one after the other, at the same task")

    def _begin(self) -> _Worker:
        worker = _Worker()
        self._all.add(worker)
        return worker


class _GoneError(Exception):
    """A worker is no more."""


class _Worker:
    """A process, and the line to it: a task goes there, its answer comes back; it breaks when the process dies."""

    def __init__(self) -> None:
        spawning = multiprocessing.get_context("spawn")
        self._line, there = spawning.Pipe()
        self._process = spawning.Process(target=serve, args=(there,), daemon=True)
        resource_tracker.ensure_running()  # else the first process would begin it, which lets all signals through
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # Ctrl-C is not for one that only begins
        try:
            self._process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        there.close()  # else the line would not break
        self._thread = ThreadPoolExecutor(1)
        self._sent = asyncio.Event()
        self._sent.set()
        self.is_free = True

    async def ask(self, task: Task) -> Answer:
        """Have a task done; where this is cancelled the task is stopped, and has saved when this ends.

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
        except Exception:  # what cannot travel; the line is whole
            self.is_free = True
            raise
        self.is_free = True
        return found

    async def _stop(self, asked: asyncio.Future[Answer]) -> None:
        await self._tell(STOP)
        await asyncio.wait({asked}, timeout=SAVING_S)
        if not asked.done():
            self._process.kill()
        await asyncio.gather(asked, return_exceptions=True)

    async def _tell(self, word: str) -> None:
        await self._sent.wait()
        with suppress(OSError):
            self._line.send(word)

    async def end(self) -> None:
        """Have the process save and end."""
        await self._tell(END)
        await asyncio.to_thread(self._process.join, SAVING_S)
        self._process.kill()
        await asyncio.to_thread(self._thread.shutdown)
        self._line.close()
