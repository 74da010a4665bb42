"""The checks of `mindstream doctor` for data in a PostgreSQL database."""

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
"""The oldest major version of PostgreSQL that mindstream is tested with; the newest is 18."""
BACKUP = "back up with pg_dump -Fc and pg_restore, or with `mindstream data copy` into a folder"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check.

    Attributes:
        topic: the checked part.
        state: `ok`; `note`: it works, but the user should know; `broken`: a conversation would fail.
        found: what the check found.
        mend: how to solve the problem; "": no action is needed.
    """

    topic: str
    state: Literal["ok", "note", "broken"]
    found: str
    mend: str = ""


def check_database(where: Location) -> Iterator[Finding]:
    """Check a database; nothing is written."""
    try:
        found = look_at(where)
    except StorageError as error:
        yield Finding("data", "broken", str(error))
        return
    is_old = int(found.version.partition(".")[0]) < OLDEST
    old = f"mindstream is not tested with servers before {OLDEST}: upgrade the server"
    yield Finding("data", "note" if is_old else "ok", f"{where}, PostgreSQL {found.version}", old if is_old else "")
    if found.encoding != "UTF8":
        wrong = f"the database has the encoding {found.encoding}, and UTF8 is needed"
        yield Finding("data", "broken", wrong, "create another database with ENCODING 'UTF8'")
    yield from _role(found)
    yield _tables(found)
    yield _vectors(found)
    used = f"{found.connections} of {found.most_connections} connections are used"
    much = found.connections > 0.8 * found.most_connections
    yield Finding("data", "note" if much else "ok", used, "raise max_connections" if much else "")


def _role(found: DatabaseLook) -> Iterator[Finding]:
    if found.passes_walls:
        how = "CREATE ROLE mind LOGIN; ALTER DATABASE … OWNER TO mind; and connect as mind"
        message = f"the role {found.role!r} is SUPERUSER or BYPASSRLS, so tenants would not be isolated from each other"
        yield Finding("data", "broken", message, how)
    elif not found.schema or (found.seen != found.known and not found.may_create):
        where = f"the schema {found.schema!r}" if found.schema else "any schema"
        how = f"ALTER DATABASE … OWNER TO {found.role}, or GRANT USAGE, CREATE ON SCHEMA … TO {found.role}"
        yield Finding("data", "broken", f"the role {found.role!r} cannot create tables in {where}", how)
    else:
        yield Finding("data", "ok", f"the role {found.role!r} is suitable: tenants are isolated from each other")


def _tables(found: DatabaseLook) -> Finding:
    if found.seen is None:
        return Finding("data", "ok", "no memory yet; the first write creates the tables")
    if found.seen > found.known:
        return Finding("data", "broken", "the tables were written by a newer mindstream", "upgrade mindstream")
    if found.seen < found.known:
        steps = f"the tables have {found.seen} of {found.known} migrations"
        return Finding(
            "data", "note", steps, f"the next process that opens the data applies the others; before that, {BACKUP}"
        )
    sizes = ", ".join(
        f"{table} {size_of(size)}" for table, size in sorted(found.sizes.items(), key=lambda e: -e[1])[:4]
    )
    whole = size_of(sum(found.sizes.values()))
    return Finding(
        "data", "ok", f"all {found.known} migrations of the tables; {whole} with indexes ({sizes}); {BACKUP}"
    )


def _vectors(found: DatabaseLook) -> Finding:
    if found.vector:
        return Finding("data", "ok", f"pgvector {found.vector}")
    if found.vector_there:
        how = "CREATE EXTENSION vector, as a superuser"
        why = "pgvector is installed but not created in this database; recall compares vectors in this process"
        return Finding("data", "ok", why, how)
    return Finding("data", "ok", "pgvector is not installed; recall compares vectors in this process")


def size_of(count: float) -> str:
    """Return a number of bytes as text."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            break
        count /= 1000
    return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
