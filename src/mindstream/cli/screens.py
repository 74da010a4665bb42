"""Two ways to show a conversation: as text for people, as JSON Lines for programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from rich.console import Console
from rich.text import Text

from mindstream.cli import STARTED
from mindstream.cli.asides import aside
from mindstream.cli.clean import clean, short
from mindstream.cli.json_lines import print_json
from mindstream.cli.plain import Flow
from mindstream.coach.talker import AGENT
from mindstream.log.events import Failed, FollowUp, Heard, Logged, Piece, Reading, Said, Waiting


class Thinker(Protocol):
    """Who can say whether a reasoner is at work."""

    thinking: bool
    """Something is being thought about, or will be."""


class Screen(Protocol):
    """Where events are shown as they happen."""

    def show(self, logged: Logged) -> None:
        """Show one event."""

    def note(self, text: str) -> None:
        """Say something that is no event."""

    def watch(self, thinker: Thinker) -> None:
        """Learn whom to ask whether somebody is thinking."""

    def show_opening(self, logged: Logged) -> None:
        """Show the session that began before anybody looked."""


class JsonScreen:
    """One event a line, as in the log; and `after_s`, the seconds since the process began."""

    def show(self, logged: Logged) -> None:
        print_json(logged.row() | {"after_s": round(logged.at - STARTED, 4)})

    def note(self, text: str) -> None: ...

    def watch(self, thinker: Thinker) -> None: ...

    def show_opening(self, logged: Logged) -> None:
        self.show(logged)


class TextScreen:
    """What was said in full, what the reasoners do in a quiet line beside it.

    Args:
        echo: show what was heard too (in a terminal it stands there already).
        timed: quiet lines begin with the seconds since the process began.
        thinks: show what reasoners think, too, not only what comes of it.
    """

    def __init__(self, console: Console, *, echo: bool, timed: bool, thinks: bool) -> None:
        self.console = console
        self._echo, self._timed, self._thinks = echo, timed, thinks
        self._flow: Flow | None = None
        self._later: list[Callable[[], None]] = []  # what must not stand in the middle of an answer
        self._thinker: Thinker | None = None
        self._failures: set[str] = set()
        self._read = 0
        """The utterance of which it was said that the model reads."""

    def watch(self, thinker: Thinker) -> None:
        self._thinker = thinker

    def show_opening(self, logged: Logged) -> None: ...

    @property
    def thinking(self) -> bool:
        """A reasoner has something to think about."""
        return self._thinker is not None and self._thinker.thinking

    def show(self, logged: Logged) -> None:
        event = logged.event
        match event:
            case Heard():
                if self._echo:
                    self._when_free(lambda: self._spoken("you", event.text, "bold cyan"))
                else:  # the answer's line begins at once, however long its first word takes
                    self._piece(AGENT, "")
            case Piece():
                self._piece(logged.by, event.text)
            case Said():
                if self._flow is None:
                    self._piece(logged.by, event.text)
                self.broken_off()
                if self._thinks and self.thinking:
                    self._aside(f"spoke from belief v{event.belief_version}; still thinking …", logged)
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
                text = self._failure(event) if isinstance(event, Failed) else aside(event, thinks=self._thinks)
                if text:
                    self._when_free(lambda: self._aside(text, logged, "red" if isinstance(event, Failed) else "dim"))

    def note(self, text: str) -> None:
        self._when_free(lambda: self._line(text, "dim"))

    def text(self, text: str) -> None:
        """Show something that was asked for."""
        self._when_free(lambda: self._line(text))

    def complain(self, text: str) -> None:
        """Say that something does not work."""
        self._when_free(lambda: self._line(f"  · {text}", "red"))

    def broken_off(self) -> None:
        """End an answer's line, and show what had to wait for that."""
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
        """Return what failed; at length only the first time."""
        why = failure.text.removeprefix(f"{failure.where}: ")
        text = f"{failure.where}: the same again" if why in self._failures else aside(failure)
        self._failures.add(why)
        return text

    @property
    def _width(self) -> int:
        return self.console.width if self.console.is_terminal else 0

    def _aside(self, text: str, logged: Logged, style: str = "dim") -> None:
        at = f"{logged.at - STARTED:5.1f} s  " if self._timed else ""
        most = self._width - 4 if style == "dim" and self._width else 0  # a quiet line is one line
        self._line(f"  · {at}{short(text, most) if most else text}", style)

    def _line(self, text: str, style: str = "") -> None:
        self.console.print(Text(clean(text), style), soft_wrap=not self.console.is_terminal)
        self.console.file.flush()


def void(_: object) -> None:
    """Forget a result."""
