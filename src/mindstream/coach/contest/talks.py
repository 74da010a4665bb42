"""Talks to be answered: what a person says, line by line, over one or several days; and what came of them."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from mindstream.errors import InputError
from mindstream.models.prompt import complaints
from mindstream.paths import read_text

MOST_BYTES = 20_000_000


class SaidLine(BaseModel):
    """What a person says, and in which talk: a higher number comes `days` later than the one before.

    `key`: what a right answer holds, where there is one; no player sees it.
    """

    model_config = ConfigDict(frozen=True)

    text: str = Field(min_length=1)
    session: int = 1
    days: int = Field(1, ge=0)
    key: str = ""


class Script(BaseModel):
    """A person's side of a talk. `who`: for whoever judges."""

    model_config = ConfigDict(frozen=True)

    id: str = Field(pattern=r"^[\w-]{1,40}$")
    lines: tuple[SaidLine, ...] = Field(min_length=1)
    who: str = ""
    language: str = ""


class Turn(BaseModel):
    """An utterance and what was answered to it, follow-ups included.

    Attributes:
        before: what passed since the turn before, as "the next day".
        first_s: seconds until the first piece of the answer (fillers are none).
        tokens: that all calls of the turn took, read and written; cached: of them, read from a cache.
    """

    before: str = ""
    heard: str
    said: str
    first_s: float = 0.0
    tokens: int = 0
    cached: int = 0
    cost_usd: float = 0.0


class Played(BaseModel):
    """A talk as one side has answered it."""

    id: str
    side: str
    turns: list[Turn]

    def written(self) -> str:
        """Write it as it is judged."""
        lines: list[str] = []
        for turn in self.turns:
            lines += [f"--- {turn.before} ---"] if turn.before else []
            lines += [f"USER: {turn.heard}", f"COACH: {turn.said}"]
        return "\n\n".join(lines)


def read_talks(path: Path) -> list[Script]:
    """Read talks from a JSON file: a list of {"id", "lines": [{"text", "session"}], "who", "language"}.

    Raises:
        InputError: it is none.
    """
    try:
        text = read_text(path, MOST_BYTES)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    try:
        found = TypeAdapter(list[Script]).validate_python(json.loads(text))
    except json.JSONDecodeError as error:
        raise InputError(f"{path}: no JSON ({error})") from None
    except ValidationError as error:
        form = '{"id": …, "lines": [{"text": …, "session": 1}]}'
        raise InputError(f"{path}: talks are a list of {form}; {complaints(error)}") from None
    if len({each.id for each in found}) < len(found):
        raise InputError(f"{path}: two talks have the same id")
    return found


def passed(before: SaidLine, line: SaidLine) -> str:
    """Say what lies between two lines; "" where they are of one talk."""
    if line.session == before.session:
        return ""
    return {0: "later that day", 1: "the next day"}.get(line.days, f"{line.days} days later")
