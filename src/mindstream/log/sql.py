"""The interface of a database connection that SQLite and PostgreSQL share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol


class Sql(Protocol):
    """Runs statements, with a ? for each value, in the caller's transaction."""

    def execute(self, sql: str, values: Any = ..., /) -> Any:
        """Run a statement; return a cursor over its rows."""

    def executemany(self, sql: str, rows: Iterable[Any], /) -> Any:
        """Run a statement once for each row of values; return a cursor with the number of changed rows."""
