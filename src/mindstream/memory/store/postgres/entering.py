"""The way into a database: connect, see that the role and the encoding are fit, bring the tables up to date."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import psycopg

from mindstream.clock import SharedClock
from mindstream.errors import StorageError
from mindstream.location import Location
from mindstream.memory.store.postgres.lending import Connection, be

Migration: TypeAlias = Callable[[Connection], None]
LOCK = 0x6D696E64  # "mind"


def connected(url: str) -> Connection:
    """Connect, or say what to do.

    Raises:
        StorageError: the server is not there, or does not let the role in.
    """
    place = str(Location.of(url))
    try:
        return psycopg.connect(url, connect_timeout=10, client_encoding="UTF8")
    except psycopg.OperationalError as error:
        told = " ".join(str(error).split()).rstrip(".?")
        raise StorageError(
            f"{place} cannot be reached: {told}. See that the server runs (pg_isready), that the database and the role"
            " are there, and that the role gets in: a password is best kept in PGPASSWORD or ~/.pgpass"
        ) from None


def open_database_of(
    url: str, tenant: str, migrations: Sequence[Migration], clock: SharedClock | None = None
) -> Connection:
    """Connect as a tenant to a database of ours, brought up to date.

    Raises:
        StorageError: the role passes by row-level security, it is not in UTF8, or a newer mindstream has written it.
    """
    connection = connected(url)
    try:
        _refuse_what_is_unfit(connection, str(Location.of(url)))
        _bring_up_to_date(connection, migrations, str(Location.of(url)))
        be(connection, tenant)
        connection.commit()
        if clock is not None:
            asked = clock.own.now()
            row = connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone()
            clock.learn(float(row[0]) if row else asked, asked, clock.own.now())
            connection.commit()
    except BaseException:
        connection.close()
        raise
    return connection


def _refuse_what_is_unfit(connection: Connection, place: str) -> None:
    if (encoding := connection.info.parameter_status("server_encoding")) != "UTF8":
        raise StorageError(f"{place}: the database is in {encoding}, which cannot hold all letters; make one in UTF8")
    sql = "SELECT rolname FROM pg_roles WHERE rolname = current_user AND (rolsuper OR rolbypassrls)"
    if row := connection.execute(sql).fetchone():
        raise StorageError(
            f"{place}: the role {row[0]!r} passes by row-level security, and so by the wall between tenants;"
            " connect as a role that is neither SUPERUSER nor BYPASSRLS and owns the database"
        )


def _bring_up_to_date(connection: Connection, migrations: Sequence[Migration], place: str) -> None:
    """Make or migrate the tables under one lock: `migrations` is append-only, the database counts what it has seen."""
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
    connection.execute("CREATE TABLE IF NOT EXISTS mindstream_migrations (seen integer NOT NULL)")
    row = connection.execute("SELECT coalesce(max(seen), 0) FROM mindstream_migrations").fetchone()
    seen = int(row[0]) if row else 0
    if seen > len(migrations):
        raise StorageError(f"{place} was written by a newer mindstream; upgrade mindstream, or choose another database")
    for number, migration in enumerate(migrations[seen:], seen + 1):
        migration(connection)
        connection.execute("INSERT INTO mindstream_migrations (seen) VALUES (%s)", (number,))
    connection.commit()
