"""Functions with which a child process limits its own CPU time and memory, and ends the processes that it has started.

Run as a script, `limited.py SCRIPT FUNCTION SECONDS MEGABYTES` sets these limits, calls a function of another script
with the JSON from standard input, and prints the function's result or error as JSON. This module imports only the
standard library.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


def limit(seconds: int, megabytes: int) -> None:
    """Limit the CPU time (in seconds) and memory (in megabytes) of this process, and of each process that it starts
    later, if the system supports this."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (megabytes * 1_000_000,) * 2)
    allow_seconds(seconds)


def allow_seconds(seconds: int) -> None:
    """Let this process use about this number of CPU seconds from now on; the system then ends it. Where the system has
    no such limit, such as on Windows, do nothing."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        used = resource.getrusage(resource.RUSAGE_SELF)
        most = resource.getrlimit(resource.RLIMIT_CPU)[1]
        resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + seconds + 1, most))


def go_on_in_child() -> None:
    """Fork, and return in the child; on a system without fork, just return.

    The parent waits for the child, kills all processes that the child left running, and exits with the child's exit
    code. If a signal ended the child, the exit code is 128 plus the number of the signal.

    Only on Linux does the parent find the processes that the child left running: there the parent adopts orphaned
    descendants, also descendants in other sessions. On Linux the parent also ends when its own parent ends.
    """
    if not hasattr(os, "fork"):
        return
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    child = os.fork()
    if not child:
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        return
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGKILL))
    for pipe in range(3):  # so that the reader of the child's output sees its end
        os.close(pipe)
    done = status = 0
    while done != child:
        done, status = os.wait()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with suppress(ChildProcessError):
        while True:  # the children of a killed child become ours
            _kill_children()
            os.wait()
    os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))


def _kill_children() -> None:
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError):
            if int(entry.read_bytes().rpartition(b")")[2].split()[1]) == os.getpid():
                os.kill(int(entry.parent.name), signal.SIGKILL)


def _prctl(option: int, value: int) -> None:
    import ctypes

    with suppress(OSError, AttributeError):  # not Linux
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _call(script: str, function: str) -> dict[str, Any]:
    """Return the result of a function, or its error; a `SystemExit` carries a message for the caller."""
    try:
        called: Callable[[Any], Any] = runpy.run_path(script, run_name="script")[function]
        return {"result": called(json.load(sys.stdin))}
    except SystemExit as error:
        return {"error": str(error.code)[:300]}
    except MemoryError:
        return {"error": "the work takes more memory than allowed"}
    except Exception as error:  # noqa: BLE001 (the outermost edge of this process)
        return {"error": f"damaged ({type(error).__name__})"}


if __name__ == "__main__":
    limit(int(sys.argv[3]), int(sys.argv[4]))
    print(json.dumps(_call(sys.argv[1], sys.argv[2])))
