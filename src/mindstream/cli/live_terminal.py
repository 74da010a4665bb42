"""A life in a terminal: what is typed answers what it asks, is said to it, or steers it."""

from __future__ import annotations

from collections.abc import Callable

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.styles import Style

from mindstream.cli.screens.life import Screen
from mindstream.cli.screens.life_lines import cause, count, describe_rest, describe_spent, list_open, list_tasks, words
from mindstream.cli.shell.flags import leaving_keys, silent_keys
from mindstream.errors import MindstreamError
from mindstream.life import commands
from mindstream.life.schedule import Rhythm
from mindstream.life.state import LifeState
from mindstream.memory.memory import Memory

COMMANDS = {
    "/tasks": "what it works on, waits for, has done, and what it asks of you",
    "/add": "TASK: put a task into its ledger",
    "/drop": "N: give a task up",
    "/allow": "[ID]: the call that wants leave may be made",
    "/refuse": "[ID]: it may not",
    "/pause": "[WHY]: do nothing until /resume, or `mindstream life resume`",
    "/resume": "go on",
    "/stop": "[WHY]: end this life; /resume, or a new goal, takes it up again",
    "/help": "this",
    "/quit": "leave (as Ctrl-C and Ctrl-D do): what is done is kept, `mindstream live` goes on",
}
STYLE = Style.from_dict(
    {"ask": "bold ansiyellow", "say": "bold ansicyan", "bottom-toolbar": "noreverse ansibrightblack"}
)
REFRESH_S = 1.0


class LifeTerminal:
    """Reads what is typed; below it stands what goes on.

    Args:
        state: gives what the life is made of now.
    """

    def __init__(self, memory: Memory, screen: Screen, state: Callable[[], LifeState], rhythm: Rhythm) -> None:
        self._memory, self._screen, self._state, self._rhythm = memory, screen, state, rhythm
        self._session: PromptSession[str] = PromptSession(
            style=STYLE,
            key_bindings=leaving_keys(),
            bottom_toolbar=self._toolbar,
            refresh_interval=REFRESH_S,
            completer=WordCompleter(sorted(COMMANDS), sentence=True),
            complete_while_typing=False,
            erase_when_done=True,
        )

    async def run(self) -> None:
        """Go on until a person leaves."""
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
        if text.startswith("/") and not text.startswith("//"):
            name, _, rest = text.partition(" ")
            await self._command(name.lower(), rest.strip())
        elif self._asked():
            await commands.answer(self._memory, text, self._asked()[0])
        else:
            await commands.say(self._memory, text.removeprefix("/"))

    async def _command(self, name: str, rest: str) -> None:
        match name:
            case "/tasks" | "/status":
                self._tasks()
            case "/add":
                await commands.add_task(self._memory, rest)
            case "/drop" if rest.isdigit():
                await commands.stop_task(self._memory, int(rest))
            case "/allow" | "/refuse":
                await commands.give_leave(self._memory, name == "/allow", rest)
            case "/pause":
                await commands.order(self._memory, "pause", rest)
            case "/resume":
                await commands.order(self._memory, "resume")
            case "/stop":
                await commands.order(self._memory, "stop", rest)
            case "/help" | "/?":
                self._screen.say("\n".join(f"{name:9} {what}" for name, what in COMMANDS.items()), "")
            case _:
                self._screen.say(f"there is no {name} {rest[:40]}; /help shows what there is", "red")

    def _tasks(self) -> None:
        state, now = self._state(), self._memory.clock.now()
        lines = [*list_tasks(state.ledger.ordered(), now, state.language), *list_open(state)]
        self._screen.say("\n".join(lines) or "the ledger is empty", "")

    def _asked(self) -> list[str]:
        """Return the ids of the questions that it waits for."""
        state = self._state()
        return [id_ for id_ in state.questions if id_ not in state.answers]

    def _label(self) -> FormattedText:
        language = self._state().language
        return FormattedText(
            [("class:ask", words("answer", language)) if self._asked() else ("class:say", words("say", language))]
        )

    def _toolbar(self) -> FormattedText:
        state = self._state()
        left = sum(task.standing in ("open", "waiting") for task in state.ledger.tasks.values())
        parts = [
            self._doing(state),
            words("left", state.language, count(left, "task", state.language)),
            describe_spent(state.spent, state.language),
            "/help",
        ]
        return FormattedText([("class:bottom-toolbar", " · ".join(parts))])

    def _doing(self, state: LifeState) -> str:
        now, language = self._memory.clock.now(), state.language
        if state.halted:
            return cause(state.halted, language)
        if self._asked():
            return words("waits_for_you", language, state.turn)
        if self._screen.doing and state.in_turn:
            seconds = f"{max(0, now - self._screen.since):.0f}"
            return words("thinks", language, state.turn, self._screen.doing, seconds)
        if state.in_turn:
            return words("at_work", language, state.turn)
        wakes = self._rhythm.next_wake(state, now)
        is_due = wakes is not None and wakes <= now
        return words("works", language) if is_due else describe_rest(wakes, language)
