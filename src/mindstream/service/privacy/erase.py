"""Erase a person, or a tenant with all its users, from a store: every row, and the database's statistics.

This module works for all stores. For a person in a data folder use `erase`, which also verifies the bytes.
"""

from __future__ import annotations

import asyncio
import json
import mmap
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from mindstream import caches
from mindstream.clock import Clock
from mindstream.errors import InputError, StorageError
from mindstream.identifiers import StreamKey, StreamName, id_of, name_of, normal_name, shown_name
from mindstream.json_values import texts_in
from mindstream.location import AnyData, Location
from mindstream.log import erasure as files
from mindstream.log import retention as rules
from mindstream.log.audit import Deed, machine_user
from mindstream.log.database import FILE
from mindstream.log.erasure import connect_beside
from mindstream.log.erasures import ERASURES
from mindstream.log.events import printable, read_event
from mindstream.log.files import history
from mindstream.log.sql import Sql
from mindstream.memory.memory import Memory
from mindstream.memory.opening import open_store
from mindstream.memory.store import elsewhere, erasure
from mindstream.memory.store.elsewhere import Left
from mindstream.memory.store.kept_columns import delete_kept
from mindstream.memory.store.queries import next_change
from mindstream.memory.store.sql_store import SqlStore
from mindstream.memory.store.store import Commit, Entry
from mindstream.service.calling import unknown_user
from mindstream.service.folders import TOWN_BEGAN
from mindstream.service.operations.forks import ForkedTowns
from mindstream.service.operations.operation import LOCAL, SERVER, TOKEN, Principal, tenant_key_of
from mindstream.sharing.events import ExemplarWithdrawn, PoolCreated
from mindstream.text.words import count_of

ELSEWHERE = (
    "exports, recordings and files written by tools are not erased: delete them where you saved them",
    "visits to towns in other folders stay, with the memories of their residents: delete the folder of such a town",
)
"""Notes about data that no erasure can reach."""
EMBODIED = "resident_embodied"
"""The kind of event with which a user takes control of a resident (defined in mindstream_town.events)."""


_NOUNS = {
    "records": "record",
    "log": "row of the log",
    "work": "row of work",
    "checkpoints": "checkpoint",
    "files": "file",
    "streams": "stream",
}


@dataclass(frozen=True, slots=True)
class ErasedCounts:
    """The numbers of erased data.

    Attributes:
        rows: rows in the erased streams, by table.
        elsewhere: rows and records in other streams.
        files: files next to the database.
        streams: the erased streams.
    """

    rows: Mapping[str, int]
    elsewhere: int = 0
    files: int = 0
    streams: tuple[StreamKey, ...] = field(default=(), repr=False)

    def counts(self) -> dict[str, int]:
        """Return the numbers that are not 0, by name."""
        found = {name: count for name, count in self.rows.items() if count}
        more = {"elsewhere": self.elsewhere, "files": self.files, "streams": len(self.streams)}
        return found | {name: count for name, count in more.items() if count}

    def describe(self) -> str:
        """Return the numbers that are not 0 as a text, such as `2 records, 9 rows of the log`; "" if all are 0."""
        return ", ".join(
            f"{count:,} in other streams"
            if name == "elsewhere"
            else count_of(count, _NOUNS.get(name, f"row of the table {name}"))
            for name, count in self.counts().items()
        )


