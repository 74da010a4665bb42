"""The index of words and vectors in a SQLite file: its tables, and how it is read, filled and reduced.

It is filled in the background, one segment (the index of a range of records) per transaction. When mindstream changes
or deletes words of a record, it removes the record from its segment (`remove_from_word_index`). When another program
does so, a trigger deletes the segment, which is then rebuilt. Vectors are compared by their signs: one bit per number,
which says whether the number is above the segment's mean.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mindstream.arrays import Ints, Mask
from mindstream.clock import SystemClock
from mindstream.identifiers import StreamKey
from mindstream.memory.store import queries
from mindstream.memory.store.queries import COLUMNS, record_of
from mindstream.memory.store.record import KINDS, Kind, Record, Vector, is_finite
from mindstream.memory.store.vectors import NEIGHBOUR, PORTION, signs_of
from mindstream.memory.store.word_index.candidates import Place
from mindstream.memory.store.word_index.segments import (
    SMALLEST,
    BrokenOff,
    Packed,
    Segment,
    found_by,
    hashed,
    is_long,
    next_gap,
    pack,
    to_join,
)
from mindstream.text.words import batches

RESTS_EACH, REST_S = 64, 0.001
"""The building of a segment pauses after each RESTS_EACH records, for REST_S seconds."""
BLOCK = 256
"""Number of records that are read at once while a segment is built."""
BY_SIGNS = 2
"""Number of records that a comparison of vectors by their signs returns for each requested record.

