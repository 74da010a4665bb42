"""What the stores share, SQLite and PostgreSQL: how rows of the log and of the table of records are written, queried,
protected by checksums, and recovered.

If a field is damaged or invalid, it gets a safe value, so that the words of its record are not lost: an unknown kind
becomes a document, an impossible time becomes the time of writing (an impossible `valid_from` is dropped), and an
invalid vector is dropped. `mindstream doctor` finds damage by checksums of the values that never change.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import groupby
from json.encoder import encode_basestring
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np

from mindstream.clock import EARLIEST, LATEST, Moment
from mindstream.errors import Conflict
from mindstream.identifiers import StreamKey
from mindstream.json_values import parsed, parsed_or_none
from mindstream.log import erasures, work
from mindstream.log.events import Logged, Unknown, printable, read_event
from mindstream.log.sql import Sql
from mindstream.memory.forgetting_curve import StrengthState
from mindstream.memory.store import checkpoints, registry
from mindstream.memory.store.record import (
    CONTROL,
    KINDS,
    MAX_DEPTH,
    MAX_EVIDENCE,
    MAX_KEYWORDS,
    MAX_LEVEL,
    MAX_NAME,
    MAX_VERSION,
    SLOTTED,
    UNIQUE,
    Kind,
    Record,
    Triple,
    Vector,
    filled_record,
    same_words,
    same_words_once,
)
from mindstream.memory.store.store import Commit, Entry, Revision
from mindstream.text.words import batches


def sum_of_event(mind: str, at: float, by: str, kind: str, payload: str, system: int = 0) -> int:
    """Return the checksum of a row of the log."""
    row = (mind, float(at), by, kind, payload)
    return _sum((*row, system) if system else row)


def sum_of_record(row: tuple[Any, ...]) -> int:
    """Return the checksum of a record's row (COLUMNS).

    The vector is left out, as are the values that may change after the record was written, such as strength, importance
    and the end of validity.
    """
    id_, stream, kind, text, created, _accessed, by, episode = row[:8]
    valid_from, (depth, slot, version, data, seq) = row[11], row[20:25]
    words = (
        id_,
        stream,
        kind,
        text,
        float(created),
        by,
        episode,
        valid_from if valid_from is None else float(valid_from),
    )
    return _sum((*words, *row[15:20], depth, slot, version, data, seq))


def sum_of_vector(vector: bytes | None) -> int | None:
    """Return the checksum of a vector; None for no vector."""
    return None if vector is None else zlib.crc32(vector)


def _sum(values: tuple[Any, ...]) -> int:
    return zlib.crc32(repr(values).encode("utf-8", "surrogatepass"))


UNREADABLE = "(what stood here cannot be read any more)"


def salvage(row: tuple[Any, ...]) -> Record:
    """Return the record of a damaged row (COLUMNS). Values that cannot be read are replaced by safe ones."""
    (
        id_, stream, kind, text, created, accessed, by, episode, importance, level, lasting, valid_from, valid_until,
        superseded_by, forgotten, subject, predicate, object_, keywords, evidence, depth, slot, version, data, seq,
        embedder, vector,
    ) = row  # fmt: skip
    known: Kind = kind if kind in KINDS else "document"
    written = moment(created) if moment(created) is not None else moment(accessed)
    written = 0.0 if written is None else written
    slotted = known in SLOTTED and isinstance(slot, str) and slot and _whole(version, 1, MAX_VERSION, 0)
    about = (subject, predicate, object_)
    other = _ids([superseded_by], id_)
    return Record(
        id=printable(id_),
        stream=StreamKey(printable(stream)),
        kind=known,
        text=printable(text) or UNREADABLE,
        created=written,
        accessed=_or(moment(accessed), written),
        by=name(by),
        episode=name(episode),
        importance=float(importance) if _is_number(importance) and 1 <= importance <= 10 else None,
        level=_whole(level, -1, MAX_LEVEL + 1, 0),
        lasting=lasting == 1,
        valid_from=moment(valid_from, EARLIEST),
        valid_until=None if valid_until is None else _or(moment(valid_until, EARLIEST), written),
        superseded_by=other[0] if other else None,
        forgotten=None if forgotten is None else _or(moment(forgotten), written),
        about=Triple(*map(name, about)) if all(isinstance(each, str) for each in about) else None,
        keywords=tuple(map(name, texts(keywords)[:MAX_KEYWORDS])),
        evidence=_ids(texts(evidence)[:MAX_EVIDENCE], id_),
        depth=_whole(depth, 0, MAX_DEPTH, 0),
        slot=name(slot) if slotted else None,
        version=version if slotted else None,
        data=fields(data),
        seq=_whole(seq, 0, 2**62, 0),
        embedder=name(embedder),
        vector=finite(vector),
    )


def is_sound(record: Record) -> bool:
    """Return whether a record's values are in their ranges (as in record.checked_record).

    Raises:
        TypeError: a value has a wrong type and cannot be compared.
    """
    return (
        record.kind in KINDS
        and type(record.text) is type(record.by) is type(record.episode) is type(record.id) is str
        and type(record.data) is dict
        and 0 <= record.created <= LATEST
        and 0 <= record.accessed <= LATEST
        and -1 <= record.level <= MAX_LEVEL + 1
        and record.depth >= 0
        and record.seq >= 0
        and (record.importance is None or 1 <= record.importance <= 10)
        and (record.forgotten is None or 0 <= record.forgotten <= LATEST)
        and (record.valid_from is None or EARLIEST <= record.valid_from <= LATEST)
        and (record.valid_until is None or EARLIEST <= record.valid_until <= LATEST)
        and (record.slot is None or (record.kind in SLOTTED and 1 <= (record.version or 0) <= MAX_VERSION))
        and all(type(each) is str for each in (*record.keywords, *record.evidence, *(record.about or ())))
        and bool(record.text)
    )


def moment(value: Any, earliest: Moment = 0.0) -> Moment | None:
    """Return a stored value as a time; None if it is not a number, or is before `earliest` or later than calendars can
    express."""
    return float(value) if _is_number(value) and earliest <= value <= LATEST else None


def name(value: object) -> str:
    """Return a value as a printable name of limited length."""
    text = printable(value)
    return (" ".join(CONTROL.sub(" ", text).split()) if CONTROL.search(text) else text)[:MAX_NAME]


def fields(text: object) -> dict[str, Any]:
    """Return a record's data, given as JSON text (None: no data). If the JSON is invalid or not an object, return the
    text under the name `unreadable`."""
    if text is None:
        return {}
    found = parsed_or_none(text)
    return found if isinstance(found, dict) else {"unreadable": printable(text)}


def finite(content: object) -> Vector | None:
    """Return the vector in a row; None if it is missing or invalid."""
    if not isinstance(content, bytes) or not content or len(content) % 2:
        return None
    vector = np.frombuffer(content, np.float16)
    return vector if np.isfinite(vector).all() else None


def _ids(found: Sequence[object], own: object) -> tuple[str, ...]:
    """Return the found values that are valid ids of records other than `own`."""
    texts = (each for each in found if isinstance(each, str) and 0 < len(each) <= 64 and each.isprintable())
    return tuple(each for each in texts if each != own)


def texts(text: object) -> list[str]:
    """Return the texts in a JSON list; [] if the JSON is invalid."""
    return [each for each in parsed(text, list) if isinstance(each, str)]


def _whole(value: object, least: int, most: int, otherwise: int) -> int:
    return value if isinstance(value, int) and least <= value <= most else otherwise


def _is_number(value: Any) -> bool:
    return isinstance(value, float | int)


def _or(value: Moment | None, otherwise: Moment) -> Moment:
    return otherwise if value is None else value


COLUMNS = (
    "id, stream, kind, text, created, accessed, by, episode, importance, level, lasting, valid_from, valid_until,"
    " superseded_by, forgotten, subject, predicate, object, keywords, evidence, depth, slot, version, data, seq,"
    " embedder, vector"
)
FIELDS = COLUMNS.split(", ")
_shared: Callable[[Any], Any] = sys.intern
"""Returns the same string object for equal strings, because many records share a kind, an episode or an author."""
_encode = json.JSONEncoder(ensure_ascii=False).encode
INSERT = (
    f"INSERT INTO records ({COLUMNS}, changed, same, words_sum, vector_sum) VALUES ({','.join('?' * 31)})"
    " ON CONFLICT DO NOTHING"
)
"""SQL that writes a record, unless its id or its version of a slot exists already."""


def row_of(record: Record, seq: int) -> tuple[Any, ...]:
    """Return the row of a record: the values of COLUMNS."""
    about = record.about
    return (
        record.id, record.stream, record.kind, record.text, record.created, record.accessed, record.by, record.episode,
        record.importance, record.level, record.lasting, record.valid_from, record.valid_until, record.superseded_by,
        record.forgotten, about and about.subject, about and about.predicate, about and about.object,
        _encoded_texts(record.keywords), _encoded_texts(record.evidence), record.depth, record.slot, record.version,
        _encoded(dict(record.data)), seq, record.embedder, None if record.vector is None else record.vector.tobytes(),
    )  # fmt: skip


def insertion(record: Record, seq: int, changed: int) -> tuple[Any, ...]:
    """Return the values of INSERT for a record.

    Args:
        seq: the row of the log that the record belongs to.
        changed: the number of this change of the store.
    """
    row = row_of(record, seq)
    same = same_words(record.text) if record.kind in UNIQUE else None
    return (*row, changed, same, sum_of_record(row), sum_of_vector(row[-1]))


def _encoded_texts(texts: Sequence[str]) -> str | None:
    """Return texts as a JSON list, in a quarter of the time of Python's JSON encoder; None if there are no texts."""
    return f"[{', '.join(map(encode_basestring, texts))}]" if texts else None


