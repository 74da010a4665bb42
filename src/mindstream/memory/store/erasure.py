"""Which rows carry the words of records that are to be erased, beside the records; and how they lose them.

The log is append-only: a row stays, with its number and its kind, and a mark stands where the words were. What stands
on its own stays whole, even if it says the same: a record that was not drawn from the erased ones (what the user said
in a chat, what is believed), and the row of the log that is about that record.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from mindstream.log.names import StreamKey
from mindstream.memory import registry
from mindstream.memory.store.record import UNIQUE, Record, same_words
from mindstream.memory.store.redaction import MARK, ErasedWords
from mindstream.memory.store.rows import COLUMNS
from mindstream.memory.store.store import Erasure
from mindstream.memory.store.sums import sum_of_event, sum_of_record

T = TypeVar("T")
OWN = {
    "heard": ("text",), "said": ("text",), "follow_up": ("text",), "plan_made": ("text", "changed"),
    "belief_changed": ("patch",), "slept": ("text",),
}  # fmt: skip
"""Rows that say what their own record says, and in which fields: erased with it, as a whole."""
QUOTING = {
    "thought": ("text", "words", "ask_next"), "tool_called": ("arguments",), "observed": ("text",),
    "slept": ("text", "error"), "reflected": ("questions",), "waiting": ("text",), "error": ("text",),
    "model_called": ("error",), "decided": ("said",), "left_unsaid": ("text",), "believed": ("patch",),
    "judged": ("why",),
    "set_aside": ("reason",), "solving": ("task",), "run_planned": ("plan", "because"), "step_began": ("arguments",),
    "step_found": ("text", "arguments"), "solved": ("answer", "stopped", "unanswered"),
    "life_began": ("goal", "orders"), "turn_began": ("words",), "asked": ("news",),
    "replied": ("text", "calls", "error"),
    "turn_ended": ("words", "error"), "folded": ("text", "state"), "task_changed": ("text", "result"),
    "questioned": ("tip",), "answered": ("text",), "leave_asked": ("arguments",), "noticed": ("text",),
    "commanded": ("because",), "rested": ("because",),
    "exemplar_offered": ("query", "answer"), "exemplar_judged": ("reasons",), "exemplar_withdrawn": ("because",),
}  # fmt: skip
"""Rows that have no record of their own, or say more than it: the words are taken out wherever they stand."""
WRITTEN = ("arguments", "state")
"""Fields that are JSON, written as text."""
FIELDS = "text, subject, predicate, object, keywords, data"


@dataclass
class Carriers:
    """What was found.

    Attributes:
        ids: the records that are to be erased.
        words: what they say.
        own: rows of the log that are about one of them.
        bare: rows of the log that lose all their words.
        rewritten: records that stay and say something else then, by id.
        log, work, records: rows that carry their words, and records drawn from them that do.
        names: which texts lose all their words, besides.
        drawn: all records that were drawn from them, whatever they say.
        seq, number: how far the log and the records were searched.
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
    number: int = 0

    def is_meant(self, text: str) -> bool:
        """Tell whether a text says what one of them says, or is meant by the erasure."""
        return self.names(text) or self.words.redact(text) != text


def find(connection: sqlite3.Connection, stream: StreamKey, erasure: Erasure) -> Carriers:
    """Find every row of a stream that carries words of these records."""
    said: list[str] = []
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


def find_more(connection: sqlite3.Connection, stream: StreamKey, carriers: Carriers) -> None:
    """Add what was written since they were looked for."""
    if not (carriers.own or carriers.bare or carriers.rewritten):
        return  # none of them is there
    _find_records(connection, stream, carriers)
    kinds = sorted({*OWN, *QUOTING})
    rows = connection.execute(
        f"SELECT seq, kind, payload FROM log WHERE mind = ? AND seq > ? AND kind IN ({','.join('?' * len(kinds))})",
        (stream, carriers.seq, *kinds),
    )
    for seq, kind, payload in rows:
        if _redacted_event(kind, payload, seq, carriers) != payload:
            carriers.log.add(seq)
    (carriers.seq,) = connection.execute("SELECT coalesce(max(seq), 0) FROM log").fetchone()
    for id_, error in connection.execute("SELECT id, error FROM work WHERE mind = ? AND error <> ''", (stream,)):
        if carriers.words.redact(error) != error:
            carriers.work.add(id_)