More records are returned than requested, because signs are less precise than vectors.
"""
MOST_IN_PLACE = 64
"""Maximum number of records that are removed from a segment one by one. To remove more, the segment is deleted."""
TABLES = (
    "CREATE TABLE segments (id INTEGER PRIMARY KEY AUTOINCREMENT, stream TEXT NOT NULL, first INTEGER NOT NULL,"
    " last INTEGER NOT NULL, count INTEGER NOT NULL, words INTEGER NOT NULL, said TEXT NOT NULL)",
    "CREATE INDEX segments_stream ON segments (stream, last)",
    "CREATE TABLE places (segment INTEGER PRIMARY KEY, kinds TEXT NOT NULL, asks BLOB NOT NULL, sizes BLOB NOT NULL,"
    " kind BLOB NOT NULL, episode BLOB NOT NULL, numbers BLOB NOT NULL)",
    "CREATE TABLE postings (id INTEGER PRIMARY KEY, segment INTEGER NOT NULL, term INTEGER NOT NULL,"
    " packed BLOB NOT NULL)",
    "CREATE UNIQUE INDEX postings_term ON postings (segment, term)",
    "CREATE TABLE nearness (segment INTEGER PRIMARY KEY, width INTEGER NOT NULL, mean BLOB NOT NULL,"
    " signs BLOB NOT NULL)",
    # Records that were removed from a segment although their numbers are in its range; each recall reads them directly.
    "CREATE TABLE unindexed (number INTEGER PRIMARY KEY, stream TEXT NOT NULL)",
    "CREATE INDEX unindexed_stream ON unindexed (stream, number)",
    "INSERT OR IGNORE INTO counters (name, value) VALUES ('unindexed', 0)",
    "CREATE TRIGGER segment_dropped AFTER DELETE ON segments BEGIN DELETE FROM places WHERE segment = OLD.id;"
    " DELETE FROM nearness WHERE segment = OLD.id; DELETE FROM postings WHERE segment = OLD.id;"
    " DELETE FROM unindexed WHERE stream = OLD.stream AND number BETWEEN OLD.first AND OLD.last; END",
    *(
        f"CREATE TRIGGER record_{name} AFTER {event} ON records BEGIN DELETE FROM segments WHERE stream = OLD.stream"
        " AND last >= OLD.number AND first <= OLD.number"
        " AND NOT EXISTS (SELECT 1 FROM unindexed WHERE number = OLD.number);"
        f" {also}UPDATE counters SET value = value + 1 WHERE name = 'unindexed'; END"
        for name, event, also in (
            ("deleted", "DELETE", "DELETE FROM unindexed WHERE number = OLD.number; "),
            ("changed", "UPDATE OF stream, text, keywords, subject, predicate, object, vector", ""),
        )
    ),
)
SEGMENTS = "SELECT id, first, last, count FROM segments WHERE stream = ? ORDER BY last"
COVERING = "SELECT id, first, last FROM segments WHERE stream = ? AND last >= ? AND first <= ?"
NUMBERS = (
    " UNION ALL ".join(
        "SELECT * FROM (SELECT number FROM records INDEXED BY records_latest WHERE stream = :stream"
        f" AND kind = '{kind}' AND number > :after AND number < :before ORDER BY number LIMIT :most)"
        for kind in KINDS
    )
    + " ORDER BY number LIMIT :most"
)
"""SQL that finds the next records of a stream, in order. For each kind, it uses an index that is sorted by number."""
CHANGES = "SELECT coalesce(max(value), 0) FROM counters WHERE name = 'unindexed'"
"""SQL that reads the number of changes and deletions of records. If it has not increased while a segment was built, the
segment is valid."""
RECORDS = f"SELECT number, {COLUMNS} FROM records WHERE number IN ({{}}) AND +stream = ?"


def numbers_between(connection: sqlite3.Connection, stream: StreamKey, after: int, before: int, most: int) -> list[int]:
    """Return the lowest numbers of a stream's records above `after` and below `before`, in ascending order.

    Args:
        most: maximum number of results; -1: no limit.
    """
    values = {"stream": stream, "after": after, "before": before, "most": most}
    return [row[0] for row in connection.execute(NUMBERS, values)]


class SqliteIndexReader:
    """Reads the index. Among records that are in no segment, it searches the texts for the words of the question.

    Args:
        words: the words to search for in records that are in no segment.
        n: maximum number of such records to return.
    """

    def __init__(self, connection: sqlite3.Connection, words: Sequence[str], n: int) -> None:
        self._connection, self._words, self._n = connection, words, n

    def ready(self, stream: StreamKey) -> Sequence[tuple[int, int, int, str]]:
        sql = "SELECT id, count, words, said FROM segments WHERE stream = ? ORDER BY last"
        return self._connection.execute(sql, (stream,)).fetchall()

    def places(self, segments: Sequence[int]) -> Iterable[tuple[Any, ...]]:
        sql = "SELECT segment, numbers, kinds, kind, episode, sizes, asks FROM places WHERE segment IN ({})"
        for id_, numbers, kinds, *arrays in queries.among(self._connection, sql, segments):
            yield id_, numbers, json.loads(kinds), *arrays

    def postings(self, segments: Sequence[int], terms: Sequence[int]) -> Iterable[tuple[int, int, bytes]]:
        for segment in segments:
            sql = "SELECT segment, term, packed FROM postings WHERE term IN ({}) AND segment = ?"
            yield from queries.among(self._connection, sql, terms, segment)

    def unindexed(self, stream: StreamKey) -> Sequence[int]:
        sql = "SELECT max(last) FROM segments WHERE stream = ?"
        last = self._connection.execute(sql, (stream,)).fetchone()[0] or 0
        sql = "SELECT number FROM unindexed WHERE stream = ? ORDER BY number DESC LIMIT ?"
        apart = [row[0] for row in self._connection.execute(sql, (stream, 2 * SMALLEST))]
        newest = queries.newest_and_strongest(self._connection, stream, 2 * SMALLEST, KINDS)
        behind = [number for number in newest if number > last]
        if len(behind) < 2 * SMALLEST:
            return [*apart, *behind]
        return [*apart, *behind, *find_by_words(self._connection, stream, self._words, self._n, last)]

    def newest(self, stream: StreamKey, n: int, kinds: Sequence[Kind]) -> Iterable[int]:
        return queries.newest_and_strongest(self._connection, stream, n, kinds)

    def created(self, numbers: Sequence[int]) -> Mapping[int, float]:
        sql = "SELECT number, created FROM records WHERE number IN ({})"
        return {number: at for number, at in queries.among(self._connection, sql, numbers) if isinstance(at, float)}

    def records(self, numbers: Sequence[int], kinds: Sequence[Kind]) -> list[tuple[int, Record]]:
        sql = f"SELECT number, {COLUMNS} FROM records WHERE number IN ({{}})"
        rows = sorted(queries.among(self._connection, sql, sorted(set(numbers))), key=lambda row: row[0])
        return [(row[0], record) for row in rows if (record := record_of(row[1:])).kind in kinds]

    def nearest(
        self,
        stream: StreamKey,  # noqa: ARG002 (the segments are the stream's)
        places: Mapping[int, Place],
        count: int,  # noqa: ARG002
        vector: Vector,
        n: int,
        kinds: Sequence[Kind],
    ) -> Ints:
        query, numbers, apart = vector.astype(np.float32), [np.empty(0, np.int64)], [np.empty(0, np.uint16)]
        sql = "SELECT segment, mean, signs FROM nearness WHERE segment IN ({}) AND width = ?"
        for segment, mean, signs in queries.among(self._connection, sql, list(places), len(query)):
            place, bits = places[segment], np.frombuffer(signs, np.uint64).reshape(-1, len(places[segment].numbers))
            asked = signs_of(query - np.frombuffer(mean, np.float32))
            differ = np.zeros(bits.shape[1], np.uint16)
            held = np.zeros(bits.shape[1], np.uint64)
            for column, sign in zip(bits, asked, strict=True):
                differ += np.bitwise_count(column ^ sign)
                held |= column
            there = held != 0
            if not set(place.kinds) <= set(kinds):
                there &= np.isin(place.kind, [code for code, kind in enumerate(place.kinds) if kind in kinds])
            numbers.append(place.numbers[there])
            apart.append(differ[there])
        return _nearest(np.concatenate(numbers), np.concatenate(apart), BY_SIGNS * n)


def _nearest(numbers: Ints, apart: NDArray[np.uint16], n: int) -> Ints:
    """Return the numbers of the n records whose vectors differ from the question's in the fewest signs; of records with
    equally many, the newest.

    Args:
        apart: for each record, the number of signs that differ.
    """
    if len(numbers) <= n:
        return numbers
    limit = int(np.searchsorted(np.cumsum(np.bincount(apart)), n))
    nearer = numbers[apart < limit]
    return np.concatenate([nearer, numbers[apart == limit][len(nearer) - n :]])


class Built(NamedTuple):
    """A segment to be written, and the segments that it replaces.

    Attributes:
        changes: the count that the query CHANGES returned before the segment's records were read.
    """

    packed: Packed
    vectors: tuple[int, bytes, bytes] | None
    instead_of: Sequence[int]
    changes: int


class Pace:
    """Pauses the building of a segment at intervals, and ends the building once `broken_off` is set."""

    def __init__(self) -> None:
        self.broken_off = threading.Event()
        self._steps = 0

    def heed(self) -> None:
        """Count a step, and pause after every RESTS_EACH steps.

        Raises:
            BrokenOff: `broken_off` was set.
        """
        self._steps += 1
        if self._steps % RESTS_EACH == 0 and self.broken_off.wait(REST_S):
            raise BrokenOff


def build(connection: sqlite3.Connection, stream: StreamKey, most: int, heed: Callable[[], None]) -> Built | None:
    """Read and pack the next segment of a stream; None: the stream is short, or only a few records are not indexed.

    No transaction is open when this returns. `heed` is called after each record; an exception that it raises ends the
    building.
    """
    if not is_long(connection, stream):
        return None
    (changes,) = connection.execute(CHANGES).fetchone()
    segments = [Segment(*row) for row in connection.execute(SEGMENTS, (stream,))]

    several: Sequence[Segment] = ()
    numbers = next_gap(segments, partial(numbers_between, connection, stream), most)
    if not numbers and (several := to_join(segments) or _much_changed(connection, stream, segments)):
        numbers = numbers_between(connection, stream, several[0].first - 1, several[-1].last + 1, -1)
    if not numbers:
        return None
    vectors = list[Vector | None]()
    packed = pack(_read(connection, stream, numbers, vectors), heed)
    return Built(packed, _signs(vectors, packed.episode), [each.id for each in several], changes)


def _much_changed(connection: sqlite3.Connection, stream: StreamKey, segments: Sequence[Segment]) -> Sequence[Segment]:
    """Return the segment from which the most still existing records were removed, so that it is built again.

    Return no segment if fewer than SMALLEST records of the stream were removed from segments.
    """
    if connection.execute("SELECT count(*) FROM unindexed WHERE stream = ?", (stream,)).fetchone()[0] < SMALLEST:
        return ()
    sql = "SELECT count(*) FROM unindexed WHERE stream = ? AND number BETWEEN ? AND ?"
    taken = [connection.execute(sql, (stream, each.first, each.last)).fetchone()[0] for each in segments]
    return segments[(at := int(np.argmax(taken))) : at + 1]


def _read(
    connection: sqlite3.Connection, stream: StreamKey, numbers: Sequence[int], vectors: list[Vector | None]
) -> Iterator[tuple[int, Record]]:
    """Yield the records with these numbers, each with its number; append the vector of each record to `vectors`."""
    for some in batches(numbers, BLOCK):
        rows = queries.among(connection, RECORDS, some, stream)
        for number, *row in sorted(rows, key=lambda row: row[0]):
            record = record_of(tuple(row))
            vectors.append(record.vector)
            yield number, record


def _signs(vectors: Sequence[Vector | None], episode: NDArray[np.int32]) -> tuple[int, bytes, bytes] | None:
    """Return the width of the vectors, their mean, and the signs of their differences from the mean.

    Return None if there are no vectors. The mean and the signs are computed from blended vectors: to each record's
    vector, the vectors of the record's neighbours in the episode are added with the weight NEIGHBOUR, and the sum is
    normalised. All signs are 0 for a record without a vector, or with a vector of another width than most.
    """
    widths = Counter(len(each) for each in vectors if each is not None)
    if not widths:
        return None
    ((width, _),) = widths.most_common(1)
    sums = np.zeros((len(vectors), width), np.float16)
    for at, each in enumerate(vectors):
        if each is not None and len(each) == width and is_finite(each):
            sums[at] = each
    there: Mask = np.any(sums, axis=1)
    order = np.argsort(episode, kind="stable")
    before, after = order[:-1], order[1:]
    same = (episode[before] == episode[after]) & (episode[after] >= 0)
    before, after = before[same], after[same]
    total = np.zeros(width, np.float32)
    lent = np.full((2, len(vectors)), len(vectors))  # the last index, a row of zeros: no neighbour
    lent[0, after], lent[1, before] = before, after
    padded = np.concatenate([sums, np.zeros((1, width), np.float16)])
    units = np.empty_like(sums)
    for start in range(0, len(sums), PORTION):
        some = slice(start, start + PORTION)
        each_sum = sums[some].astype(np.float32)
        for neighbours in lent:
            each_sum += NEIGHBOUR * padded[neighbours[some]]
        each_sum /= np.maximum(np.linalg.norm(each_sum, axis=1), 1e-6)[:, None]
        units[some] = each_sum
        total += each_sum[there[some]].sum(0)
    mean = total / np.float32(max(1, int(np.count_nonzero(there))))
    signs = np.concatenate([signs_of(units[start : start + PORTION] - mean) for start in range(0, len(sums), PORTION)])
    signs[~there] = 0
    return width, mean.tobytes(), np.ascontiguousarray(signs.T).tobytes()


def put(connection: sqlite3.Connection, stream: StreamKey, built: Built) -> bool:
    """Write a segment; return whether it was written.

    An empty segment is not written. A segment is also not written if a record was changed, or another segment was
    written, after the segment's records were read.
    """
    packed, old = built.packed, set(built.instead_of)
    if not len(packed.numbers) or connection.execute(CHANGES).fetchone() != (built.changes,):
        return False
    first, last = int(packed.numbers[0]), int(packed.numbers[-1])
    if {row[0] for row in connection.execute(COVERING, (stream, first, last))} != old:
        return False
    connection.execute("PRAGMA secure_delete = ON")  # freed pages must not contain words that are erased later
    connection.executemany("DELETE FROM segments WHERE id = ?", [(id_,) for id_ in old])
    (segment,) = connection.execute(
        "INSERT INTO segments (stream, first, last, count, words, said) VALUES (?, ?, ?, ?, ?, ?) RETURNING id",
        (stream, first, last, len(packed.numbers), packed.words, packed.said),
    ).fetchone()
    connection.execute(
        "INSERT INTO places (segment, kinds, asks, sizes, kind, episode, numbers) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            segment,
            json.dumps(packed.kinds),
            packed.asks,
            packed.sizes.tobytes(),
            packed.kind,
            packed.episode.tobytes(),
            packed.numbers.tobytes(),
        ),
    )
    connection.executemany(
        "INSERT INTO postings (segment, term, packed) VALUES (?, ?, ?)",
        ((segment, term, each.tobytes()) for term, each in sorted(packed.postings, key=lambda row: row[0])),
    )
    if built.vectors is not None:
        sql = "INSERT INTO nearness (segment, width, mean, signs) VALUES (?, ?, ?, ?)"
        connection.execute(sql, (segment, *built.vectors))
    return True


def remove_from_word_index(connection: sqlite3.Connection, stream: StreamKey, ids: Sequence[str] | None) -> None:
    """Remove records from the index. Call this before the words of the records are deleted or changed, in the same
    transaction.

    The terms of records given by id, and the signs of the records' vectors, are overwritten in place. A segment is
    deleted instead in two cases: it would lose more than MOST_IN_PLACE records, or its terms for a record are not the
    expected ones.

    Args:
        ids: ids of the records; None: all records of the stream, whose segments are deleted.
    """
    connection.execute("PRAGMA secure_delete = ON")
    if ids is None:
        connection.execute("DELETE FROM segments WHERE stream = ?", (stream,))
        return
    leaving: defaultdict[int, list[tuple[int, Record]]] = defaultdict(list)
    sql = f"SELECT number, {COLUMNS} FROM records WHERE id IN ({{}}) AND +stream = ?"
    for number, *row in list(queries.among(connection, sql, list(ids), stream)):
        (apart,) = connection.execute("SELECT count(*) FROM unindexed WHERE number = ?", (number,)).fetchone()
        held = connection.execute(COVERING, (stream, number, number)).fetchone()
        if held and not apart:
            leaving[held[0]].append((number, record_of(tuple(row))))
    for segment, records in leaving.items():
        if len(records) > MOST_IN_PLACE or not all(_take_out(connection, segment, *each) for each in records):
            connection.execute("DELETE FROM segments WHERE id = ?", (segment,))
        else:
            connection.executemany(
                "INSERT INTO unindexed (number, stream) VALUES (?, ?)", [(number, stream) for number, _ in records]
            )
            _end_at_record(connection, stream, segment, {number for number, _ in records})


def _take_out(connection: sqlite3.Connection, segment: int, number: int, record: Record) -> bool:
    """Remove a record from its segment; return whether that was possible.

    False means that the segment does not have the record, or has the record with other words. The caller must then
    delete the segment.
    """
    numbers, episode = (
        np.frombuffer(row, each)
        for row, each in zip(
            connection.execute("SELECT numbers, episode FROM places WHERE segment = ?", (segment,)).fetchone(),
            (np.int64, np.int32),
            strict=True,
        )
    )
    place, said = int(np.searchsorted(numbers, number)), found_by(record)
    if place == len(numbers) or numbers[place] != number:
        return False
    for term in set(said):
        sql = "SELECT id, packed FROM postings WHERE segment = ? AND term = ?"
        row = connection.execute(sql, (segment, hashed(term))).fetchone()
        postings = np.frombuffer(row[1] if row else b"", np.uint32)
        rest = postings[postings >> 8 != place]
        if len(rest) + 1 != len(postings):  # the record was indexed with other words, or by an earlier version's rules
            return False
        if len(rest):
            connection.execute("UPDATE postings SET packed = ? WHERE id = ?", (rest.tobytes(), row[0]))
        else:
            connection.execute("DELETE FROM postings WHERE id = ?", (row[0],))
    _less_said(connection, segment, record, len(said))
    with connection.blobopen("places", "asks", segment) as asks:
        asks[place // 8] = asks[place // 8] & ~(0x80 >> place % 8)
    if (of := int(episode[place])) >= 0:
        with connection.blobopen("places", "sizes", segment) as sizes:
            sizes.seek(4 * of)
            size = np.frombuffer(sizes.read(4), np.float32) - np.float32(len(said))
            sizes.seek(4 * of)
            sizes.write(size.tobytes())
    if connection.execute("SELECT 1 FROM nearness WHERE segment = ?", (segment,)).fetchone():
        with connection.blobopen("nearness", "signs", segment) as signs:
            for at in range(8 * place, len(signs), 8 * len(numbers)):
                signs.seek(at)
                signs.write(bytes(8))
    return True


def _less_said(connection: sqlite3.Connection, segment: int, record: Record, words: int) -> None:
    """Subtract a record from the counts of its segment."""
    (said,) = connection.execute("SELECT said FROM segments WHERE id = ?", (segment,)).fetchone()
    talk: dict[str, list[int]] = json.loads(said)
    if record.kind == "chat" and record.by in talk:
        messages, of_all = talk.pop(record.by)
        talk |= {record.by: [messages - 1, of_all - words]} if messages > 1 else {}
    sql = "UPDATE segments SET count = count - 1, words = words - ?, said = ? WHERE id = ?"
    connection.execute(sql, (words, json.dumps(talk), segment))


def _end_at_record(connection: sqlite3.Connection, stream: StreamKey, segment: int, gone: set[int]) -> None:
    """Make a segment end at a record that still exists. If no record of the segment exists, delete the segment.

    If the deleted record was the last one of the table, SQLite may give its number to a new record. Without this
    change, the new record would count as indexed.

    Args:
        gone: the numbers of the deleted records.
    """
    (last,) = connection.execute("SELECT last FROM segments WHERE id = ?", (segment,)).fetchone()
    if last not in gone:
        return
    (packed,) = connection.execute("SELECT numbers FROM places WHERE segment = ?", (segment,)).fetchone()
    numbers = np.frombuffer(packed, np.int64)
    for number in numbers[numbers < last][::-1].tolist():
        sql = "SELECT 1 FROM records WHERE number = ? AND stream = ?"
        if number not in gone and connection.execute(sql, (number, stream)).fetchone():
            connection.execute("UPDATE segments SET last = ? WHERE id = ?", (number, segment))
            return
    connection.execute("DELETE FROM segments WHERE id = ?", (segment,))


SCANNED = 2_000
"""Maximum number of records that are searched by one statement."""
LOOK_S = 0.4
"""Maximum time, in seconds, for reading the texts of records, newest first. It is enough for a few hundred thousand
records."""
MOST_WORDS = 16
ENDS = " UNION ALL ".join(
    f"SELECT {end}(number) FROM records INDEXED BY records_latest WHERE stream = :stream AND kind = '{kind}'"
    for kind in KINDS
    for end in ("min", "max")
)
HOLDS = "(text LIKE ? OR ifnull(keywords LIKE ?, 0))"


def find_by_words(
    connection: sqlite3.Connection, stream: StreamKey, words: Sequence[str], n: int, after: int = 0
) -> list[int]:
    """Return the numbers of the n records with the most of these words (text/words.terms), weighted by the words'
    rarity.

    Only the first MOST_WORDS different words count. Return [] if `words` is empty.

    Records with numbers up to `after` are left out, and so are records that cannot be read within LOOK_S seconds.
    """
    words, clock = list(dict.fromkeys(words))[:MOST_WORDS], SystemClock()
    began = clock.elapsed()
    ends = [row[0] for row in connection.execute(ENDS, {"stream": stream}) if row[0] is not None]
    if not words or not ends:
        return []
    first, last = max(after + 1, min(ends)), max(ends)
    bits = " + ".join(f"{1 << at} * {HOLDS}" for at in range(len(words)))
    sql = f"SELECT number, {bits} AS held FROM records WHERE number BETWEEN ? AND ? AND +stream = ? AND held > 0"
    patterns, rows = [pattern for word in words for pattern in [f"%{_beginning(word)}%"] * 2], list[tuple[int, int]]()
    upto = last + 1
    while upto > first and (upto > last or clock.elapsed() - began < LOOK_S):
        rows += connection.execute(sql, (*patterns, max(first, upto - SCANNED), upto - 1, stream))
        upto -= SCANNED
    return _best(np.array(rows, np.int64).reshape(-1, 2), len(words), last + 1 - max(first, upto), n)


def _best(rows: Ints, words: int, read: int, n: int) -> list[int]:
    numbers, marks = rows[:, 0], (rows[:, 1][:, None] >> np.arange(words)) & 1
    scores = marks @ np.log1p(read / (marks.sum(axis=0) + 0.5))
    best: list[int] = numbers[np.lexsort((-numbers, -scores))[:n]].tolist()
    return best


def _beginning(word: str) -> str:
    """Return a beginning that all forms of a word have in common. The stem itself may have an end that no form has: the
    "i" of "happi", the stem of "happy"."""
    return word[:-1] if word.endswith("i") and len(word) > 3 else word
