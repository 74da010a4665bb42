"""Ray's workers, on this machine or on the cluster that RAY_ADDRESS names (docs/ray.md)."""

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

from mindstream.engines.processes import carry_out
from mindstream.errors import SettingsError, WorkerLost

R = TypeVar("R")
TRIES = 4
"""So often a task is begun whose worker dies."""
STORE = 100 << 20
"""Bytes that Ray keeps for results on this machine: ours are small."""
REACH_S = 10.0
"""So long a cluster may take to accept a connection."""
ADDRESS = "RAY_ADDRESS"
"""Ray's own variable: the cluster that is meant; without it one is begun here, and ended with this process."""

TOKEN = "RAY_AUTH_MODE=token"
"""How Ray is told to show its token to a cluster that is named."""
SKIPPED = "RAY_DEDUP_LOGS_SKIP_REGEX"
"""What Ray does not print of what it hears: else that a worker died stands among our results."""
NICENESS = "RAY_worker_niceness"
UNUSED = ("start_monitor", "start_log_monitor")
"""What Ray begins and a machine alone does not use: who scales a cluster, and who passes on what workers print."""


class OnRay:
    """Tasks on Ray; one whose worker dies is begun again by Ray itself.

    Args:
        workers: so many tasks at a time; 0: as the cluster has processors.
        cpus: how much of a processor each takes.
    """

    def __init__(self, workers: int = 0, cpus: float = 1.0) -> None:
        self.workers, self._cpus = workers, cpus

    async def __aenter__(self) -> OnRay:
        os.environ.setdefault(SKIPPED, ".")  # read as Ray is imported
        try:
            import ray
        except ImportError:
            raise SettingsError("Ray is not installed: pip install 'mindstream[ray]'; or leave --ray away") from None
        self._ray: Any = ray
        logging.getLogger("ray").setLevel(logging.ERROR)
        self._is_own = not ray.is_initialized()
        if self._is_own:
            try:
                await asyncio.to_thread(self._begin)
            except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
                raise SettingsError(f"Ray cannot be had ({os.environ.get(ADDRESS, 'begun here')}): {error}") from None
            _heed_again()
        self.workers = self.workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._turn = asyncio.Semaphore(self.workers)
        self._task = ray.remote(carry_out).options(num_cpus=self._cpus, max_retries=TRIES - 1)
        return self

    def _begin(self) -> None:
        quiet: dict[str, Any] = {"log_to_driver": False, "configure_logging": False, "logging_level": logging.ERROR}
        if address := os.environ.get(ADDRESS):
            _require_somebody(address)
            try:
                self._ray.init(**quiet)
            except ConnectionError as error:
                raise OSError(f"{error}; if it wants a token, set {TOKEN}") from None
            return
        os.environ.setdefault(NICENESS, "0")  # else all others of the machine go first
        processors = max(1, round(self.workers * self._cpus)) if self.workers else None
        own: dict[str, Any] = {"address": "local", "num_cpus": processors, "object_store_memory": STORE}
        with _sparing(self._ray._private.node.Node):
            self._ray.init(include_dashboard=False, **own, **quiet)

    async def __aexit__(self, *_: object) -> None:
        if self._is_own:
            await asyncio.to_thread(self._ray.shutdown)

    async def run(self, do: Callable[..., Awaitable[R]], *given: object) -> R:
        async with self._turn:
            doing = self._task.remote(do, given, str(Path.cwd()))
            try:
                found: R = await doing
            except asyncio.CancelledError:
                await asyncio.shield(self._stop(doing))
                raise
            except self._ray.exceptions.RayTaskError as error:
                raise error.cause from None
            except self._ray.exceptions.WorkerCrashedError as error:
                raise WorkerLost(f"{TRIES} workers died, one after the other, at the same task: {error}") from None
            return found

    async def _stop(self, doing: Any) -> None:
        """Have a task stop, and wait until it has saved what it has done."""
        self._ray.cancel(doing)
        with contextlib.suppress(self._ray.exceptions.RayError):
            await doing


def _require_somebody(address: str) -> None:
    """Refuse an address where nobody listens: Ray tries it for minutes.

    Raises:
        OSError: nobody is there.
    """
    host, _, port = address.rpartition("//")[2].rpartition(":")
    if port.isdigit():  # else it is one of Ray's words, as auto
        socket.create_connection((host.strip("[]"), int(port)), REACH_S).close()


def _heed_again() -> None:
    """Have SIGTERM go where it went: Ray would write its stack first."""
    with contextlib.suppress(ValueError, TypeError):  # not the main thread, or nobody's
        signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGTERM))


@contextlib.contextmanager
def _sparing(node: type) -> Iterator[None]:
    """Have Ray begin without what is not used: a fifth of its beginning, and a second at its end.

    `ray start` can leave it away, `ray.init` cannot. Where Ray calls it by other names, it is begun.
    """
    left = {name: method for name, method in vars(node).items() if name in UNUSED}
    for name in left:
        setattr(node, name, lambda _: None)
    try:
        yield
    finally:
        for name, method in left.items():
            setattr(node, name, method)