def erase(connection: sqlite3.Connection, stream: StreamKey, found: Carriers | None, changed: int) -> int:
    """Delete the records that were looked for, with their words in other rows; None: all of the stream."""
    connection.execute("PRAGMA secure_delete = ON")  # zeros where it stood
    if found is None:
        ids = [row[0] for row in connection.execute("SELECT id FROM records WHERE stream = ?", (stream,))]
        connection.execute("DELETE FROM log WHERE mind = ?", (stream,))
        connection.execute("DELETE FROM work WHERE mind = ?", (stream,))
        connection.execute("DELETE FROM checkpoints WHERE stream = ?", (stream,))
        registry.forget(connection, stream)
    else:
        ids = list(found.ids)
        find_more(connection, stream, found)
        _rewrite(connection, stream, found, changed)
        redact(connection, stream, found, changed)
        for seq in found.bare:  # whoever thinks about one of them just now can write nothing of it
            connection.execute("DELETE FROM work WHERE mind = ? AND cause = ? AND done IS NULL", (stream, seq))
    erased = 0
    for id_ in ids:
        gone = connection.execute("DELETE FROM records WHERE id = ? AND stream = ?", (id_, stream)).rowcount
        if gone:
            connection.execute("INSERT INTO erased (stream, id, changed) VALUES (?, ?, ?)", (stream, id_, changed))
            erased += gone
    if erased or (found is not None and (found.log or found.rewritten)):
        # until it is written anew, the file holds bytes of them
        connection.execute("INSERT OR REPLACE INTO counters (name, value) VALUES ('erased', ?)", (changed,))
    return erased


def redact(connection: sqlite3.Connection, stream: StreamKey, carriers: Carriers, changed: int) -> None:
    """Put a mark in place of the words, in the transaction that erases the records."""
    words = carriers.words
    for seq in sorted(carriers.log):
        mind, at, by, kind, payload, system = connection.execute(
            "SELECT mind, at, by, kind, payload, system FROM log WHERE seq = ?", (seq,)
        ).fetchone()
        new = _redacted_event(kind, payload, seq, carriers)
        total = sum_of_event(mind, at, by, kind, new, system)
        connection.execute("UPDATE log SET payload = ?, sum = ? WHERE seq = ?", (new, total, seq))
    for number in sorted(carriers.work):
        (error,) = connection.execute("SELECT error FROM work WHERE id = ?", (number,)).fetchone()
        connection.execute("UPDATE work SET error = ? WHERE id = ?", (words.redact(error), number))
    for id_ in sorted(carriers.records):
        row = connection.execute(f"SELECT kind, {FIELDS} FROM records WHERE id = ?", (id_,)).fetchone()
        if row:
            new_fields = _redacted_fields(row[1:], words)
            same = same_words(new_fields[0]) if row[0] in UNIQUE else None
            connection.execute(  # its vector told what it said
                "UPDATE records SET text = ?, subject = ?, predicate = ?, object = ?, keywords = ?, data = ?, same = ?,"
                " vector = NULL, vector_sum = NULL, embedder = '', changed = ? WHERE id = ? AND stream = ?",
                (*new_fields, same, changed, id_, stream),
            )
            _sum_anew(connection, id_)


def _find_records(connection: sqlite3.Connection, stream: StreamKey, carriers: Carriers) -> None:
    """Add the records that were drawn from the erased ones, and from those, and carry their words."""
    below: dict[str, list[str]] = {}
    for id_, evidence in connection.execute(
        "SELECT id, evidence FROM records WHERE stream = ? AND evidence IS NOT NULL AND number > ?",
        (stream, carriers.number),
    ):
        for each in _parsed(evidence, list):
            below.setdefault(str(each), []).append(id_)
    ready = [*carriers.ids, *carriers.drawn]
    while ready:
        ready = [each for id_ in ready for each in below.pop(id_, ())]
        carriers.drawn.update(ready)
    for id_ in carriers.drawn - carriers.ids:
        row = connection.execute(f"SELECT {FIELDS} FROM records WHERE id = ?", (id_,)).fetchone()
        if row and _redacted_fields(row, carriers.words) != row:
            carriers.records.add(id_)
    (carriers.number,) = connection.execute("SELECT coalesce(max(number), 0) FROM records").fetchone()


