"""Find the records and rows of the log that are forgotten together with some records, because they derive from these.

An answer is derived from the message that it answers. A Thought event, and the tool calls of the run that led to it,
are derived from the messages that it is about. A correction is derived from the evidence of the record that it
corrects. The search uses indexes (the tables `lineage` and `log_lineage`) and does not read the rest of the stream.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mindstream.identifiers import StreamKey
from mindstream.json_values import parsed
from mindstream.log.events import read_event
from mindstream.log.sql import Sql
from mindstream.memory.store.queries import COLUMNS, among, record_of, texts
from mindstream.memory.store.record import Record
from mindstream.memory.store.store import Closure

ANSWERS = ("said", "follow_up")
RUNS = ("tool_called", "observed", "believed")
"""Kinds of log rows that a reasoner's run writes before its Thought event."""
THOUGHTS = ("thought", "set_aside")
AT_ONCE = 256
"""Number of log rows that are read at once, backwards from a Thought event, to find the first row of its run."""


@dataclass(frozen=True, slots=True)
class _Node:
    number: int
    id: str
    evidence: tuple[str, ...]
    slot: str | None
    seq: int


class _Lineage:
    """Reads, for given records, their sources and the records derived from them; each row is read only once."""

    def __init__(self, connection: Sql, stream: StreamKey, owned: str) -> None:
        self._connection, self._stream, self._owned = connection, stream, owned
        self.nodes: dict[str, _Node] = {}
        self._loaded: set[str] = set()
        self._below: dict[str, list[str]] = {}
        self._earlier: dict[str, list[str]] = {}
        self._elsewhere: dict[str, bool] = {}
        self.kinds: dict[int, tuple[str, str]] = {}

    def load(self, ids: Iterable[str]) -> None:
        """Read records of the stream, with the kinds and payloads of their rows of the log."""
        missing = [id_ for id_ in dict.fromkeys(ids) if id_ not in self._loaded]
        self._loaded.update(missing)
        sql = "SELECT number, id, evidence, slot, seq, stream FROM records WHERE id IN ({})"
        for number, id_, evidence, slot, seq, stream in among(self._connection, sql, missing):
            if stream == self._stream:
                self.nodes[id_] = _Node(number, id_, tuple(texts(evidence)), slot, seq)
        rows = {self.nodes[id_].seq for id_ in missing if id_ in self.nodes} - self.kinds.keys()
        sql = "SELECT seq, kind, payload, mind FROM log WHERE seq IN ({})"
        for seq, kind, payload, mind in among(self._connection, sql, list(rows)):
            if mind == self._stream:
                self.kinds[seq] = kind, payload

    def said_in(self, id_: str, kinds: Sequence[str]) -> int | None:
        """Return the seq of a record's log row, if the row has one of these kinds and names this record; else None."""
        node = self.nodes.get(id_)
        kind, payload = self.kinds.get(node.seq, ("", "")) if node else ("", "")
        return node.seq if node and kind in kinds and parsed(payload, dict).get("record") == id_ else None

    def evidence(self, id_: str) -> tuple[str, ...]:
        """Return the ids of the records from which a record was derived. For an answer without evidence, this is the id
        of the message that the record answers."""
        node = self.nodes.get(id_)
        if node is None or node.evidence or (row := self.said_in(id_, ANSWERS)) is None:
            return node.evidence if node else ()
        answers = parsed(self.kinds[row][1], dict).get("answers")
        found = self._connection.execute(
            "SELECT payload FROM log WHERE seq = ? AND mind = ? AND kind = 'heard'", (answers, self._stream)
        ).fetchone()
        asked = parsed(found[0], dict).get("record") if found else None
        return (str(asked),) if asked else ()

    def below(self, ids: Iterable[str]) -> dict[str, list[str]]:
        """Return, for each of these records, the records that were directly derived from it."""
        missing = [id_ for id_ in dict.fromkeys(ids) if id_ not in self._below]
        self._below.update({id_: [] for id_ in missing})
        sql = (
            "SELECT lineage.source, records.id, records.stream FROM lineage CROSS JOIN records"
            " WHERE lineage.source IN ({}) AND records.number = lineage.number ORDER BY records.number"
        )
        for source, id_, stream in among(self._connection, sql, missing):
            if stream == self._stream:
                self._below[source].append(id_)
        self.load(missing)
        heard = {row: id_ for id_ in missing if (row := self.said_in(id_, ("heard",))) is not None}
        sql = (
            "SELECT log_lineage.source, log.payload FROM log_lineage CROSS JOIN log WHERE log_lineage.source IN ({})"
            f" AND log.seq = log_lineage.seq AND log.mind = ? AND log.kind IN ({_quoted(ANSWERS)}) ORDER BY log.seq"
        )
        answers = [
            (heard[row], str(parsed(payload, dict).get("record", "")))
            for row, payload in among(self._connection, sql, list(heard), self._stream)
        ]
        self.load([*(id_ for each in missing for id_ in self._below[each]), *(answer for _, answer in answers)])
        for asked, answer in answers:
            if answer in self.nodes and not self.nodes[answer].evidence:
                self._below[asked].append(answer)
        return {id_: self._below[id_] for id_ in ids}

    def earlier(self, ids: Iterable[str]) -> dict[str, list[str]]:
        """Return, for each of these corrections, the records that it replaced."""
        missing = [id_ for id_ in dict.fromkeys(ids) if id_ not in self._earlier]
        self._earlier.update({id_: [] for id_ in missing})
        sql = (
            "SELECT superseded_by, id, stream FROM records WHERE superseded_by IN ({}) AND superseded_by IS NOT NULL"
            " AND slot IS NULL ORDER BY number"
        )
        for new, old, stream in among(self._connection, sql, missing):
            if stream == self._stream:
                self._earlier[new].append(old)
        return {id_: self._earlier[id_] for id_ in ids}

    def are_there(self, ids: Iterable[str]) -> set[str]:
        """Return the ids that belong to existing records, of this stream or another stream of the tenant."""
        ids = list(dict.fromkeys(ids))
        self.load(ids)
        missing = [id_ for id_ in ids if id_ not in self.nodes and id_ not in self._elsewhere]
        self._elsewhere.update(dict.fromkeys(missing, False))
        sql = f"SELECT id FROM records WHERE id IN ({{}}) AND {self._owned}"
        self._elsewhere.update((row[0], True) for row in among(self._connection, sql, missing))
        return {id_ for id_ in ids if id_ in self.nodes or self._elsewhere.get(id_)}

    def directly_below(self, ids: Iterable[str]) -> dict[str, _Node]:
        """Return the records that were directly derived from at least one of these records."""
        found = dict.fromkeys(id_ for some in self.below(ids).values() for id_ in some)
        return {id_: self.nodes[id_] for id_ in found if id_ in self.nodes}

    def reach(self, start: Iterable[str], step: Any) -> set[str]:
        """Return the ids in `start` and all ids that are reached from them by repeating `step` (`below` or
        `earlier`)."""
        seen, ready = set(start), list(start)
        while ready:
            ready = [id_ for found in step(ready).values() for id_ in found if id_ not in seen]
            seen.update(ready)
        return seen

    def rests_only_on(self, gone: set[str], id_: str) -> bool:
        """Return whether each source of a record is in `gone` or does not exist any more. The record that a correction
        replaces counts as a source only if there is no other."""
        evidence, corrects = self.evidence(id_), self.earlier([id_])[id_]
        evidence = tuple(each for each in evidence if each not in corrects) or evidence
        return not self.are_there(each for each in evidence if each not in gone)


