"""Shows a life in progress: turns, calls by depth, thoughts, dreams, questions."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from mindstream.cli.screens.events import RESULT_OF_TASK, describe_arguments, describe_life
from mindstream.cli.screens.talk import JsonScreen
from mindstream.cli.shell.output import clean, short
from mindstream.clock import Moment, format_spoken
from mindstream.guidance import next_step
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
from mindstream.life.roles import CLOSED, OPENED
from mindstream.log.events import Heard, Logged, ModelCalled, Observed, ToolCalled

RESULT, ANSWER, WORDS = 240, 600, 2_000
"""Maximum number of characters shown. RESULT: of a tool's result, and of the arguments of a call. ANSWER: of an answer
of M1 (acts) or M0 (thinks), of a dream, and of a result of a tool in SHOWN_OTHERWISE. WORDS: of a text of M2 (plans),
and of a text that accompanies calls. `life turn N` shows the full texts."""
ROLES = ("M1", "M0")
SHOWN_OTHERWISE = ("add_task", "finish_task", "wait_task", "I")
"""Tools whose effect is a task or a question. The task or question has its own line."""
AS_ABOVE, LEAST_REPEATED = "(as above)", 40
"""The words that replace a text that was shown before, and the minimum length of such a text in characters."""


class JsonLifeScreen(JsonScreen):
    """Prints one event of a life per line as JSON, as in the log."""

    doing = ""
    since: Moment = 0.0

    def say(self, text: str, style: str = "dim") -> None: ...


class LifeScreen:
    """Shows events as lines, indented by role.

    Events of M2 (plans) are not indented, events of M1 (acts) are indented once, and events of M0 (thinks) twice. A
    text that the turn has already shown in full is not repeated.

    Attributes:
        doing: the role (M2, M1 or M0) that was asked last and has not answered yet; "": none.
        since: the time at which the role `doing` was asked.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self.doing = ""
        self.since: Moment = 0.0
        self._open: dict[str, str] = {}
        """The tool of each call that has no result yet, by the call's id."""
        self._shown: list[str] = []
        """Longer texts that were shown in full in this turn."""
        self._error = ""
        """The error of a model or a turn that was shown last."""

    def say(self, text: str, style: str = "dim", depth: int = 0) -> None:
        """Show a text that is not an event."""
        self._line(text, style, depth)

    def _line(self, text: str, style: str = "dim", depth: int = 0) -> None:
        self._print(Text(clean(text), style), depth)

    def _new(self, text: str, limit: int) -> str:
        """Return a text with AS_ABOVE in place of texts that this turn has already shown in full.

        If the text has LEAST_REPEATED to `limit` characters, remember it as shown in full.

        Args:
            limit: maximum characters of the text that are shown.
        """
        new = text
        for each in sorted(self._shown, key=len, reverse=True):
            new = new.replace(each, AS_ABOVE)
        if LEAST_REPEATED <= len(text) <= limit:
            self._shown.append(text)
        return new

    def _new_error(self, line: str, error: str) -> str:
        """Return a line about an error, with AS_ABOVE in place of the error that was shown last."""
        if self._error and self._error in line:
            return line.replace(self._error, AS_ABOVE)
        self._error = error
        return line

    def show(self, logged: Logged) -> None:
        """Show one row of the log."""
        event = logged.event
        line = describe_life(event)
        if isinstance(event, Replied | TurnEnded) and event.error:
            line = self._new_error(line, event.error)
        elif isinstance(event, Rested) and event.because:
            line = self._new_error(line, self._error)
        match event:
            case Asked():
                self.doing, self.since = event.role, logged.at
            case Replied():
                self._replied(event, line)
            case ToolCalled() if event.slot == SLOT:
                self._called(event)
            case Observed() if event.slot == SLOT:
                self._observed(event)
            case TurnBegan():
                self.doing, self._shown = "", []
                self.console.print()
                self._line(f"turn {event.turn} · {format_spoken(logged.at)} · {event.because}", "bold")
            case TurnEnded():
                self.doing = ""
                if event.error:
                    self._line(line, "red")
            case PermissionAsked():
                allow = next_step(f"life allow {event.id}")
                self._line(f"{line}\n  /allow or /refuse, or: {allow}", "bold yellow")
            case LifeBegan() | PermissionGiven():
                self._line(line, "bold")
            case Questioned() | Rested():
                self._line(line, "bold red" if isinstance(event, Rested) and event.because else "bold yellow")
            case TaskChanged() if logged.system:
                event = event.model_copy(update={"result": self._new(event.result, RESULT_OF_TASK)})
                self._line(f"{'✓' if event.standing == 'done' else '·'} {describe_life(event)}", "green", 1)
            case Heard():
                self._line(f"you: {event.text}", "bold cyan")
            case ModelCalled():
                pass
            case _ if line:
                self._line(f"· {line}")

    def _replied(self, event: Replied, line: str) -> None:
        self.doing = ""
        depth = event.id.count(".") // 2
        if event.error:
            self._line(line, "red", depth)
        elif event.text.strip() and (depth == 0 or event.calls):  # other answers are shown as results of calls
            new = self._new(event.text.strip(), WORDS)
            if new != AS_ABOVE:
                self._line(short(new, WORDS), "" if depth == 0 else "dim", depth)

    def _called(self, event: ToolCalled) -> None:
        self._open[event.id] = event.tool
        if event.tool not in SHOWN_OTHERWISE:
            call = Text.assemble(
                ("→ ", "dim"),
                (clean(event.tool), "cyan" if event.tool in ROLES else ""),
                (" " + describe_arguments(event.arguments, RESULT, " · "), "dim"),
            )
            self._print(call, event.id.count(".") // 2)

    def _observed(self, event: Observed) -> None:
        tool = self._open.pop(event.id, event.tool)
        if tool in SHOWN_OTHERWISE and not event.failed and event.text not in NOT_YET.values():
            return
        named = f"{tool}: " if tool in (*ROLES, *SHOWN_OTHERWISE) else "dreamt: " if tool == "S" and event.text else ""
        style = "red" if event.failed else "magenta" if tool == "S" else "" if tool in ROLES else "dim"
        text = event.text.removeprefix(OPENED).removesuffix(CLOSED)
        text = text or ("nothing was archived, and nothing dreamt" if tool == "S" else "nothing")
        limit = ANSWER if named else RESULT
        self._line(f"← {named}{short(self._new(text, limit), limit)}", style, event.id.count(".") // 2)

    def _print(self, line: Text, depth: int) -> None:
        if self.console.is_terminal:
            self.console.print(Padding(line, (0, 0, 0, 2 * depth), expand=False))
        else:
            self.console.print(Text("  " * depth) + line, soft_wrap=True)
        self.console.file.flush()


Screen = LifeScreen | JsonLifeScreen