@dataclass(frozen=True, slots=True)
class OutsideData:
    """Data of a person outside the person's own store.

    Attributes:
        tokens: the ids of access tokens for this person only, by the names under which the tokens are stored.
        visited: folders, by name, of forks of towns in which the person controlled a resident. These forks are deleted.
        named: folders, by name, of other forks of towns that name the person. These forks are not erased.
    """

    tokens: Mapping[str, str] = field(default_factory=dict)
    visited: Mapping[str, Path] = field(default_factory=dict)
    named: Mapping[str, Path] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether there are data to erase: tokens or visited forks. Forks that only name the person do not count."""
        return bool(self.tokens or self.visited)

    def describe_erased(self) -> list[str]:
        """Return a line for each revoked token and each deleted fork."""
        return [
            *(f"the token {id_} was revoked" for id_ in self.tokens.values()),
            *(f"the fork {name} of a town, which this person visited, was deleted" for name in self.visited),
        ]

    def describe_kept(self) -> list[str]:
        """Return lines about data that were not erased, and how to erase them."""
        said = [
            f"the fork {name} of a town names this person: if that is data of this person, delete the fork with"
            f" `DELETE /api/v1/towns/{name}`, or delete its folder {folder}"
            for name, folder in self.named.items()
        ]
        return [*ELSEWHERE, *said]


async def find_outside_data(data: Location, tenant_key: str, person: str) -> OutsideData:
    """Find a person's access tokens, the forks (copies of towns) that the person visited, and other forks that name the
    person."""
    user, tokens = StreamName("user", person).normal, dict[str, str]()
    async with open_store(data) as ours:
        for each in await ours.kept(SERVER, TOKEN):
            held = json.loads(each.value)
            if held.get("user") == user and tenant_key_of(held["tenant"]) == tenant_key:
                tokens[each.name] = held["id"]
    visited, named = dict[str, Path](), dict[str, Path]()
    for name, fork in ForkedTowns(data).all(Principal(tenant_key or LOCAL, frozenset())).items():
        async with open_store(fork.place) as town:
            if await town.read(lambda rows: _visited(rows, person)):
                visited[name] = fork.place.beside
            elif await town.read(lambda rows: _names(rows, person)):
                named[name] = fork.place.beside
    return OutsideData(tokens, visited, named)


def _visited(rows: Sql, person: str) -> bool:
    """Return whether a person controlled a resident of a town, as its log says."""
    sql = "SELECT DISTINCT json_extract(payload, '$.person') FROM log WHERE kind = ? AND json_valid(payload)"
    controls = rows.execute(sql, (EMBODIED,))
    normal = StreamName("user", person).normal
    return any(normal_name(str(name)) == normal for (name,) in controls)


def _names(rows: Sql, person: str) -> bool:
    """Return whether rows of a town name a person, as author, in a text or as a resident."""
    named = json.dumps(person, ensure_ascii=False)[1:-1]
    sql = "SELECT 1 FROM log WHERE by = ? OR instr(payload, ?) > 0 LIMIT 1"
    own = "SELECT 1 FROM streams WHERE kind = 'resident' AND normal = ?"
    return bool(
        rows.execute(sql, (person, named)).fetchone()
        or rows.execute(own, (StreamName("resident", person).normal,)).fetchone()
    )


async def erase_outside_data(data: Location, tenant_key: str, outside: OutsideData, clock: Clock) -> None:
    """Delete a person's access tokens, which contain the name, and the forks of towns that the person visited.

    Raises:
        StorageError: a fork cannot be deleted.
    """
    await asyncio.to_thread(_delete_forks, outside.visited.values())
    if not outside.tokens:
        return
    async with open_store(data) as ours:
        for name, id_ in outside.tokens.items():
            await ours.keep(SERVER, name, clock.now(), lambda _: None)
            await ours.note(
                clock.now(), Deed("token_revoked", "command", machine_user(), "", tenant_key, {"token": id_})
            )
        await ours.write(lambda rows: erasure.mark_erased(rows, next_change(rows)))
        await ours.compact()


async def erase_person(
    store: SqlStore, person: str, clock: Clock, folder: Path | None = None, *, known: bool = False
) -> ErasedCounts:
    """Withdraw a person's pairs from pools, erase all rows of the person in one transaction, and rewrite the tables.

    Args:
        folder: the folder with files next to the database; None: there is no such folder. The person's files in the
            folder are deleted before the rows.
        known: whether the person has data elsewhere. If so, having no data here is not an error.

    Raises:
        InputError: there are no data of that person.
        StorageError: the erasure failed: either the rows still exist, or only the tables were not rewritten.
    """
    key = store.key(StreamName("user", person))
    found = await withdraw(store, person, key, clock)

    def erase_rows(rows: Sql) -> ErasedCounts:
        there, left = count_rows(rows, [key]), take_elsewhere(rows, person, key)
        if not any(there.values()) and not left and not known:
            raise InputError(f"there is no user {person!r} here: no data are stored under this name")
        _erase_stream(rows, key)
        return ErasedCounts(there, sum(len(each.rows) + len(each.ids) for each in left), streams=(key,))

    paths = [] if folder is None else files.files_of(folder, key)
    await asyncio.to_thread(files.delete, paths)
    gone = replace(await store.write(erase_rows, [key, ERASURES]), files=len(paths))
    for left in found:
        caches.empty(left.stream)
    await _empty_caches(store, [key])
    await store.compact()
    return gone


async def withdraw(store: SqlStore, person: str, key: StreamKey, clock: Clock) -> list[Left]:
    """Withdraw a person's pairs, and pairs derived from them, from pools; return the person's data in other streams."""
    found = await store.read(lambda rows: elsewhere.find(rows, person, key))
    for left in found:
        if id_of(left.stream, "pool") and left.ids:
            entry = Entry(ExemplarWithdrawn(ids=tuple(sorted(left.ids)), because="erased"), "mindstream", system=True)
            await store.commit(Commit(mind=left.stream, at=clock.now(), entries=(entry,)))
    return found


def take_elsewhere(rows: Sql, person: str, key: StreamKey) -> list[Left]:
    """Delete a person's data in pools and other minds, and documents that no one else reads. Return the places of the
    data in pools and minds. This runs in the caller's transaction."""
    found = elsewhere.find(rows, person, key)
    for left in found:
        _take_domain(rows, person, left.stream)
        elsewhere.erase(rows, person, left, next_change(rows))
    elsewhere.forget_reader(rows, person, key)
    elsewhere.delete_copies(rows)
    return found