def find_closure(
    connection: Sql,
    stream: StreamKey,
    asked: Iterable[str],
    owned: str,
    *,
    all_slots: bool = False,
    slots_below: Sequence[str] = (),
) -> Closure:
    """Return everything that is forgotten together with the records `asked`.

    Args:
        owned: SQL condition that selects the rows of `records` in streams of the tenant.
        all_slots: return the versions of all slots, not only of affected ones.
        slots_below: ids of further records; also return the versions of slots that have a version derived from one of
            these.
    """
    lineage = _Lineage(connection, stream, owned)
    roots = lineage.reach(list(asked), lineage.earlier)
    lineage.load(roots)
    gone, ready = set(roots), list(roots)
    while ready:
        found, ready = lineage.directly_below(ready), []
        for id_ in found:
            if id_ not in gone and lineage.rests_only_on(gone, id_):
                gone.add(id_)
                ready.append(id_)
    below = lineage.nodes.keys() & lineage.reach(gone, lineage.below) - gone
    nodes = [node for id_, node in lineage.nodes.items() if id_ in gone or id_ in below]
    order = {node.id: node.number for node in sorted(nodes, key=lambda node: node.number)}
    affected = [*nodes, *lineage.directly_below(slots_below).values()]
    slots = {node.slot for node in affected if node.slot is not None}
    return Closure(
        frozenset(roots),
        frozenset(gone),
        frozenset(below),
        frozenset(_bare_rows(connection, stream, lineage, gone)),
        frozenset(id_ for id_ in gone - roots if lineage.said_in(id_, ANSWERS) is not None),
        order,
        _versions(connection, stream, None if all_slots else sorted(slots)),
    )


