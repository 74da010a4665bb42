"""The seam: an engine does tasks in other processes. A task is a function of a module, and plain data: it travels."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol, TypeVar

R = TypeVar("R")


class Engine(Protocol):
    """Whoever does tasks elsewhere: `Processes`, `OnRay`."""

    @property
    def workers(self) -> int:
        """Say how many tasks go on at a time."""

    async def run(self, do: Callable[..., Awaitable[R]], *given: object) -> R:
        """Do a task; wait for a free worker where there is none. One whose worker dies is done again by another.

        Raises (what the task raises, too):
            WorkerLost: its workers died again and again.
        """


@contextlib.asynccontextmanager
async def open_engine(ray: bool, workers: int = 0, cpus: float = 1.0) -> AsyncIterator[Engine]:
    """Give Ray, or processes of this machine; what is under way when the block ends is stopped, and saves itself.

    Args:
        workers: so many tasks at a time; 0: as many as there are processors.
        cpus: how much of a processor a task takes, on Ray; little where it waits for somebody else.

    Raises:
        SettingsError: Ray is not installed, or the cluster that RAY_ADDRESS names cannot be had.
    """
    if ray:
        from mindstream.engines.on_ray import OnRay

        async with OnRay(workers, cpus) as found:
            yield found
        return
    from mindstream.engines.processes import Processes

    async with Processes(workers or os.cpu_count() or 1) as processes:
        yield processes
