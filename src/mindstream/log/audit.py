"""The audit log: who erased, exported or imported which data, or changed its retention; by which interface; and how
much data was affected.

It contains no words of users. Rows are only added: the database refuses to change or delete them. The name of a stream
is stored as a keyed digest (log/erasures). So the row can stay when the user is erased, and a process that knows the
name can find it.
"""

from __future__ import annotations

import getpass
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from mindstream.clock import Moment
from mindstream.identifiers import shown_name
from mindstream.log import erasures
from mindstream.log.sql import Sql

Did: TypeAlias = Literal[
    "erased",
    "forgot",
    "purged",
    "exported",
    "imported",
    "retention_set",
    "retention_applied",
    "tenant_deleted",
    "token_made",
    "token_revoked",
]


@dataclass(frozen=True, slots=True)
class Deed:
    """An operation on users' data.

    Attributes:
        door: the interface: `command`, `rest`, `mcp`, or `upkeep` (the service's own maintenance).
        who: the token's id, or the name of the operating system's user; for `upkeep` the number of the process.
        about: the key of the affected stream; "": the operation concerns no single stream.
        tenant: the tenant; "": the data of this machine's users, who have no tenant.
        counts: how much was affected, such as the number of records; no words of users.
    """

    did: Did
    door: str
    who: str
    about: str = ""
    tenant: str = ""
    counts: Mapping[str, int | str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AuditRow:
    """A row of the audit log. `tenant` and `about` are digests of the names; "" where the operation named none."""

    number: int
    at: Moment
    did: str
    door: str
    who: str
    tenant: str
    about: str
    counts: dict[str, int | str]


def machine_user() -> str:
    """Return the name of the operating system's user.

    If the user has no name, return the user id; if the system has no user ids, return `unknown`.
    """
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # the user id has no name
        return str(os.getuid()) if hasattr(os, "getuid") else "unknown"


def write(connection: Sql, at: Moment, deed: Deed) -> None:
    """Add a row about an operation to the audit, in the caller's transaction. The names of the stream and the
    tenant are stored as digests."""
    about = erasures.digest_for(connection, shown_name(deed.about)) if deed.about else ""
    tenant = erasures.digest_for(connection, deed.tenant) if deed.tenant else ""
    connection.execute(
        "INSERT INTO audit (at, did, door, who, tenant, about, counts) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (at, deed.did, deed.door, deed.who[:100], tenant, about, json.dumps(dict(deed.counts), sort_keys=True)),
    )


def read(connection: Sql, about: str = "", tenant: str = "", limit: int = 1000) -> list[AuditRow]:
    """Return the newest rows, oldest first.

    Args:
        about, tenant: only operations on this stream, and on this tenant; "": all.
    """
    where, values, salt = ["number > 0"], list[object](), erasures.salt_of(connection)
    for column, name in (("about", about), ("tenant", tenant)):
        if name:
            where.append(f"{column} = ?")
            values.append(erasures.digest_of(salt, name))
    rows = connection.execute(
        "SELECT number, at, did, door, who, tenant, about, counts FROM audit"
        f" WHERE {' AND '.join(where)} ORDER BY number DESC LIMIT ?",
        (*values, limit),
    ).fetchall()
    return [AuditRow(*(*row[:7], json.loads(row[7]))) for row in reversed(rows)]