def _versions(connection: Sql, stream: StreamKey, slots: Sequence[str] | None) -> dict[str, list[Record]]:
    """Return all versions of these slots, oldest first; slots None: of all slots."""
    found: dict[str, list[Record]] = defaultdict(list)
    if slots is None:
        rows = connection.execute(f"SELECT {COLUMNS} FROM records WHERE stream = ? AND slot IS NOT NULL", (stream,))
    else:
        rows = among(connection, f"SELECT {COLUMNS} FROM records WHERE slot IN ({{}}) AND stream = ?", slots, stream)
    for record in map(record_of, rows):
        if record.slot is not None:
            found[record.slot].append(record)
    for versions in found.values():
        versions.sort(key=lambda record: record.version or 0)
    return dict(found)


def _bare_rows(connection: Sql, stream: StreamKey, lineage: _Lineage, gone: set[str]) -> Iterator[int]:
    """Yield the rows of the log that contain only words of forgotten records:
    - forgotten messages and answers;
    - decisions that quote a forgotten answer;
    - reflections of which all thoughts are forgotten;
    - thoughts that are only about forgotten messages, and the runs that led to these thoughts."""
    heard = {row for id_ in gone if (row := lineage.said_in(id_, ("heard",))) is not None}
    said = {row for id_ in gone if (row := lineage.said_in(id_, ANSWERS)) is not None}
    yield from heard | said
    for row in sorted(said):
        yield from _decided_after(connection, stream, row)
    for seq in {node.seq for id_, node in lineage.nodes.items() if id_ in gone}:
        kind, payload = lineage.kinds.get(seq, ("", ""))
        thoughts = parsed(payload, dict).get("thoughts") if kind == "reflected" else None
        if thoughts and gone.issuperset(map(str, thoughts)):
            yield seq
    sql = (
        "SELECT log.seq, log.kind, log.payload FROM log_lineage CROSS JOIN log WHERE log_lineage.source IN ({})"
        f" AND log.seq = log_lineage.seq AND log.mind = ? AND log.kind IN ({_quoted(THOUGHTS)})"
    )
    about_heard = {row[0]: row[1:] for row in among(connection, sql, sorted(heard), stream)}
    for seq, (kind, payload) in sorted(about_heard.items()):
        thought = read_event(kind, payload)
        about = getattr(thought, "about", ())
        if about and heard.issuperset(about):
            yield from (seq, *_run_before(connection, stream, seq, getattr(thought, "slot", "")))


def _decided_after(connection: Sql, stream: StreamKey, row: int) -> Iterator[int]:
    """Yield the log rows of the decisions after an answer (`row`) and before the next answer. They quote the end of the
    first answer."""
    ends = [
        connection.execute(
            "SELECT min(seq) FROM log WHERE mind = ? AND kind = ? AND seq > ?", (stream, kind, row)
        ).fetchone()[0]
        for kind in ANSWERS
    ]
    end = min((each for each in ends if each is not None), default=2**62)
    sql = "SELECT seq FROM log WHERE mind = ? AND kind = 'decided' AND seq > ? AND seq < ?"
    yield from (each[0] for each in connection.execute(sql, (stream, row, end)))


def _run_before(connection: Sql, stream: StreamKey, thought: int, slot: str) -> Iterator[int]:
    """Yield the rows of the run that led to a thought, newest first: the rows of the thought's slot since the slot's
    previous thought."""
    sql = (
        f"SELECT seq, kind, payload FROM log WHERE mind = ? AND seq < ? AND kind IN ({_quoted((*RUNS, *THOUGHTS))})"
        " ORDER BY seq DESC LIMIT ?"
    )
    before = thought
    while rows := connection.execute(sql, (stream, before, AT_ONCE)).fetchall():
        for before, kind, payload in rows:
            if getattr(read_event(kind, payload), "slot", "") == slot:
                if kind in THOUGHTS:
                    return
                yield before


def find_answers(connection: Sql, stream: StreamKey, after: int, ids: Sequence[str] | None) -> list[str]:
    """Return the ids of the mind's own messages after a row of the log, in the order of writing.

    If `ids` is given, messages whose ids are not in it are left out.
    """
    sql = (
        "SELECT records.number, records.id FROM records JOIN log ON log.seq = records.seq"
        f" AND log.kind IN ({_quoted(ANSWERS)}) WHERE"
    )
    more = "records.seq > ? AND records.stream = ?"
    if ids is None:
        found = connection.execute(f"{sql} {more} AND records.kind = 'chat'", (after, stream)).fetchall()
    else:
        found = list(among(connection, f"{sql} records.id IN ({{}}) AND {more}", ids, after, stream))
    return [id_ for _, id_ in sorted(found)]


def _quoted(kinds: Iterable[str]) -> str:
    return ", ".join(f"'{kind}'" for kind in kinds)
