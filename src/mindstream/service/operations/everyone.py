"""The log over all walls between tenants: for what the operator has set up. No request reaches it."""

from __future__ import annotations

from collections.abc import Sequence

from mindstream.log.events import Logged
from mindstream.log.names import tenant_of
from mindstream.memory.store import queries
from mindstream.memory.store.sqlite import SqliteStore


class Everyone(SqliteStore):
    """A data folder as its operator sees it."""

    async def next_row(self, after: int, kinds: Sequence[str]) -> Logged | None:
        """Return the first row of these kinds after a seq, whosever it is; one that cannot be read is `Unknown`."""
        where = f"WHERE seq > ? AND kind IN ({','.join('?' * len(kinds))}) ORDER BY seq LIMIT 1"
        rows = await self._database.read(
            lambda connection: queries.read_log(connection, where, [after, *kinds], None)
        )  # fmt: skip
        return rows[0] if rows else None

    async def tenants_with_work(self) -> list[str]:
        """Name the tenants that have unfinished work; "": no tenant's is unfinished."""
        sql = "SELECT DISTINCT mind FROM work WHERE done IS NULL"
        minds = await self._database.read(lambda connection: [row[0] for row in connection.execute(sql)])
        return sorted({tenant_of(mind) for mind in minds})
