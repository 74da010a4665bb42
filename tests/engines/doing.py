"""Tasks for engine tests; each is found by its module, in any process."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from mindstream.engines import Engine, open_engine
from mindstream.errors import RateLimited

needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed (mindstream[ray])")
ENGINES = pytest.mark.parametrize("ray", [False, pytest.param(True, marks=needs_ray)], ids=["processes", "ray"])


def begin_ray() -> None:
    """Start Ray in this process unless it is running."""
    import ray

    if not ray.is_initialized():
        found = {"PYTHONPATH": os.pathsep.join(each for each in sys.path if each)}
        quiet: dict[str, Any] = {"log_to_driver": False, "configure_logging": False, "include_dashboard": False}
        ray.init(num_cpus=2, object_store_memory=100 << 20, runtime_env={"env_vars": found}, **quiet)


@asynccontextmanager
async def opened(ray: bool, workers: int = 2) -> AsyncIterator[Engine]:
    """Open an engine; Ray is started once per process, with workers that can import the test modules."""
    if ray:
        begin_ray()
    async with open_engine(ray, workers) as engine:
        yield engine


async def where() -> int:
    return os.getpid()


async def whereabouts() -> str:
    return str(Path.cwd())


async def meet(folder: Path, name: str, other: str) -> str:
    """Wait for another task that runs at the same time."""
    with (folder / name).open("a") as file:
        file.write("begun\n")
    await asyncio.to_thread(wait_for, folder / other)
    return name


def wait_for(path: Path) -> None:
    """Wait until a file exists."""
    while not path.exists():
        time.sleep(0.01)


async def refuse() -> None:
    raise RateLimited("wait a little", 7.5)


async def die_once(mark: Path) -> int:
    """Die by SIGKILL the first time."""
    if await asyncio.to_thread(_is_first, mark):
        os.kill(os.getpid(), signal.SIGKILL)
    return os.getpid()


def _is_first(mark: Path) -> bool:
    first = not mark.exists()
    mark.touch()
    return first


async def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def leave() -> None:
    sys.exit(3)


async def work_until_stopped(folder: Path) -> None:
    """Run until cancelled, and record the cancellation."""
    (folder / "begun").write_text(str(os.getpid()))
    try:
        await asyncio.sleep(3600)
    finally:
        (folder / "saved").touch()


async def bring(unable: bool) -> object:
    """Return a result that cannot be transferred, or raise an error that cannot be rebuilt from its text."""
    if unable:
        raise UnableError("one", "two")
    return asyncio.get_running_loop()


class UnableError(Exception):
    def __init__(self, one: str, two: str) -> None:
        super().__init__(one + two)
