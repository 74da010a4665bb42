"""What `mindstream doctor` says of data in a PostgreSQL database, and how to mend it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from mindstream.errors import StorageError
from mindstream.location import Location
from mindstream.memory.opening import look_at

if TYPE_CHECKING:
    from mindstream.memory.store.postgres.look import DatabaseLook

OLDEST = 14
"""Older servers are not tried; 18 is."""
BACKUP = "pg_dump -Fc keeps all of it in a file, pg_restore puts it back; `mindstream data copy` makes a folder of it"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        state: `ok`; `note`: works, but worth knowing; `broken`: a conversation would not work.
        mend: what to do about it.
    """

    topic: str
    state: Literal["ok", "note", "broken"]
    found: str
    mend: str = ""


def check_database(where: Location) -> Iterator[Finding]:
    """Look at a database; nothing is written."""
    try:
        found = look_at(where)
    except StorageError as error:
        yield Finding("data", "broken", str(error))
        return
    is_old = int(found.version.partition(".")[0]) < OLDEST
    old = f"mindstream is not tried with servers before {OLDEST}: upgrade it"
    yield Finding("data", "note" if is_old else "ok", f"{where}, PostgreSQL {found.version}", old if is_old else "")
    if found.encoding != "UTF8":
        yield Finding("data", "broken", f"the database is in {found.encoding}", "make one with ENCODING 'UTF8'")
    yield from _role(found)
    yield _tables(found)
    yield _vectors(found)
    used = f"{found.connections} of {found.most_connections} connections are used"
    much = found.connections > 0.8 * found.most_connections
    yield Finding("data", "note" if much else "ok", used, "raise max_connections" if much else "")


def _role(found: DatabaseLook) -> Iterator[Finding]:
    if found.passes_walls:
        how = "CREATE ROLE mind LOGIN; ALTER DATABASE … OWNER TO mind; and connect as mind"
        told = f"the role {found.role!r} is SUPERUSER or BYPASSRLS: the wall between tenants would not hold for it"
        yield Finding("data", "broken", told, how)
    elif not found.schema or (found.seen != found.known and not found.may_create):
        where = f"the schema {found.schema!r}" if found.schema else "any schema"
        how = f"ALTER DATABASE … OWNER TO {found.role}, or GRANT USAGE, CREATE ON SCHEMA … TO {found.role}"
        yield Finding("data", "broken", f"the role {found.role!r} cannot make tables in {where}", how)
    else:
        yield Finding("data", "ok", f"the role {found.role!r} is fit: no wall between tenants is passed by")


def _tables(found: DatabaseLook) -> Finding:
    if found.seen is None:
        return Finding("data", "ok", "still without a memory; what first writes makes the tables")
    if found.seen > found.known:
        return Finding("data", "broken", "the tables are of a newer mindstream", "upgrade mindstream")
    if found.seen < found.known:
        steps = f"the tables have seen {found.seen} of {found.known} steps"
        return Finding("data", "note", steps, f"whatever opens it next does the rest; before that: {BACKUP}")
    sizes = ", ".join(
        f"{table} {size_of(size)}" for table, size in sorted(found.sizes.items(), key=lambda e: -e[1])[:4]
    )
    whole = size_of(sum(found.sizes.values()))
    return Finding("data", "ok", f"all {found.known} steps of the tables; {whole} with indexes ({sizes}); {BACKUP}")


def _vectors(found: DatabaseLook) -> Finding:
    if found.vector:
        return Finding("data", "ok", f"pgvector {found.vector}")
    if found.vector_there:
        how = "CREATE EXTENSION vector, as a superuser"
        return Finding("data", "ok", "pgvector could be had and is not made; recall ranks in this process", how)
    return Finding("data", "ok", "pgvector is not there; recall ranks in this process and needs none")


def size_of(count: float) -> str:
    """Write a number of bytes."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            break
        count /= 1000
    return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
