"""Work that cannot be bounded from inside, in a process of its own that ends after so many seconds and megabytes.

A thread that never comes back cannot be stopped; a process can.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from mindstream.errors import ToolError
from mindstream.tools import limited

MOST = 4
"""So many children work at once; the next ones wait for their turn."""
_KEPT = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT")
_turns = WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore]()


def child_environment() -> dict[str, str]:
    """Return what a child sees of our environment: how to find its modules, and no keys."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return {**kept, "PYTHONPATH": os.pathsep.join(each for each in sys.path if each)}


async def run_child(script: Path, given: object, *, seconds: int, megabytes: int) -> Any:
    """Run a script with JSON on its standard input and return the JSON that it prints; it knows no keys.

    Raises:
        ToolError: it took too long or too much memory, ended badly, or says itself what was wrong.
    """
    async with _turns.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(MOST)):
        return await _run(script, given, seconds, megabytes)


async def _run(script: Path, given: object, seconds: int, megabytes: int) -> Any:
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        limited.__file__,
        str(script),
        str(seconds),
        str(megabytes),
        env=child_environment(),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(3 * seconds):  # a machine may be busy; the limit of its own is in CPU seconds
            printed, _ = await child.communicate(json.dumps(given).encode())
    except TimeoutError:
        raise ToolError(f"that takes longer than {seconds} seconds") from None
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    try:
        found = json.loads(printed)
    except ValueError:
        raise ToolError(f"that takes longer than {seconds} seconds, or over {megabytes} MB") from None
    if "error" in found:
        raise ToolError(str(found["error"]))
    return found
