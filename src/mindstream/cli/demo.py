"""`mindstream demo`: recordings of what it does with a language model."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from rich.text import Text

from mindstream.cli.clean import complain, say
from mindstream.cli.console import PlainConsole
from mindstream.cli.demo_screens import SCREENS
from mindstream.cli.edge import STOPPED
from mindstream.cli.json_lines import print_json
from mindstream.service.demos import Demo, load_demo
from mindstream.settings import Settings

MORNING = "Feb 13 10:00"
"""Until then the town that ships is lived."""
LONGEST_S = 2.0
"""No pause of a recording is longer than that: a mind that thinks for a minute is not watched for a minute."""


class Pace:
    """Waits as long as a recording did, faster.

    Args:
        speed: how many times as fast; None: as it was where somebody watches, and at once where nobody does.
    """

    def __init__(self, speed: float | None, watched: bool) -> None:
        self._speed = speed or (1.0 if watched else 0.0)

    async def pause(self, seconds: float) -> None:
        """Wait."""
        if self._speed:
            await asyncio.sleep(min(max(seconds, 0.0), LONGEST_S) / self._speed)


def demo(name: str, speed: float | None, json: bool) -> int:
    """Play a recording; return the exit code."""
    recording = load_demo(name)
    if json:
        print_json({"event": "recording", **recording.head.model_dump(mode="json")})
        for row in recording.rows:
            print_json(row.row())
        return 0
    try:
        play_out(recording, speed)
        if name == "town" and sys.stdout.isatty():
            live_a_morning()
    except KeyboardInterrupt:
        complain("stopped")
        return STOPPED
    return 0


def play_out(recording: Demo, speed: float | None) -> None:
    """Show a recording to its end.

    Raises:
        KeyboardInterrupt: somebody had enough of it.
    """
    try:
        asyncio.run(play(recording, Pace(speed, sys.stdout.isatty())))
    except KeyboardInterrupt:
        print()  # the line that was broken off
        raise


def live_a_morning() -> None:
    """Let the town that ships live until ten, here and now, and write a page that plays it."""
    from mindstream.cli import town, town_files

    folder = Path(tempfile.mkdtemp(prefix="mindstream-town-"))
    settings = Settings(data=folder / "ville")
    say("And the town that ships, lived here and now by stand-ins, who keep to its days and appointments:")
    town.begin(settings, "smallville", 1, (), (), json=False)
    if town.run(settings, town.Span(until=MORNING), town.Wishes()) == 0:
        town_files.replay(settings, folder / "ville.html", "", "", json=False)


async def play(recording: Demo, pace: Pace) -> None:
    """Show a recording, and before and after it that it is one."""
    console = PlainConsole(highlight=False)
    head = recording.head
    source = f" ({head.source})" if head.source else ""
    for text, style in (
        (f"A recording of {head.recorded.day} {head.recorded:%B %Y}: {head.title}{source}.", "bold"),
        (f"{head.who} answered then; nothing is asked now, and nothing of yours is touched.\n", "dim"),
    ):
        console.print(Text(text, style), soft_wrap=not console.is_terminal)
    await SCREENS[head.demo](recording, console, pace.pause)
    console.print(Text("\nThe recording is over.\n", "dim"))
