"""Stops commands on Ctrl-C, SIGTERM and SIGHUP, so that partial results are stored."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from mindstream.cli.shell import output
from mindstream.cli.shell.output import complain, no_more_output, progress, say
from mindstream.errors import InputError, ModelError
from mindstream.models.cached_prompts import Progress
from mindstream.settings import Settings
from mindstream.text.words import count_of

IGNORED = 2
"""Number of signals after the first that are ignored (repeated key presses). The next signal ends the process at
once."""


def run_until_stopped(doing: Coroutine[Any, Any, int], words: Callable[[], str], *, interrupt: bool = True) -> int:
    """Run a coroutine and return its exit code. If a signal stops it, print `words()` and return 128 plus the signal.

    Signals that the process was started to ignore (nohup, background jobs) stay ignored.

    Args:
        interrupt: also handle Ctrl-C; False if the prompt of the terminal handles Ctrl-C.
    """
    stopping = _Stopping()
    try:
        return asyncio.run(stopping.heed(doing, interrupt))
    except (KeyboardInterrupt, asyncio.CancelledError, OSError) as error:  # OSError: the terminal may be closed
        if stopping.signal is None and not isinstance(error, KeyboardInterrupt):
            raise
    try:
        complain(words())
        sys.stdout.flush()
    except OSError:
        no_more_output()
    return 128 + (stopping.signal or signal.SIGINT)  # as shells report a process that a signal ended


class _Stopping:
    """Cancels a task on the first signal, ignores the next IGNORED signals, and ends the process on a further one."""

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
            if not task.cancelling():  # a second cancel would stop the storing of the partial answer
                task.cancel()
            return
        self._more += 1
        if self._more > IGNORED:
            os._exit(128 + number)


R = TypeVar("R")


def is_agreed(settings: Settings, price: Callable[[], str], question: str = "Call the models?") -> bool:
    """Show a cost estimate and ask whether models may be called.

    Raises:
        InputError: there is no terminal.
    """
    if not output.is_answerable():
        raise InputError("this calls models: without a terminal to ask in, add --yes")
    most = "" if settings.budget_usd is None else f", at most {settings.budget_usd:g} (--max-usd)"
    say(f"{price()}{most}", sys.stderr)
    return output.confirm(question)


def in_words(calls: int, tokens: int, usd: float | None) -> str:
    """Return an estimate of model calls in words."""
    cost = "its price is not known" if usd is None else f"about {usd:,.2f} US dollars"
    return f"about {count_of(calls, 'call')} and {tokens:,} tokens; {cost}"


def run_kept(doing: str, work: Callable[[Progress], Awaitable[R]], kept: str, show: Callable[[R], None]) -> int:
    """Run work with a progress display, and show its result; return the exit code.

    `kept`: a phrase that names the place where partial results are stored ("": nowhere). It is printed if a signal
    (Ctrl-C, SIGTERM) or a model error ends the work.
    """
    found: list[R] = []

    async def run() -> int:
        with progress(doing) as report:
            found.append(await work(report))
        return 0

    goes_on = f"; {kept}; the same command continues" if kept else ""
    try:
        code = run_until_stopped(run(), lambda: f"stopped{goes_on}")
    except ModelError as error:
        complain(f"{error}{goes_on}")
        return 1
    for each in found:
        show(each)
    return code
