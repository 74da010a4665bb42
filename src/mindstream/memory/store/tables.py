"""The tables of the SQLite file, as the list of their migrations."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from mindstream.errors import InputError
from mindstream.identifiers import MARK, StreamKind, StreamName, name_of
from mindstream.log import work
from mindstream.log.database import SECURED, Migration
from mindstream.memory.store import checkpoints, registry
from mindstream.memory.store.queries import COLUMNS, sum_of_event, sum_of_record
from mindstream.memory.store.record import UNIQUE, same_words
from mindstream.memory.store.registry import first_of, register_old, unknown_keys
from mindstream.memory.store.word_index import in_sqlite

KEYED = {"work": "mind", "checkpoints": "stream", "erased": "stream"}
"""By table: the column with a stream's key, in tables whose checksums do not contain the key."""
SYSTEM = {
    "life": ("heard", "answered", "leave_given", "noticed", "commanded", "task_changed", "life_began"),
    "whisper": ("remembered",),
}
"""Kinds of log rows that the system itself wrote, by the author's name in `by`. Users can write rows of these kinds,
too.
"""


def adopt(connection: sqlite3.Connection) -> None:
    """Register all streams; give the streams of early versions keys that contain the kind of the stream.

    The kind is determined by a stream's content, not by its name alone. If the names of several streams look the same,
    or have the same normal form, all these streams are kept: each opens by the name as it was typed.
    """
    connection.create_function("event_sum", -1, _event_sum)
    connection.create_function("record_sum", -1, _record_sum)
    for key in list(unknown_keys(connection)):
        kind, id_ = _kind_of(connection, key)
        try:
            name = name_of(key) if kind == "user" else StreamName(kind, id_)
        except InputError:  # a damaged key, which `mindstream doctor --mend` repairs
            continue
        if kind != "user":
            _rename(connection, key, name.typed_key)
        register_old(connection, name)
        _mark_system(connection, name)


def _kind_of(connection: sqlite3.Connection, key: str) -> tuple[StreamKind, str]:
    if MARK in key:
        return "user", key
    if key.startswith("pool:") and first_of(connection, key, "pool_created"):
        return "pool", key.removeprefix("pool:")
    if key == "town" and first_of(connection, key, "town_began"):
        return "town", key
    if first_of(connection, key, "moved_in"):
        return "resident", key
    holds = "SELECT 1 FROM records WHERE stream = ? AND kind = 'document' LIMIT 1"
    if key.startswith("documents.") and connection.execute(holds, (key,)).fetchone():
        return "documents", key.removeprefix("documents.")
    return "user", key


def _rename(connection: sqlite3.Connection, old: str, new: str) -> None:
    """Change the key in a stream's rows. Correct checksums are updated. Wrong checksums stay wrong, so that the doctor
    still finds the damage."""
    connection.execute(
        "UPDATE log SET mind = ?, sum = event_sum(sum, ?, 0, mind, at, by, kind, payload) WHERE mind = ?",
        (new, new, old),
    )
    connection.execute(
        f"UPDATE records SET stream = ?, words_sum = record_sum(words_sum, ?, {COLUMNS}) WHERE stream = ?",
        (new, new, old),
    )
    for table, column in KEYED.items():
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE {column} = ?", (new, old))


def _mark_system(connection: sqlite3.Connection, name: StreamName) -> None:
    """Mark the rows that the system wrote; in earlier versions, only the name in `by` showed this.

    If the user's name is one of the system's names, only the rows `task_changed` of this name are marked.
    """
    key = name.typed_key
    for by, kinds in SYSTEM.items():
        for kind in kinds if name.id != by else ("task_changed",):
            connection.execute(
                "UPDATE log SET system = 1, sum = event_sum(sum, mind, 1, mind, at, by, kind, payload)"
                " WHERE mind = ? AND kind = ? AND by = ?",
                (key, kind, by),
            )


def _event_sum(
    total: int | None, new: str, system: int, mind: str, at: float, by: str, kind: str, payload: str
) -> int | None:
    return _anew(total, lambda key, mark: sum_of_event(key, at, by, kind, payload, mark), (mind, 0), (new, system))


def _record_sum(total: int | None, new: str, id_: str, stream: str, *row: object) -> int | None:
    return _anew(total, lambda key, _: sum_of_record((id_, key, *row)), (stream, 0), (new, 0))


def _anew(
    total: int | None, sum_of: Callable[[str, int], int], old: tuple[str, int], new: tuple[str, int]
) -> int | None:
    """Return the checksum of a rewritten row; None: the row has no checksum.

    If the old checksum (`total`) was wrong, the new checksum is wrong, too: the doctor still finds the damage.
    """
    if total is None:
        return None
    try:
        return sum_of(*new) if sum_of(*old) == total else sum_of(*new) ^ 1
    except (TypeError, ValueError):
        return total ^ 1


TALKS = "'said', 'follow_up', 'thought', 'set_aside'"
"""Kinds of log rows that refer to other rows: to the rows that they answer (`answers`) or process (`about`)."""


