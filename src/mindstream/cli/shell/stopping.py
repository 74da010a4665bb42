"""What is ended from outside, by Ctrl-C, SIGTERM or SIGHUP: what was done so far is kept."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from mindstream.cli.shell.output import complain, no_more_output

IGNORED = 2
"""So many signals after the first change nothing: fingers repeat themselves. The next one ends the process at once."""


def run_until_stopped(doing: Coroutine[Any, Any, int], words: Callable[[], str], *, interrupt: bool = True) -> int:
    """Run it; where a signal stops it, say so in these words. Return the exit code.

    What the process was started to ignore (nohup, a job in the background) stays ignored.

    Args:
        interrupt: Ctrl-C is heeded as the other signals are; else it is the terminal's own affair.
    """
    stopping = _Stopping()
    try:
        return asyncio.run(stopping.heed(doing, interrupt))
    except (KeyboardInterrupt, asyncio.CancelledError, OSError) as error:  # the screen may have gone away with its user
        if stopping.signal is None and not isinstance(error, KeyboardInterrupt):
            raise
    try:
        complain(words())
        sys.stdout.flush()
    except OSError:
        no_more_output()
    return 128 + (stopping.signal or signal.SIGINT)  # as a shell says it of a process that a signal has ended


class _Stopping:
    """Cancels a task on the first signal."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self._more = 0

    async def heed(self, doing: Coroutine[Any, Any, int], interrupt: bool) -> int:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        for name in ("SIGTERM", "SIGHUP", *(["SIGINT"] if interrupt else [])):
            number = getattr(signal, name, None)
            if number is not None and task is not None and signal.getsignal(number) != signal.SIG_IGN:
                with contextlib.suppress(NotImplementedError):  # not on Windows
                    loop.add_signal_handler(number, self._stop, number, task)
        return await doing

    def _stop(self, number: int, task: asyncio.Task[object]) -> None:
        if self.signal is None:
            self.signal = number
            task.cancel()
            return
        self._more += 1
        if self._more > IGNORED:
            os._exit(128 + number)
