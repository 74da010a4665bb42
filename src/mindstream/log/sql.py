"""A connection to a database of SQL, as far as SQLite's and PostgreSQL's are alike."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol


class Sql(Protocol):
    """Runs statements in which a ? stands for each value, in the transaction of whoever handed it over."""

    def execute(self, sql: str, values: Any = ..., /) -> Any:
        """Run a statement; return a cursor with what it finds."""

    def executemany(self, sql: str, rows: Iterable[Any], /) -> Any:
        """Run a statement once for each row of values; return a cursor that counts the rows it touched."""
