"""Output of commands: sanitised text, JSON rows, tables, charts, progress and questions.

Sanitised text cannot move the cursor, reverse a line, or hide words. Characters that writing systems need stay: letters
of every direction, joiners in the scripts that use them, emoji. Marks that change the direction of text are removed;
the terminal decides on the direction of letters.
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

from mindstream.errors import InputError, SettingsError, clipped

if TYPE_CHECKING:
    from mindstream.settings import Settings

_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, the cursor
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)"  # OSC and its like: titles, links, the clipboard
    r"|\x1b[\]PX^_]"  # the start of a sequence without an end: the text after it is shown
    r"|\x1b[ -/]*[0-~]?"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]*|[ -/]*)$|\x9b[0-?]*$")
"""A control sequence that may end in the next piece of a text."""
JOINERS = "\u200c\u200d"
_INVISIBLE = (
    "\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
)
"""Invisible characters: C1 controls, soft hyphens, direction marks, spaces and fillers without width, tags."""
_JOINED = "\u0590-\u115e\u1161-\u1fff\u2070-\ud7ff\ue000-\ufdff\ufe00-\ufe0f\ufe70-\ufefe\U00010000-\U0001ffff"
"""Characters after which a zero-width joiner changes the text: Hebrew, all scripts after it in Unicode, and emoji with
their variants."""
_VARIANTS = "\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"
"""Variation selectors, which choose a form of the letter before them. Of several in a row, only the first is kept."""
_UNREADABLE = re.compile(
    rf"[\x00-\x08\x0b-\x1f{_INVISIBLE}\ud800-\udfff]"
    rf"|(?<![{_JOINED}])[{JOINERS}]+"
    rf"|(?<=[{_VARIANTS}])[{_VARIANTS}]+"
)
_ESCAPED = re.compile(rf"[{_INVISIBLE}\ud800-\udfff]")
MAX_LINE = 2000
"""Maximum number of characters of a line in messages."""


def clean(text: str) -> str:
    """Return a text without terminal control sequences and invisible characters."""
    if text.isascii() and text.isprintable():
        return text
    return _UNREADABLE.sub("", _SEQUENCE.sub("", text))


def short(text: str, width: int = 160) -> str:
    """Return a text on one line, cut at `width` characters."""
    return clipped(" ".join(clean(text).split()), width)


def escape_json(json: str) -> str:
    """Return the same JSON with invisible characters written as escapes, safe to print."""
    return json if json.isascii() and "\x7f" not in json else _ESCAPED.sub(_escape, json)


def say(text: str, file: TextIO | None = None) -> None:
    """Print a sanitised text, and flush."""
    print(clean(text), file=file, flush=True)


def complain(text: str) -> None:
    """Print a warning or an error to standard error."""
    lines = (line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]}…" for line in text.splitlines())
    say("mindstream: " + "\n".join(lines), sys.stderr)


def warn_if_unpriced(settings: Settings, usd: float | None = None) -> None:
    """Warn if a limit in US dollars cannot be enforced because a model has no known price.

    Args:
        usd: a limit in addition to the one in the settings; None: there is none.
    """
    from mindstream.service.opening import unpriced

    if (settings.budget_usd is not None or usd is not None) and (why := unpriced(settings)):
        complain(why)


def _escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def print_json(*rows: Mapping[str, Any]) -> None:
    """Print each row as a line of JSON, and flush it. The JSON is ASCII if the output's encoding is not Unicode."""
    unicode = sys.stdout.encoding.lower().startswith("utf")
    for row in rows:
        sys.stdout.write(escape_json(json.dumps(row, ensure_ascii=not unicode)) + "\n")
        sys.stdout.flush()


def tell(as_json: bool, row: Mapping[str, Any], *lines: str) -> None:
    """Print a JSON row, or lines for people."""
    if as_json:
        print_json(row)
    else:
        say_lines(lines)


def say_lines(lines: Iterable[str]) -> None:
    """Print sanitised lines."""
    for line in lines:
        say(line)


def list_some(title: str, lines: Sequence[str], most: int) -> list[str]:
    """Return a title and below it at most `most` lines, then the number of left-out lines; [] if there are no lines."""
    more = [f"  … and {len(lines) - most} more; --json has them all"] if len(lines) > most else []
    return [title, *(f"  {line}" for line in lines[:most]), *more] if lines else []


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, words: int = 1) -> None:
    """Print a table as wide as needed; the first `words` columns are left-aligned, the others right-aligned.

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


def cell(value: object, form: str = "") -> str:
    """Format a cell of a table; None is a dash."""
    return "-" if value is None else format(value, form)


def no_more_output() -> None:
    """Flush standard output and standard error.

    If a stream cannot be written any more, discard the output of this stream from now on. Else Python's flush at exit
    would fail.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())


ROWS, COLUMNS = 12, 66
COLOURS = ("#1764ab", "#c0392b", "#2e8b57", "#8e44ad", "#b8860b", "#00838f")
WIDTH, HEIGHT = 720, 400
"""Size of a chart in an SVG, in pixels."""


@dataclass(frozen=True)
class Axes:
    """Axes of a plot.

    Attributes:
        first, last: range of x.
        top: maximum of y (a share); the minimum is 0.
        below: label of the x axis in a picture.
        unit: text after the last number in a terminal.
    """

    last: int
    below: str = "days since a recall last returned them"
    unit: str = " days"
    first: int = 0
    top: float = 1.0


