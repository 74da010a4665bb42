"""Rows of a log in a list that a notebook shows as an HTML table."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterable
from typing import Self

from mindstream.clock import format_iso
from mindstream.log.events import Logged

LAST = 50


class Timeline(list[Logged]):
    """Rows of a log, oldest first."""

    @classmethod
    async def of(cls, rows: AsyncIterable[Logged], last: int = LAST) -> Self:
        """Return the last `last` rows: `await Timeline.of(memory.log())`."""
        kept = deque[Logged](maxlen=last)
        async for row in rows:
            kept.append(row)
        return cls(kept)

    def _repr_html_(self) -> str:
        from mindstream.html_tables import table

        rows = [
            (row.seq, format_iso(row.at)[:19].replace("T", " "), row.by, row.event.kind, _told(row)) for row in self
        ]
        return table("timeline", ("seq", "at", "by", "event", ""), rows)


def _told(row: Logged) -> str:
    fields = row.event.model_dump(mode="json", exclude=set(row.event.long) | {"spent"}, exclude_defaults=True)
    text = str(fields.pop("text", ""))
    rest = ", ".join(f"{name}: {value}" for name, value in fields.items())
    return text or rest
