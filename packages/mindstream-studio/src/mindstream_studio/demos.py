"""Shipped recordings: logs of runs with a language model, which can be played without a model.

A file is JSON Lines: a head (`Head`), then rows of the log. Rows contain events but no prompts, so that they stay valid
when prompts change. benchmarks/record_demo.py writes the files.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from pydantic import BaseModel

from mindstream.errors import InputError
from mindstream.log.events import Logged, read_event

FOLDER = Path(__file__).parent / "recordings"
ORDER = ("coach", "plan", "life", "town", "pool")


class Head(BaseModel, extra="forbid", frozen=True):
    """The description of a recording.

    Attributes:
        title: the content in one line.
        recorded: day of the recording.
        who: kind of model that answered.
        source: origin of an example; "": none.
        timed: whether the times are the times of the events; False: they are times of a playback.
        start: time of a town's step 0, as ISO 8601.
    """

    demo: str
    format: int = 1
    title: str
    recorded: date
    who: str
    source: str = ""
    timed: bool = True
    start: str = ""


@dataclass(frozen=True)
class Demo:
    """A recording: its head and its rows."""

    head: Head
    rows: tuple[Logged, ...]


def demo_names() -> list[str]:
    """Return the names of the shipped recordings, in the recommended order."""
    return [name for name in ORDER if (FOLDER / f"{name}.jsonl").is_file()]


def load_demo(name: str) -> Demo:
    """Read a shipped recording.

    Raises:
        InputError: there is no such recording.
    """
    if name not in demo_names():
        raise InputError(f"there is no recording {name!r:.60}; use one of: {', '.join(demo_names())}")
    head, *rows = (FOLDER / f"{name}.jsonl").read_text("utf-8").splitlines()
    return Demo(Head.model_validate_json(head), tuple(map(_read_row, rows)))


def _read_row(line: str) -> Logged:
    row = json.loads(line)
    told = read_event(row["kind"], json.dumps(row["payload"]))
    return Logged(row["seq"], row["mind"], row["at"], row["by"], told, row.get("system", False))
