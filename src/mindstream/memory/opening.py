"""Which store a value of `data` names: a folder's SQLite file, or a PostgreSQL database by its URL."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mindstream.errors import StorageError
from mindstream.memory.store.sqlite import SqliteStore
from mindstream.memory.store.store import Store
from mindstream.paths import is_database

if TYPE_CHECKING:
    from mindstream.memory.store.postgres.copying import Copied


def open_store(data: str | Path, tenant: str = "") -> Store:
    """Open the store that a folder or a URL names.

    Raises:
        StorageError: it cannot be used, or the driver for it is not installed.
    """
    if not is_database(data):
        return SqliteStore(data, tenant)
    with _needs_driver():
        from mindstream.memory.store.postgres.postgres import PostgresStore
    return PostgresStore(str(data), tenant)


def copy_data(source: str, target: str) -> list[Copied]:
    """Copy all that a folder's file holds into a database, or back (see postgres/copying).

    Raises:
        InputError: neither of them is a database, or both are; or something is in the target already.
        StorageError: one of them cannot be used, or the driver is not installed; nothing was written.
    """
    with _needs_driver():
        from mindstream.memory.store.postgres.copying import copy
    return copy(source, target)


@contextlib.contextmanager
def _needs_driver() -> Iterator[None]:
    try:
        yield
    except ImportError:
        raise StorageError("a PostgreSQL database needs its driver: pip install 'mindstream[postgres]'") from None
