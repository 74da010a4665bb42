"""Run work that may hang or use too much memory in a child process with limits of time and memory.

Unlike a thread, a process that never returns can be stopped.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from mindstream.errors import ToolError
from mindstream.tools import limited

MAX_CHILDREN = 4
"""Maximum number of children that run at the same time; the others wait."""
_turns = WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore]()


def child_environment() -> dict[str, str]:
    """Return the environment of a child: only variables for programs, modules and language, so that it gets no keys."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "SYSTEMROOT") if name in os.environ}
    return {**kept, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


async def run_child(script: Path, function: str, given: object, *, seconds: int, megabytes: int) -> Any:
    """Call a function of a script in a child process, with `given` as its argument; return its result.

    Args:
        given: the argument. Argument and result are passed as JSON.
        seconds: maximum CPU time in seconds. The whole call may take three times as long.
        megabytes: maximum memory in megabytes.

    Raises:
        ToolError: the function took too long or too much memory, crashed, or raised an error (see `limited`).
    """
    command = (sys.executable, "-P", limited.__file__, str(script), function, str(seconds), str(megabytes))
    async with _turns.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(MAX_CHILDREN)):
        child = await asyncio.create_subprocess_exec(
            *command, env=child_environment(), stdin=PIPE, stdout=PIPE, stderr=DEVNULL
        )
        try:
            async with asyncio.timeout(3 * seconds):  # the machine may be busy; the child's own limit is CPU seconds
                printed, _ = await child.communicate(json.dumps(given).encode())
        except TimeoutError:
            raise ToolError(f"the work takes longer than {3 * seconds} seconds, so it was stopped") from None
        finally:
            if child.returncode is None:
                child.kill()
                await child.wait()
    try:
        found = json.loads(printed)
    except ValueError:
        raise ToolError(
            f"the work takes over {seconds} CPU seconds or {megabytes} MB, or its process crashed"
        ) from None
    if "error" in found:
        raise ToolError(str(found["error"]))
    return found["result"]
