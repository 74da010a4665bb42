"""What commands print: text that others wrote, made safe; rows for programs; tables.

Safe text must not move the cursor, turn the line around, or hide words. What scripts need stays: letters of every
direction, joiners between letters of the scripts that have them, emoji. The order of letters is the terminal's own
affair; marks that change it from inside a text are cut out.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any, Literal, Protocol, TextIO, TypeAlias

import typer
from rich.console import Console

from mindstream.errors import InputError

if TYPE_CHECKING:
    from mindstream.settings import Settings

_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, the cursor
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)"  # OSC and its like: titles, links, the clipboard
    r"|\x1b[\]PX^_]"  # one without an end: what follows is words, and is shown
    r"|\x1b[ -/]*[0-~]?"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]*|[ -/]*)$|\x9b[0-?]*$")
"""A sequence that may end in the next piece of a text."""
JOINERS = "\u200c\u200d"
_INVISIBLE = (
    "\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
)
"""C1, soft hyphens, marks of direction, spaces and fillers without width, tags: nothing that anybody can read."""
_JOINED = "\u0590-\u115e\u1161-\u1fff\u2070-\ud7ff\ue000-\ufdff\ufe00-\ufe0f\ufe70-\ufefe\U00010000-\U0001ffff"
"""After these (Hebrew and all later scripts, emoji and their variants) a joiner, zero wide, changes what is read."""
_VARIANTS = "\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"
"""They choose between forms of the letter before them; one is enough."""
_UNREADABLE = re.compile(
    rf"[\x00-\x08\x0b-\x1f{_INVISIBLE}\ud800-\udfff]"
    rf"|(?<![{_JOINED}])[{JOINERS}]+"
    rf"|(?<=[{_VARIANTS}])[{_VARIANTS}]+"
)
_ESCAPED = re.compile(rf"[{_INVISIBLE}\ud800-\udfff]")
LONGEST = 2000
"""So many characters of a line are said of what went wrong."""


def clean(text: str) -> str:
    """Return a text without terminal control and without what is not to be seen."""
    if text.isascii() and text.isprintable():
        return text
    return _UNREADABLE.sub("", _SEQUENCE.sub("", text))


def short(text: str, width: int = 160) -> str:
    """Return a text on one line, cut."""
    line = " ".join(clean(text).split())
    return line if len(line) <= width else line[: width - 1] + "…"


def escape_json(json: str) -> str:
    """Return a line of JSON in which such characters are written as escapes: the same JSON, safe to print."""
    return json if json.isascii() and "\x7f" not in json else _ESCAPED.sub(_escape, json)


def say(text: str, file: TextIO | None = None) -> None:
    """Print a text, made safe, at once."""
    print(clean(text), file=file, flush=True)


def complain(text: str) -> None:
    """Say on standard error what is wrong, or worth knowing."""
    lines = (line if len(line) <= LONGEST else f"{line[:LONGEST]}…" for line in text.splitlines())
    say("mindstream: " + "\n".join(lines), sys.stderr)


def warn_if_unpriced(settings: Settings, usd: float | None = None) -> None:
    """Say that a limit in US dollars (the settings', or `usd`) cannot be kept, where a model has no known price."""
    from mindstream.service.opening import unpriced

    if (settings.budget_usd is not None or usd is not None) and (why := unpriced(settings)):
        complain(why)


def _escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def print_json(*rows: Mapping[str, Any]) -> None:
    """Write lines and hand each on at once; in ASCII where the output cannot hold all characters."""
    unicode = sys.stdout.encoding.lower().startswith("utf")
    for row in rows:
        sys.stdout.write(escape_json(json.dumps(row, ensure_ascii=not unicode)) + "\n")
        sys.stdout.flush()


def tell(as_json: bool, row: Mapping[str, Any], *lines: str) -> None:
    """Write a row for a program, or lines for people."""
    if as_json:
        print_json(row)
    else:
        say_lines(lines)


def say_lines(lines: Iterable[str]) -> None:
    """Print lines, made safe; none of them where there are none."""
    for line in lines:
        say(line)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, words: int = 1) -> None:
    """Print it as wide as it needs to be; the first columns hold `words`, the others numbers.

    A row of one cell is a title.
    """
    from rich.cells import cell_len

    lines = [[clean(cell) for cell in row] for row in (columns, *rows)]
    widths = [max(cell_len(line[at]) for line in lines if len(line) > 1) for at in range(len(columns))]
    for line in lines:
        cells = [
            cell + pad if at < words else pad + cell
            for at, cell in enumerate(line)
            for pad in [" " * (widths[at] - cell_len(cell))]
        ]
        print("  ".join(cells).rstrip())


