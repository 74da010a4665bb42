"""What was answered and judged, in a file: by what was asked, so that it is never asked twice."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from mindstream.errors import InputError
from mindstream.private_files import append_private


class Ledger:
    """Rows by a key that stands for all that was asked, and of whom; each is written as it comes, a line of JSON.

    Args:
        is_copy: the file is another process's: what is kept here is gathered in `new`, for that process to write.

    Raises:
        InputError: the file cannot be used, or holds something else.
    """

    def __init__(self, file: Path | None, *, is_copy: bool = False) -> None:
        self.file = None if is_copy else file
        self.new: dict[str, dict[str, Any]] = {}
        self._rows: dict[str, dict[str, Any]] = {}
        try:
            if file is not None and file.exists():
                self._read(file)
        except OSError as error:
            raise InputError(f"{file} cannot be used: {error.strerror}") from None

    def find(self, key: str) -> dict[str, Any] | None:
        """Return what is kept under a key."""
        return self._rows.get(key)

    def keep(self, key: str, row: dict[str, Any]) -> None:
        """Keep a row.

        Raises:
            InputError: it cannot be written.
        """
        self._rows[key] = row
        if self.file is None:
            self.new[key] = row
            return
        try:
            with append_private(self.file) as out:
                out.write(json.dumps({"key": key, **row}, ensure_ascii=False) + "\n")
        except OSError as error:
            raise InputError(f"{self.file} cannot be written: {error.strerror}") from None

    def _read(self, file: Path) -> None:
        """Read what is there; a last line that was broken off is cut away."""
        whole = file.read_bytes()
        *lines, rest = whole.split(b"\n")
        try:
            for row in map(json.loads, lines):
                self._rows[row.pop("key")] = row
        except (ValueError, LookupError, TypeError, AttributeError):
            raise InputError(f"{file} is no evaluation's file; name another one with --out") from None
        if rest and self.file is not None:
            os.truncate(file, len(whole) - len(rest))
