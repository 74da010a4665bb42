"""A JSONL cache of evaluation answers and verdicts, keyed by the question, so that nothing is asked twice."""

from __future__ import annotations

import glob
import json
import os
from pathlib import Path
from typing import Any

from mindstream.errors import InputError
from mindstream.moved import renamed
from mindstream.private_files import append_private


class EvaluationCache:
    """Rows by a key that identifies the model and everything it was asked; each is written at once, as a line of JSON.

    Args:
        part: another process has the file open: new rows go to a file next to it, named after this, until the other
            merges them.

    Raises:
        InputError: the file cannot be used, or contains something else.
    """

    def __init__(self, file: Path | None, *, part: str = "") -> None:
        self.file = file.with_name(f"{file.name}.{part}.part") if file and part else file
        self.rows: dict[str, dict[str, Any]] = {}
        if file is None or self.file is None:
            return
        try:
            if part:
                self.rows |= _read(file)
            self.rows |= _read(self.file, repair=True)
        except OSError as error:
            raise InputError(f"{file} cannot be used: {error.strerror}") from None
        if not part:
            self.merge_parts()

    def find(self, key: str) -> dict[str, Any] | None:
        """Return the row of a key."""
        return self.rows.get(key)

    def keep(self, key: str, row: dict[str, Any]) -> None:
        """Store a row.

        Raises:
            InputError: it cannot be written.
        """
        self.rows[key] = row
        if self.file is None:
            return
        try:
            with append_private(self.file) as out:
                out.write(json.dumps({"key": key, **row}, ensure_ascii=False) + "\n")
        except OSError as error:
            raise InputError(f"{self.file} cannot be written: {error.strerror}") from None

    def merge_parts(self) -> None:
        """Merge the files that other processes wrote next to this one, once these processes have ended.

        Raises:
            InputError: a file cannot be used.
        """
        if self.file is None:
            return
        for part in sorted(self.file.parent.glob(f"{glob.escape(self.file.name)}.*.part")):
            try:
                for key, row in _read(part).items():
                    self.keep(key, row)
                part.unlink()
            except OSError as error:
                raise InputError(f"{part} cannot be used: {error.strerror}") from None


def _read(file: Path, *, repair: bool = False) -> dict[str, dict[str, Any]]:
    """Read the rows of a file, except an incomplete last line; `repair`: that line is cut off."""
    if not file.exists():
        return {}
    whole = file.read_bytes()
    *lines, rest = whole.split(b"\n")
    try:
        found = {row.pop("key"): row for row in map(json.loads, lines)}
    except (ValueError, LookupError, TypeError, AttributeError):
        raise InputError(f"{file} is not a file of an evaluation; name another one with --out") from None
    if rest and repair:
        os.truncate(file, len(whole) - len(rest))
    return found


__getattr__ = renamed(__name__, Ledger="EvaluationCache")
