"""What a person sees of long work, on standard error: a bar, or without a terminal a line now and then."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from typing import Protocol

from rich.console import Console

from mindstream.cli.shell.output import complain

EVERY_S = 10.0
"""Without a terminal a line comes so often; short work says nothing."""


class Progress(Protocol):
    """Takes how much is done; and, where that is known only later, of how much; and what is being done now."""

    def __call__(self, done: int, total: int | None = None, doing: str | None = None) -> None: ...


@contextlib.contextmanager
def progress(doing: str, total: int | None = None) -> Iterator[Progress]:
    """Show a bar, and give what it is told by: how much is done; without a total it only shows that work goes on."""
    if not sys.stderr.isatty():
        with progress_lines(doing, total) as told:
            yield told
        return
    from rich.progress import Progress

    shared = sys.stdout.isatty()  # else what is printed must go where it was sent
    with Progress(console=Console(stderr=True), transient=True, redirect_stdout=shared) as bar:
        task = bar.add_task(doing, total=total)
        yield lambda done, total=None, doing=None: bar.update(task, completed=done, total=total, description=doing)


class _State:
    """How far it is, as it was last told."""

    def __init__(self, doing: str, total: int | None) -> None:
        self._doing, self._total, self._done = doing, total, 0

    def __call__(self, done: int, total: int | None = None, doing: str | None = None) -> None:
        self._done, self._total, self._doing = done, total or self._total, doing or self._doing

    def describe(self, seconds: float) -> str:
        share = f", {self._done / self._total:.0%}" if self._total else ""
        return f"{self._doing}{share}, {seconds:.0f} s so far"


@contextlib.contextmanager
def progress_lines(doing: str, total: int | None = None) -> Iterator[Progress]:
    """Write a line now and then, from a thread: some work says nothing while it goes on."""
    state, over = _State(doing, total), threading.Event()

    def write() -> None:
        seconds = 0.0
        while not over.wait(EVERY_S):
            seconds += EVERY_S
            with contextlib.suppress(OSError, ValueError):  # whoever read it went away
                complain(state.describe(seconds))

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    try:
        yield state
    finally:
        over.set()
        writer.join(1.0)
