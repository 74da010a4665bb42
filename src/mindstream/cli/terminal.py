"""The conversation in a terminal."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import signal
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.styles import Style

from mindstream.cli.commands import COMMANDS, Commands
from mindstream.cli.conversation import Conversation, Wishes, conversing
from mindstream.cli.screens import TextScreen
from mindstream.errors import MindstreamError
from mindstream.log.events import Logged
from mindstream.log.files import private_file
from mindstream.log.folder import history
from mindstream.memory.store.validation import MAX_BYTES
from mindstream.settings import Settings

LONGEST_HISTORY = 16 << 20
"""In bytes; it is read whole."""
STYLE = Style.from_dict({"you": "bold ansicyan", "thinking": "ansibrightblack"})
AGAIN = 4
"""How many lines of a resumed conversation are shown again."""


async def talk(settings: Settings, wishes: Wishes, screen: TextScreen) -> int:
    """Talk until the user leaves; return the exit code."""
    with silent_keys():
        await _talk(settings, wishes, screen)
    return 0


async def _talk(settings: Settings, wishes: Wishes, screen: TextScreen) -> None:
    from mindstream.cli.chat import describe_models

    async with conversing(settings, screen, wishes) as conversation:
        mind = conversation.mind
        screen.note(describe_models(mind.models))
        screen.note(f"{mind.responder.title} · {settings.user} · /help says what else there is, Ctrl-D leaves")
        for record in await mind.stream.latest("chat", AGAIN, episode=mind.session):
            screen.note(f"{'you' if record.data.get('by_user') else record.by}: {record.text}")
        await Terminal(conversation, screen, history(settings.data, conversation.mind.stream.key)).run()
        screen.note(f"kept in {settings.data} · --session {shlex.quote(mind.session)} goes on with it")


class Terminal:
    """Asks, answers, and shows between the two what happens meanwhile."""

    def __init__(self, conversation: Conversation, screen: TextScreen, history: Path) -> None:
        self._conversation = conversation
        self._screen = screen
        self._commands = Commands(conversation.mind, screen, self._choose)
        self._history = history
        self._session = self._begin()
        conversation.on_shown = self._redraw

    def _begin(self) -> PromptSession[str]:
        """Make the line in which is typed, with what was typed before."""
        return PromptSession(
            history=_history(self._history), style=STYLE, key_bindings=self._keys(), rprompt=self._thinking,
            completer=WordCompleter(sorted(COMMANDS), sentence=True), complete_while_typing=False,
        )  # fmt: skip

    async def run(self) -> None:
        """Go on until the user leaves; then finish what is being thought about."""
        while (text := await self._ask()) is not None:
            if text.startswith("/") and not text.startswith("//"):
                if not await self._commands.run(text):
                    break
                if text.startswith("/forget"):
                    self._session = self._begin()  # without the lines that went
            else:
                await self._interruptibly(self._conversation.say(text.removeprefix("/")), "stopped")
        if await self._conversation.mind.reasoners.work():
            self._screen.note("finishing what is being thought about; Ctrl-C leaves it for the next time")
            await self._interruptibly(self._conversation.settled(), "left for the next time")

    async def _ask(self) -> str | None:
        """Return what is typed, or None where the user leaves."""
        while True:
            with patch_stdout(raw=True):
                try:
                    text = await self._session.prompt_async(FormattedText([("class:you", "you: ")]))
                except (EOFError, KeyboardInterrupt):
                    return None
            if text.strip():
                return text.strip()

    async def _choose(self, question: str) -> bool:
        """Ask for y or n until one of them is typed; Ctrl-C and Ctrl-D mean no."""
        asking: PromptSession[str] = PromptSession(style=STYLE)
        while True:
            with patch_stdout(raw=True):
                try:
                    answer = (await asking.prompt_async(f"{question} [y/n]: ")).strip().lower()
                except (EOFError, KeyboardInterrupt):
                    return False
            if answer in ("y", "yes", "n", "no"):
                return answer[0] == "y"

    async def _interruptibly(self, doing: asyncio._CoroutineLike[None], stopped: str) -> None:
        """Do it; Ctrl-C breaks it off, and the conversation goes on."""
        task: asyncio.Task[None] = asyncio.ensure_future(doing)  # type: ignore[arg-type]

        def stop() -> None:
            if not task.cancelling():  # once: a second time would break off the keeping of what was said so far
                task.cancel()

        try:
            with _on_interrupt(stop):
                await asyncio.wait({task})
        finally:
            if not task.done():
                stop()  # it is we who are cancelled
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
            """Take a paste, unless it is so long that showing it alone would take minutes."""
            size = len(event.data.encode(errors="replace"))
            if size > MAX_BYTES:
                self._screen.complain(
                    f"that is too long to paste: {size:,} bytes, at most {MAX_BYTES:,} can be said at once"
                )
            else:
                event.current_buffer.insert_text(event.data.replace("\r\n", "\n").replace("\r", "\n"))

        return keys


def leaving_keys() -> KeyBindings:
    """Return the keys of a line in which is typed."""
    keys = KeyBindings()

    @keys.add("c-c")
    def _(event: KeyPressEvent) -> None:
        """Ctrl-C: clear what is typed; with nothing typed, leave."""
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=KeyboardInterrupt)

    return keys


class _History(FileHistory):
    def store_string(self, string: str) -> None:
        with contextlib.suppress(OSError):  # a full disk must not end the conversation
            super().store_string(string)


def _history(path: Path) -> History:
    """Return what was typed before; where its file is none (a pipe could take for ever), or huge, nothing is kept."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, exist_ok=True)
        if not path.is_symlink():
            path.touch(mode=0o600)
            private_file(path)
        found = path.lstat()
        if stat.S_ISREG(found.st_mode) and found.st_size <= LONGEST_HISTORY:
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


@contextlib.contextmanager
def silent_keys() -> Iterator[None]:
    """Between two prompts, show nothing of what is typed and keep it, Ctrl-D too, for the next prompt."""
    try:
        import termios

        before = termios.tcgetattr(sys.stdin)
    except (ImportError, OSError, ValueError):
        yield
        return
    silent = [*before]
    silent[3] &= ~(termios.ECHO | termios.ICANON)
    termios.tcsetattr(sys.stdin, termios.TCSANOW, silent)
    try:
        yield
    finally:
        with contextlib.suppress(termios.error):  # the terminal may have gone away
            termios.tcsetattr(sys.stdin, termios.TCSANOW, before)


def forget_typed() -> None:
    """Let go of what was typed before a question was there: it is no answer to it."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import termios

        with contextlib.suppress(termios.error):
            termios.tcflush(sys.stdin, termios.TCIFLUSH)