def _take_domain(rows: Sql, person: str, stream: StreamKey) -> None:
    """Replace a pool's domain by the pool's name if the erased person owns the pool and so wrote the domain."""
    created = rows.execute("SELECT seq, payload FROM log WHERE mind = ? AND kind = ?", (stream, PoolCreated.kind))
    for seq, payload in created.fetchall():
        if (held := json.loads(payload)).get("owner") == person:
            held["domain"] = id_of(stream, "pool")  # the row's checksum is updated when the owner's name is removed
            rows.execute("UPDATE log SET payload = ? WHERE seq = ?", (json.dumps(held, ensure_ascii=False), seq))


async def delete_tenant(
    store: SqlStore, folder: Path | None = None, forks: Iterable[Path] = (), *, known: bool = False
) -> ErasedCounts:
    """Erase all data of a store's tenant, and its files next to the database; then rewrite the tables.

    If another process has a mind of the tenant open, that process closes the mind and cannot write its data back.

    If this process dies, either all rows exist or no row exists. The rest of the deletion is then done when the tenant
    is deleted again, or when the data are opened next.

    Args:
        folder: the folder with files next to the database; None: there is none.
        forks: folders of the tenant's forks of towns, which are deleted.
        known: whether the tenant has data elsewhere, such as access tokens. If so, having no data here is not an error.

    Raises:
        InputError: the store belongs to no tenant, or the tenant has no data.
        StorageError: data cannot be deleted, new data were written meanwhile, or another program still reads the
            deleted rows (PostgreSQL). The tenant can be deleted again.
    """
    tenant = store.tenant.name
    if not tenant:
        raise InputError("the users of this machine are not a tenant: erase each of them by name")
    streams = await store.read(lambda rows: _streams(rows, store))
    paths = [] if folder is None else _files(folder, streams)
    has_rules = await store.read(lambda rows: rules.read(rows, tenant))
    if not (streams or paths or known or has_rules) and await store.is_forgotten():
        raise InputError(f"there are no data of a tenant {tenant!r} here: check the name")
    await asyncio.to_thread(files.delete, paths)
    await asyncio.to_thread(_delete_forks, forks)
    counted = await store.write(lambda rows: _erase_all(rows, tenant, streams), [*streams, ERASURES])
    await _empty_caches(store, streams)
    await store.compact()
    left = await store.read(lambda rows: _streams(rows, store))
    if left:
        raise StorageError(
            f"the tenant {tenant!r} has new data, because another program writes them: end that program, then delete"
            " the tenant again"
        )
    await store.forget_tenant()
    return ErasedCounts(counted, files=len(paths), streams=tuple(streams))


