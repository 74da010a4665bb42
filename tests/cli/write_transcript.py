"""Write docs/thirty-turns.md from what the rules say to examples/*.txt: `python tests/cli/write_transcript.py`."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from mindstream import Mind
from mindstream.log.events import FollowUp, Said, Waiting

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docs" / "thirty-turns.md"
HEAD = """\
# Thirty turns without a model

What the sleep coach says when nothing is configured: no key, no service, no language model; rules, a classifier of half
a megabyte, and the pack. The lines in italics are what it says at once while its Reasoner is at work. Written by
`python tests/cli/write_transcript.py`, held to the code by a test; try it yourself:

    mindstream chat < examples/thirty_turns.txt
"""


async def played(name: str) -> list[str]:
    """Play a file of utterances, one a line; return the transcript's lines."""
    lines: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        async with Mind.open(folder, user="you", session="shown") as mind:
            for text in (ROOT / "examples" / name).read_text("utf-8").splitlines():
                lines.append(f"**{text}**\n")
                heard, *_ = [row.seq async for row in mind.hear(text)]
                await mind.settled()
                for row in await mind.stream.store.events("you", after=heard):
                    if isinstance(row.event, Waiting):
                        lines.append(f"*{row.event.text}*\n")
                    elif isinstance(row.event, Said | FollowUp):
                        lines.append("> " + row.event.text.replace("\n", "  \n> ") + "\n")
    return lines


async def page() -> str:
    """Return the whole page."""
    english, chinese = await played("thirty_turns.txt"), await played("ten_turns_zh.txt")
    return "\n".join([HEAD, *english, "# Ten in Chinese\n", *chinese])


if __name__ == "__main__":
    FILE.write_text(asyncio.run(page()), "utf-8")