def fitting_top(shares: Iterable[float]) -> float:
    """Return the upper end of the y axis: the smallest of 0.25, 0.5 and 1 that no share exceeds; 1 without shares."""
    highest = max(shares, default=1.0)
    return next((top for top in (0.25, 0.5) if highest <= top), 1.0)


def plot(curves: Mapping[str, Sequence[float]], axes: Axes) -> list[str]:
    """Draw curves of shares, each with a mark of one character; later curves cover earlier ones."""
    rows = [[" "] * COLUMNS for _ in range(ROWS + 1)]
    for mark, shares in curves.items():
        before = ROWS - round(shares[0] / axes.top * ROWS)
        for column in range(COLUMNS):
            share = shares[round(column / (COLUMNS - 1) * (len(shares) - 1))]
            at = ROWS - round(share / axes.top * ROWS)
            for down in range(min(at, before + 1), max(at, before - 1) + 1):  # no gaps in steep parts
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
    """Return an SVG with one chart per title. Each chart has named curves of shares (0 to 1), shown in percent.

    Raises:
        SettingsError: the package that draws charts is not installed.
    """
    try:
        import leather  # imported here, because few commands draw charts
    except ImportError:
        raise SettingsError("a chart needs a package that is not installed: pip install 'mindstream[charts]'") from None

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
"""Interval of progress lines without a terminal, in seconds; shorter work prints no line."""


class Progress(Protocol):
    """A function that gets the amount done, and optionally the total and a new description."""

    def __call__(self, done: int, total: int | None = None, doing: str | None = None) -> None: ...


@contextlib.contextmanager
def progress(doing: str, total: int | None = None) -> Iterator[Progress]:
    """Show a progress bar and yield a function that updates the bar. Without a terminal, print progress lines instead.

    Without a total the bar shows only activity.
    """
    if not sys.stderr.isatty():
        with progress_lines(doing, total) as report:
            yield report
        return
    from rich.progress import Progress

    shared = sys.stdout.isatty()  # redirected output must not go to the terminal
    with Progress(console=Console(stderr=True), transient=True, redirect_stdout=shared) as bar:
        task = bar.add_task(doing, total=total)
        yield lambda done, total=None, doing=None: bar.update(task, completed=done, total=total, description=doing)


@contextlib.contextmanager
def progress_lines(doing: str, total: int | None = None) -> Iterator[Progress]:
    """Print a progress line every EVERY_S seconds, from a thread, because some work reports nothing for long."""
    state, over = (doing, 0, total), threading.Event()

    def report(done: int, total: int | None = None, doing: str | None = None) -> None:
        nonlocal state
        state = doing or state[0], done, total or state[2]

    def write() -> None:
        seconds = 0.0
        while not over.wait(EVERY_S):
            seconds += EVERY_S
            doing, done, total = state
            with contextlib.suppress(OSError, ValueError):  # standard error is closed
                complain(f"{doing}{f', {done / total:.0%}' if total else ''}, {seconds:.0f} s so far")

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    try:
        yield report
    finally:
        over.set()
        writer.join(1.0)


def confirm(question: str) -> bool:
    """Ask for yes or no; any other answer is no.

    Raises:
        InputError: there is no terminal.
    """
    _require_terminal()
    answer = ask(f"{question} [y/N]", "")
    if (read := read_answer(answer, part=False)) is None and answer:
        complain("that is neither y nor n: taken as no")
    return read == "y"


Answer: TypeAlias = Literal["y", "n", "p"]
PART = "p: forget only the notes, thoughts and beliefs that mention it; keep the messages"


def choose(question: str, *, part: bool = False) -> Answer:
    """Ask until the user types y or n. With `part`, p (accept a part) is valid, too. There is no default.

    Raises:
        InputError: there is no terminal.
    """
    _require_terminal()
    while True:
        hint = f"{question}\n{PART}\n[y/n/p]" if part else f"{question} [y/n]"
        if answer := read_answer(ask(hint, ""), part=part):
            return answer


def read_answer(typed: str, *, part: bool) -> Answer | None:
    """Return the answer that was typed; None if it is not a valid answer. `part`: whether "p" is valid, too."""
    answers: dict[str, Answer] = {"y": "y", "yes": "y", "n": "n", "no": "n", "p": "p"}
    answer = answers.get(typed.strip().lower())
    return None if answer == "p" and not part else answer


def confirm_name(what: str, name: str) -> None:
    """Ask the user to type a name as a confirmation.

    Raises:
        InputError: another name was typed, or there is no terminal.
    """
    _require_terminal()
    if (typed := ask(f"{what}\nType {name} to confirm", "")) != name:
        raise InputError(f"expected {name!r} as confirmation, not {typed[:80]!r}; nothing was changed")


def ask(question: str, default: str | None = None) -> str:
    """Ask for a line of input; check `is_answerable` first."""
    answer: str = typer.prompt(clean(question), err=True, default=default, show_default=False)
    return answer.strip()


def is_answerable() -> bool:
    """Return whether there is a terminal to ask questions in."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _require_terminal() -> None:
    if not is_answerable():
        raise InputError("this needs your confirmation: without a terminal to ask in, add --yes")