def _encoded(value: Any) -> str | None:
    return _encode(value) if value else None


def record_of(row: tuple[Any, ...]) -> Record:
    """Return the record of a row; damaged values are replaced by safe ones."""
    try:
        record = _read(row)
        return record if is_sound(record) else salvage(row)
    except (ValueError, TypeError, RecursionError):
        return salvage(row)


def _read(row: tuple[Any, ...]) -> Record:
    (
        id_, stream, kind, text, created, accessed, by, episode, importance, level, lasting, valid_from, valid_until,
        superseded_by, forgotten, subject, predicate, object_, keywords, evidence, depth, slot, version, data, seq,
        embedder, vector,
    ) = row  # fmt: skip
    values = (
        id_,
        _shared(stream),
        _shared(kind),
        text,
        created,
        accessed,
        _shared(by),
        _shared(episode),
        importance,
        level,
        bool(lasting),
        valid_from,
        valid_until,
        superseded_by,
        forgotten,
        None if subject is None else Triple(subject, predicate, object_),
        tuple(json.loads(keywords)) if keywords else (),
        tuple(json.loads(evidence)) if evidence else (),
        depth,
        slot,
        version,
        json.loads(data) if data else {},
        seq,
        _shared(embedder),
        None if vector is None else np.frombuffer(vector, np.float16),
    )
    return filled_record(values)


