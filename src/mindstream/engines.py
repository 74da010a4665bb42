"""Engines, which run tasks (module-level functions with picklable arguments) in other processes.

The processes are on this machine, each with its own connection, so that its death affects only its own task; or they
are Ray workers, on this machine or on the cluster in RAY_ADDRESS (docs/ray.md).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import pickle
import signal
import socket
import threading
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from mindstream.errors import SettingsError, WorkerLost

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

__path__: list[str] = []  # so that moved.py can redirect imports of former submodules

SAVING_S = 30.0
"""Time for a stopped task to save its work, in seconds."""
MAX_ATTEMPTS = 4
"""Maximum number of attempts to run a task, if each time its worker process dies."""
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
    """Run the tasks that arrive on a connection. When the connection is closed, stop the running task, let it save, and
    exit.

    The parent process handles Ctrl-C.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # blocked by the parent at the start
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
    """Forward orders to the event loop, until the order END comes or the parent exits.

    Then end this process after SAVING_S seconds, even if a task is still running.
    """
    with suppress(EOFError, OSError):
        while (order := line.recv()) != END:
            loop.call_soon_threadsafe(orders.put_nowait, order)
    loop.call_soon_threadsafe(orders.put_nowait, END)
    threading.Event().wait(SAVING_S)
    os._exit(0)


async def _answer(do: Callable[..., Awaitable[Any]], given: tuple[Any, ...]) -> bytes:
    """Run a task. Return the pickled pair of result and error; one of the two is None. An error that cannot be pickled
    becomes a RuntimeError with the message of the error."""
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

    At the end, or when this process dies, the workers let their tasks save their work, and exit.

    `concurrent.futures` is not used: it ends all worker processes if one dies. It also misses the death of a worker
    that was started while its watcher was busy (Python 3.11: the wake-up is consumed before the worker is in the list).
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
        from multiprocessing import get_context, resource_tracker  # most processes start no worker

        spawning = get_context("spawn")
        self._line, there = spawning.Pipe()
        self._process = spawning.Process(target=serve, args=(there,), daemon=True)
        resource_tracker.ensure_running()  # else `start` would start it below and thereby unblock SIGINT
        # the new process inherits the blocked signal, so that Ctrl-C does not end it while it starts
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
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
        """Run a task. If the caller is cancelled, stop the task and wait until the task has saved its work.

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
        except Exception:
            # the task could not be pickled, or the answer could not be unpickled; the connection is intact
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
        """Let the process save and exit; after SAVING_S seconds, kill it."""
        await self._order(END)
        await asyncio.to_thread(self._process.join, SAVING_S)
        self._process.kill()
        await asyncio.to_thread(self._thread.shutdown)
        self._line.close()


STORE_BYTES = 100 << 20
"""Size in bytes of Ray's object store on this machine; results are small."""
CONNECT_S = 10.0
"""Timeout for connecting to a cluster, in seconds."""
ADDRESS = "RAY_ADDRESS"
"""Ray's own variable for a cluster's address; without it Ray is started here, and stopped with this process."""

TOKEN = "RAY_AUTH_MODE=token"
"""Ray's setting for sending its token to a cluster."""
SKIPPED = "RAY_DEDUP_LOGS_SKIP_REGEX"
"""Ray's variable for log lines that it does not print. Without it, reports of dead workers would mix with the
output."""
NICENESS = "RAY_worker_niceness"
UNUSED = ("start_monitor", "start_log_monitor")
"""Methods that start parts of Ray that a single machine does not need: the autoscaler, and the forwarding of workers'
output."""


