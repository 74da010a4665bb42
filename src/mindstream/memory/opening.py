"""Open the store that a location names: a folder's SQLite file, or a PostgreSQL database."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, TypeAlias

from mindstream.clock import Clock, SystemClock
from mindstream.errors import StorageError
from mindstream.identifiers import EVERYONE, OWN, OwnTenant, StreamKey, checked_tenant
from mindstream.location import AnyData, Location
from mindstream.log.database import FILE
from mindstream.log.erasure import finish_all
from mindstream.memory.store.sql_store import SqlStore, watching
from mindstream.memory.store.sqlite import SqliteStore
from mindstream.memory.store.store import Store

if TYPE_CHECKING:
    from mindstream.memory.store.postgres.copying import Copied
    from mindstream.memory.store.postgres.look import DatabaseLook

AnyStore: TypeAlias = AnyData | Store
"""A location of data (see `AnyData`), or a store that is already open."""


def open_store(data: AnyData, tenant: str = "") -> SqlStore:
    """Open the store of a folder or a URL.

    Args:
        tenant: the tenant whose streams are visible; "": the tenant of the location, if it has one.

    Raises:
        InputError: the tenant's name is invalid or reserved.
        StorageError: the location cannot be used, or the database's driver is not installed.
    """
    where = Location.of(data)
    own = OwnTenant(where.tenant) if where.tenant.startswith(OWN) else where.tenant
    return _opened(where, checked_tenant(tenant) or own)


def open_everyone(data: AnyData) -> SqlStore:
    """Open a store that shows the streams of all tenants, for reading only.

    Raises:
        StorageError: the location cannot be used, or the database's driver is not installed.
    """
    return _opened(Location.of(data), EVERYONE)


def _opened(where: Location, tenant: str) -> SqlStore:
    if where.folder is not None:
        return SqliteStore(where.folder, tenant)
    with _needs_driver():
        from mindstream.memory.store.postgres.postgres import PostgresStore
    return PostgresStore(where.url, tenant)


def clock_of(data: AnyStore) -> Clock:
    """Return the clock that all processes with this data share.

    - For a store: the clock of the store.
    - For a folder: the clock of this machine.
    - For a database: the clock of the server.
    """
    if not isinstance(data, AnyData):
        found: Clock | None = getattr(data, "clock", None)
        return found or SystemClock()
    where = Location.of(data)
    if where.folder is not None:
        return SystemClock()
    with _needs_driver():
        from mindstream.memory.store.postgres.connection import clock_of as of_server
    return of_server(where.url)


@contextlib.asynccontextmanager
async def opened_store(data: AnyStore) -> AsyncIterator[Store]:
    """Yield the store of a location, and close it when the block ends. While the block runs, erasures by other
    processes are applied to this process's caches. A store that is already open is yielded as it is."""
    if not isinstance(data, AnyData):
        yield data
        return
    async with open_store(data) as store, watching(store):
        yield store


def is_begun(data: AnyData) -> bool:
    """Return whether a location contains data, without creating any. A database always counts as containing data."""
    where = Location.of(data)
    return where.folder is None or (where.folder / FILE).exists()


def finish_erasures(data: AnyData, user: StreamKey) -> None:
    """Finish all interrupted erasures in a folder. In a database, an erasure is one transaction, so none can be
    incomplete.

    Raises:
        StorageError: the erasure of `user` cannot be finished. Failures for other users are ignored (see log/erasure).
    """
    if (folder := Location.of(data).folder) is not None:
        finish_all(folder, user)


def look_at(where: Location) -> DatabaseLook:
    """Inspect a database before it is opened (see postgres/look).

    Raises:
        StorageError: the database cannot be reached, or its driver is not installed.
    """
    with _needs_driver():
        from mindstream.memory.store.postgres import look
    return look.look_at(where)


def copy_data(source: str, target: str) -> list[Copied]:
    """Copy all data of a folder into a database, or of a database into a folder (see postgres/copying).

    Raises:
        InputError: neither location is a database, or both are; or the target is not empty.
        StorageError: one of the locations cannot be used, or the driver is not installed; nothing was written.
    """
    with _needs_driver():
        from mindstream.memory.store.postgres.copying import copy
    return copy(Location.of(source), Location.of(target))


@contextlib.contextmanager
def _needs_driver() -> Iterator[None]:
    try:
        yield
    except ImportError:
        raise StorageError("a PostgreSQL database needs its driver: pip install 'mindstream[postgres]'") from None
