"""A run as it goes on, for people: on standard error, so that the answer alone can be sent elsewhere."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from mindstream.cli.shell.output import clean, short
from mindstream.clock import Clock, SystemClock
from mindstream.planning.executor import RunWatcher, Unwatched
from mindstream.planning.journal import REMEMBERED
from mindstream.planning.plan import Change, Evidence, Plan, PlannedStep, describe_arguments
from mindstream.text.words import count_of

STYLES = {"added": "green", "removed": "red", "changed": "cyan", "kept": "dim"}
TOOL = 18
"""So many cells the name of a tool gets at most."""


class RunScreen(RunWatcher, Protocol):
    """Where a run is shown as it goes on."""

    def note(self, text: str, style: str = "dim") -> None:
        """Say something that is no step."""

    def expect(self, step: PlannedStep) -> None:
        """Show a step that was planned just now."""

    def running(self, *, leave: bool = True) -> contextlib.AbstractContextManager[None]:
        """Show steps while the block lasts; `leave` them there afterwards."""

    def pausing(self) -> contextlib.AbstractContextManager[None]:
        """Show nothing while the block lasts: somebody is asked."""


class QuietScreen(Unwatched):
    """Shows nothing."""

    def note(self, text: str, style: str = "dim") -> None: ...

    def expect(self, step: PlannedStep) -> None: ...

    @contextlib.contextmanager
    def running(self, *, leave: bool = True) -> Iterator[None]:  # noqa: ARG002 (nothing is shown)
        yield

    @contextlib.contextmanager
    def pausing(self) -> Iterator[None]:
        yield


class PlainScreen(QuietScreen):
    """A line when a step begins, one when it ends: for files and pipes."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._plan: Plan | None = None

    def note(self, text: str, style: str = "dim") -> None:
        self.console.print(Text(clean(text), style), soft_wrap=not self.console.is_terminal)

    async def planned(self, plan: Plan, because: str) -> None:
        before, self._plan = self._plan, plan
        if before is None:
            self.note(f"{_kind(because)}: {count_of(len(plan.steps), 'step')}")
        else:
            show_changes(self.note, before.diff(plan), because)

    async def began(self, step: PlannedStep, arguments: str) -> None:
        self.note(f"{step.id} {step.tool}: {short(describe_call(arguments))}")

    async def found(self, evidence: Evidence) -> None:
        state = "failed" if evidence.failed else "done"
        self.note(f"{evidence.step} {state}, {evidence.seconds:.1f} s: {short(evidence.text)}")


@dataclass
class Row:
    """A step as it is shown."""

    step: PlannedStep
    input: str
    state: str = "waiting"
    text: str = ""
    began: float = 0.0
    seconds: float = 0.0