MAX_VALUES = 500
"""Maximum number of values in one `IN` condition."""
PORTION_SIZE = 50_000
"""Total length of the records' texts and data, in characters, at which a portion of records ends."""
TEXT, DATA = FIELDS.index("text"), FIELDS.index("data")
NEWEST_CHANGES = (
    "SELECT (SELECT coalesce(max(changed), 0) FROM records WHERE stream = ?),"
    " (SELECT coalesce(max(changed), 0) FROM erased WHERE stream = ?)"
)
NEWEST_OF_KIND = (
    "SELECT * FROM (SELECT number FROM records WHERE stream = ? AND kind = ? ORDER BY number DESC LIMIT ?) AS found"
)
STRONGEST = "SELECT number FROM records WHERE stream = ? AND level > 0 ORDER BY level DESC LIMIT ?"


def marks(values: Iterable[object]) -> str:
    """Return the SQL placeholders for values."""
    return ",".join("?" for _ in values)


def among(connection: Sql, sql: str, values: Sequence[Any], *more: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a query with a condition `IN ({})`, executed for at most MAX_VALUES values at a time."""
    for some in batches(values, MAX_VALUES):
        if isinstance(some[0], str):  # no database accepts half a surrogate pair, and no stored text has one
            some = [each.encode("utf-8", "replace").decode() for each in some]
        yield from connection.execute(sql.format(marks(some)), [*some, *more])


def newest_changes(connection: Sql, stream: StreamKey) -> tuple[int, int]:
    """Return the number of the last change to a stream's records, and that of its last erasure."""
    found = connection.execute(NEWEST_CHANGES, (stream, stream)).fetchone()
    if not all(isinstance(each, int) for each in found):  # a damaged text value counts as the highest in SQLite
        sql = NEWEST_CHANGES.replace("stream = ?", "stream = ? AND typeof(changed) = 'integer'")
        found = connection.execute(sql, (stream, stream)).fetchone()
    return int(found[0]), int(found[1])


def cut_portion(rows: Iterable[tuple[Any, ...]], left: int) -> tuple[list[tuple[Any, ...]], int]:
    """Return the rows of a portion, and the record number after which to continue.

    The portion ends with the row with which it reaches PORTION_SIZE characters.

    Args:
        rows: rows of records: FIELDS, then the record's number.
        left: the record number after which to continue if no row is cut off; 0: there are no more rows.
    """
    kept, size = list[tuple[Any, ...]](), 0
    for row in rows:
        if size >= PORTION_SIZE:
            return kept, kept[-1][-1]
        kept.append(row)
        size += len(row[TEXT]) + len(row[DATA] or "")
    return kept, left


def newest_and_strongest(connection: Sql, stream: StreamKey, n: int, kinds: Iterable[Kind]) -> set[int]:
    """Return the numbers of a stream's n newest records of these kinds, and of its n strongest records of any kind.

    Records that have not gained strength do not count as strong.
    """
    kinds = list(dict.fromkeys(kinds))
    newest = " UNION ALL ".join([NEWEST_OF_KIND] * len(kinds))
    values = [value for kind in kinds for value in (stream, kind, n)]
    numbers = sorted(row[0] for row in connection.execute(newest, values)) if kinds else []
    return {*numbers[-n:], *(row[0] for row in connection.execute(STRONGEST, (stream, n)))}


def read_log(connection: Sql, where: str, values: Sequence[Any], kinds: Sequence[str] | None) -> list[Logged]:
    """Read the rows of the log that the SQL `where` selects. Rows whose event cannot be read have the event `Unknown`;
    they are left out if `where` selects rows by kind (`kinds` is not None)."""
    read = [
        Logged(seq, mind, moment(at) or 0.0, printable(by), read_event(kind, payload), system == 1)
        for seq, mind, at, by, kind, payload, system in connection.execute(
            f"SELECT seq, mind, at, by, kind, payload, system FROM log {where}", values
        ).fetchall()
    ]
    return [each for each in read if kinds is None or not isinstance(each.event, Unknown)]


REVISED = tuple(f.name for f in dataclasses.fields(Revision) if f.name not in ("id", "was", "holds", "emptied"))
_REVISED_OF = attrgetter(*REVISED)
HOLDS = "(valid_until IS NULL OR valid_until > ?) AND forgotten IS NULL"
"""SQL condition with a moment as its parameter. It is true if the record's validity has not ended at this moment (as in
memory/recall/ranking), and the record is not archived."""


def write(connection: Sql, commits: Sequence[Commit]) -> tuple[list[list[Logged]], int]:
    """Write commits in the caller's transaction. Return the log rows of each commit's entries, and the change number
    that all these commits share. Raises the same errors as `LogStore.commit`.
    """
    changed = next_change(connection) if commits else 0
    minds = list({commit.mind for commit in commits if commit.entries})
    known = {row[0] for row in among(connection, registry.REGISTERED, minds)}
    return [_write(connection, commit, changed, known) for commit in commits], changed


def _write(connection: Sql, commit: Commit, changed: int, known: set[StreamKey]) -> list[Logged]:
    erasures.check(connection, commit.mind, commit.since, commit.words_read)
    if commit.entries and commit.mind not in known:
        registry.register(connection, commit.mind)
        known.add(commit.mind)
    if commit.fence:
        work.check_held(connection, commit.mind, commit.fence.work, commit.fence.owner)
    logged = []
    for entry in commit.entries:
        row = (commit.mind, commit.at, entry.by, *entry.event.entry(), int(entry.system))
        seq = connection.execute(
            "INSERT INTO log (mind, at, by, kind, payload, system, sum) VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING seq",
            (*row, sum_of_event(*row)),
        ).fetchone()[0]
        logged.append(Logged(seq, commit.mind, commit.at, entry.by, entry.event, entry.system))
        if entry.distinct:
            _check_distinct(connection, entry, commit)
        if not entry.records:
            continue
        written = connection.executemany(INSERT, [insertion(record, seq, changed) for record in entry.records])
        if written.rowcount != len(entry.records):
            raise Conflict(
                "a record with this id, or with this version of its slot, already exists: reload the record and try"
                " again"
            )
        for record in entry.records:
            if record.slot is not None:
                _supersede(connection, record, changed)
    _revise(connection, commit, changed)
    if commit.unique:
        registry.take(connection, commit.mind, commit.unique, logged[0].seq)
    if commit.wake and commit.wake.occasion:
        wake = commit.wake
        work.add_occasion(connection, commit.mind, wake.slots, wake.occasion, wake.owner, wake.lease)
    elif commit.wake:
        work.add(connection, commit.mind, commit.wake.slots, logged[0].seq, commit.wake.owner, commit.wake.lease)
    if commit.finish:
        done = commit.finish
        seq = logged[0].seq if logged else 0
        work.finish(connection, commit.mind, done.work, done.owner, seq, begun=done.begun)
    if commit.checkpoint:
        checkpoints.write(connection, commit.mind, commit.checkpoint, logged[0].seq)
    if kept := commit.kept:
        work.keep(connection, commit.mind, kept.slot, kept.causes, kept.owner, kept.lease)
    if commit.put_back:
        back = commit.put_back
        work.release(connection, commit.mind, back.work, back.owner, back.error, counts=back.counts)
    return logged


def _supersede(connection: Sql, new: Record, changed: int) -> None:
    """End the validity of the previous version of a slot, because a new version was written.

    Args:
        changed: the number of this change of the store.
    """
    before = (new.stream, new.slot, (new.version or 0) - 1, new.created)
    connection.execute(
        "UPDATE records SET valid_until = ?, superseded_by = ?, changed = ?"
        " WHERE stream = ? AND slot = ? AND version = ? AND (valid_until IS NULL OR valid_until > ?)",
        (new.created, new.id, changed, *before),
    )


def _check_distinct(connection: Sql, entry: Entry, commit: Commit) -> None:
    """Raise Conflict if a note, thought or exemplar in the entry has the same words as a current record of the same
    kind. A record that this commit ends does not count."""
    ending = {
        revision.id
        for revision in commit.revisions
        if revision.forgotten is not None or (revision.valid_until is not None and revision.valid_until <= commit.at)
    }
    for record in entry.records:
        if record.kind in UNIQUE:
            for number in same_words_once(record.text):
                same = connection.execute(
                    f"SELECT id FROM records WHERE stream = ? AND kind = ? AND same = ? AND {HOLDS}",
                    (record.stream, record.kind, number, commit.at),
                )
                if not {row[0] for row in same} - ending:
                    continue
                raise Conflict(f"a current {record.kind} with the text {record.text[:80]!r} exists already")


def _revise(connection: Sql, commit: Commit, changed: int) -> None:
    """Write the revisions of a commit.

    Successive revisions that change the same fields are written by one statement. If a condition of one of them is not
    met, each is written by its own statement.

    Raises:
        Conflict: a condition (`was` or `holds`) of a revision is not met.
    """
    updates = [(*_update(commit, each, changed), each) for each in commit.revisions]
    for sql, some in groupby(updates, key=itemgetter(0)):
        alike = list(some)
        if len(alike) > 1:
            connection.execute("SAVEPOINT revised")
            if connection.executemany(sql, [values for _, values, _ in alike]).rowcount == len(alike):
                continue
            connection.execute("ROLLBACK TO revised")
        for _, values, revision in alike:
            touched = connection.execute(sql, values).rowcount
            if not touched and revision.was and _is_still(connection, commit.mind, revision.id, revision.was):
                touched = connection.execute(*_update(commit, replace(revision, was=None), changed)).rowcount
            if not touched and (revision.was or revision.holds):
                raise Conflict(
                    f"since the record {revision.id} was read, it was changed, superseded, archived or deleted, or its"
                    " validity has ended: read it again"
                )


def _update(commit: Commit, revision: Revision, changed: int) -> tuple[str, list[object]]:
    """Return the statement that writes a revision, and the values of the statement.

    Args:
        changed: the number of this change of the store.
    """
    new = {name: value for name, value in zip(REVISED, _REVISED_OF(revision), strict=True) if value is not None}
    if revision.vector is not None:
        new["vector"] = revision.vector.tobytes()
        new["vector_sum"] = sum_of_vector(new["vector"])
    new |= dict.fromkeys(revision.emptied)
    values = [*new.values(), changed, revision.id, commit.mind]
    if revision.was:
        values += [revision.was.level, revision.was.time]
    if revision.holds:
        values.append(commit.at)
    return _updating(tuple(new), revision.was is not None, revision.holds), values


@cache
def _updating(names: tuple[str, ...], was: bool, holds: bool) -> str:
    sets = ", ".join(f"{name} = ?" for name in (*names, "changed"))
    conditions = f"{' AND level = ? AND accessed = ?' * was}{f' AND {HOLDS}' * holds}"
    return f"UPDATE records SET {sets} WHERE id = ? AND stream = ?{conditions}"


def _is_still(connection: Sql, stream: StreamKey, id_: str, was: StrengthState) -> bool:
    """Return whether a record has this strength when it is read. In a damaged row, the stored values may differ from
    the values that are read."""
    rows = connection.execute(f"SELECT {COLUMNS} FROM records WHERE id = ? AND stream = ?", (id_, stream)).fetchall()
    return [(record.level, record.accessed) for record in map(record_of, rows)] == [(was.level, was.time)]


def next_change(connection: Sql) -> int:
    """Return the next number for a transaction's changes of records. The counter is locked until the commit, so commits
    happen in the order of their numbers."""
    row = connection.execute("UPDATE counters SET value = value + 1 WHERE name = 'changed' RETURNING value").fetchone()
    if row is None:  # the counter is lost: continue after the highest number in the tables
        row = connection.execute(
            "INSERT INTO counters (name, value) SELECT 'changed', 1 + coalesce(max(changed), 0)"
            " FROM (SELECT changed FROM records UNION ALL SELECT changed FROM erased) AS found RETURNING value"
        ).fetchone()
    return int(row[0])
