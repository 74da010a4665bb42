"""Find and remove the words of erased records in other rows: of the log, of work, and of derived records.

The log is append-only: a row stays with its number and kind, and a mark replaces the words. Independent rows stay
unchanged even if they contain the same words: records that were not derived from the erased ones (such as another
message of the user, or a belief), and the rows of the log about such records.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from pydantic import BaseModel

from mindstream.identifiers import StreamKey
from mindstream.json_values import parsed
from mindstream.log import erasures
from mindstream.log.declared import UNKNOWN, Declared, Holds, declared
from mindstream.log.events import Event, Unknown, every_kind, printable, read_event
from mindstream.log.sql import Sql
from mindstream.memory.store import registry
from mindstream.memory.store.queries import COLUMNS, among, marks, sum_of_event, sum_of_record
from mindstream.memory.store.record import UNIQUE, Record, same_words
from mindstream.memory.store.redaction import MARK, ErasedWords, rewrite_texts
from mindstream.memory.store.store import AFTER, RESULT, Erasure, erases_no_name
from mindstream.memory.store.word_index.in_sqlite import remove_from_word_index

FIELDS = "text, subject, predicate, object, keywords, data"


@dataclass
class Carriers:
    """The rows that contain words of erased records.

    Attributes:
        ids: ids of the records to erase.
        words: the texts of the records to erase.
        own: rows of the log with which the records to erase were written.
        bare: rows of the log that lose all their words.
        rewritten: by id, records that stay and get another text.
        names: returns whether a text must lose all its words even if it contains none of `words` (`Erasure.is_meant`).
        log, work, records: ids of the log rows, work rows and derived records that contain words of the erased records.
        drawn: ids of all records derived from the erased records, with or without their words.
        seq: the last row of the log that was searched.
    """

    ids: frozenset[str]
    words: ErasedWords
    own: frozenset[int]
    bare: frozenset[int]
    rewritten: dict[str, Record]
    names: Callable[[str], bool]
    log: set[int] = field(default_factory=set)
    work: set[int] = field(default_factory=set)
    records: set[str] = field(default_factory=set)
    drawn: set[str] = field(default_factory=set)
    seq: int = 0

    def may_change(self, kind: str, payload: object, seq: int) -> bool:
        """Return, without parsing the payload, whether a row may have to lose words; False: the row loses none."""
        return (
            not isinstance(payload, str)
            or kind not in every_kind()
            or self.names is not erases_no_name
            or seq in self.own
            or seq in self.bare
            or self.words.may_be_in(payload)
            or any(id_ in payload for id_ in self.ids)
        )

    def is_meant(self, text: str) -> bool:
        """Return whether `redact` would change a text."""
        return self.redact(text) != text

    def redact(self, text: str) -> str:
        """Return a text without the words of the erased records; the mark alone if all its words must be removed."""
        return MARK if self.names(text) else self.words.redact(text)


def find(connection: Sql, stream: StreamKey, erasure: Erasure, words: Iterable[str] = ()) -> Carriers:
    """Find the rows of a stream that contain words of the erased records; `words`: further texts to remove."""
    said = [*words]
    own: set[int] = set()
    for id_ in erasure.ids:
        row = connection.execute(
            "SELECT text, object, seq FROM records WHERE id = ? AND stream = ?", (id_, stream)
        ).fetchone()
        if row:
            said += [row[0], *([row[1]] if row[1] and len(row[1]) >= len(row[0]) // 2 else [])]
            own.add(row[2])
    rewritten = {record.id: record for record in erasure.rewritten}
    carriers = Carriers(
        frozenset(erasure.ids), ErasedWords(said), frozenset(own), erasure.rows, rewritten, erasure.is_meant
    )
    find_more(connection, stream, carriers)
    return carriers


def find_more(connection: Sql, stream: StreamKey, carriers: Carriers) -> None:
    """Search the rows that were written since the last search, and add those with words of the erased records to
    `carriers`."""
    if not (carriers.own or carriers.bare or carriers.rewritten):
        return  # none of the records to erase exists
    _find_records(connection, stream, carriers)
    for seq, kind, payload in _rows_to_search(connection, stream, carriers):
        if carriers.may_change(kind, payload, seq) and _redacted_event(kind, payload, seq, carriers) != payload:
            carriers.log.add(seq)
    (carriers.seq,) = connection.execute("SELECT coalesce(max(seq), 0) FROM log").fetchone()
    for id_, error in connection.execute("SELECT id, error FROM work WHERE mind = ? AND error <> ''", (stream,)):
        if carriers.words.redact(error) != error:
            carriers.work.add(id_)


def _rows_to_search(connection: Sql, stream: StreamKey, carriers: Carriers) -> Iterator[tuple[int, str, str]]:
    """Yield the rows written since the last search that may lose words, as (seq, kind, payload).

    Some kinds are special:
    - Rows of kinds that contain only the words of their own record are read only if this record is erased.
    - Rows of kinds that contain data of all streams (`Event.of_all`) are read from the logs of other streams, too.
    """
    kinds = (
        "WITH RECURSIVE found(kind) AS (SELECT min(kind) FROM log WHERE mind = ? UNION ALL"
        " SELECT (SELECT min(kind) FROM log WHERE mind = ? AND kind > found.kind) FROM found"
        " WHERE found.kind IS NOT NULL) SELECT kind FROM found WHERE kind IS NOT NULL"
    )
    searched = [kind for (kind,) in connection.execute(kinds, (stream, stream)) if _may_quote(kind)]
    sql = "SELECT seq, kind, payload FROM log WHERE mind = ? AND kind IN ({}) AND seq > ?"
    if searched:
        yield from connection.execute(sql.format(marks(searched)), (stream, *searched, carriers.seq))
    own = sorted(carriers.own | carriers.bare)
    for row in among(
        connection, "SELECT seq, kind, payload, mind FROM log WHERE seq IN ({}) AND seq > ?", own, carriers.seq
    ):
        if row[3] == stream and row[1] not in searched:
            yield row[0], row[1], row[2]
    shared = [kind for kind, shape in every_kind().items() if shape.of_all]
    minds = (
        "WITH RECURSIVE found(mind) AS (SELECT min(mind) FROM log UNION ALL SELECT (SELECT min(mind) FROM log"
        " WHERE mind > found.mind) FROM found WHERE found.mind IS NOT NULL)"
        " SELECT log.seq, log.kind, log.payload FROM found JOIN log ON log.mind = found.mind"
        f" WHERE log.kind IN ({marks(shared)}) AND log.mind <> ? AND log.seq > ?"
    )
    if shared:
        yield from connection.execute(minds, (*shared, stream, carriers.seq))


@cache
def _may_quote(kind: str) -> bool:
    """Return whether rows of a kind may contain words of other records; True for an unknown kind."""
    shape = every_kind().get(kind)
    return shape is None or _quotes(shape)


def _quotes(shape: type[BaseModel]) -> bool:
    return any(
        each.is_searched or Holds.RECORD in each.holds or (each.model is not None and _quotes(each.model))
        for each in declared(shape).values()
    )


def erase(connection: Sql, stream: StreamKey, found: Carriers | None, changed: int) -> int:
    """Delete the records in `found.ids`, and their words in other rows. Return the number of deleted records.

    Args:
        found: None: delete the whole stream.
        changed: the number of this change of the store.
    """
    if isinstance(connection, sqlite3.Connection):
        connection.execute("PRAGMA secure_delete = ON")  # overwrite deleted bytes with zeros
    if found is None:
        _unindex(connection, stream, None)
        ids = [row[0] for row in connection.execute("SELECT id FROM records WHERE stream = ?", (stream,))]
        connection.execute("DELETE FROM log WHERE mind = ?", (stream,))
        connection.execute("DELETE FROM work WHERE mind = ?", (stream,))
        connection.execute("DELETE FROM checkpoints WHERE stream = ?", (stream,))
        connection.execute("DELETE FROM kept WHERE stream = ?", (stream,))
        registry.forget(connection, stream)
    else:
        sql = "DELETE FROM kept WHERE stream = ? AND name >= ? AND name < ?"
        connection.execute(sql, (stream, RESULT, RESULT + AFTER))
        ids = list(found.ids)
        find_more(connection, stream, found)
        _unindex(connection, stream, [*found.ids, *found.records, *found.rewritten])
        _rewrite(connection, stream, found, changed)
        redact(connection, stream, found, changed)
        for seq in found.bare:  # a run that processes this message then loses its lease and cannot commit
            connection.execute("DELETE FROM work WHERE mind = ? AND +cause = ? AND done IS NULL", (stream, seq))
    erased = 0
    for id_ in ids:
        gone = connection.execute("DELETE FROM records WHERE id = ? AND stream = ?", (id_, stream)).rowcount
        if gone:
            connection.execute("INSERT INTO erased (stream, id, changed) VALUES (?, ?, ?)", (stream, id_, changed))
            erased += gone
    if found is None or erased or found.log or found.rewritten:
        mark_erased(connection, changed)
        erasures.tell(connection, stream, whole=found is None)
    return erased


def _unindex(connection: Sql, stream: StreamKey, ids: Sequence[str] | None) -> None:
    """Remove records (None: all) from SQLite's word index before their words are deleted. PostgreSQL does so by a
    trigger."""
    if isinstance(connection, sqlite3.Connection):
        remove_from_word_index(connection, stream, ids)


def mark_erased(connection: Sql, changed: int) -> None:
    """Note in the database that its files contain bytes of erased rows; `compact` overwrites them and removes the
    note. `changed`: the number of the change of the store that erased them."""
    if not connection.execute("UPDATE counters SET value = ? WHERE name = 'erased'", (changed,)).rowcount:
        connection.execute("INSERT INTO counters (name, value) VALUES ('erased', ?)", (changed,))


def redact(connection: Sql, stream: StreamKey, carriers: Carriers, changed: int) -> None:
    """Replace the words of erased records by a mark, in the transaction of the erasure.

    Args:
        changed: the number of the erasure as a change of the store.
    """
    words = carriers.words
    for seq in sorted(carriers.log):
        _, by, kind, payload = read_row(connection, seq)
        rewrite_row(connection, seq, by, _redacted_event(kind, payload, seq, carriers))
    for number in sorted(carriers.work):
        (error,) = connection.execute("SELECT error FROM work WHERE id = ?", (number,)).fetchone()
        connection.execute("UPDATE work SET error = ? WHERE id = ?", (words.redact(error), number))
    for id_ in sorted(carriers.records):
        row = connection.execute(f"SELECT kind, {FIELDS} FROM records WHERE id = ?", (id_,)).fetchone()
        if row:
            new_fields = _redacted_record(row[1:], words)
            same = same_words(new_fields[0]) if row[0] in UNIQUE else None
            connection.execute(  # the vector is removed, too, because it is derived from the erased words
                "UPDATE records SET text = ?, subject = ?, predicate = ?, object = ?, keywords = ?, data = ?, same = ?,"
                " vector = NULL, vector_sum = NULL, embedder = '', changed = ? WHERE id = ? AND stream = ?",
                (*new_fields, same, changed, id_, stream),
            )
            _sum_anew(connection, id_)


def read_row(connection: Sql, seq: int) -> tuple[str, str, str, str]:
    """Return mind, `by`, kind and payload of a row of the log; four empty texts if the row does not exist."""
    row = connection.execute("SELECT mind, by, kind, payload FROM log WHERE seq = ?", (seq,)).fetchone()
    return row or ("", "", "", "")


def rewrite_row(connection: Sql, seq: int, by: str, payload: str) -> None:
    """Change `by` and the payload of a row of the log, and its checksum."""
    mind, at, kind, system = connection.execute(
        "SELECT mind, at, kind, system FROM log WHERE seq = ?", (seq,)
    ).fetchone()
    values = (by, payload, sum_of_event(mind, at, by, kind, payload, system), seq)
    connection.execute("UPDATE log SET by = ?, payload = ?, sum = ? WHERE seq = ?", values)


def _find_records(connection: Sql, stream: StreamKey, carriers: Carriers) -> None:
    """Add the records that contain words of the erased ones and were derived from these, directly or indirectly."""
    sql = (
        "SELECT records.id FROM lineage CROSS JOIN records"
        " WHERE lineage.source IN ({}) AND records.number = lineage.number AND records.stream = ?"
    )
    ready = [*carriers.ids, *carriers.drawn]
    while ready:
        ready = [id_ for (id_,) in among(connection, sql, ready, stream) if id_ not in carriers.drawn]
        carriers.drawn.update(ready)
    for id_ in carriers.drawn - carriers.ids:
        row = connection.execute(f"SELECT {FIELDS} FROM records WHERE id = ?", (id_,)).fetchone()
        if row and _redacted_record(row, carriers.words) != row:
            carriers.records.add(id_)


def _rewrite(connection: Sql, stream: StreamKey, carriers: Carriers, changed: int) -> None:
    """Write the new text and data of records that stay (versions of beliefs and plans, answers), also into the log.

    Args:
        changed: the number of this change of the store.
    """
    for id_, record in carriers.rewritten.items():
        connection.execute(
            "UPDATE records SET text = ?, data = ?, vector = NULL, vector_sum = NULL, embedder = '', changed = ?"
            " WHERE id = ? AND stream = ?",
            (record.text, json.dumps(dict(record.data), ensure_ascii=False), changed, id_, stream),
        )
        _sum_anew(connection, id_)
        mind, by, kind, payload = read_row(connection, record.seq)
        held: dict[str, Any] = parsed(payload, dict)
        if held and mind == stream:
            says = {"patch": record.data.get("patch", {})} if kind == "belief_changed" else {"text": record.text}
            is_own = all(Holds.OWN in _fields(kind, payload).get(name, UNKNOWN).holds for name in says)
            rewrite_row(connection, record.seq, by, json.dumps(held | says, ensure_ascii=False) if is_own else payload)


def _sum_anew(connection: Sql, id_: str) -> None:
    whole = connection.execute(f"SELECT {COLUMNS} FROM records WHERE id = ?", (id_,)).fetchone()
    if whole:
        connection.execute("UPDATE records SET words_sum = ? WHERE id = ?", (sum_of_record(whole), id_))


def _redacted_event(kind: str, payload: str, seq: int, carriers: Carriers) -> str:
    held: dict[str, Any] = parsed(payload, dict)
    if not held:  # no JSON object, so damaged: remove the words from the raw text
        text = printable(payload)
        new_text = MARK if seq in carriers.bare else carriers.words.redact(text)
        return payload if new_text == text else new_text
    fields = _fields(kind, payload)
    told_of = (held.get(name) for name, each in fields.items() if Holds.RECORD in each.holds)
    whole = seq in carriers.bare or not carriers.ids.isdisjoint(str(each) for each in told_of)
    new = _redacted_fields(held, fields, seq, whole, carriers)
    return payload if new == held else json.dumps(new, ensure_ascii=False)


def has_words(event: Event) -> bool:
    """Return whether an event contains any words that it would lose if its row were in `Erasure.rows`."""
    kind, payload = event.entry()
    nothing = Carriers(frozenset(), ErasedWords(()), frozenset(), frozenset([0]), {}, erases_no_name)
    return _redacted_event(kind, payload, 0, nothing) != payload


def _fields(kind: str, payload: str) -> Mapping[str, Declared]:
    """Return the declarations of a row's fields; {} if the row cannot be read."""
    read = read_event(kind, payload)
    return {} if isinstance(read, Unknown) else declared(type(read))


