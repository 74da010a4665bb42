"""Notify a life when files in a folder change. The folder is polled, without model calls."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from mindstream.life import commands
from mindstream.memory.memory import Memory

POLL_S = 1.0
"""Poll interval in seconds; changes are reported once nothing changed for this long, so not while a file is written."""
MAX_FILES, MAX_NAMED = 20_000, 10
"""Maximum number of files that are watched, and of files per kind of change that one notice names."""
Files: TypeAlias = Mapping[str, tuple[int, int]]
"""Each file's modification time and size, by its path within the folder."""


async def watch(stream: Memory, folder: Path, skip: Path | None = None) -> None:
    """Notify a life of new, changed and deleted files, until cancelled.

    Args:
        stream: the memory of the life's user.
        skip: a subfolder that is ignored, such as the one in which the life itself writes.
    """
    reported = before = await asyncio.to_thread(list_files, folder, skip)
    while True:
        await asyncio.sleep(POLL_S)
        now = await asyncio.to_thread(list_files, folder, skip)
        if now == before and now != reported:
            await commands.notice(stream, f"in the folder {folder.name}: {describe(reported, now)}")
            reported = now
        before = now


def list_files(folder: Path, skip: Path | None = None) -> Files:
    """Return the files of a folder and its subfolders, except those whose names begin with a dot."""
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
            except OSError:  # the file was deleted in the meantime
                continue
            if not name.startswith("."):
                found[str((here / name).relative_to(folder))] = (state.st_mtime_ns, state.st_size)
        if len(found) > MAX_FILES:
            break
    return found


def describe(before: Files, now: Files) -> str:
    """Return a description of the new, changed and deleted files."""
    kinds = {
        "new": [name for name in now if name not in before],
        "changed": [name for name in now if name in before and now[name] != before[name]],
        "deleted": [name for name in before if name not in now],
    }
    return "; ".join(f"{kind}: {_names(names)}" for kind, names in kinds.items() if names)


def _names(names: list[str]) -> str:
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return ", ".join(sorted(names)[:MAX_NAMED]) + more
