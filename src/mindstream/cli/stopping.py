"""A conversation that is ended from outside, by Ctrl-C, SIGTERM or SIGHUP: what was said so far is kept."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal

IGNORED = 2
"""So many signals after the first change nothing: fingers repeat themselves. The next one ends the process at once."""


class Stopping:
    """Cancels a task on the first signal.

    Attributes:
        signal: the one that came, or None.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self._more = 0

    def heed(self, *, interrupt: bool) -> None:
        """Heed them for the task that runs, until its loop is closed; Ctrl-C only where `interrupt` says so.

        What the process was started to ignore (nohup, a job in the background) stays ignored.
        """
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        for name in ("SIGTERM", "SIGHUP", *(["SIGINT"] if interrupt else [])):
            number = getattr(signal, name, None)
            if number is not None and task is not None and signal.getsignal(number) != signal.SIG_IGN:
                with contextlib.suppress(NotImplementedError):  # not on Windows
                    loop.add_signal_handler(number, self._stop, number, task)

    @property
    def code(self) -> int:
        """The exit code that a shell gives a process that a signal has ended."""
        return 128 + (self.signal or signal.SIGINT)

    def _stop(self, number: int, task: asyncio.Task[object]) -> None:
        if self.signal is None:
            self.signal = number
            task.cancel()
            return
        self._more += 1
        if self._more > IGNORED:
            os._exit(128 + number)