class LiveScreen(PlainScreen):
    """A table of the steps that is drawn anew as they run."""

    def __init__(self, console: Console, clock: Clock | None = None) -> None:
        super().__init__(console)
        self._clock = clock or SystemClock()
        self._rows: dict[str, Row] = {}
        self._live: Live | None = None
        self._spinner = Spinner("line" if console.options.ascii_only else "dots", style="cyan")

    # What happens.

    async def planned(self, plan: Plan, because: str) -> None:
        before, self._plan = self._plan, plan
        if before is None and because == REMEMBERED:
            self.note(_kind(because))
        again = set[str]()  # what is to be done anew
        if before is not None:
            changes = before.diff(plan)
            show_changes(self.note, changes, because)
            again = {change.step for change in changes if change.kind != "kept"}
            again |= {id for id, row in self._rows.items() if row.state == "failed"}
        known = {id: row for id, row in self._rows.items() if row.state != "waiting" and id not in again}
        self._rows = {
            step.id: known.get(step.id) or Row(step, describe_arguments(step.arguments)) for step in plan.steps
        }

    def expect(self, step: PlannedStep) -> None:
        self._rows[step.id] = Row(step, describe_arguments(step.arguments))

    async def began(self, step: PlannedStep, arguments: str) -> None:
        self._rows[step.id] = Row(step, describe_call(arguments), "running", began=self._clock.elapsed())

    async def found(self, evidence: Evidence) -> None:
        step = PlannedStep(id=evidence.step, tool=evidence.tool or "unknown")
        row = self._rows.setdefault(evidence.step, Row(step, describe_arguments(evidence.arguments)))
        row.state = "failed" if evidence.failed else "done"
        row.text, row.seconds = short(evidence.text, 1_000), evidence.seconds

    # How it looks.

    @contextlib.contextmanager
    def running(self, *, leave: bool = True) -> Iterator[None]:
        self._start()
        try:
            yield
        finally:
            self._stop(leave=leave)

    @contextlib.contextmanager
    def pausing(self) -> Iterator[None]:
        was_live = self._live is not None
        self._stop(leave=False)
        try:
            yield
        finally:
            if was_live:
                self._start()

    def _start(self) -> None:
        self._live = Live(
            get_renderable=lambda: self.render(is_over=False),
            console=self.console,
            refresh_per_second=8,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start()

    def _stop(self, *, leave: bool) -> None:
        if self._live is None:
            return
        live, self._live = self._live, None
        live.transient = True
        live.stop()
        if leave and self._rows:
            self.console.print(self.render(is_over=True))

    def render(self, *, is_over: bool) -> RenderableType:
        """Return the table: a line a step, and what it found below it where there is room."""
        rows = list(self._rows.values())
        table = Table.grid(padding=(0, 1))
        table.width = max(20, self.console.width - len("^C"))  # which a terminal adds where the cursor stands
        for width in (1, max((len(row.step.id) for row in rows), default=1)):
            table.add_column(width=width, no_wrap=True)
        widest = max((cell_len(row.step.tool) for row in rows), default=1)
        table.add_column(width=min(widest, TOOL, max(4, self.console.width // 4)), no_wrap=True, overflow="ellipsis")
        table.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
        table.add_column(justify="right", no_wrap=True)
        has_room = is_over or 2 * len(rows) + 2 <= self.console.height
        for row in rows:
            seconds = self._clock.elapsed() - row.began if row.state == "running" else row.seconds
            shown = f"{seconds:.1f} s" if row.state != "waiting" else ""
            style = "red" if row.state == "failed" else ""
            table.add_row(
                self._mark(row.state, is_over),
                Text(row.step.id, "bold"),
                Text(clean(row.step.tool), "cyan"),
                Text(short(row.input, 1_000)),
                Text(shown, "dim"),
            )
            if row.text and has_room:
                table.add_row("", "", "", Text(row.text, style or "dim"), "")
        is_idle = not is_over and not any(row.state == "running" for row in rows)
        return Group(table, self._thinking()) if is_idle else table

    def _thinking(self) -> RenderableType:
        self._spinner.update(text=Text("thinking …", "dim"))
        return self._spinner

    def _mark(self, state: str, is_over: bool) -> RenderableType:
        if state == "running" and not is_over:
            self._spinner.update(text="")
            return self._spinner
        ascii_only = self.console.options.ascii_only
        marks = {"done": ("+" if ascii_only else "✓", "green"), "failed": ("x" if ascii_only else "✗", "bold red")}
        return Text(*marks.get(state, ("-" if ascii_only else "·", "dim")))


def _kind(because: str) -> str:
    return "a remembered plan (--fresh makes a new one)" if because == REMEMBERED else "plan"


def show_changes(note: Note, changes: Sequence[Change], because: str) -> None:
    """Show a plan's changes as a diff; nothing where there are none."""
    changed = [change for change in changes if change.kind != "kept"]
    if changed:
        note(f"the plan is changed{f': {because}' if because else ''}", "bold")
    for change in changed:
        note(f"  {change}", STYLES[change.kind])


class Note(Protocol):
    """Says a line."""

    def __call__(self, text: str, style: str = ..., /) -> None: ...


def describe_call(arguments: str) -> str:
    """Return what a tool is called with, in a line."""
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    return describe_arguments(given) if isinstance(given, dict) else arguments
