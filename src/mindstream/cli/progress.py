"""What a person sees of long work: on standard error, and only where that is a terminal."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Protocol

from rich.console import Console


class Progress(Protocol):
    """Takes how much is done; and, where that is known only later, of how much; and what is being done now."""

    def __call__(self, done: int, total: int | None = None, doing: str | None = None) -> None: ...


@contextlib.contextmanager
def progress(doing: str, total: int | None = None) -> Iterator[Progress]:
    """Show a bar, and give what it is told by: how much is done; without a total it only shows that work goes on."""
    if not sys.stderr.isatty():
        yield _untold
        return
    from rich.progress import Progress

    shared = sys.stdout.isatty()  # else what is printed must go where it was sent
    with Progress(console=Console(stderr=True), transient=True, redirect_stdout=shared) as bar:
        task = bar.add_task(doing, total=total)
        yield lambda done, total=None, doing=None: bar.update(task, completed=done, total=total, description=doing)


def _untold(done: int, total: int | None = None, doing: str | None = None) -> None: ...