class OnRay:
    """Runs tasks on Ray, which restarts a task whose worker dies.

    Args:
        workers: number of parallel tasks; 0: the number of the cluster's processors.
        cpus: processors per task.
    """

    def __init__(self, workers: int = 0, cpus: float = 1.0) -> None:
        self.workers, self._cpus = workers, cpus

    async def __aenter__(self) -> OnRay:
        os.environ.setdefault(SKIPPED, ".")  # read when Ray is imported
        try:
            import ray
        except ImportError:
            raise SettingsError("Ray is not installed: pip install 'mindstream[ray]', or omit --ray") from None
        self._ray: Any = ray
        logging.getLogger("ray").setLevel(logging.ERROR)
        self._is_own = not ray.is_initialized()
        if self._is_own:
            try:
                await asyncio.to_thread(self._begin)
            except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
                where = os.environ.get(ADDRESS, "on this machine")
                raise SettingsError(f"Ray is not available ({where}): {error}") from None
            with contextlib.suppress(ValueError, TypeError):  # not the main thread, or no Python handler
                # install Python's handler of SIGTERM again: Ray's handler would print a stack trace first
                signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGTERM))
        self.workers = self.workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._turn = asyncio.Semaphore(self.workers)
        self._task = ray.remote(carry_out).options(num_cpus=self._cpus, max_retries=MAX_ATTEMPTS - 1)
        return self

    def _begin(self) -> None:
        quiet: dict[str, Any] = {"log_to_driver": False, "configure_logging": False, "logging_level": logging.ERROR}
        if address := os.environ.get(ADDRESS):
            host, _, port = address.rpartition("//")[2].rpartition(":")
            if port.isdigit():  # an address, not a keyword such as `auto`
                # try to connect first, because Ray would retry for minutes
                socket.create_connection((host.strip("[]"), int(port)), CONNECT_S).close()
            try:
                self._ray.init(**quiet)
            except ConnectionError as error:
                raise OSError(f"{error}; if the cluster needs a token, set {TOKEN}") from None
            return
        os.environ.setdefault(NICENESS, "0")  # by default, Ray's workers get a low priority
        processors = max(1, round(self.workers * self._cpus)) if self.workers else None
        own: dict[str, Any] = {"address": "local", "num_cpus": processors, "object_store_memory": STORE_BYTES}
        with _without_monitors(self._ray._private.node.Node):
            self._ray.init(include_dashboard=False, **own, **quiet)

    async def __aexit__(self, *_: object) -> None:
        if self._is_own:
            await asyncio.to_thread(self._ray.shutdown)

    async def run(self, do: Callable[..., Awaitable[R]], *given: object) -> R:
        async with self._turn:
            task = self._task.remote(do, given, str(Path.cwd()))
            try:
                found: R = await task
            except asyncio.CancelledError:
                await asyncio.shield(self._stop(task))
                raise
            except self._ray.exceptions.RayTaskError as error:
                raise error.cause from None
            except self._ray.exceptions.WorkerCrashedError as error:
                raise WorkerLost(f"{MAX_ATTEMPTS} workers died in succession while running a task: {error}") from None
            return found

    async def _stop(self, task: Any) -> None:
        """Stop a task, and wait until it has saved its work."""
        self._ray.cancel(task)
        with contextlib.suppress(self._ray.exceptions.RayError):
            await task


@contextlib.contextmanager
def _without_monitors(node: type) -> Iterator[None]:
    """Let Ray start without the parts that are not used here (UNUSED).

    This saves a fifth of Ray's start time, and a second at its end. `ray start` has an option for this, but `ray.init`
    has none. If a version of Ray has other names for the parts, they are started.
    """
    removed = {name: method for name, method in vars(node).items() if name in UNUSED}
    for name in removed:
        setattr(node, name, lambda _: None)
    try:
        yield
    finally:
        for name, method in removed.items():
            setattr(node, name, method)


class Engine(Protocol):
    """Runs tasks in other processes; implemented by `Processes` and `OnRay`."""

    @property
    def workers(self) -> int:
        """The number of tasks that run in parallel."""

    async def run(self, do: Callable[..., Awaitable[R]], *given: object) -> R:
        """Run a task as soon as a worker is free. If the worker dies, another worker runs the task again.

        Raises (in addition to the task's errors):
            WorkerLost: several workers died in succession.
        """


@contextlib.asynccontextmanager
async def open_engine(ray: bool, workers: int = 0, cpus: float = 1.0) -> AsyncIterator[Engine]:
    """Open an engine of Ray workers, or of processes on this machine. At the end of the block, running tasks are
    stopped and save their work.

    Args:
        workers: number of parallel tasks; 0: the number of processors.
        cpus: processors per task, on Ray; a fraction for tasks that mostly wait.

    Raises:
        SettingsError: Ray is not installed, or the cluster in RAY_ADDRESS is unavailable.
    """
    if ray:
        async with OnRay(workers, cpus) as found:
            yield found
        return

    async with Processes(workers or os.cpu_count() or 1) as processes:
        yield processes
