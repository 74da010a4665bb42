"""Migrate streams from before names had kinds: the kind is determined by a stream's content, not by its name alone."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from mindstream.errors import InputError
from mindstream.log.names import MARK, StreamKind, StreamName, name_of
from mindstream.memory.store.registry import first_of, register_old, unknown_keys
from mindstream.memory.store.rows import COLUMNS, sum_of_event, sum_of_record

KEYED = {"work": "mind", "checkpoints": "stream", "erased": "stream"}
"""Columns with the key of a stream that are not part of a checksum, by table."""
SYSTEM = {
    "life": ("heard", "answered", "leave_given", "noticed", "commanded", "task_changed", "life_began"),
    "whisper": ("remembered",),
}
"""Names under which the system wrote rows of kinds that users write, too."""


def adopt(connection: sqlite3.Connection) -> None:
    """Give old streams keys with their kinds, and register all streams.

    Streams whose names look the same, or have the same normal form, are kept: each opens by the name as it was typed.
    """
    connection.create_function("event_sum", -1, _event_sum)
    connection.create_function("record_sum", -1, _record_sum)
    for key in list(unknown_keys(connection)):
        kind, id_ = _kind_of(connection, key)
        try:
            name = name_of(key) if kind == "user" else StreamName(kind, id_)
        except InputError:  # a damaged key, which the doctor repairs
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
    """Change the key of a stream's rows. Correct checksums are updated; wrong ones stay wrong, so that damage is
    found."""
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
    """Mark the rows that the system wrote; earlier versions showed this only by the name in `by`.

    If the user has the same name, only the rows of a kind that no user writes are marked.
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
    """Return the new checksum, or a wrong one if the old one was wrong, so that the doctor still finds the damage."""
    if total is None:
        return None
    try:
        return sum_of(*new) if sum_of(*old) == total else sum_of(*new) ^ 1
    except (TypeError, ValueError):
        return total ^ 1
