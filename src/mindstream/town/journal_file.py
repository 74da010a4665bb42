"""A town's journal as a file: one line of JSON a row, each with a checksum of itself and of all lines before it.

A file only grows: what is written again after more steps begins with what stood there. So a copy of its last checksum,
kept elsewhere, proves every line.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from mindstream.errors import InputError, StorageError
from mindstream.memory.store.store import Store
from mindstream.private_files import write_private
from mindstream.town.journal import DIGEST, journal
from mindstream.town.setting import Setting

TAIL = 2 * DIGEST + 5
"""So many bytes of a line are not of the row: comma, quotes, checksum, bracket and end."""


async def write_journal(store: Store, setting: Setting, path: Path) -> int:
    """Write a journal to a file, or go on with the one that it holds; return how many lines it has.

    Raises:
        InputError: the file holds something else, which is left as it is.
        StorageError: it cannot be written.
    """
    lines = [line async for line in journal(store, setting)]
    try:
        _grow(path, lines)
    except OSError as error:
        raise StorageError(f"the journal cannot be written to {path}: {error.strerror}") from error
    return len(lines)


def _grow(path: Path, lines: Sequence[bytes]) -> None:
    """Write what a file has not yet of these lines; all that it has must be among them."""
    there, at = path.read_bytes() if path.exists() else b"", 0
    for number, line in enumerate(lines, 1):
        if at + len(line) > len(there) or there[at : at + len(line)] != line:
            if not line.startswith(there[at:]):
                raise InputError(f"line {number} of {path} is of another journal, or damaged: name another file")
            if not path.exists():
                write_private(path, b"")
            with path.open("r+b") as file:
                file.truncate(at)  # whoever wrote it was broken off
                file.seek(at)
                file.writelines(lines[number - 1 :])
            return
        at += len(line)
    if at < len(there):
        raise InputError(f"{path} goes on after line {len(lines)}, where the journal ends: name another file")


def check_journal(path: Path) -> int:
    """Check the file of a journal; return how many lines it has.

    Raises:
        InputError: it is damaged; the message names the first line that is.
        StorageError: it cannot be read.
    """
    number = 0
    try:
        with path.open("rb") as file:
            for number, fault in enumerate(_faults(file), 1):
                if fault:
                    raise InputError(f"line {number} of {path} is damaged: {fault}")
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror}") from error
    return number


def _faults(lines: Iterator[bytes]) -> Iterator[str]:
    """Yield of each line what is wrong with it; "": nothing."""
    chain = hashlib.blake2b(digest_size=DIGEST)
    for line in lines:
        row, told = line[:-TAIL] + b"]", line[-TAIL:]
        chain.update(row)
        if told != b',"' + chain.hexdigest().encode() + b'"]\n':
            yield "its checksum is not that of the lines up to it" if line.endswith(b"]\n") else "it is cut off"
        else:
            yield "" if _is_json(row) else "it is no JSON"


def _is_json(row: bytes) -> bool:
    try:
        return isinstance(json.loads(row), list)
    except ValueError:
        return False
