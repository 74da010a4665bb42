"""What tells all processes that something was erased: a row for each erasure, with a keyed digest of whose it was.

The name goes with the erasure; the digest stays. Whoever knows a name can ask for it; whoever reads the rows cannot
read names off them. (Who has the database and a list of names can try them: it is a pseudonym, and nothing is secret.)
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import secrets
from collections.abc import AsyncIterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

from mindstream.errors import ErasedMeanwhile
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
    return digest_of(made_salt(connection), name)


def made_salt(connection: Sql) -> str:
    """Return what this database's digests are made with, made if need be; in a transaction that writes."""
    if not salt_of(connection):
        new = "INSERT INTO salts (one, value, turns) VALUES (1, ?, 0) ON CONFLICT DO NOTHING"
        connection.execute(new, (secrets.token_hex(32),))
    return salt_of(connection)


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


@dataclass(slots=True)
class Reading:
    """A task that reads a user's words and writes what it makes of them.

    Attributes:
        upto: the number of the last erasure when it began to read, or of the erasure that it made itself.
    """

    upto: int


READING: ContextVar[Reading | None] = ContextVar("reading", default=None)
"""What the current task reads since when; None: that is not tracked.

What the task commits is refused where words of the stream were erased by somebody else since.
"""


class TellsLast(Protocol):
    """What is asked of a store."""

    async def last_erasure(self) -> int:
        """Return the number of the last erasure."""


@contextlib.asynccontextmanager
async def reading(store: TellsLast) -> AsyncIterator[Reading]:
    """Have the current task write nothing back that was erased after it read it, until the block ends.

    What it commits then raises ErasedMeanwhile. Within another such block of the task, that one holds.
    """
    if (outer := READING.get()) is not None:
        yield outer
        return
    token = READING.set(Reading(await store.last_erasure()))
    try:
        yield READING.get() or Reading(0)
    finally:
        READING.reset(token)


def lost_since(connection: Sql, stream: str, since: int) -> bool | None:
    """Tell whether all of a stream was erased after that erasure (True), or a part of it (False); None: nothing.

    Where nothing at all was erased since, which is nearly always, this costs one look at the end of an index.
    """
    if last(connection) <= since:
        return None
    sql = "SELECT max(whole) FROM erasures WHERE digest = ? AND number > ?"
    (whole,) = connection.execute(sql, (digest_of(salt_of(connection), stream), since)).fetchone()
    return None if whole is None else bool(whole)


def check(connection: Sql, stream: str, opened: int | None, words_read: int | None = None) -> int | None:
    """Refuse to write words that were read before an erasure of their stream.

    Return the number of the last erasure; None where nothing is asked.

    Args:
        opened: refuse where all of the stream was erased after that erasure. None: not asked.
        words_read: refuse where any part of the stream was erased after that erasure. None: not asked.

    Raises:
        ErasedMeanwhile: it was.
    """
    known = [each for each in (opened, words_read) if each is not None]
    if not known:
        return None
    if (upto := last(connection)) <= min(known) or (lost := lost_since(connection, stream, min(known))) is None:
        return upto
    if lost:
        raise ErasedMeanwhile("all that was kept of this mind was erased meanwhile: open it anew")
    if words_read is not None and lost_since(connection, stream, words_read) is not None:
        raise ErasedMeanwhile("words of this mind were forgotten after they were read here: read it again", whole=False)
    return upto
