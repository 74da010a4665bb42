"""Inspect a PostgreSQL database before it is opened or changed."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

from mindstream.location import Location
from mindstream.memory.store.postgres.pool import connect_to, explain_errors
from mindstream.memory.store.postgres.tables import MIGRATIONS, TABLES

FACTS = {
    "version": "SELECT current_setting('server_version')",
    "encoding": "SELECT current_setting('server_encoding')",
    "role": "SELECT current_user",
    "passes_walls": "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user",
    "schema": "SELECT coalesce(current_schema(), '')",
    "may_create": "SELECT coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)",
    "vector": "SELECT coalesce((SELECT extversion FROM pg_extension WHERE extname = 'vector'), '')",
    "vector_there": "SELECT EXISTS (SELECT 1 FROM pg_available_extensions WHERE name = 'vector')",
    "connections": "SELECT count(*) FROM pg_stat_activity",
    "most_connections": "SELECT current_setting('max_connections')::int",
    "has_tables": "SELECT to_regclass('mindstream_migrations') IS NOT NULL",
}
SEEN = "SELECT coalesce(max(seen), 0) FROM mindstream_migrations"
SIZE = "SELECT coalesce(pg_total_relation_size(to_regclass(%s)), 0)"


@dataclass(frozen=True)
class DatabaseLook:
    """Facts about a database.

    Attributes:
        passes_walls: whether the role is SUPERUSER or BYPASSRLS, so tenants would not be isolated.
        schema: the schema in which the tables are or would be created; "": there is none.
        may_create: whether the role may create tables in the schema.
        vector: the version of pgvector that is installed, or "".
        vector_there: whether pgvector is available on the server, so it could be installed.
        seen: number of migrations that were applied, of `known`; None: the database has no tables yet.
        sizes: size in bytes of each table with its indexes.
    """

    version: str
    encoding: str
    role: str
    passes_walls: bool
    schema: str
    may_create: bool
    vector: str
    vector_there: bool
    connections: int
    most_connections: int
    seen: int | None
    sizes: dict[str, int]
    known: int = len(MIGRATIONS)


def look_at(where: Location) -> DatabaseLook:
    """Inspect a database without writing.

    Raises:
        StorageError: it cannot be reached, or rejects the role; the message says what to do.
    """
    with explain_errors(str(where)), contextlib.closing(connect_to(where.url)) as connection:

        def one(sql: str, *values: Any) -> Any:
            row = connection.execute(sql.encode(), values or None).fetchone()
            return row[0] if row else None

        found = {name: one(sql) for name, sql in FACTS.items()}
        has_tables = found.pop("has_tables")
        seen = int(one(SEEN)) if has_tables else None
        sizes = {table: int(one(SIZE, table)) for table in TABLES} if has_tables else {}
    return DatabaseLook(**found, seen=seen, sizes=sizes)
