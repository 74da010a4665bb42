"""What the command line does to people's data is written into the audit, as the doors write theirs (House.note)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from mindstream.clock import Clock, SystemClock
from mindstream.errors import StorageError
from mindstream.log.audit import Deed, Did, machine_user
from mindstream.memory.opening import open_store
from mindstream.memory.store.sql_store import SqlStore, TableStore
from mindstream.memory.store.store import Store
from mindstream.paths import is_database
from mindstream.service.memory import UserMemory


async def note(
    store: Store, did: Did, counts: Mapping[str, int | str], about: str = "", tenant: str = "",
    clock: Clock | None = None,
) -> None:  # fmt: skip
    """Add to the audit what the machine's user did by a command."""
    await store.note((clock or SystemClock()).now(), Deed(did, "command", machine_user(), about, tenant, counts))


async def note_of(opened: UserMemory, did: Did, counts: Mapping[str, int | str]) -> None:
    """Add to the audit what was done to a user's memory by a command."""
    await note(opened.store, did, counts, opened.key, clock=opened.clock)


async def note_in(data: str | Path, did: Did, counts: Mapping[str, int | str], tenant: str = "") -> None:
    """Add to the audit of a data folder, or of a database, that is not open; the folder is made if need be."""
    async with opened_store(data) as store:
        await note(store, did, counts, tenant=tenant)


@asynccontextmanager
async def opened_store(data: str | Path, tenant: str = "") -> AsyncIterator[TableStore]:
    """Open a folder's or a database's store, as a tenant's or as this machine's own people's ("").

    Raises:
        StorageError: it cannot be used.
    """
    store = open_store(data, tenant)
    if not isinstance(store, SqlStore):
        raise StorageError(f"{data} is kept by a store that does not know of people's rights")
    try:
        yield store
    finally:
        await store.close()


def folder_of(data: str | Path) -> Path | None:
    """Return the folder beside whose database files lie; a server's database has none."""
    return None if is_database(data) else Path(data)
