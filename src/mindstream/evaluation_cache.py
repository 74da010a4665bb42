"""A JSONL cache of the answers and verdicts of evaluations, so that no question is sent to a model twice."""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from mindstream.errors import InputError
from mindstream.moved import renamed
from mindstream.private_files import append_private

T = TypeVar("T")


def of_row(kind: type[T], row: Mapping[str, Any]) -> T:
    """Build a dataclass from a row; fields of the row that the class does not have are ignored."""
    return kind(**{each.name: row[each.name] for each in fields(kind) if each.name in row})  # type: ignore[arg-type]


class EvaluationCache:
    """Rows by key. A key identifies the model and its whole input. A new row is appended to the file immediately, as
    JSON.

    Args:
        file: None: the rows are kept in memory only.
        part: "": new rows are appended to `file`. Otherwise another process writes `file`, and `part` is a name for
            this process: new rows go to a separate file next to `file`, until the other process merges them
            (`merge_parts`).

    Raises:
        InputError: the file cannot be read or written, or is not such a cache.
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
        """Return the row of a key; None if there is none."""
        return self.rows.get(key)

    def keep(self, key: str, row: dict[str, Any]) -> None:
        """Store a row.

        Raises:
            InputError: the file cannot be written.
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
        """Merge the files that other processes wrote next to `file` into it. Call this only after these processes have
        ended.

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
                raise InputError(f"{part} cannot be read or deleted: {error.strerror}") from None


def _read(file: Path, *, repair: bool = False) -> dict[str, dict[str, Any]]:
    """Return the rows of a file by their keys; {}: there is no file. An incomplete last line is ignored; with `repair`
    it is also cut off the file. Raise InputError if the file has another form."""
    if not file.exists():
        return {}
    whole = file.read_bytes()
    *lines, rest = whole.split(b"\n")
    try:
        found = {row.pop("key"): row for row in map(json.loads, lines)}
    except (ValueError, LookupError, TypeError, AttributeError):
        raise InputError(
            f"{file} is not an evaluation cache (lines of JSON with a key); name another one with --out"
        ) from None
    if rest and repair:
        os.truncate(file, len(whole) - len(rest))
    return found


__getattr__ = renamed(__name__, Ledger="EvaluationCache")
