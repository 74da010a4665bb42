"""The conversation in a terminal; what a user may type there other than words for the mind."""

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
from mindstream.cli.memory.care import WITHOUT_MESSAGES, WHICH, describe, describe_done, describe_session, picked
from mindstream.cli.screens.events import describe_patch, plan_told
from mindstream.cli.screens.talk import TextScreen
from mindstream.cli.shell.keys import leaving_keys, silent_keys
from mindstream.cli.shell.output import PART, Answer, read_answer, short
from mindstream.coach.coach import Coach
from mindstream.errors import MindstreamError
from mindstream.log.audit import Deed, machine_user
from mindstream.log.events import Logged
from mindstream.log.files import history, private_file
from mindstream.memory.store.validation import MAX_UTTERANCE
from mindstream.private_files import make_private_folder
from mindstream.reasoners.reasoner import rows_of
from mindstream.settings import Settings

LONGEST_HISTORY = 16 << 20
"""In bytes; it is read whole."""
STYLE = Style.from_dict({"you": "bold ansicyan", "thinking": "ansibrightblack"})
AGAIN = 4
"""How many lines of a resumed conversation are shown again."""


async def talk(settings: Settings, options: TalkOptions, screen: TextScreen) -> int:
    """Talk until the user leaves; return the exit code."""
    with silent_keys():
        await _talk(settings, options, screen)
    return 0


async def _talk(settings: Settings, options: TalkOptions, screen: TextScreen) -> None:
    async with conversing(settings, screen, options) as conversation:
        mind = conversation.mind
        screen.note(describe_models(mind.models))
        screen.note(f"{mind.responder.title} · {settings.user} · /help says what else there is, Ctrl-D leaves")
        for record in await mind.memory.latest("chat", AGAIN, episode=mind.session):
            screen.note(f"{'you' if record.data.get('by_user') else record.by}: {record.text}")
        await Terminal(conversation, screen, history(settings.data.beside, conversation.mind.memory.key)).run()
        screen.note(f"kept in {settings.data} · --session {shlex.quote(mind.session)} goes on with it")


class Terminal:
    """Asks, answers, and shows between the two what happens meanwhile."""

    def __init__(self, conversation: Conversation, screen: TextScreen, history: Path) -> None:
        self._conversation = conversation
        self._screen = screen
        self._commands = Commands(conversation, screen, self._ask_line)
        self._history = history
        self._session = self._begin()
        conversation.on_shown = self._redraw

    def _begin(self) -> PromptSession[str]:
        """Make the line in which is typed, with what was typed before."""
        return PromptSession(
            history=_history(self._history),
            style=STYLE,
            key_bindings=self._keys(),
            rprompt=self._thinking,
            completer=WordCompleter(sorted(COMMANDS), sentence=True),
            complete_while_typing=False,
        )

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

    async def _ask_line(self, question: str) -> str | None:
        """Ask for a line; None: Ctrl-C or Ctrl-D."""
        asking: PromptSession[str] = PromptSession(style=STYLE)
        with patch_stdout(raw=True):
            try:
                return await asking.prompt_async(question)
            except (EOFError, KeyboardInterrupt):
                return None

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
            if (size := len(event.data)) > MAX_UTTERANCE:
                self._screen.complain(
                    f"that is too long to paste: {size:,} characters, and a message has at most {MAX_UTTERANCE:,}"
                )
            else:
                event.current_buffer.insert_text(event.data.replace("\r\n", "\n").replace("\r", "\n"))

        return keys


class _History(FileHistory):
    def store_string(self, string: str) -> None:
        with contextlib.suppress(OSError):  # a full disk must not end the conversation
            super().store_string(string)


def _history(path: Path) -> History:
    """Return what was typed before; where its file is none (a pipe could take for ever), or huge, nothing is kept."""
    with contextlib.suppress(OSError):
        make_private_folder(path.parent)
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


WANTING = {
    "/retain": "say what is to be retained, as in /retain the key hangs in the shed",
    "/recall": "say what to look for, as in /recall what disturbs the sleep",
    "/forget": "say what is to be forgotten, as in /forget the red bicycle",
}


class Commands:
    """Answers commands; nothing of it is remembered."""

    def __init__(
        self, conversation: Conversation, screen: TextScreen, ask_line: Callable[[str], Awaitable[str | None]]
    ) -> None:
        self._conversation, self._mind = conversation, conversation.mind
        self._screen = screen
        self._ask_line = ask_line

    async def run(self, line: str) -> bool:
        """Do what a line says; return False where the user wants to leave."""
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
                    self._screen.text(f"{stopped} stopped" if stopped else "nothing is being thought about")
                case "/help" | "/?":
                    self._help()
                case "/quit" | "/exit":
                    return False
                case _:
                    self._screen.complain(
                        f"there is no {command}; /help shows what there is, // says a line that begins with /"
                    )
        except MindstreamError as error:
            self._screen.complain(str(error))
        return True

    def _belief(self) -> None:
        belief = Coach.of(self._mind).belief
        value = {
            name: held for name, held in belief.value.model_dump(mode="json").items() if held not in (None, [], "")
        }
        lines = [f"belief v{belief.version}"] if belief.version else ["nothing is believed yet"]
        self._screen.text("\n".join([*lines, *(f"  {describe_patch({name: held})}" for name, held in value.items())]))

    async def _retain(self, words: str) -> None:
        note = await self._mind.memory.retain(words, "note", by=self._mind.memory.name)
        self._screen.text(f"retained as {note.id}")

    async def _recall(self, words: str) -> None:
        found = await self._mind.memory.recall(words, k=5, touch=False)
        mark = f"low confidence ({found.certainty:.0%}), " if found.low_confidence else ""
        lines = [f"{each.score:5.1f}  {mark}{each.record.kind}: {short(each.record.text)}" for each in found]
        self._screen.text("\n".join(lines) or "nothing is found")

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
        async with self._mind.reasoners.floor:  # nobody speaks from what is being forgotten
            self._screen.text(describe_done(await memory.remove(removal, deed=deed)))

    async def _choose(self, question: str, *, part: bool = False) -> Answer:
        """Ask until y or n is typed, or p where a part may be chosen; Ctrl-C and Ctrl-D mean no."""
        hint = f"{question}\n{PART}\n[y/n/p]: " if part else f"{question} [y/n]: "
        while (line := await self._ask_line(hint)) is not None:
            if answer := read_answer(line, part=part):
                return answer
        return "n"

    async def _offer(self) -> None:
        del self._conversation.exchanges[:-1]
        if self._conversation.offering is None or not self._conversation.exchanges:
            self._screen.text("nothing is there to be offered: mindstream chat --offer POOL, and an answer")
            return
        query, answer = self._conversation.exchanges[0]
        self._screen.text(f"{query}\n→ {answer}")
        if await self._choose("offer this to the pool, private until you share it?") == "y":
            self._screen.text("\n".join(await self._conversation.offer()))

    async def _work(self) -> None:
        lines = []
        for work in await self._mind.reasoners.work():
            state = "thinking" if work.running else f"failed, {work.error}" if work.error else "waiting"
            heard = await rows_of(self._mind.memory, [work])
            about = f"about “{short(getattr(heard[0].event, 'text', ''), 60)}”" if heard else "by itself"
            lines.append(f"{work.slot}: {state}, {about}")
        self._screen.text("\n".join(lines) or "nothing is being thought about")

    def _help(self) -> None:
        self._screen.text("\n".join(f"{name:9} {what}" for name, what in COMMANDS.items()))
        self._screen.text("Ctrl-C    while it answers: stop the answer; what was said so far is kept")
