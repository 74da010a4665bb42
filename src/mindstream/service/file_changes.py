"""What changes in a folder wakes a life: files are looked at now and then; no model is asked for that."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from mindstream.life import commands
from mindstream.memory.memory import Memory

LOOK_S = 1.0
"""How often the folder is looked at; a file that still grows is told of when it has stood still for so long."""
MOST, NAMED = 20_000, 10
"""So many files are looked at; so many are named in one piece of news."""
Files: TypeAlias = Mapping[str, tuple[int, int]]
"""Each file's time of change and size, by its path within the folder."""


async def watch(stream: Memory, folder: Path, skip: Path | None = None) -> None:
    """Tell a life of files that come, change and go, until cancelled.

    Args:
        skip: a folder in it that is left out: where the life itself writes.
    """
    told = before = await asyncio.to_thread(list_files, folder, skip)
    while True:
        await asyncio.sleep(LOOK_S)
        now = await asyncio.to_thread(list_files, folder, skip)
        if now == before and now != told:
            await commands.notice(stream, f"in the folder {folder.name}: {describe(told, now)}")
            told = now
        before = now


def list_files(folder: Path, skip: Path | None = None) -> Files:
    """Return the files of a folder and of those in it; names that begin with a dot are left out."""
    found: dict[str, tuple[int, int]] = {}
    left_out = skip.resolve() if skip else None
    for place, folders, names in os.walk(folder):
        here = Path(place)
        folders[:] = [each for each in folders if not each.startswith(".") and (here / each).resolve() != left_out]
        if here.resolve() == left_out:
            continue
        for name in names:
            try:
                state = (here / name).stat()
            except OSError:  # it went away meanwhile
                continue
            if not name.startswith("."):
                found[str((here / name).relative_to(folder))] = (state.st_mtime_ns, state.st_size)
        if len(found) > MOST:
            break
    return found


def describe(before: Files, now: Files) -> str:
    """Say what came, changed and went."""
    kinds = {
        "new": [name for name in now if name not in before],
        "changed": [name for name in now if name in before and now[name] != before[name]],
        "gone": [name for name in before if name not in now],
    }
    return "; ".join(f"{kind}: {_names(names)}" for kind, names in kinds.items() if names)


def _names(names: list[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(sorted(names)[:NAMED]) + more
