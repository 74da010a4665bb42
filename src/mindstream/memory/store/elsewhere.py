"""Find and erase a person's data in other streams: records and log rows that the person wrote or that name the person.

A row of the log keeps its number and kind, but loses the person's words, and a mark replaces the person's name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mindstream.identifiers import StreamKey, tenant_of
from mindstream.json_values import texts_in
from mindstream.log.declared import Declared, Holds, declared
from mindstream.log.events import DocumentsRead, Unknown, every_kind, read_event
from mindstream.log.sql import Sql
from mindstream.memory.store import erasure
from mindstream.memory.store.queries import marks
from mindstream.memory.store.redaction import MARK
from mindstream.memory.store.store import Erasure


@dataclass(slots=True)
class Left:
    """A person's data in another stream.

    Attributes:
        rows: rows of the log that the person wrote, or that name the person.
        ids: ids of the person's records, and of contributions of the person that were rejected.
        words: the texts of all these rows and records.
        whole: whether no other user uses the stream, so that the whole stream is erased.
    """

    stream: StreamKey
    rows: set[int] = field(default_factory=set)
    ids: set[str] = field(default_factory=set)
    words: list[str] = field(default_factory=list)
    whole: bool = False


def find(connection: Sql, person: str, own: StreamKey) -> list[Left]:
    """Return a person's data in other streams of the same tenant; `own` is the key of the person's own stream."""
    found: dict[StreamKey, Left] = {}
    wall = tenant_of(own)
    named, naming = json.dumps(person, ensure_ascii=False)[1:-1], _naming_streams(connection)
    for stream, seq, by, kind, payload in connection.execute(
        "SELECT mind, seq, by, kind, payload FROM log WHERE mind <> ? AND (by = ? OR instr(payload, ?) > 0)",
        (own, person, named),
    ):
        if tenant_of(stream) != wall:
            continue
        held, fields = _read(kind, payload)
        persons = [value for name, value in held.items() if Holds.PERSON in _holds(fields, name)]
        if stream in naming and (by == person or any(_names(person, each) for each in texts_in(persons))):
            left = found.setdefault(stream, Left(stream))
            left.rows.add(seq)
            for name, value in held.items():
                if Holds.RECORD in _holds(fields, name):
                    left.ids.add(str(value))
                if _holds(fields, name) & {Holds.OWN, Holds.QUOTES}:
                    left.words += texts_in(value)
    for stream, id_, seq, text, kind, data in connection.execute(
        "SELECT stream, id, seq, text, kind, data FROM records WHERE stream <> ? AND by = ?", (own, person)
    ):
        if tenant_of(stream) != wall:
            continue
        # `by_user` false: the record is of another speaker who has the same name as the user
        if stream in naming or (kind == "chat" and '"by_user": false' not in data):
            left = found.setdefault(stream, Left(stream))
            left.ids.add(id_)
            left.words.append(text)
            left.rows |= {seq} if erasure.read_row(connection, seq)[1] == person else set()
    whole = [
        Left(stream, whole=True)
        for stream, readers in readers_of(connection).items()
        if readers == {person} and tenant_of(stream) == wall
    ]
    return [*whole, *(found[stream] for stream in sorted(found))]


def readers_of(connection: Sql) -> dict[StreamKey, set[str]]:
    """Return for each stream of documents the users whose minds search it."""
    readers: dict[StreamKey, set[str]] = {}
    for stream, by in connection.execute("SELECT DISTINCT mind, by FROM log WHERE kind = ?", (DocumentsRead.kind,)):
        readers.setdefault(stream, set()).add(by)
    return readers


def erase(connection: Sql, person: str, left: Left, changed: int) -> None:
    """Erase a person's data in another stream, in the caller's transaction; `changed`: the number of this change of the
    store."""
    if left.whole:
        erasure.erase(connection, left.stream, None, changed)
        return
    what = Erasure(ids=tuple(sorted(left.ids)), rows=frozenset(left.rows))
    found = erasure.find(connection, left.stream, what, left.words)
    erasure.erase(connection, left.stream, found, changed)
    if left.ids:  # checkpoints may be derived from the erased records
        connection.execute("DELETE FROM checkpoints WHERE stream = ?", (left.stream,))
    for seq in sorted(left.rows):
        _take_name(connection, seq, person)


def delete_copies(connection: Sql) -> None:
    """Delete log rows that contain copies of data of all streams (`Event.of_all`)."""
    kinds = [kind for kind, shape in every_kind().items() if shape.of_all]
    if kinds:  # PostgreSQL rejects an empty list
        connection.execute(f"DELETE FROM log WHERE kind IN ({marks(kinds)})", kinds)


def forget_reader(connection: Sql, person: str, own: StreamKey) -> None:
    """Delete the log rows that record that a person searches documents; `own`: any stream of the tenant concerned."""
    read = connection.execute("SELECT seq, mind FROM log WHERE kind = ? AND by = ?", (DocumentsRead.kind, person))
    for seq in [seq for seq, stream in read if tenant_of(stream) == tenant_of(own)]:
        connection.execute("DELETE FROM log WHERE seq = ?", (seq,))


def _naming_streams(connection: Sql) -> set[str]:
    """Return the streams that have rows of a kind that names persons. Pools are such streams."""
    kinds = [
        kind
        for kind, shape in every_kind().items()
        if any(Holds.PERSON in each.holds for each in declared(shape).values())
    ]
    sql = f"SELECT DISTINCT mind FROM log WHERE kind IN ({marks(kinds)})"
    return {row[0] for row in connection.execute(sql, kinds)} if kinds else set()


def _take_name(connection: Sql, seq: int, person: str) -> None:
    _, by, kind, payload = erasure.read_row(connection, seq)
    held, fields = _read(kind, payload)
    new = {
        name: _without(person, value) if Holds.PERSON in _holds(fields, name) else value for name, value in held.items()
    }
    payload = payload if new == held else json.dumps(new, ensure_ascii=False)
    erasure.rewrite_row(connection, seq, MARK if by == person else by, payload)


def _read(kind: str, payload: str) -> tuple[dict[str, Any], Mapping[str, Declared]]:
    read = read_event(kind, payload)
    return ({}, {}) if isinstance(read, Unknown) else (json.loads(payload), declared(type(read)))


def _holds(fields: Mapping[str, Declared], name: str) -> frozenset[Holds]:
    return fields[name].holds if name in fields else frozenset()


def _names(person: str, text: str) -> bool:
    return text == person or text.endswith(f" {person}")


def _without(person: str, value: Any) -> Any:
    if isinstance(value, list):
        return [_without(person, each) for each in value]
    if not (isinstance(value, str) and _names(person, value)):
        return value
    return value.removesuffix(person) + MARK