def _statements(*statements: str) -> Migration:
    """Return a migration that runs these statements."""

    def migrate(connection: sqlite3.Connection) -> None:
        for statement in statements:
            connection.execute(statement)

    return migrate


_m001_log_records_work = _statements(
    "CREATE TABLE log (seq INTEGER PRIMARY KEY AUTOINCREMENT, mind TEXT NOT NULL, at REAL NOT NULL,"
    " by TEXT NOT NULL, kind TEXT NOT NULL, payload TEXT NOT NULL)",
    "CREATE INDEX log_of_mind ON log (mind, seq)",
    "CREATE TABLE records (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, stream TEXT NOT NULL,"
    " kind TEXT NOT NULL, text TEXT NOT NULL, created REAL NOT NULL, accessed REAL NOT NULL, by TEXT NOT NULL,"
    " episode TEXT NOT NULL, importance REAL, level INTEGER NOT NULL, lasting INTEGER NOT NULL,"
    " valid_from REAL, valid_until REAL, superseded_by TEXT, forgotten REAL,"
    " subject TEXT, predicate TEXT, object TEXT, keywords TEXT, evidence TEXT,"
    " depth INTEGER NOT NULL, slot TEXT, version INTEGER, data TEXT, seq INTEGER NOT NULL, embedder TEXT NOT NULL,"
    " vector BLOB, changed INTEGER NOT NULL)",
    "CREATE INDEX records_changed ON records (stream, changed)",
    "CREATE INDEX records_latest ON records (stream, kind, number)",
    "CREATE INDEX records_episode ON records (stream, episode, number)",
    "CREATE UNIQUE INDEX records_slot ON records (stream, slot, version) WHERE slot IS NOT NULL",
    "CREATE TABLE erased (stream TEXT NOT NULL, id TEXT NOT NULL, changed INTEGER NOT NULL)",
    "CREATE INDEX erased_changed ON erased (stream, changed)",
    "CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
    "INSERT INTO counters VALUES ('changed', 0)",
    *work.TABLES,
)


def _m002_same_words(connection: sqlite3.Connection) -> None:
    """Index the texts of kinds that store the same words only once, and the log by kind."""
    connection.create_function("same_words", 1, same_words, deterministic=True)
    connection.execute("ALTER TABLE records ADD COLUMN same INTEGER")
    kinds = ", ".join(f"'{kind}'" for kind in sorted(UNIQUE))
    connection.execute(f"UPDATE records SET same = same_words(text) WHERE kind IN ({kinds})")
    connection.execute("CREATE INDEX records_same ON records (stream, kind, same) WHERE same IS NOT NULL")
    connection.execute("CREATE INDEX log_of_kind ON log (mind, kind, seq)")


_m003_failures_of_work = _statements("ALTER TABLE work ADD COLUMN failures INTEGER NOT NULL DEFAULT 0")
"""Adds the number of failed runs of work, because failed work is tried only a limited number of times."""

_m004_sums = _statements(
    "ALTER TABLE records ADD COLUMN words_sum INTEGER",
    "ALTER TABLE records ADD COLUMN vector_sum INTEGER",
    "ALTER TABLE log ADD COLUMN sum INTEGER",
    "CREATE TRIGGER records_changed_words AFTER UPDATE OF id, stream, kind, text, created, by, episode, valid_from,"
    " subject, predicate, object, keywords, evidence, depth, slot, version, data, seq ON records"
    " WHEN NEW.words_sum IS OLD.words_sum AND OLD.words_sum IS NOT NULL"
    " BEGIN UPDATE records SET words_sum = NULL WHERE number = NEW.number; END",
    "CREATE TRIGGER log_changed_words AFTER UPDATE OF mind, at, by, kind, payload ON log"
    " WHEN NEW.sum IS OLD.sum AND OLD.sum IS NOT NULL"
    " BEGIN UPDATE log SET sum = NULL WHERE seq = NEW.seq; END",
)
"""Adds checksums. Existing rows get none, so that a file of any size opens quickly; `doctor --mend` adds them.

If another program changes words but not the checksum, a trigger removes the checksum, which would no longer be right.
"""


_names = _statements(*registry.TABLES, "ALTER TABLE log ADD COLUMN system INTEGER NOT NULL DEFAULT 0")


def _m006_names(connection: sqlite3.Connection) -> None:
    """Register streams by kind and name, and mark rows that the system wrote, so that no user's name has a special
    meaning."""
    _names(connection)
    adopt(connection)


_m007_kept = _statements(
    "CREATE TABLE kept (stream TEXT NOT NULL, name TEXT NOT NULL, at REAL NOT NULL, value TEXT NOT NULL,"
    " PRIMARY KEY (stream, name)) WITHOUT ROWID"
)
"""Adds the table of named values of streams; earlier versions stored them in separate files."""

_m008_best_held = _statements("CREATE INDEX records_held ON records (stream, level) WHERE level > 0")
"""Indexes the records that have gained strength, which are few."""

