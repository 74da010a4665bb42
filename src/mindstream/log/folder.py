"""A data folder, and what lies in it beside the database."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

GATES = "gate-*.npz"
"""Files in which a gate of older versions kept what it had learned of what users said."""
UNFINISHED_GATES = ".gate-*.tmp"
COPIES = "mended-*"
"""The folders that hold copies from before a mending; they hold users' words."""


def history(folder: Path, user: str) -> Path:
    """Return the file in which a terminal keeps what a user typed."""
    return folder / "history" / f"{quote(user, safe='')}.txt"
