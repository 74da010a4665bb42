"""The records of a stream that a process holds with their texts, in a compact form.

A usual record, such as a message, takes 190 bytes with its text, instead of 700: its times and its strength are in the
stream's columns anyway, and values that many records have in common, such as the author, are held once.
"""

from __future__ import annotations

from itertools import islice
from typing import TypeAlias

from pydantic import JsonValue

from mindstream.memory.store.record import Kind, Record

MAX_COMMON = 64
"""Maximum number of remembered combinations of values that records have in common. When it is reached, all are
forgotten: later records begin new combinations."""
SIMPLE = frozenset({str, int, bool, type(None)})
"""Types of values in a record's data that a combination can contain. (Equal floats can differ: 0.0 and -0.0.)"""

Common: TypeAlias = tuple[Kind, str, str, int, str, tuple[tuple[str, JsonValue], ...]]
"""Values of many records: kind, by, episode, depth, embedder, and the items of the data."""
Compact: TypeAlias = tuple[Common, str, int]
"""A record without the values that columns have: the values in common with other records, the text, and seq."""


class HeldRecords(dict[str, Record | Compact]):
    """Held records by id, in the order in which they were last held.

    A record is held in compact form if its only other values are in the columns (see `Columns.held`); otherwise the
    record itself is held.
    """

    __slots__ = ("_common",)

    def __init__(self) -> None:
        super().__init__()
        self._common: dict[tuple[object, ...], Common] = {}

    def hold(self, id_: str, record: Record) -> None:
        """Hold a record as the last one. `id_`: its id, as the object that other parts of the process hold."""
        self.pop(id_, None)
        self[id_] = self._compact(record) or record

    def drop(self, id_: str) -> None:
        """Drop a record, if it is held. Values that it has in common with others are no longer used for new records."""
        if self.pop(id_, None) is not None:
            self._common.clear()

    def drop_oldest(self, count: int = 1) -> None:
        """Drop the records that were held longest ago."""
        for id_ in list(islice(self, count)):
            del self[id_]

    def clear(self) -> None:
        """Drop all records."""
        super().clear()
        self._common.clear()

    def _compact(self, record: Record) -> Compact | None:
        """Return the compact form of a record; None: it has further values."""
        if record.keywords or record.evidence or record.about or record.slot is not None:
            return None
        if record.importance is not None or record.superseded_by is not None:
            return None
        data = tuple(record.data.items())
        types = tuple(type(value) for _, value in data)
        if not SIMPLE.issuperset(types):
            return None
        common = (record.kind, record.by, record.episode, record.depth, record.embedder, data)
        if (known := self._common.get((common, types))) is None:
            if len(self._common) >= MAX_COMMON:
                self._common.clear()
            known = self._common[common, types] = common
        return known, record.text, record.seq
