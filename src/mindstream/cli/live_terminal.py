"""Input for a life in a terminal: an answer to its question, a message, or a command."""

from __future__ import annotations

from collections.abc import Callable

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.styles import Style

from mindstream.cli.screens.events import describe_rest, describe_spent, list_open, list_tasks
from mindstream.cli.screens.life import Screen
from mindstream.cli.shell.keys import leaving_keys, silent_keys
from mindstream.errors import MindstreamError
from mindstream.life import commands
from mindstream.life.schedule import Rhythm
from mindstream.life.state import LifeState
from mindstream.memory.memory import Memory
from mindstream.text.words import count_of

COMMANDS = {
    "/tasks": "list its tasks and open questions",
    "/add": "TASK: add a task",
    "/drop": "N: give up task N",
    "/allow": "[ID]: allow the call that needs permission",
    "/refuse": "[ID]: refuse the call that needs permission",
    "/pause": "[WHY]: pause it until /resume, or `mindstream life resume`",
    "/resume": "continue it",
    "/stop": "[WHY]: end this life; /resume, or a new goal, continues it",
    "/help": "list the commands",
    "/quit": "leave, as Ctrl-C and Ctrl-D do; nothing is lost, `mindstream live` continues it",
}
STYLE = Style.from_dict(
    {"ask": "bold ansiyellow", "say": "bold ansicyan", "bottom-toolbar": "noreverse ansibrightblack"}
)
REFRESH_S = 1.0
"""Refresh interval of the status line, in seconds."""


class LifeTerminal:
    """A prompt with a status line below it.

    Args:
        state: returns the current state of the life.
    """

    def __init__(self, memory: Memory, screen: Screen, state: Callable[[], LifeState], rhythm: Rhythm) -> None:
        self._memory, self._screen, self._state, self._rhythm = memory, screen, state, rhythm
        self._session: PromptSession[str] = PromptSession(
            style=STYLE,
            key_bindings=leaving_keys(),
            bottom_toolbar=lambda: FormattedText([("class:bottom-toolbar", self._status())]),
            refresh_interval=REFRESH_S,
            completer=WordCompleter(sorted(COMMANDS), sentence=True),
            complete_while_typing=False,
            erase_when_done=True,
        )

    async def run(self) -> None:
        """Take input until the user leaves."""
        with silent_keys(), patch_stdout(raw=True):
            while True:
                try:
                    text = (await self._session.prompt_async(self._label)).strip()
                except (EOFError, KeyboardInterrupt):
                    return
                if text in ("/quit", "/exit"):
                    return
                if text:
                    try:
                        await self._take(text)
                    except MindstreamError as error:
                        self._screen.say(str(error), "red")

    async def _take(self, text: str) -> None:
        if not text.startswith("/") or text.startswith("//"):
            if asked := self._asked():
                await commands.answer(self._memory, text, asked[0])
            else:
                await commands.say(self._memory, text.removeprefix("/"))
            return
        name, _, rest = text.partition(" ")
        rest = rest.strip()
        match name.lower():
            case "/tasks" | "/status":
                state, now = self._state(), self._memory.clock.now()
                lines = [*list_tasks(state.ledger.ordered(), now), *list_open(state)]
                self._screen.say("\n".join(lines) or "there are no tasks", "")
            case "/add":
                await commands.add_task(self._memory, rest)
            case "/drop" if rest.isdigit():
                await commands.stop_task(self._memory, int(rest))
            case "/allow":
                await commands.give_leave(self._memory, True, rest)
            case "/refuse":
                await commands.give_leave(self._memory, False, rest)
            case "/pause":
                await commands.order(self._memory, "pause", rest)
            case "/resume":
                await commands.order(self._memory, "resume")
            case "/stop":
                await commands.order(self._memory, "stop", rest)
            case "/help" | "/?":
                self._screen.say("\n".join(f"{name:9} {what}" for name, what in COMMANDS.items()), "")
            case _:
                self._screen.say(f"there is no command {name} {rest[:40]}; /help lists the commands", "red")

    def _asked(self) -> list[str]:
        """Return the ids of the questions that the user has not answered yet."""
        state = self._state()
        return [id_ for id_ in state.questions if id_ not in state.answers]

    def _label(self) -> FormattedText:
        return FormattedText([("class:ask", "answer: ") if self._asked() else ("class:say", "say: ")])

    def _status(self) -> str:
        state = self._state()
        left = sum(task.standing in ("open", "waiting") for task in state.ledger.tasks.values())
        return f"{self._doing(state)} · {count_of(left, 'task')} left · {describe_spent(state.spent)} · /help"

    def _doing(self, state: LifeState) -> str:
        now = self._memory.clock.now()
        wakes = self._rhythm.next_wake(state, now)
        if state.halted:
            return state.halted
        if self._asked():
            return f"turn {state.turn}: it waits for your answer"
        if state.in_turn and self._screen.doing:
            return f"turn {state.turn}: {self._screen.doing} thinks, {max(0, now - self._screen.since):.0f} s"
        if state.in_turn:
            return f"turn {state.turn}: at work"
        return "works" if wakes is not None and wakes <= now else describe_rest(wakes)
