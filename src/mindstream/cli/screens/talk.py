"""A conversation in progress: text for people, JSON Lines for programs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from mindstream.cli.screens.events import aside
from mindstream.cli.shell.output import JOINERS, UNFINISHED, clean, print_json, short
from mindstream.clock import STARTED
from mindstream.coach.talker import AGENT
from mindstream.log.events import Failed, FollowUp, Heard, Logged, Piece, Reading, Said, Waiting


class Thinker(Protocol):
    """An object that knows whether a reasoner works (the `Conversation`)."""

    thinking: bool
    """Whether a reasoner runs, or has work left."""


class Screen(Protocol):
    """Shows events as they happen."""

    def show(self, logged: Logged) -> None:
        """Show one event."""

    def note(self, text: str) -> None:
        """Show a text that is not an event."""

    def watch(self, thinker: Thinker) -> None:
        """Set the object that is asked whether a reasoner is working."""

    def show_opening(self, logged: Logged) -> None:
        """Show the event that opened the session, which was logged before this screen got events."""


class JsonScreen:
    """Prints one event per line as JSON, as in the log, with `after_s`: seconds since the process began."""

    def show(self, logged: Logged) -> None:
        print_json(logged.row() | {"after_s": round(logged.at - STARTED, 4)})

    def note(self, text: str) -> None: ...

    def watch(self, thinker: Thinker) -> None: ...

    def show_opening(self, logged: Logged) -> None:
        self.show(logged)


class TextScreen:
    """Shows utterances in full, and the reasoners' activity as dim lines.

    Args:
        echo: also show the user's messages (in a terminal they are on the screen already).
        timed: begin dim lines with the seconds since the process began.
        verbose: also show the reasoners' thoughts and calls, not only their results.
    """

    def __init__(self, console: Console, *, echo: bool, timed: bool, verbose: bool) -> None:
        self.console = console
        self._echo, self._timed, self._verbose = echo, timed, verbose
        self._flow: Flow | None = None
        self._later: list[Callable[[], None]] = []  # lines to show after the current answer
        self._thinker: Thinker | None = None
        self._failures: set[str] = set()
        self._read = 0
        """The last utterance for which "… is reading" was shown."""

    def watch(self, thinker: Thinker) -> None:
        self._thinker = thinker

    def show_opening(self, logged: Logged) -> None: ...

    @property
    def thinking(self) -> bool:
        """Whether a reasoner runs, or has work left."""
        return self._thinker is not None and self._thinker.thinking

    def show(self, logged: Logged) -> None:
        event = logged.event
        match event:
            case Heard():
                if self._echo:
                    self._when_free(lambda: self._spoken("you", event.text, "bold cyan"))
                else:  # begin the answer's line before its first word
                    self._piece(AGENT, "")
            case Piece():
                self._piece(logged.by, event.text)
            case Said():
                if self._flow is None:
                    self._piece(logged.by, event.text)
                self.broken_off()
                if self._verbose and self.thinking:
                    self._aside(f"answered from belief v{event.belief_version}; still thinking …", logged)
            case Waiting():
                self._piece(logged.by, event.text)
                self.broken_off()
            case Reading():
                if event.answers != self._read:
                    self._read = event.answers
                    self._piece(logged.by, f"… {event.model} is reading")
                    self.broken_off()
            case FollowUp():
                self._when_free(lambda: self._spoken(logged.by, event.text))
            case _:
                text = self._failure(event) if isinstance(event, Failed) else aside(event, verbose=self._verbose)
                if text:
                    self._when_free(lambda: self._aside(text, logged, "red" if isinstance(event, Failed) else "dim"))

    def note(self, text: str) -> None:
        self._when_free(lambda: self._line(text, "dim"))

    def text(self, text: str) -> None:
        """Show the result of a command."""
        self._when_free(lambda: self._line(text))

    def complain(self, text: str) -> None:
        """Show an error."""
        self._when_free(lambda: self._line(f"  · {text}", "red"))

    def broken_off(self) -> None:
        """End the line of an answer, and show the lines that waited for its end."""
        if self._flow is not None:
            self._flow.end()
            self._flow = None
        later, self._later = self._later, []
        for show in later:
            show()

    def _when_free(self, show: Callable[[], None]) -> None:
        if self._flow is None:
            show()
        else:
            self._later.append(show)

    def _piece(self, by: str, text: str) -> None:
        if self._flow is None:
            self._flow = self._speaker(by)
        self._flow.add(text)
        self.console.file.flush()

    def _spoken(self, by: str, text: str, style: str = "bold green") -> None:
        flow = self._speaker(by, style)
        flow.add(text)
        flow.end()
        self.console.file.flush()

    def _speaker(self, by: str, style: str = "bold green") -> Flow:
        label = f"{clean(by)}: "
        self.console.print(Text(label, style), end="")
        return Flow(lambda text: void(self.console.file.write(text)), self._width, len(label))

    def _failure(self, failure: Failed) -> str:
        """Return a line about a failure; a reason that was shown before is not repeated."""
        why = failure.text.removeprefix(f"{failure.where}: ")
        text = f"{failure.where}: the same error again" if why in self._failures else aside(failure)
        self._failures.add(why)
        return text

    @property
    def _width(self) -> int:
        return self.console.width if self.console.is_terminal else 0

    def _aside(self, text: str, logged: Logged, style: str = "dim") -> None:
        at = f"{logged.at - STARTED:5.1f} s  " if self._timed else ""
        most = self._width - 4 if style == "dim" and self._width else 0  # dim text is cut to one line
        self._line(f"  · {at}{short(text, most) if most else text}", style)

    def _line(self, text: str, style: str = "") -> None:
        soft = not self.console.is_terminal
        self.console.print(Text(clean(text), style), soft_wrap=soft, overflow="ignore", crop=False)  # no word is cut
        self.console.file.flush()


def void(_: object) -> None:
    """Ignore a result."""


_LONGEST = 4096
_PART = re.compile(r"\n|[^\S\n]|[^\s\u1100-\uffdc]+|[\u1100-\uffdc]")


class Flow:
    """Writes pieces of a text as they arrive, with line breaks between words; `width` 0: no line breaks are added.

    Terminal control sequences are removed, even if they are split over two pieces. A zero-width joiner at the start of
    a piece is kept if it joins the end of the piece before.
    """

    def __init__(self, write: Callable[[str], None], width: int, column: int) -> None:
        self._write, self._width, self._column = write, width, column
        self._word = self._held = self._before = ""
        self._wide = 0

    def add(self, piece: str) -> None:
        """Write a piece. Unless `width` is 0, the last word of the piece is held back until the word is complete."""
        text = self._held + piece
        cut = UNFINISHED.search(text)
        self._held = text[cut.start() :] if cut and len(text) - cut.start() < _LONGEST else ""
        self._take(text[: len(text) - len(self._held)])

    def end(self) -> None:
        """Write the unfinished rest, and end the line."""
        held, self._held = self._held, ""
        self._take(held)
        self._flush()
        self._write("\n")
        self._column, self._before = 0, ""

    def _take(self, text: str) -> None:
        whole = clean(self._before + text)
        seen = whole[len(self._before) :]
        # the character before a joiner decides whether the joiner is kept
        self._before = whole[-2:] if whole[-1:] in JOINERS else whole[-1:]
        if not self._width:
            self._write(seen)
            return
        for part in _PART.findall(seen):
            wide = cell_len(part)
            if part.isspace():
                self._break(part)
            elif wide > 1 and len(part) == 1:  # Chinese and similar scripts may break anywhere
                self._flush()
                self._word, self._wide = part, wide
                self._flush()
            else:
                self._word += part
                self._wide += wide
                if self._wide >= self._width:
                    self._flush()

    def _break(self, space: str) -> None:
        self._flush()
        if space == "\n":
            self._column = 0
            self._write("\n")
        elif 0 < self._column < self._width:
            self._column += 1
            self._write(" ")

    def _flush(self) -> None:
        if self._width and self._column and self._column + self._wide > self._width:
            self._write("\n")
            self._column = 0
        self._write(self._word)
        self._column += self._wide
        self._word, self._wide = "", 0


class PlainConsole(Console):
    """A console that raises BrokenPipeError if the reader of its output is closed; rich would end the process."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError
