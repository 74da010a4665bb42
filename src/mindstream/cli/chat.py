"""`mindstream chat`: in a terminal, on lines, or by itself."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace

from mindstream.cli.clean import complain
from mindstream.cli.console import PlainConsole
from mindstream.cli.conversation import Wishes, conversing
from mindstream.cli.edge import no_more_output
from mindstream.cli.lines import Lines, answer
from mindstream.cli.screens import JsonScreen, Screen, TextScreen
from mindstream.cli.stopping import Stopping
from mindstream.coach.packs.load import load
from mindstream.errors import InputError
from mindstream.models.roles import Models
from mindstream.paths import is_odd
from mindstream.settings import Settings

INCOMPLETE = 1
"""The exit code where a line could not be taken."""


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
    load(settings.pack)  # a broken one is refused before anybody is asked to speak
    in_terminal = sys.stdin.isatty() and sys.stdout.isatty() and not wishes.json
    stopping.heed(interrupt=not in_terminal)
    if in_terminal:
        from mindstream.cli.terminal import talk

        screen = TextScreen(PlainConsole(highlight=False), echo=False, timed=False, thinks=False)
        return await talk(settings, wishes, screen)
    lines = Lines()
    first = await lines.next()
    if first is None:
        complain("nothing stands on standard input: say something, or see `mindstream demo`")
        return 0
    shown = _screen(wishes)
    async with conversing(settings, shown, replace(wishes, follow_ups=False)) as conversation:
        shown.note(describe_models(conversation.mind.models))
        complete = await answer(conversation, first, lines, wait=wishes.wait)
    return 0 if complete else INCOMPLETE


def _screen(wishes: Wishes) -> Screen:
    if wishes.json:
        return JsonScreen()
    return TextScreen(PlainConsole(highlight=False), echo=True, timed=True, thinks=True)


def describe_models(models: Models) -> str:
    """Say who answers, in a line."""
    if models.only_rules:
        return "no model is configured: stand-ins answer, and understand little; see `mindstream doctor`"
    talker, reasoner = models.of("talker").name, models.of("reasoner").name
    return f"{talker} answers and thinks" if talker == reasoner else f"{talker} answers, {reasoner} thinks"
