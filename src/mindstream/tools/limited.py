"""A process that bounds itself, and leaves nothing running behind: what every child of ours begins with.

The standard library alone, as this also runs as a script: `limited.py script seconds megabytes`.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
from contextlib import suppress
from pathlib import Path

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


def limit(seconds: int, megabytes: int) -> None:
    """Bound what this process may use up from now on; what it starts later is bounded, too."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (megabytes * 1_000_000,) * 2)
    allow_seconds(seconds)


def allow_seconds(seconds: int) -> None:
    """Let this process compute for so many seconds more than it has until now."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        used = resource.getrusage(resource.RUSAGE_SELF)
        most = resource.getrlimit(resource.RLIMIT_CPU)[1]
        resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + seconds + 1, most))


def go_on_in_child() -> None:
    """Return in a child of this process. This one waits for it, ends whatever it leaves running, and ends as it did.

    What a descendant starts is adopted by this process when its own parent ends, whatever session it moved to (on
    Linux; elsewhere what has moved gets away). It ends as well when its own parent does.
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
    for pipe in range(3):  # whoever reads from the child sees its end
        os.close(pipe)
    done = status = 0
    while done != child:
        done, status = os.wait()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _end_children()
    os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))


def _end_children() -> None:
    """Kill every child; theirs become ours, until there is none."""
    with suppress(ChildProcessError):
        while True:
            for child in _children():
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(child, signal.SIGKILL)
            os.wait()


def _children() -> list[int]:
    """Find the children of this process, by /proc."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError):
            parent = int(entry.read_bytes().rpartition(b")")[2].split()[1])
            if parent == os.getpid():
                found.append(int(entry.parent.name))
    return found


def _prctl(option: int, value: int) -> None:
    import ctypes

    with suppress(OSError, AttributeError):  # not Linux
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    limit(int(sys.argv[2]), int(sys.argv[3]))
    runpy.run_path(sys.argv[1], run_name="__main__")
