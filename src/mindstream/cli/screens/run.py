"""Shows a run in progress on standard error, so that standard output holds only the answer."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from typing import Protocol

from rich.console import Console
from rich.text import Text

from mindstream.cli.shell.output import clean, short
from mindstream.planning.executor import RunWatcher
from mindstream.planning.journal import REMEMBERED
from mindstream.planning.plan import Change, Evidence, Plan, PlannedStep, describe_arguments
from mindstream.text.words import count_of

STYLES = {"added": "green", "removed": "red", "changed": "cyan", "kept": "dim"}


class PlainScreen(RunWatcher):
    """Shows a line when a step begins and when it ends; in a terminal, with a spinner below."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._plan: Plan | None = None
        self._status = console.status("working …") if console.is_terminal else None
        self._is_running = False

    def note(self, text: str, style: str = "dim") -> None:
        """Show a text that is not a step."""
        self.console.print(Text(clean(text), style), soft_wrap=not self.console.is_terminal)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Show the spinner during the block."""
        with self._spinning(True):
            yield

    @contextlib.contextmanager
    def pausing(self) -> Iterator[None]:
        """Hide the spinner during the block, for example for a question."""
        with self._spinning(False):
            yield

    @contextlib.contextmanager
    def _spinning(self, on: bool) -> Iterator[None]:
        before = self._is_running
        try:
            self._spin(on)
            yield
        finally:
            self._spin(before)

    def _spin(self, on: bool) -> None:
        self._is_running = on
        if self._status is not None:
            self._status.start() if on else self._status.stop()

    async def planned(self, plan: Plan, because: str) -> None:
        before, self._plan = self._plan, plan
        if before is None:
            kind = "a remembered plan (--fresh makes a new one)" if because == REMEMBERED else "plan"
            self.note(f"{kind}: {count_of(len(plan.steps), 'step')}")
        else:
            show_changes(self.note, before.diff(plan), because)

    async def began(self, step: PlannedStep, arguments: str) -> None:
        self.note(f"{step.id} {step.tool}: {short(describe_call(arguments))}")

    async def found(self, evidence: Evidence) -> None:
        state = "failed" if evidence.failed else "done"
        self.note(f"{evidence.step} {state}, {evidence.seconds:.1f} s: {short(evidence.text)}")


class Note(Protocol):
    """Shows a line."""

    def __call__(self, text: str, style: str = ..., /) -> None: ...


def show_changes(note: Note, changes: Sequence[Change], because: str) -> None:
    """Show the changes of a plan as a diff; nothing if there are none."""
    changed = [change for change in changes if change.kind != "kept"]
    if changed:
        note(f"the plan is changed{f': {because}' if because else ''}", "bold")
    for change in changed:
        note(f"  {change}", STYLES[change.kind])


def describe_call(arguments: str) -> str:
    """Return the arguments of a tool call on one line."""
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    return describe_arguments(given) if isinstance(given, dict) else arguments
