"""Plans and exemplars in files that somebody names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mindstream.errors import InputError
from mindstream.models.model import ToolSpec
from mindstream.paths import read_text
from mindstream.planning.formats.read import ReadPlan, read_any

MOST_BYTES = 2_000_000
"""The largest file that is read as a plan or as exemplars."""


def read_plan(file: Path, tools: Sequence[ToolSpec] = ()) -> ReadPlan:
    """Read a plan from a file.

    Raises:
        InputError: it cannot be read, or is no plan; the message says where.
    """
    text = read_named(file)
    try:
        return read_any(text, tools)
    except InputError as error:
        raise InputError(f"{file}: {error}") from None


def read_named(file: Path) -> str:
    """Read a text file that somebody named.

    Raises:
        InputError: it cannot be read.
    """
    try:
        return read_text(file, MOST_BYTES)
    except InputError as error:
        raise InputError(f"{file} {error}") from None
