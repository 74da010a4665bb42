"""A life as it goes on, for people: turns, calls by depth, thoughts, dreams, questions."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from mindstream.cli.screens.events import describe_arguments
from mindstream.cli.screens.life_lines import cause, describe_life, thought, words
from mindstream.cli.screens.talk import JsonScreen
from mindstream.cli.shell.output import clean, short
from mindstream.clock import Moment, format_spoken
from mindstream.life.events import (
    SLOT,
    Asked,
    LifeBegan,
    PermissionAsked,
    PermissionGiven,
    Questioned,
    Replied,
    Rested,
    TaskChanged,
    TurnBegan,
    TurnEnded,
)
from mindstream.life.prompts import NOT_YET
from mindstream.log.events import Heard, Logged, ModelCalled, Observed, ToolCalled

RESULT, ANSWER, WORDS = 240, 600, 2_000
"""So many characters are shown of what a call gave, of M1 and M0, of a word of M2; `life turn N` shows all."""
ROLES = ("M1", "M0")
TOLD = ("add_task", "finish_task", "wait_task", "I")
"""What these do is shown by what becomes of the task, or of the question."""


class JsonLifeScreen(JsonScreen):
    """One event a line, as in the log."""

    doing = ""
    since: Moment = 0.0

    language = "en"

    def say(self, text: str, style: str = "dim") -> None: ...


class LifeScreen:
    """What happens, as lines: M2's at the margin, M1's steps below it, M0's below these.

    Attributes:
        doing: who was asked last and has not answered yet; "" nobody.
        since: since when.
        language: of what stands around it: that of its goal.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self.doing = ""
        self.since: Moment = 0.0
        self.language = "en"
        self._open: dict[str, str] = {}
        """The calls that have not given anything yet: their tools, by id."""

    def say(self, text: str, style: str = "dim", depth: int = 0) -> None:
        """Say something that is no event."""
        self._line(text, style, depth)

    def show(self, logged: Logged) -> None:
        """Show one row of the log."""
        event = logged.event
        match event:
            case Asked():
                self.doing, self.since = event.role, logged.at
            case Replied():
                self._replied(event)
            case ToolCalled() if event.slot == SLOT:
                self._called(event)
            case Observed() if event.slot == SLOT:
                self._observed(event)
            case TurnBegan():
                self.doing = ""
                self.console.print()
                self._line(
                    self._words(
                        "turn",
                        event.turn,
                        format_spoken(logged.at, language=self.language),
                        cause(event.because, self.language),
                    ),
                    "bold",
                )
            case TurnEnded():
                self.doing = ""
                if event.error:
                    self._line(describe_life(event, self.language), "red")
            case Questioned() | PermissionAsked() | PermissionGiven() | LifeBegan() | Rested():
                self._asked(event)
            case TaskChanged() if logged.system:
                self._line(
                    f"{'✓' if event.standing == 'done' else '·'} {describe_life(event, self.language)}", "green", 1
                )
            case Heard():
                self._line(self._words("you", event.text), "bold cyan")
            case ModelCalled():
                return
            case _:
                if line := describe_life(event, self.language):
                    self._line(f"· {line}", "dim")

    def _asked(self, event: Questioned | PermissionAsked | PermissionGiven | LifeBegan | Rested) -> None:
        style = "bold red" if isinstance(event, Rested) and event.because else "bold yellow"
        if isinstance(event, LifeBegan):
            self.language = event.language
        line = describe_life(event, self.language)
        if isinstance(event, PermissionAsked):
            line += "\n" + self._words("allow", event.id)
        self._line(line, "bold" if isinstance(event, LifeBegan | PermissionGiven) else style)

    def _replied(self, event: Replied) -> None:
        self.doing = ""
        depth = event.id.count(".") // 2
        if event.error:
            self._line(describe_life(event, self.language), "red", depth)
        elif event.text.strip() and (depth == 0 or event.calls):  # M1's and M0's answers are what their calls give
            self._line(short(event.text, WORDS), "" if depth == 0 else "dim", depth)

    def _called(self, event: ToolCalled) -> None:
        self._open[event.id] = event.tool
        if event.tool in TOLD:
            return
        line = Text("→ ", "dim")
        line.append(clean(event.tool), "cyan" if event.tool in ROLES else "")
        line.append(" " + describe_arguments(event.arguments, RESULT, " · "), "dim")
        self._print(line, event.id.count(".") // 2)

    def _observed(self, event: Observed) -> None:
        tool = self._open.pop(event.id, event.tool)
        if tool in TOLD and not event.failed and event.text not in NOT_YET.values():
            return
        named = f"{tool}: " if tool in (*ROLES, *TOLD) else self._words("dreamt") if tool == "S" and event.text else ""
        style = "red" if event.failed else "magenta" if tool == "S" else "" if tool in ROLES else "dim"
        text = thought(event.text) or self._words("no_dream" if tool == "S" else "nothing")
        self._line(f"← {named}{short(text, ANSWER if named else RESULT)}", style, event.id.count(".") // 2)

    def _words(self, name: str, *filled: object) -> str:
        return words(name, self.language, *filled)

    def _line(self, text: str, style: str = "", depth: int = 0) -> None:
        self._print(Text(clean(text), style), depth)

    def _print(self, line: Text, depth: int = 0) -> None:
        if self.console.is_terminal:
            self.console.print(Padding(line, (0, 0, 0, 2 * depth), expand=False))
        else:
            self.console.print(Text("  " * depth) + line, soft_wrap=True)
        self.console.file.flush()


Screen = LifeScreen | JsonLifeScreen
