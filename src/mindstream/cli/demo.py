"""`mindstream demo`: recordings of what it does with a language model."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.text import Text

from mindstream.cli.clean import complain, say
from mindstream.cli.console import PlainConsole
from mindstream.cli.demo_screens import SCREENS, Pause
from mindstream.cli.edge import STOPPED
from mindstream.cli.flags import PLAIN, AsJson, command, flag, switch, word
from mindstream.cli.json_lines import print_json
from mindstream.service.demos import Demo, load_demo
from mindstream.settings import Settings

MORNING = "Feb 13 10:00"
"""Until then the town that ships is lived."""
LONGEST_S = 2.0
"""No pause of a recording is longer than that: a mind that thinks for a minute is not watched for a minute."""


app = typer.Typer(**PLAIN)


@command(
    app, "model pack data user", "mindstream demo", "mindstream demo town --speed 3", "mindstream demo coach --json",
    notes="Each is a log that was recorded with a language model, and says so.",
    model="With --talk: as for chat.", pack="With --talk: as for chat.",
)  # fmt: skip
def demo(
    settings: Settings,
    name: Annotated[Literal["coach", "plan", "life", "town", "pool"], word("[NAME]", "Which one.")] = "coach",
    speed: Annotated[
        float | None, flag("X", "So many times as fast [1; at once where nobody watches].", min=0.01, max=1000)
    ] = None,
    json: AsJson = False,
    talk: Annotated[bool, switch("--talk", "Then go on with you; Ctrl-C skips the recording.")] = False,
) -> int:
    """Play a recording of the coach, a plan, a life, a town or a pool.

    No model is asked, no key is needed, and nothing of yours is touched.
    """
    if talk:
        from mindstream.cli.first_sight import first_sight

        return first_sight(settings, name, speed)
    recording = load_demo(name)
    if json:
        print_json({"event": "recording", **recording.head.model_dump(mode="json")})
        print_json(*(row.row() for row in recording.rows))
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

    Args:
        speed: how many times as fast; None: as it was where somebody watches, and at once where nobody does.

    Raises:
        KeyboardInterrupt: somebody had enough of it.
    """
    fast = speed or (1.0 if sys.stdout.isatty() else 0.0)

    async def pause(seconds: float) -> None:
        if fast:
            await asyncio.sleep(min(max(seconds, 0.0), LONGEST_S) / fast)

    try:
        asyncio.run(play(recording, pause))
    except KeyboardInterrupt:
        print()  # the line that was broken off
        raise


def live_a_morning() -> None:
    """Let the town that ships live until ten, here and now, and write a page that plays it."""
    from mindstream.cli import town, town_files

    folder = Path(tempfile.mkdtemp(prefix="mindstream-town-"))
    settings = Settings(data=folder / "ville")
    say("And the town that ships, lived here and now by stand-ins, who keep to its days and appointments:")
    town.begin(settings, "smallville", 1)
    if town.live(settings, town.Span(until=MORNING), town.Wishes()) == 0:
        town_files.write_page(settings, folder / "ville.html")


async def play(recording: Demo, pause: Pause) -> None:
    """Show a recording, and before and after it that it is one."""
    console = PlainConsole(highlight=False)
    head = recording.head
    source = f" ({head.source})" if head.source else ""
    for text, style in (
        (f"A recording of {head.recorded.day} {head.recorded:%B %Y}: {head.title}{source}.", "bold"),
        (f"{head.who} answered then; nothing is asked now, and nothing of yours is touched.\n", "dim"),
    ):
        console.print(Text(text, style), soft_wrap=not console.is_terminal)
    await SCREENS[head.demo](recording, console, pause)
    console.print(Text("\nThe recording is over.\n", "dim"))
