"""Both kinds of stores, for tests of operations on all their data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import postgres_server
import pytest

from mindstream.memory.opening import open_store
from mindstream.memory.store.sql_store import SqlStore

Opener = Callable[..., SqlStore]
STORES = ["sqlite", "postgres"]


def opener(kind: str, folder: Path) -> Opener:
    """Return a function that opens the store (of a tenant) at one location."""
    if kind == "postgres":
        pytest.importorskip("psycopg", reason="PostgreSQL is not tried: psycopg is not installed")
    place = str(folder) if kind == "sqlite" else postgres_server.fresh_url()

    def open_one(tenant: str = "") -> SqlStore:
        store = open_store(place, tenant)
        assert isinstance(store, SqlStore)
        return store

    return open_one
