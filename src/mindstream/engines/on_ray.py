"""An engine of Ray workers, on this machine or on the cluster in RAY_ADDRESS (docs/ray.md)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from mindstream.engines.processes import MAX_ATTEMPTS, carry_out
from mindstream.errors import SettingsError, WorkerLost

R = TypeVar("R")
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
                where = os.environ.get(ADDRESS, "started here")
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
            if (
                port.isdigit()
            ):  # not a keyword such as `auto`: try to connect first, because Ray would retry for minutes
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
    """Let Ray start without its unused parts, which saves a fifth of its start time, and a second at its end.

    `ray start` has an option for this, but `ray.init` has none. If a version of Ray has other names for these parts,
    they are started.
    """
    removed = {name: method for name, method in vars(node).items() if name in UNUSED}
    for name in removed:
        setattr(node, name, lambda _: None)
    try:
        yield
    finally:
        for name, method in removed.items():
            setattr(node, name, method)
