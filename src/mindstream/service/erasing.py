"""Erase a user for good: records, log, work, vectors, typed history, what gates learned; and prove it by the bytes.

A DELETE alone leaves words behind: in freed pages, in old versions of rows, in the write-ahead log. So the file is
written anew (VACUUM), the log emptied into it, and then all files of the database are searched for the words.
"""

from __future__ import annotations

import asyncio
import mmap
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from mindstream.errors import InputError, StorageError
from mindstream.log import erasure
from mindstream.log.database import FILE
from mindstream.log.erasure import connect_beside
from mindstream.log.events import event, printable
from mindstream.log.folder import history
from mindstream.log.names import StreamKey, shown_name
from mindstream.memory.curation.slot_items import texts_in
from mindstream.service.memory import Memory, nobody

PROBES, PROBE, SHORTEST = 300, 40, 8
"""So many texts are looked for, so many characters of each; shorter ones say nothing of whose they are."""
_NAME = re.compile(r"[\x21-\x7e]*")
"""A role, a model, an id: no words."""
TABLES = {"records": "stream", "log": "mind", "work": "mind", "erased": "stream", "streams": "key"}
"""Where a user's rows are, and which column names the user."""


@dataclass(frozen=True, slots=True)
class Kept:
    """All that a data folder keeps of a user.

    Attributes:
        rows: how many, by table.
        files: what lies beside the database: typed history, and what gates have learned from all users.
        words: what to look for afterwards.
    """

    rows: Mapping[str, int]
    files: list[Path]
    words: list[str]


def list_kept(memory: Memory, folder: Path) -> Kept:
    """Say what there is to erase.

    Raises:
        InputError: nothing.
    """
    typed = history(folder, memory.key)
    unfinished = erasure.pending(folder, memory.key)
    with connect_beside(folder) as connection:
        rows = {table: _count(connection, table, memory.key) for table in TABLES}
        connection.text_factory = lambda content: content.decode("utf-8", "replace")
        words = _probes(connection, memory.key)
    if not any(rows.values()) and not typed.exists() and not unfinished:
        raise InputError(nobody(memory.user))
    return Kept(rows, erasure.files_of(folder, memory.key), words)


async def erase(memory: Memory, folder: Path, what: Kept, progress: Callable[[int], None] = lambda _: None) -> None:
    """Erase the memory's user, and make sure of it; other programs on that mind should be closed.

    If the process dies in the middle of it, whoever opens the folder next finishes it (see erasure).

    Raises:
        StorageError: something could not be erased; the message says what.
    """
    with erasure.declare_intent(folder, memory.key) as intent:
        await memory.store.erase(memory.key)
        await asyncio.to_thread(erasure.finish, folder, intent)
        await asyncio.to_thread(_prove, folder, memory.key, what.words, progress)


def finish(folder: Path, user: StreamKey) -> bool:
    """Finish this user's erasure if one was broken off; return whether it was.

    Raises:
        StorageError: it cannot be finished.
    """
    unfinished = erasure.pending(folder, user)
    if unfinished:
        erasure.finish_all(folder, user)
    return unfinished


def _prove(folder: Path, user: StreamKey, words: list[str], progress: Callable[[int], None]) -> None:
    """Look for the words in the bytes, and for the user in the tables.

    Raises:
        StorageError: something is left.
    """
    with connect_beside(folder) as connection:
        left = {table: count for table in TABLES if (count := _count(connection, table, user))}
        if left:
            told = ", ".join(f"{count} rows in {table}" for table, count in left.items())
            raise StorageError(
                f"{shown_name(user)!r} is back: {told}; another program writes to that mind. Close it, erase again"
            )
        for path in sorted(folder.glob(f"{FILE}*")):
            for done, word in enumerate(_found(path, words, progress), 1):
                if not _lives(connection, word):
                    raise StorageError(
                        f"words of {shown_name(user)!r} are left in {path}: {word[:12]!r}… and perhaps {done} more"
                    )


def _found(path: Path, words: list[str], progress: Callable[[int], None]) -> Iterator[str]:
    if not path.stat().st_size:
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        for done, word in enumerate(words, 1):
            if content.find(word.encode()) >= 0:
                yield word
            progress(done)


def _probes(connection: sqlite3.Connection, user: StreamKey) -> list[str]:
    """Choose what to look for: the beginnings of the user's longest texts, as they stand in the file."""
    found: set[str] = set()
    for (text,) in connection.execute("SELECT text FROM records WHERE stream = ?", (user,)):
        found.add(_probe(printable(text)))
    for kind, payload in connection.execute("SELECT kind, payload FROM log WHERE mind = ?", (user,)):
        held = event(kind, payload).model_dump(mode="json")  # one that cannot be read has its payload as a text
        found |= {_probe(text) for text in texts_in(held)}
    said = [word for word in found if len(word.encode()) >= SHORTEST and not _NAME.fullmatch(word)]
    return sorted(said, key=lambda word: (-len(word), word))[:PROBES]


def _probe(text: str) -> str:
    """Return the first long run of a text that no encoding changes."""
    return max(re.split(r'["\\\x00-\x1f]', text), key=len)[:PROBE]


def _lives(connection: sqlite3.Connection, word: str) -> bool:
    """Tell whether somebody else's rows say the same."""
    return any(
        connection.execute(f"SELECT 1 FROM {table} WHERE instr({column}, ?) LIMIT 1", (word,)).fetchone()
        for table, columns in (
            ("records", ["text", "data", "keywords", "evidence", "object", "by", "episode"]),
            ("log", ["payload"]),
            ("sqlite_master", ["sql"]),
        )
        for column in columns
    )


def _count(connection: sqlite3.Connection, table: str, user: StreamKey) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {table} WHERE {TABLES[table]} = ?", (user,)).fetchone()[0])
