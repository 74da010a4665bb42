"""Terminals: the conversation and its commands; the input for a life (an answer to its question, a message, a
command)."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import signal
import stat
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.styles import Style

from mindstream.cli.conversation import COMMANDS, Conversation, TalkOptions, conversing, describe_models
from mindstream.cli.memory.care import WHICH, WITHOUT_MESSAGES, describe, describe_done, describe_session, picked
from mindstream.cli.screens.events import (
    describe_patch,
    describe_rest,
    describe_spent,
    list_open,
    list_tasks,
    plan_told,
)
from mindstream.cli.screens.life import Screen
from mindstream.cli.screens.talk import TextScreen
from mindstream.cli.shell.keys import leaving_keys, silent_keys
from mindstream.cli.shell.output import PART, Answer, read_answer, short
from mindstream.coach.coach import Coach
from mindstream.errors import MindstreamError
from mindstream.life import commands
from mindstream.life.schedule import Rhythm
from mindstream.life.state import LifeState
from mindstream.log.audit import Deed, machine_user
from mindstream.log.events import Logged
from mindstream.log.files import history, private_file
from mindstream.log.work import KEPT
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import MAX_UTTERANCE
from mindstream.private_files import make_private_folder
from mindstream.reasoners.reasoner import rows_of
from mindstream.settings import Settings
from mindstream.text.words import count_of

MAX_HISTORY = 16 << 20
"""Maximum size of the history file, in bytes; a larger one is not used, because the whole file would be read."""
STYLE = Style.from_dict({"you": "bold ansicyan", "thinking": "ansibrightblack"})
AGAIN = 4
"""Maximum number of messages of a resumed conversation that are shown again."""


async def talk(settings: Settings, options: TalkOptions, screen: TextScreen) -> int:
    """Hold a conversation until the user leaves; return the exit code."""
    with silent_keys():
        await _talk(settings, options, screen)
    return 0


async def _talk(settings: Settings, options: TalkOptions, screen: TextScreen) -> None:
    async with conversing(settings, screen, options) as conversation:
        mind = conversation.mind
        screen.note(describe_models(mind.models, settings))
        screen.note(f"{mind.responder.title} · {settings.user} · /help lists the commands, Ctrl-D leaves")
        for record in await mind.memory.latest("chat", AGAIN, episode=mind.session):
            screen.note(f"{'you' if record.data.get('by_user') else record.by}: {record.text}")
        await Terminal(conversation, screen, history(settings.data.beside, conversation.mind.memory.key)).run()
        screen.note(f"stored in {settings.data} · --session {shlex.quote(mind.session)} continues it")


class Terminal:
    """Reads input in a terminal, and shows answers and the events between them."""

    def __init__(self, conversation: Conversation, screen: TextScreen, history: Path) -> None:
        self._conversation = conversation
        self._screen = screen
        self._commands = Commands(conversation, screen, self._ask_line)
        self._history = history
        self._session = self._begin()
        conversation.on_shown = self._redraw

    def _begin(self) -> PromptSession[str]:
        """Return a new prompt with the history of input."""
        return PromptSession(
            history=_history(self._history),
            style=STYLE,
            key_bindings=self._keys(),
            rprompt=self._thinking,
            completer=WordCompleter(sorted(COMMANDS), sentence=True),
            complete_while_typing=False,
        )

    async def run(self) -> None:
        """Run until the user leaves; then let the reasoners finish."""
        while (text := await self._ask()) is not None:
            if text.startswith("/") and not text.startswith("//"):
                if not await self._commands.run(text):
                    break
                if text.startswith("/forget"):
                    self._session = self._begin()  # reads the input history again, without the forgotten lines
            else:
                await self._interruptibly(self._conversation.say(text.removeprefix("/")), "stopped")
        self._conversation.mind.reasoners.resume()
        if await self._conversation.mind.reasoners.work():
            self._screen.note("the reasoners finish their work; Ctrl-C leaves it for the next time")
            await self._interruptibly(self._conversation.settled(), "the rest of the work is left for the next time")

    async def _ask(self) -> str | None:
        """Return the next input that is not blank; None if the user leaves."""
        while True:
            with patch_stdout(raw=True):
                try:
                    text = await self._session.prompt_async(FormattedText([("class:you", "you: ")]))
                except (EOFError, KeyboardInterrupt):
                    return None
            if text.strip():
                return text.strip()

    async def _ask_line(self, question: str) -> str | None:
        """Ask a question and return the answer; None if the user pressed Ctrl-C or Ctrl-D."""
        asking: PromptSession[str] = PromptSession(style=STYLE)
        with patch_stdout(raw=True):
            try:
                return await asking.prompt_async(question)
            except (EOFError, KeyboardInterrupt):
                return None

    async def _interruptibly(self, doing: asyncio._CoroutineLike[None], stopped: str) -> None:
        """Run a coroutine; Ctrl-C cancels it, and the conversation continues."""
        task: asyncio.Task[None] = asyncio.ensure_future(doing)  # type: ignore[arg-type]

        def stop() -> None:
            if not task.cancelling():  # only once: a second cancellation would stop the storing of the partial answer
                task.cancel()

        try:
            with _on_interrupt(stop):
                await asyncio.wait({task})
        finally:
            if not task.done():
                stop()  # this task itself was cancelled
                await asyncio.wait({task})
        await self._conversation.caught_up()
        self._screen.broken_off()
        if task.cancelled():
            self._screen.note(stopped)
        elif isinstance(error := task.exception(), MindstreamError):
            self._screen.complain(str(error))
        else:
            task.result()

    def _thinking(self) -> FormattedText:
        shown = self._screen.thinking and not self._session.app.is_done
        return FormattedText([("class:thinking", "thinking …" if shown else "")])

    def _redraw(self, _: Logged) -> None:
        self._session.app.invalidate()

    def _keys(self) -> KeyBindings:
        keys = leaving_keys()

        @keys.add(Keys.BracketedPaste)
        def _(event: KeyPressEvent) -> None:
            """Insert a paste, unless it is too long: showing it would take minutes."""
            if (size := len(event.data)) > MAX_UTTERANCE:
                self._screen.complain(
                    f"the pasted text is too long: {size:,} characters; a message has at most {MAX_UTTERANCE:,}"
                )
            else:
                event.current_buffer.insert_text(event.data.replace("\r\n", "\n").replace("\r", "\n"))

        return keys


class _History(FileHistory):
    def store_string(self, string: str) -> None:
        with contextlib.suppress(OSError):  # a full disk must not end the conversation
            super().store_string(string)


def _history(path: Path) -> History:
    """Return the input history, which is stored in a file.

    The history is kept only in memory if the file cannot be opened, is not a regular file (a pipe could block), or is
    larger than MAX_HISTORY.
    """
    with contextlib.suppress(OSError):
        make_private_folder(path.parent)
        if not path.is_symlink():
            path.touch(mode=0o600)
            private_file(path)
        found = path.lstat()
        if stat.S_ISREG(found.st_mode) and found.st_size <= MAX_HISTORY:
            return _History(str(path))
    return InMemoryHistory()


@contextlib.contextmanager
def _on_interrupt(stop: Callable[[], None]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, stop)
    try:
        yield
    finally:
        loop.add_signal_handler(signal.SIGINT, lambda: None)


WANTING = {
    "/retain": "type the text to store, for example: /retain the key hangs in the shed",
    "/recall": "type a query, for example: /recall what disturbs the sleep",
    "/forget": "type the subject to forget, for example: /forget the red bicycle",
}


class Commands:
    """Runs the commands of the terminal; commands are not stored in memory."""

    def __init__(
        self, conversation: Conversation, screen: TextScreen, ask_line: Callable[[str], Awaitable[str | None]]
    ) -> None:
        self._conversation, self._mind = conversation, conversation.mind
        self._screen = screen
        self._ask_line = ask_line

    async def run(self, line: str) -> bool:
        """Run a command; return False if it is /quit or /exit."""
        command, _, rest = line.partition(" ")
        if not rest.strip() and (example := WANTING.get(command.lower())):
            self._screen.complain(f"{command} WORDS: {example}")
            return True
        try:
            match command.lower():
                case "/belief":
                    self._belief()
                case "/plan":
                    self._screen.text(plan_told(Coach.of(self._mind).plan) or "there is no plan yet")
                case "/retain":
                    await self._retain(rest.strip())
                case "/recall":
                    await self._recall(rest.strip())
                case "/sessions":
                    found = await self._mind.memory.sessions()
                    self._screen.text("\n".join(map(describe_session, found)) or "there are no sessions yet")
                case "/forget":
                    await self._forget(rest.strip())
                case "/offer":
                    await self._offer()
                case "/work":
                    await self._work()
                case "/cancel":
                    stopped = await self._mind.cancel()
                    self._screen.text(f"{stopped} stopped" if stopped else "no reasoner is running")
                case "/help" | "/?":
                    self._help()
                case "/quit" | "/exit":
                    return False
                case _:
                    self._screen.complain(
                        f"there is no command {command}; /help lists the commands. To send a text that begins with /,"
                        " type // in its place"
                    )
        except MindstreamError as error:
            self._screen.complain(str(error))
        return True

    def _belief(self) -> None:
        belief = Coach.of(self._mind).belief
        value = {
            name: held for name, held in belief.value.model_dump(mode="json").items() if held not in (None, [], "")
        }
        lines = [f"belief v{belief.version}"] if belief.version else ["there is no belief yet"]
        self._screen.text("\n".join([*lines, *(f"  {describe_patch({name: held})}" for name, held in value.items())]))

    async def _retain(self, words: str) -> None:
        note = await self._mind.memory.retain(words, "note", by=self._mind.memory.name)
        self._screen.text(f"retained as {note.id}")

    async def _recall(self, words: str) -> None:
        found = await self._mind.memory.recall(words, k=5, touch=False)
        mark = f"low confidence ({found.certainty:.0%}), " if found.low_confidence else ""
        lines = [f"{each.confidence:.2f}  {mark}{each.record.kind}: {short(each.record.text)}" for each in found]
        self._screen.text("\n".join(lines) or "no memory was found")

    async def _forget(self, words: str) -> None:
        memory = self._mind.memory
        removal = await memory.find_removal(about=words)
        if lines := describe(removal):
            self._screen.text("\n".join(lines))
        if removal.similar and (ids := picked(removal, await self._ask_line(f"{WHICH}: ") or "")):
            removal = await memory.find_removal(*ids, about=words)
        answer = await self._choose("forget it permanently?", part=bool(removal.apart)) if removal else "y"
        if answer == "n":
            self._screen.text("nothing was forgotten")
            return
        if answer == "p":
            removal = await memory.find_removal(about=words, kinds=WITHOUT_MESSAGES)
        deed = Deed("forgot", "command", machine_user(), memory.key)
        async with self._mind.reasoners.floor:  # no answer may use the records that are being forgotten
            self._screen.text(describe_done(await memory.remove(removal, deed=deed)))

    async def _choose(self, question: str, *, part: bool = False) -> Answer:
        """Ask until the user types y or n, or p if `part` is set; Ctrl-C and Ctrl-D mean no."""
        hint = f"{question}\n{PART}\n[y/n/p]: " if part else f"{question} [y/n]: "
        while (line := await self._ask_line(hint)) is not None:
            if answer := read_answer(line, part=part):
                return answer
        return "n"

    async def _offer(self) -> None:
        del self._conversation.exchanges[:-1]
        if self._conversation.offering is None or not self._conversation.exchanges:
            self._screen.text("there is nothing to offer: start with `mindstream chat --offer POOL`, and get an answer")
            return
        query, answer = self._conversation.exchanges[0]
        self._screen.text(f"{query}\n→ {answer}")
        if await self._choose("offer this to the pool, privately until you share it?") == "y":
            self._screen.text("\n".join(await self._conversation.offer()))

    async def _work(self) -> None:
        lines = []
        for work in await self._mind.reasoners.work():
            waits = work.error in ("", KEPT)
            state = "thinking" if work.running else "waiting" if waits else f"failed, {work.error}"
            heard = await rows_of(self._mind.memory, [work])
            about = f"about “{short(getattr(heard[0].event, 'text', ''), 60)}”" if heard else "not about an utterance"
            lines.append(f"{work.slot}: {state}, {about}")
        self._screen.text("\n".join(lines) or "no reasoner is running")

    def _help(self) -> None:
        self._screen.text("\n".join(f"{name:9} {what}" for name, what in COMMANDS.items()))
        self._screen.text("Ctrl-C    stops an answer; its partial text is stored")


LIFE_COMMANDS = {
    "/tasks": "list the life's tasks and open questions",
    "/add": "TASK: add a task",
    "/drop": "N: give up task N",
    "/allow": "[ID]: allow the call that needs permission",
    "/refuse": "[ID]: refuse the call that needs permission",
    "/pause": "[WHY]: pause the life until /resume, or `mindstream life resume`",
    "/resume": "continue the life",
    "/stop": "[WHY]: end this life; /resume, or a new goal, continues it",
    "/help": "list the commands",
    "/quit": "leave, as Ctrl-C and Ctrl-D do; nothing is lost, `mindstream live` continues it",
}
LIFE_STYLE = Style.from_dict(
    {"ask": "bold ansiyellow", "say": "bold ansicyan", "bottom-toolbar": "noreverse ansibrightblack"}
)
REFRESH_S = 1.0
"""Refresh interval of the status line, in seconds."""


class LifeTerminal:
    """Takes the user's input for a life at a prompt, with a status line below it.

    Args:
        state: returns the current state of the life.
    """

    def __init__(self, memory: Memory, screen: Screen, state: Callable[[], LifeState], rhythm: Rhythm) -> None:
        self._memory, self._screen, self._state, self._rhythm = memory, screen, state, rhythm
        self._session: PromptSession[str] = PromptSession(
            style=LIFE_STYLE,
            key_bindings=leaving_keys(),
            bottom_toolbar=lambda: FormattedText([("class:bottom-toolbar", self._status())]),
            refresh_interval=REFRESH_S,
            completer=WordCompleter(sorted(LIFE_COMMANDS), sentence=True),
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
                self._screen.say("\n".join(f"{name:9} {what}" for name, what in LIFE_COMMANDS.items()), "")
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
        left = count_of(len(state.ledger.left()), "task")
        return f"{self._doing(state)} · {left} left · {describe_spent(state)} · /help"

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
