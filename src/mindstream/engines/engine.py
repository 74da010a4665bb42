"""The protocol `Engine`, which runs tasks (module-level functions with picklable arguments) in other processes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol, TypeVar

R = TypeVar("R")


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
        from mindstream.engines.on_ray import OnRay

        async with OnRay(workers, cpus) as found:
            yield found
        return
    from mindstream.engines.processes import Processes

    async with Processes(workers or os.cpu_count() or 1) as processes:
        yield processes
