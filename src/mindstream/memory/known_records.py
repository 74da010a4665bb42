"""Records that were read from a file lately: as long as a row has not changed it need not be read again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from mindstream import caches
from mindstream.memory.record import Record
from mindstream.memory.rows import FIELDS, record_of

MOST, LONGEST = 4_096, 2_000
"""So many records are held; of none more characters than that."""
WIDTH = len(FIELDS)
SIZED = tuple(FIELDS.index(name) for name in ("text", "keywords", "evidence", "data"))


class KnownRecords:
    """Records by id, each as of a change; those that were read first leave."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[object, Record]] = {}
        caches.watch(self)

    def forget(self, _: str) -> None:
        """Let go of all of them: something was erased."""
        self._held.clear()

    def has_any(self, ids: Iterable[str]) -> bool:
        """Tell whether any of these is held, as of whatever change."""
        return not self._held.keys().isdisjoint(ids)

    def as_of(self, id_: str, changed: object) -> Record | None:
        """Return a record as it was read, if that is how it is since this change."""
        held = self._held.get(id_)
        return held[1] if held is not None and held[0] == changed else None

    def read(self, row: Sequence[Any]) -> Record:
        """Return the record of a row (rows.COLUMNS, then the number of its last change), and hold it."""
        changed = row[WIDTH]
        record = self.as_of(row[0], changed)
        if record is None:
            record = record_of(tuple(row[:WIDTH]))
            if sum(len(row[at] or "") for at in SIZED) <= LONGEST:
                self._held.pop(row[0], None)
                self._held[row[0]] = changed, record
                if len(self._held) > MOST:
                    del self._held[next(iter(self._held))]
        return record
