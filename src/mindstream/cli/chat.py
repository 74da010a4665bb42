"""`mindstream chat`: in a terminal, on lines, or by itself."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from mindstream.cli.clean import complain
from mindstream.cli.conversation import Wishes, conversing
from mindstream.cli.edge import no_more_output
from mindstream.cli.lines import Lines, answer, play
from mindstream.cli.screens import JsonScreen, Screen, TextScreen
from mindstream.cli.stopping import Stopping
from mindstream.coach.packs.load import load
from mindstream.coach.packs.pack import Pack
from mindstream.errors import InputError
from mindstream.models.roles import Models
from mindstream.paths import is_odd
from mindstream.service.pace import Pace
from mindstream.settings import Settings

INCOMPLETE = 1
"""The exit code where a line could not be taken."""
PAPERS_GATE = "belief"
"""With it a pack's dialogue is played, where nobody names another: that of the sleep pack is the paper's."""


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # Rich would end the process on the spot


def chat(settings: Settings, wishes: Wishes) -> int:
    """Hold a conversation; return the exit code."""
    stopping = Stopping()
    try:
        return asyncio.run(_chat(settings, wishes, stopping))
    except (KeyboardInterrupt, asyncio.CancelledError, OSError) as error:  # the screen may have gone away with its user
        if stopping.signal is None and not isinstance(error, KeyboardInterrupt):
            raise
    try:
        complain("stopped; what was heard is kept, and thought about the next time")
        sys.stdout.flush()
    except OSError:
        no_more_output()
    return stopping.code


async def _chat(settings: Settings, wishes: Wishes, stopping: Stopping) -> int:
    if wishes.record and is_odd(wishes.record):
        raise InputError(f"the recording {wishes.record} cannot be written: it is not a regular file")
    pack = load(settings.pack)  # a broken one is refused before anybody is asked to speak
    in_terminal = sys.stdin.isatty() and sys.stdout.isatty() and not wishes.json
    stopping.heed(interrupt=not in_terminal)
    if in_terminal:
        from mindstream.cli.terminal import talk

        screen = TextScreen(_Console(highlight=False), echo=False, timed=False, thinks=False)
        return await talk(settings, wishes, screen)
    lines = Lines()
    first = await lines.next()
    if first is None:
        return await _demo(settings, wishes, pack)
    shown = _screen(wishes)
    async with conversing(settings, shown, wishes) as conversation:
        shown.note(describe_models(conversation.mind.models))
        complete = await answer(conversation, first, lines, wait=wishes.wait)
    return 0 if complete else INCOMPLETE


async def _demo(settings: Settings, wishes: Wishes, pack: Pack) -> int:
    """Play the pack's own dialogue, slowly enough to see who does what when."""
    screen = _screen(wishes)
    if not pack.demo:
        screen.note(f"nothing stands on standard input, and the pack {pack.name} has no dialogue to play")
        return 0
    with contextlib.ExitStack() as stack:
        if not wishes.own_data:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="mindstream-demo-"))
            settings = settings.model_copy(update={"data": Path(folder)})
        if not wishes.own_gate:
            settings = settings.model_copy(update={"gate": PAPERS_GATE})
        pace = Pace().faster(settings.demo_speed)
        async with conversing(settings, screen, wishes, pace) as conversation:
            if await conversation.mind.stream.latest("chat", 1):
                raise InputError(
                    f"nothing stands on standard input, and {settings.user!r} has talked here before: the pack's"
                    " dialogue is not played into somebody's memory; give lines to read, or another --data"
                )
            screen.note(f"Nothing stands on standard input, so the pack {pack.name} plays its own dialogue.")
            screen.note("Rules are slowed down, so that it can be seen who does what when.")
            screen.note(f"The gate {settings.gate} decides when the Talker waits.")
            screen.note(describe_models(conversation.mind.models))
            await play(conversation, pack.demo, pace)
    return 0


def _screen(wishes: Wishes) -> Screen:
    if wishes.json:
        return JsonScreen()
    return TextScreen(_Console(highlight=False), echo=True, timed=True, thinks=True)


def describe_models(models: Models) -> str:
    """Say who answers, in a line."""
    if models.only_rules:
        return "rules: no model is configured; see `mindstream doctor`"
    talker, reasoner = models.of("talker").name, models.of("reasoner").name
    return f"{talker} answers and thinks" if talker == reasoner else f"{talker} answers, {reasoner} thinks"
