"""Erase all data of a user permanently, and verify that no data are left.

A DELETE alone leaves words in freed pages, in old versions of rows and in the write-ahead log. So the database file of
a data folder is rewritten (VACUUM), its write-ahead log is emptied, and all files of the database are searched for the
user's words. In a PostgreSQL database the tables are rewritten and searched; its files are the operator's task.
"""

from __future__ import annotations

import asyncio
import mmap
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mindstream import caches
from mindstream.errors import InputError, StorageError
from mindstream.json_values import texts_in
from mindstream.location import AnyData, Location
from mindstream.log import erasure
from mindstream.log.database import FILE
from mindstream.log.erasure import connect_beside
from mindstream.log.erasures import ERASURES
from mindstream.log.events import printable, read_event
from mindstream.log.files import history
from mindstream.log.names import StreamKey, name_of, shown_name
from mindstream.log.sql import Sql
from mindstream.memory.memory import Memory
from mindstream.memory.store import elsewhere
from mindstream.memory.store.elsewhere import Left
from mindstream.memory.store.sql_store import SqlStore
from mindstream.service.calling import unknown_user
from mindstream.service.folders import TOWN_BEGAN
from mindstream.service.privacy.erase import (
    OutsideData,
    count_rows,
    erase_outside_data,
    erase_person,
    find_outside_data,
    take_elsewhere,
    withdraw,
)
from mindstream.sharing.events import PoolCreated

IN_A_DATABASE = (
    "the database server's write-ahead log, replicas and backups, and the terminal's input history on other machines,"
    " are not searched"
)
MAX_PROBES, MAX_PROBE, MIN_PROBE = 300, 40, 8
"""Maximum number of texts that are searched for, maximum characters of each, and minimum bytes: shorter texts could
also be found in other users' data by chance."""
_NAME = re.compile(r"[\x21-\x7e]*")
"""A text without blanks in ASCII, such as a role, a model or an id, which is not searched for."""


@dataclass(frozen=True, slots=True)
class UserData:
    """All data of a user.

    Attributes:
        rows: number of rows in the user's stream, by table.
        files: files next to the database: the terminal's input history, and copies that contain data of all users.
        words: texts of the user that are searched for after the erasure.
        elsewhere: other streams with data of the user, such as pools, by name: the number of rows and records.
        stays: sentences about data that this process cannot erase, each with the reason.
        outside: access tokens for this user only, and forks of towns.
    """

    rows: Mapping[str, int]
    files: list[Path]
    words: list[str]
    elsewhere: Mapping[str, int] = field(default_factory=dict)
    stays: Sequence[str] = ()
    outside: OutsideData = field(default_factory=OutsideData)


async def find_user_data(opened: Memory, data: AnyData) -> UserData:
    """Find all data of a user.

    Raises:
        InputError: there are no data of this user.
    """

    def look(connection: Sql) -> tuple[dict[str, int], list[Left], list[str], list[str]]:
        rows = count_rows(connection, [opened.key])
        found = elsewhere.find(connection, opened.name, opened.key)
        return rows, found, _probes(connection, opened.key, found), _staying(connection, opened.name)

    rows, found, words, stays = await _rows(opened).read(look)
    data = Location.of(data)
    outside = await find_outside_data(data, _rows(opened).tenant.name, opened.name)
    files = erasure.files_of(data.beside, opened.key)
    typed = history(data.beside, opened.key)
    if not any(rows.values()) and not found and not typed.exists() and not is_pending(data, opened.key) and not outside:
        raise InputError(unknown_user(opened.name))
    left = {_shown(each.stream): len(each.rows) + len(each.ids) for each in found}
    return UserData(
        rows, files, words, left, [*outside.describe_kept(), *stays, *([] if data.folder else [IN_A_DATABASE])], outside
    )


def _rows(opened: Memory) -> SqlStore:
    assert isinstance(opened.store, SqlStore)  # every location opens one
    return opened.store


def is_pending(data: Location, user: StreamKey) -> bool:
    """Return whether an erasure of this user was begun and not finished.

    In a database server an erasure is one transaction, so it is never unfinished.
    """
    return data.folder is not None and erasure.pending(data.folder, user)


async def erase(
    opened: Memory, data: AnyData, what: UserData, progress: Callable[[int], None] = lambda _: None
) -> None:
    """Erase all data of the memory's user, and verify it; other programs that use this mind should be closed before.

    If the process dies before the end, the next process that opens the folder finishes the erasure (see log/erasure).

    Args:
        what: the data of the user, from `find_user_data`.
        progress: called with the number of texts searched so far.

    Raises:
        StorageError: some data could not be erased; the message says which.
    """
    store, user, key, where = _rows(opened), opened.name, opened.key, Location.of(data)
    await erase_outside_data(
        where, store.tenant.name, what.outside, opened.clock
    )  # first, so that no new request is accepted
    if (folder := where.folder) is None:
        await erase_person(store, user, opened.clock, where.beside, known=bool(what.outside))
        await _prove_rows(opened)
        return
    await withdraw(
        store, user, key, opened.clock
    )  # first: if this fails, the user still exists, and can be erased again
    for left in await store.write(lambda rows: take_elsewhere(rows, user, key), [ERASURES]):
        caches.empty(left.stream)
    with erasure.declare_intent(folder, key) as intent:
        await store.erase(key)
        await asyncio.to_thread(erasure.finish, folder, intent)
        await _prove_rows(opened)
        await asyncio.to_thread(_prove_bytes, folder, key, what.words, progress)


