"""What tells all processes that something was erased: a row for each erasure, with a keyed digest of whose it was.

The name goes with the erasure; the digest stays. Whoever knows a name can ask for it; whoever reads the rows cannot
read names off them. (Who has the database and a list of names can try them: it is a pseudonym, and nothing is secret.)
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass

from mindstream.log.names import MARK, StreamKey
from mindstream.log.sql import Sql

ERASURES = StreamKey(f"{MARK}erasures")
"""Under this name whoever listens is told that something was erased, whosever it was: no stream is called so."""


@dataclass(frozen=True, slots=True)
class Erased:
    """A row: something of a stream was erased, or (`whole`) all of it."""

    number: int
    digest: str
    whole: bool


def salt_of(connection: Sql) -> str:
    """Return what this database's digests are made with; "" where there is none yet."""
    row = connection.execute("SELECT value FROM salts").fetchone()
    return str(row[0]) if row else ""


def digest_for(connection: Sql, name: str) -> str:
    """Return the digest by which a name is written down; in a transaction that writes."""
    if not salt_of(connection):
        new = "INSERT INTO salts (one, value, turns) VALUES (1, ?, 0) ON CONFLICT DO NOTHING"
        connection.execute(new, (secrets.token_hex(32),))
    return digest_of(salt_of(connection), name)


def digest_of(salt: str, name: str) -> str:
    """Return the digest of a name, of a stream or of a tenant."""
    return hmac.new(salt.encode(), name.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:32]


def tell(connection: Sql, stream: str, *, whole: bool) -> None:
    """Write down that something of a stream was erased, in the transaction that does it.

    Whoever tells waits for its turn: who asks "after" a number misses none that comes late with a smaller one.
    """
    digest = digest_for(connection, stream)
    connection.execute("UPDATE salts SET turns = turns + 1")
    connection.execute("INSERT INTO erasures (digest, whole) VALUES (?, ?)", (digest, int(whole)))


def last(connection: Sql) -> int:
    """Return the number of the last erasure; 0 before there was one."""
    return int(connection.execute("SELECT coalesce(max(number), 0) FROM erasures").fetchone()[0])


def after(connection: Sql, number: int) -> tuple[str, list[Erased]]:
    """Return the salt, and what was erased since."""
    rows = connection.execute(
        "SELECT number, digest, whole FROM erasures WHERE number > ? ORDER BY number", (number,)
    ).fetchall()
    return salt_of(connection), [Erased(row[0], row[1], bool(row[2])) for row in rows]


def is_gone(connection: Sql, stream: str, since: int) -> bool:
    """Tell whether all of a stream was erased after that erasure: what is held of it must not be written back."""
    if last(connection) <= since:
        return False
    sql = "SELECT 1 FROM erasures WHERE digest = ? AND whole = 1 AND number > ? LIMIT 1"
    return connection.execute(sql, (digest_of(salt_of(connection), stream), since)).fetchone() is not None