async def _empty_caches(store: SqlStore, streams: Iterable[StreamKey]) -> None:
    """Empty the caches of streams in this process and on this machine's disk."""
    for key in streams:
        await asyncio.to_thread(delete_kept, store.columns_folder, key)
        caches.empty(key, whole=True)


def _streams(rows: Sql, store: SqlStore) -> list[StreamKey]:
    """Return all streams of a tenant that have any data."""
    found: set[StreamKey] = set()
    for table, (owner, _) in files.ROWS.items():
        owned = store.tenant.owned(owner)
        found |= {row[0] for row in rows.execute(f"SELECT DISTINCT {owner} FROM {table} WHERE {owned}")}
    return sorted(found)


def _erase_all(rows: Sql, tenant: str, streams: list[StreamKey]) -> dict[str, int]:
    """Delete a tenant's rows and its retention rule; return the numbers of rows by table."""
    counted = count_rows(rows, streams)
    for key in streams:
        _erase_stream(rows, key)
    elsewhere.delete_copies(rows)
    rules.drop(rows, tenant)
    return counted


def _erase_stream(rows: Sql, key: StreamKey) -> None:
    """Delete all rows of a stream, and the marks of its erased records, which no process needs any more."""
    erasure.erase(rows, key, None, next_change(rows))
    rows.execute("DELETE FROM erased WHERE stream = ?", (key,))


def count_rows(rows: Sql, streams: Iterable[StreamKey]) -> dict[str, int]:
    """Count the rows of streams, by table."""
    counted = dict.fromkeys(files.ROWS, 0)
    for key in streams:
        for table, (owner, _) in files.ROWS.items():
            sql = f"SELECT count(*) FROM {table} WHERE {owner} = ?"
            counted[table] += int(rows.execute(sql, (key,)).fetchone()[0])
    return counted


def _files(folder: Path, streams: Iterable[StreamKey]) -> list[Path]:
    """Return the files next to the database that may contain words of these streams; some contain data of all users."""
    return sorted({path for key in streams for path in files.files_of(folder, key)})


def _delete_forks(forks: Iterable[Path]) -> None:
    try:
        for fork in forks:
            shutil.rmtree(fork)
    except OSError as error:
        raise StorageError(f"{error.filename} cannot be deleted: {error.strerror}; delete it, then try again") from None


IN_A_DATABASE = (
    "the database server's write-ahead log, replicas and backups, and the terminal's input history on other machines,"
    " are not searched"
)
MAX_PROBES, MAX_PROBE, MIN_PROBE = 300, 40, 8
"""MAX_PROBES: maximum number of texts that are searched for. MAX_PROBE: maximum characters of each. MIN_PROBE: minimum
bytes of each; shorter texts could also be found in other users' data by chance."""
_NAME = re.compile(r"[\x21-\x7e]*")
"""Matches an ASCII text without blanks, such as a role, a model or an id. The check of an erasure does not search for
such texts."""