def _staying(connection: Sql, user: str) -> list[str]:
    """Return sentences about the data of a user that an erasure leaves, with the reasons."""
    said = list[str]()
    owned = [name for name, event_ in _pools(connection) if event_.owner == user]
    said += [f"the pool {name!r} stays, with its rubric, but without an owner" for name in owned]
    if connection.execute("SELECT 1 FROM log WHERE kind = ? LIMIT 1", (TOWN_BEGAN,)).fetchone():
        said.append(
            "the town's file stays in its log, with the names of all residents, because the town cannot continue"
            " without it"
        )
    readers = elsewhere.readers_of(connection)
    if any(user in each and len(each) > 1 for each in readers.values()):
        said.append("passages of documents stay that another user has searched as well")
    held = {row[0] for row in connection.execute("SELECT DISTINCT stream FROM records WHERE kind = 'document'")}
    if held - readers.keys():
        said.append("passages of documents that an earlier version read remain, because their user is not known")
    return said


def _shown(key: StreamKey) -> str:
    name = name_of(key)
    return f"{name.kind}:{name.id}"


def _pools(connection: Sql) -> Iterator[tuple[str, PoolCreated]]:
    for stream, payload in connection.execute("SELECT mind, payload FROM log WHERE kind = ?", (PoolCreated.kind,)):
        if isinstance(found := read_event(PoolCreated.kind, payload), PoolCreated):
            yield shown_name(stream), found


async def _prove_rows(opened: Memory) -> None:
    """Verify that no row of the user is left in the tables.

    Raises:
        StorageError: a row is left.
    """

    def look(connection: Sql) -> tuple[dict[str, int], list[Left]]:
        left = {table: count for table, count in count_rows(connection, [opened.key]).items() if count}
        return left, elsewhere.find(connection, opened.name, opened.key)

    left, found = await _rows(opened).read(look)
    if left:
        message = ", ".join(f"{count} rows in {table}" for table, count in left.items())
        raise StorageError(
            f"there are new data of {opened.name!r} ({message}), because another program writes to this mind: close it,"
            " then erase again"
        )
    if found:
        raise StorageError(
            f"there are new data of {opened.name!r} in {shown_name(found[0].stream)!r}, which another program wrote:"
            " erase again"
        )


def _prove_bytes(folder: Path, user: StreamKey, words: list[str], progress: Callable[[int], None]) -> None:
    """Verify that the bytes of a folder's database files do not contain the user's words.

    Raises:
        StorageError: words are left that no other user's rows contain.
    """
    with connect_beside(folder) as connection:
        for path in sorted(folder.glob(f"{FILE}*")):
            for done, word in enumerate(_found(path, words, progress), 1):
                if not _is_others(connection, word):
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


def _probes(connection: Sql, user: StreamKey, found: Sequence[Left]) -> list[str]:
    """Return the texts to search for after the erasure: beginnings of the user's longest texts, as they are stored."""
    probes = {_probe(printable(word)) for left in found for word in left.words}
    for (text,) in connection.execute("SELECT text FROM records WHERE stream = ?", (user,)):
        probes.add(_probe(printable(text)))
    for kind, payload in connection.execute("SELECT kind, payload FROM log WHERE mind = ?", (user,)):
        held = read_event(kind, payload).model_dump(mode="json")  # the payload of an unreadable event is a text
        probes |= {_probe(text) for text in texts_in(held)}
    said = [word for word in probes if len(word.encode()) >= MIN_PROBE and not _NAME.fullmatch(word)]
    return sorted(said, key=lambda word: (-len(word), word))[:MAX_PROBES]


def _probe(text: str) -> str:
    """Return the longest part of a text that JSON does not escape, cut to MAX_PROBE characters."""
    return max(re.split(r'["\\\x00-\x1f]', text), key=len)[:MAX_PROBE]


def _is_others(connection: sqlite3.Connection, word: str) -> bool:
    """Return whether another user's rows contain the same text."""
    return any(
        connection.execute(f"SELECT 1 FROM {table} WHERE instr({column}, ?) LIMIT 1", (word,)).fetchone()
        for table, columns in (
            ("records", ["text", "data", "keywords", "evidence", "object", "by", "episode"]),
            ("log", ["payload"]),
            ("sqlite_master", ["sql"]),
        )
        for column in columns
    )