_m009_accounts = _statements(
    "CREATE TABLE salts (one INTEGER PRIMARY KEY CHECK (one = 1), value TEXT NOT NULL, turns INTEGER)",
    "CREATE TABLE erasures (number INTEGER PRIMARY KEY AUTOINCREMENT, digest TEXT NOT NULL, whole INTEGER NOT NULL)",
    "CREATE INDEX erasures_of ON erasures (digest, number)",
    "CREATE TABLE audit (number INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, did TEXT NOT NULL,"
    " door TEXT NOT NULL, who TEXT NOT NULL, tenant TEXT NOT NULL, about TEXT NOT NULL, counts TEXT NOT NULL)",
    "CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit"
    " BEGIN SELECT RAISE(ABORT, 'rows of the audit stay as they are'); END",
    "CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit"
    " BEGIN SELECT RAISE(ABORT, 'rows of the audit stay as they are'); END",
    "CREATE TABLE retention (tenant TEXT PRIMARY KEY, kinds TEXT NOT NULL, after_s REAL NOT NULL,"
    " owner TEXT NOT NULL, lease REAL NOT NULL, applied REAL NOT NULL)",
)
"""Adds tables for erasures, which all processes read, for the audit log, and for the retention rules of tenants."""

_m010_retention_policy = _statements(registry.MARK_DECAYING.format(more=""))
"""Marks the memories of earlier versions, so that they keep the policy `decay`; new memories have `keep`."""


_EVIDENCE = "json_each(CASE WHEN json_valid({0}.evidence) THEN {0}.evidence ELSE '[]' END)"
_SOURCES = (
    "SELECT {0}.seq, json_each.value FROM {1} json_each({0}.payload, '$.answers') UNION ALL"
    " SELECT {0}.seq, json_each.value FROM {1} json_each({0}.payload, '$.about')"
)
_SOUND = f"(SELECT * FROM log WHERE kind IN ({TALKS}) AND json_valid(payload)) AS log,"

_m011_lineage = _statements(
    "CREATE TABLE lineage (number INTEGER NOT NULL, source TEXT NOT NULL, PRIMARY KEY (number, source)) WITHOUT ROWID",
    "CREATE TABLE log_lineage (seq INTEGER NOT NULL, source INTEGER NOT NULL, PRIMARY KEY (seq, source)) WITHOUT ROWID",
    "INSERT OR IGNORE INTO lineage SELECT records.number, json_each.value FROM records,"
    f" {_EVIDENCE.format('records')} WHERE records.evidence IS NOT NULL AND json_each.type = 'text'",
    f"INSERT OR IGNORE INTO log_lineage {_SOURCES.format('log', _SOUND)}",
    "CREATE INDEX lineage_of ON lineage (source)",
    "CREATE INDEX log_lineage_of ON log_lineage (source)",
    "CREATE TRIGGER records_lineage AFTER INSERT ON records WHEN NEW.evidence IS NOT NULL"
    f" BEGIN INSERT OR IGNORE INTO lineage SELECT NEW.number, json_each.value FROM {_EVIDENCE.format('NEW')}"
    " WHERE json_each.type = 'text'; END",
    f"CREATE TRIGGER log_lineage AFTER INSERT ON log WHEN NEW.kind IN ({TALKS}) AND json_valid(NEW.payload)"
    f" BEGIN INSERT OR IGNORE INTO log_lineage {_SOURCES.format('NEW', '')}; END",
    "CREATE TRIGGER records_without_lineage AFTER DELETE ON records"
    " BEGIN DELETE FROM lineage WHERE number = OLD.number; END",
    "CREATE TRIGGER log_without_lineage AFTER DELETE ON log BEGIN DELETE FROM log_lineage WHERE seq = OLD.seq; END",
    "CREATE INDEX records_superseded ON records (superseded_by) WHERE superseded_by IS NOT NULL AND slot IS NULL",
    "CREATE INDEX records_unembedded ON records (stream, number) WHERE embedder = ''",
    "CREATE INDEX work_failed ON work (mind) WHERE error <> ''",
    # a file without any change holds no deleted bytes yet, so its first erasure needs no VACUUM
    f"INSERT INTO counters SELECT '{SECURED}', 1 FROM counters WHERE name = 'changed' AND value = 0",
)
"""Indexes which records and rows of the log were derived from which, and which records have no vector.

Triggers keep `lineage` and `log_lineage` up to date with every insert and delete, in the same transaction.
"""


MIGRATIONS: list[Migration] = [
    _m001_log_records_work,
    _m002_same_words,
    _m003_failures_of_work,
    _m004_sums,
    _statements(checkpoints.TABLE),
    _m006_names,
    _m007_kept,
    _m008_best_held,
    _m009_accounts,
    _m010_retention_policy,
    _m011_lineage,
    _statements(*in_sqlite.TABLES),
]
"""The changes of the tables, in order. Only append to this list: each database file stores how many of the changes were
applied to it."""