@dataclass(frozen=True, slots=True)
class UserData:
    """All data of a user.

    Attributes:
        rows: number of rows in the user's stream, by table.
        files: files next to the database: the terminal's input history, and copies that contain data of all users.
        words: texts of the user that are searched for after the erasure.
        elsewhere: number of rows and records with data of the user in other streams, such as pools, by stream name.
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
    paths = files.files_of(data.beside, opened.key)
    typed = history(data.beside, opened.key)
    if not any(rows.values()) and not found and not typed.exists() and not is_pending(data, opened.key) and not outside:
        raise InputError(unknown_user(opened.name))
    left = {_shown(each.stream): len(each.rows) + len(each.ids) for each in found}
    return UserData(
        rows, paths, words, left, [*outside.describe_kept(), *stays, *([] if data.folder else [IN_A_DATABASE])], outside
    )


def _rows(opened: Memory) -> SqlStore:
    assert isinstance(opened.store, SqlStore)  # every data location opens a SqlStore
    return opened.store


def is_pending(data: Location, user: StreamKey) -> bool:
    """Return whether an erasure of this user was begun and not finished.

    In a database server an erasure is one transaction, so it is never unfinished.
    """
    return data.folder is not None and files.pending(data.folder, user)


async def erase(
    opened: Memory, data: AnyData, what: UserData, progress: Callable[[int], None] = lambda _: None
) -> None:
    """Erase all data of the memory's user, and verify that nothing is left. Close other programs that use this mind
    first.

    If the process dies before the end, the next process that opens the folder finishes the erasure (see log/erasure).

    Args:
        what: the data of the user, as `find_user_data` returned them.
        progress: called with the number of texts searched so far.

    Raises:
        InputError: the data are in a database, and the database has no data of the user.
        StorageError: some data could not be erased; the message says which.
    """
    store, user, key, where = _rows(opened), opened.name, opened.key, Location.of(data)
    # first, because this revokes the user's tokens: no new request is accepted
    await erase_outside_data(where, store.tenant.name, what.outside, opened.clock)
    if (folder := where.folder) is None:
        await erase_person(store, user, opened.clock, where.beside, known=bool(what.outside))
        await _prove_rows(opened)
        return
    # Done before the user's own rows are erased: if it fails, these rows still exist, and the erasure can be repeated.
    await withdraw(store, user, key, opened.clock)
    for left in await store.write(lambda rows: take_elsewhere(rows, user, key), [ERASURES]):
        caches.empty(left.stream)
    with files.declare_intent(folder, key) as intent:
        await store.erase(key)
        await asyncio.to_thread(files.finish, folder, intent)
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
    """Verify that no row of the user is left in the tables, and none in pools and other minds.

    Raises:
        StorageError: a row is left.
    """

    def look(connection: Sql) -> tuple[dict[str, int], list[Left]]:
        left = {table: count for table, count in count_rows(connection, [opened.key]).items() if count}
        return left, elsewhere.find(connection, opened.name, opened.key)

    left, found = await _rows(opened).read(look)
    if left:
        message = ", ".join(f"{count_of(count, 'row')} in {table}" for table, count in left.items())
        raise StorageError(
            f"there are new data of {opened.name!r} ({message}), because another program writes to this mind: close"
            " that program, then erase again"
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
            for word in _found(path, words, progress):
                if not _is_others(connection, word):
                    raise StorageError(
                        f"words of {shown_name(user)!r} are left in {path}, such as {word[:12]!r}…: end other programs"
                        " that use it, then erase again"
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
    """Return the texts to search for after the erasure: the longest parts of the user's texts, as they are stored."""
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
    """Return whether another user's rows, or the database's schema, contain the same text; the erased user has no rows
    any more."""
    return any(
        connection.execute(f"SELECT 1 FROM {table} WHERE instr({column}, ?) LIMIT 1", (word,)).fetchone()
        for table, columns in (
            ("records", ["text", "data", "keywords", "evidence", "object", "by", "episode"]),
            ("log", ["payload"]),
            ("sqlite_master", ["sql"]),
        )
        for column in columns
    )