def no_more_output() -> None:
    """Let Python's own flush at the end go nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())


ROWS, COLUMNS = 12, 66
COLOURS = ("#1764ab", "#c0392b", "#2e8b57", "#8e44ad", "#b8860b", "#00838f")
WIDTH, HEIGHT = 720, 400
"""Of a chart in a picture, in pixels."""


@dataclass(frozen=True)
class Axes:
    """What stands at a plot's sides: from 0, or `first`, to `last` below, from 0 to `top` (a share) on the left."""

    last: int
    below: str = "days since it was last returned"
    unit: str = " days"
    first: int = 0
    top: float = 1.0


def fitting_top(shares: Iterable[float]) -> float:
    """Return a share that ends an axis well: a quarter, a half, or all."""
    highest = max(shares, default=1.0)
    return next((top for top in (0.25, 0.5) if highest <= top), 1.0)


def plot(curves: Mapping[str, Sequence[float]], axes: Axes) -> list[str]:
    """Draw curves of shares, each by a mark of one character; a later one lies over an earlier."""
    rows = [[" "] * COLUMNS for _ in range(ROWS + 1)]
    for mark, shares in curves.items():
        before = ROWS - round(shares[0] / axes.top * ROWS)
        for column in range(COLUMNS):
            share = shares[round(column / (COLUMNS - 1) * (len(shares) - 1))]
            at = ROWS - round(share / axes.top * ROWS)
            for down in range(min(at, before + 1), max(at, before - 1) + 1):  # a steep way leaves no gap
                rows[down][column] = mark
            before = at
    lines = []
    for at, row in enumerate(rows):
        percent = f"{100 * axes.top * (ROWS - at) / ROWS:3.0f} %" if at % (ROWS // 4) == 0 else " " * 5
        lines.append(f"{percent} |{''.join(row)}".rstrip())
    first, last = str(axes.first), str(axes.last)
    middle = str((axes.first + axes.last) // 2).center(COLUMNS - len(first) - len(last))
    return [*lines, f"{'':5} +{'-' * COLUMNS}", f"{'':6} {first}{middle}{last}{axes.unit}"]


def picture(charts: Mapping[str, tuple[Mapping[str, Sequence[float]], Axes]]) -> str:
    """Draw charts of curves of shares by name, each under its title, as the text of one SVG."""
    import leather  # here, so that commands that draw nothing start without it

    grid = leather.Grid()
    for title, (curves, axes) in charts.items():
        chart = leather.Chart(title)
        for (name, shares), colour in zip(curves.items(), cycle(COLOURS), strict=False):
            step = (axes.last - axes.first) / max(1, len(shares) - 1)
            points = [(axes.first + at * step, 100 * share) for at, share in enumerate(shares)]
            chart.add_line(points, name=name, stroke_color=colour)
        chart.add_x_axis(name=axes.below)
        chart.add_y_scale(0, 100 * axes.top)
        chart.add_y_axis(name="%")
        grid.add_one(chart)
    return str(grid.to_svg(width=WIDTH * len(charts), height=HEIGHT))


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


def confirm(question: str) -> bool:
    """Ask for yes or no; no is the default.

    Raises:
        InputError: nobody is there to be asked.
    """
    _somebody_there()
    return typer.confirm(clean(question), err=True)


Answer: TypeAlias = Literal["y", "n", "p"]
PART = "p: forget only the notes, thoughts and beliefs that mention it; the messages stay as they are"


def choose(question: str, *, part: bool = False) -> Answer:
    """Ask for yes or no, or for a part of it, until one of them is typed: there is no default.

    Raises:
        InputError: nobody is there to be asked.
    """
    _somebody_there()
    while True:
        hint = f"{question}\n{PART}\n[y/n/p]" if part else f"{question} [y/n]"
        answer = read_answer(typer.prompt(clean(hint), err=True, default="", show_default=False), part=part)
        if answer:
            return answer


def read_answer(typed: str, *, part: bool) -> Answer | None:
    """Return what was chosen; None for anything else."""
    answers: dict[str, Answer] = {"y": "y", "yes": "y", "n": "n", "no": "n", "p": "p"}
    answer = answers.get(typed.strip().lower())
    return None if answer == "p" and not part else answer


def confirm_name(what: str, name: str) -> None:
    """Ask for a name to be typed once more.

    Raises:
        InputError: another was typed, or nobody is there to be asked.
    """
    _somebody_there()
    typed = typer.prompt(clean(f"{what}\nType {name} to go on"), err=True, default="", show_default=False)
    if typed.strip() != name:
        raise InputError(f"that is not {name!r}; nothing was changed")


def ask(question: str, default: str | None = None) -> str:
    """Ask for words; `is_answerable` says whether anybody is there."""
    answer: str = typer.prompt(clean(question), err=True, default=default, show_default=False)
    return answer.strip()


def is_answerable() -> bool:
    """Tell whether somebody is there to be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _somebody_there() -> None:
    if not is_answerable():
        raise InputError("this cannot be undone, and nobody is there to be asked: say --yes")
