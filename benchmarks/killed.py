"""Processes that are killed repeatedly, and two tools that append to files: one with idempotency keys, one without."""

from __future__ import annotations

import asyncio
import multiprocessing
import random
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path

from mindstream.tools.tool import FunctionTool, Traits, tool

FORK = multiprocessing.get_context("fork")


def add(file: Path, line: str) -> None:
    """Add a line to a file."""
    with file.open("a") as opened:
        opened.write(f"{line}\n")


def lines_of(file: Path) -> list[str]:
    """Return a file's lines; none if there is no file."""
    return file.read_text().splitlines() if file.exists() else []


def books(folder: Path, pause_s: float) -> tuple[FunctionTool, FunctionTool]:
    """Make the two tools; each takes a short time before and after its effect."""

    async def append(line: str) -> str:
        """Append a line."""
        await asyncio.sleep(pause_s)
        add(folder / "plain", line)
        await asyncio.sleep(pause_s)
        return f"line {line}"

    async def append_once(line: str, key: str = "") -> str:
        """Append a line, once per key."""
        await asyncio.sleep(pause_s)
        if not any(key == each.partition(" ")[0] for each in lines_of(folder / "keyed")):
            add(folder / "keyed", f"{key} {line}")
        await asyncio.sleep(pause_s)
        return f"line {line}"

    return tool(append, Traits(changes=True)), tool(append_once, Traits(changes=True, key="key"))


def kill_again_and_again(
    begin: Callable[[], BaseProcess], done: Path, kills: int, longest_s: float, draw: random.Random,
    counts: Callable[[], bool] = lambda: True,
) -> int:  # fmt: skip
    """Run processes one after the other until a file exists, each killed at a random moment; return their number.

    Args:
        counts: whether a kill counts; asked after each.
    """
    killed = 0
    while not done.exists():
        process = begin()
        process.start()
        process.join(draw.uniform(0.0, longest_s) if killed < kills else 3_600)
        if process.is_alive():
            process.kill()
            process.join()
            killed += counts()
        elif process.exitcode:
            raise RuntimeError("the process failed")
    return killed