def _rewrite(connection: sqlite3.Connection, stream: StreamKey, carriers: Carriers, changed: int) -> None:
    """Give versions of beliefs and plans the text and the data that they are to have, and their rows of the log."""
    for id_, record in carriers.rewritten.items():
        connection.execute(
            "UPDATE records SET text = ?, data = ?, vector = NULL, vector_sum = NULL, embedder = '', changed = ?"
            " WHERE id = ? AND stream = ?",
            (record.text, json.dumps(dict(record.data), ensure_ascii=False), changed, id_, stream),
        )
        _sum_anew(connection, id_)
        row = connection.execute(
            "SELECT mind, at, by, kind, payload, system FROM log WHERE seq = ?", (record.seq,)
        ).fetchone()
        event: dict[str, Any] = _parsed(row[4], dict) if row else {}
        if event and row[0] == stream:
            says = {"patch": record.data.get("patch", {})} if row[3] == "belief_changed" else {"text": record.text}
            mind, at, by, kind, payload, system = row
            new = json.dumps(event | says, ensure_ascii=False) if kind in OWN else payload
            total = sum_of_event(mind, at, by, kind, new, system)
            connection.execute("UPDATE log SET payload = ?, sum = ? WHERE seq = ?", (new, total, record.seq))


def _sum_anew(connection: sqlite3.Connection, id_: str) -> None:
    whole = connection.execute(f"SELECT {COLUMNS} FROM records WHERE id = ?", (id_,)).fetchone()
    if whole:
        connection.execute("UPDATE records SET words_sum = ? WHERE id = ?", (sum_of_record(whole), id_))


def _redacted_event(kind: str, payload: str, seq: int, carriers: Carriers) -> str:
    event: dict[str, Any] = _parsed(payload, dict)
    if not event:
        return MARK if seq in carriers.bare else carriers.words.redact(payload)  # damaged: whatever it is, the words go
    new = dict(event)
    if seq in carriers.own | carriers.bare:
        new |= {name: _bare(event[name]) for name in OWN.get(kind, ()) if event.get(name)}
    for name in QUOTING.get(kind, ()):
        if value := new.get(name):
            new[name] = _bare(value) if seq in carriers.bare else _redacted_field(name, value, carriers)
    return payload if new == event else json.dumps(new, ensure_ascii=False)


def _redacted_field(name: str, value: Any, carriers: Carriers) -> Any:
    if any(map(carriers.names, _texts(value))):
        return _bare(value)
    if name in WRITTEN and isinstance(value, str):
        return carriers.words.redact_arguments(value)
    if name == "calls":
        return [{inner: _redacted_field(inner, each[inner], carriers) for inner in each} for each in value]
    return carriers.words.redact_json(value)


def _bare(value: Any) -> Any:
    """Return what stands where nothing may stay of a value, of the same shape."""
    return {} if isinstance(value, dict) else [] if isinstance(value, list) else MARK


def _texts(value: Any) -> Iterator[str]:
    """Yield each text in a value, names of fields too, and what is in JSON that is written as a text."""
    if isinstance(value, str):
        yield value
        if value.startswith(("{", "[")):
            yield from _texts(_parsed(value, dict) or _parsed(value, list))
    elif isinstance(value, dict | list):
        for inner in (*value, *value.values()) if isinstance(value, dict) else value:
            yield from _texts(inner)


def _parsed(text: str, shape: type[T]) -> T:
    """Return what JSON holds; nothing where it is damaged, or of another shape."""
    try:
        value = json.loads(text)
    except ValueError:
        return shape()
    return value if isinstance(value, shape) else shape()


def _redacted_fields(row: tuple[Any, ...], words: ErasedWords) -> tuple[Any, ...]:
    text, subject, predicate, object_, keywords, data = row
    return (
        words.redact(text), *(each and words.redact(each) for each in (subject, predicate, object_)),
        *(each and words.redact_arguments(each) for each in (keywords, data)),
    )  # fmt: skip
