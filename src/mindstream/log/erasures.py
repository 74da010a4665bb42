"""Erasures: a row for each, with a keyed digest of the stream's name, by which all processes learn of it.

The name is erased; the digest stays. A process that knows the name can look it up; the rows do not reveal names. (With
the database and a list of names they can be tried: the digest is a pseudonym, not a secret.)
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
"""Stands for a stream in notifications of any erasure; no stream has this name."""


@dataclass(frozen=True, slots=True)
class Erased:
    """A row: a part of a stream was erased, or (`whole`) all of it."""

    number: int
    digest: str
    whole: bool


def salt_of(connection: Sql) -> str:
    """Return the salt of this database's digests; "": there is none yet."""
    row = connection.execute("SELECT value FROM salts").fetchone()
    return str(row[0]) if row else ""


def digest_for(connection: Sql, name: str) -> str:
    """Return the digest of a name; in a transaction that writes."""
    return digest_of(made_salt(connection), name)


def made_salt(connection: Sql) -> str:
    """Return the salt of this database's digests, created if necessary; in a transaction that writes."""
    if not salt_of(connection):
        new = "INSERT INTO salts (one, value, turns) VALUES (1, ?, 0) ON CONFLICT DO NOTHING"
        connection.execute(new, (secrets.token_hex(32),))
    return salt_of(connection)


def digest_of(salt: str, name: str) -> str:
    """Return the digest of the name of a stream or a tenant."""
    return hmac.new(salt.encode(), name.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:32]


def tell(connection: Sql, stream: str, *, whole: bool) -> None:
    """Record an erasure of a stream, in the transaction that does it.

    The update serialises concurrent erasures: a reader that asks for those after a number misses no smaller one.
    """
    digest = digest_for(connection, stream)
    connection.execute("UPDATE salts SET turns = turns + 1")
    connection.execute("INSERT INTO erasures (digest, whole) VALUES (?, ?)", (digest, int(whole)))


def last(connection: Sql) -> int:
    """Return the number of the last erasure; 0: there was none."""
    return int(connection.execute("SELECT coalesce(max(number), 0) FROM erasures").fetchone()[0])


def after(connection: Sql, number: int) -> tuple[str, list[Erased]]:
    """Return the salt, and the erasures after a number."""
    rows = connection.execute(
        "SELECT number, digest, whole FROM erasures WHERE number > ? ORDER BY number", (number,)
    ).fetchall()
    return salt_of(connection), [Erased(row[0], row[1], bool(row[2])) for row in rows]


@dataclass(slots=True)
class Reading:
    """A task that reads a user's words and writes data derived from them.

    Attributes:
        upto: the number of the last erasure when it began to read, or of its own erasure.
    """

    upto: int


READING: ContextVar[Reading | None] = ContextVar("reading", default=None)
"""The reading of the current task; None: not tracked.

Its commits are refused if another task has erased words of the stream since."""


class TellsLast(Protocol):
    """The method of a store that `reading` uses."""

    async def last_erasure(self) -> int:
        """Return the number of the last erasure."""


@contextlib.asynccontextmanager
async def reading(store: TellsLast) -> AsyncIterator[Reading]:
    """Refuse the current task's commits, until the block ends, if words of their stream were erased after it began to
    read.

    They then raise ErasedMeanwhile. Inside of another such block of the task, the outer one counts.
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
    """Return whether a whole stream (True) or a part of it (False) was erased after an erasure; None: neither.

    If nothing at all was erased since, which is nearly always so, this reads the end of an index.
    """
    if last(connection) <= since:
        return None
    sql = "SELECT max(whole) FROM erasures WHERE digest = ? AND number > ?"
    (whole,) = connection.execute(sql, (digest_of(salt_of(connection), stream), since)).fetchone()
    return None if whole is None else bool(whole)


def check(connection: Sql, stream: str, opened: int | None, words_read: int | None = None) -> int | None:
    """Refuse to write words that were read before an erasure of their stream.

    Returns:
        The number of the last erasure; None: there was nothing to check.

    Args:
        opened: refuse if the whole stream was erased after that erasure. None: no check.
        words_read: refuse if any part of the stream was erased after that erasure. None: no check.

    Raises:
        ErasedMeanwhile: it was.
    """
    known = [each for each in (opened, words_read) if each is not None]
    if not known:
        return None
    if (upto := last(connection)) <= min(known) or (lost := lost_since(connection, stream, min(known))) is None:
        return upto
    if lost:
        raise ErasedMeanwhile("all data of this mind was erased: open it again")
    if words_read is not None and lost_since(connection, stream, words_read) is not None:
        raise ErasedMeanwhile("words of this mind were erased after they were read here: read it again", whole=False)
    return upto