def _redacted_fields(
    held: Mapping[str, Any], fields: Mapping[str, Declared], seq: int, whole: bool, carriers: Carriers
) -> dict[str, Any]:
    return {
        name: _redacted_field(value, fields.get(name, UNKNOWN), seq, whole, carriers) if value else value
        for name, value in held.items()
    }


def _redacted_field(value: Any, field: Declared, seq: int, whole: bool, carriers: Carriers) -> Any:
    if field.model is not None:
        return _redacted_models(value, field.model, seq, whole, carriers)
    if whole and field.holds & {Holds.OWN, Holds.QUOTES}:
        return _bare(value)
    if seq in carriers.own and Holds.OWN in field.holds:
        return _bare(value)
    return rewrite_texts(value, carriers.redact, carriers.names) if field.is_searched else value


def _redacted_models(value: Any, model: type[BaseModel], seq: int, whole: bool, carriers: Carriers) -> Any:
    if isinstance(value, list):
        return [_redacted_models(each, model, seq, whole, carriers) for each in value]
    return _redacted_fields(value, declared(model), seq, whole, carriers) if isinstance(value, dict) else value


def _bare(value: Any) -> Any:
    """Return the replacement of a value in a log row that loses all its words.

    A text becomes the mark, an object or list becomes empty, and other values, such as numbers, stay.
    """
    return (
        {} if isinstance(value, dict) else [] if isinstance(value, list) else MARK if isinstance(value, str) else value
    )


def _redacted_record(row: tuple[Any, ...], words: ErasedWords) -> tuple[Any, ...]:
    text, subject, predicate, object_, keywords, data = row
    return (
        words.redact(text),
        *(each and words.redact(each) for each in (subject, predicate, object_)),
        *(each and rewrite_texts(each, words.redact) for each in (keywords, data)),
    )
