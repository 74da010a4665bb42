"""The list of erasures, by which other processes notice them. Each row has a keyed digest of the erased stream's name.

The name itself is erased. A process that knows the name can compute the digest and find the row. (The salt is stored
in the database, so a person with the database and a list of names can test each name. The digest is a pseudonym, not a
secret.)
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
from mindstream.identifiers import MARK, StreamKey
from mindstream.log.sql import Sql

ERASURES = StreamKey(f"{MARK}erasures")
"""Name used in notifications of an erasure in place of a stream's name; no stream has this name."""


@dataclass(frozen=True, slots=True)
class Erased:
    """A row of the list of erasures.

    Attributes:
        digest: a salted hash of the key of the stream in which something was erased.
        whole: True: the whole stream was erased; False: some of its records.
    """

    number: int
    digest: str
    whole: bool


def salt_of(connection: Sql) -> str:
    """Return the salt of this database's digests; "" if none was created yet."""
    row = connection.execute("SELECT value FROM salts").fetchone()
    return str(row[0]) if row else ""


def digest_for(connection: Sql, name: str) -> str:
    """Return the digest of a name. If there is no salt yet, it is created: the transaction must be able to write."""
    return digest_of(made_salt(connection), name)


def made_salt(connection: Sql) -> str:
    """Return the salt of this database's digests. If there is none yet, it is created: the transaction must be able to
    write."""
    if not salt_of(connection):
        new = "INSERT INTO salts (one, value, turns) VALUES (1, ?, 0) ON CONFLICT DO NOTHING"
        connection.execute(new, (secrets.token_hex(32),))
    return salt_of(connection)


def digest_of(salt: str, name: str) -> str:
    """Return the digest of the name of a stream or a tenant."""
    return hmac.new(salt.encode(), name.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:32]


def tell(connection: Sql, stream: str, *, whole: bool) -> None:
    """Record an erasure of a stream, in the same transaction as the erasure.

    The update of `salts` locks its row, so concurrent erasures commit in the order of their numbers. Therefore a reader
    that asks for the rows after a number misses none.
    """
    digest = digest_for(connection, stream)
    connection.execute("UPDATE salts SET turns = turns + 1")
    connection.execute("INSERT INTO erasures (digest, whole) VALUES (?, ?)", (digest, int(whole)))


def last(connection: Sql) -> int:
    """Return the number of the last erasure; 0 if there was none."""
    return int(connection.execute("SELECT coalesce(max(number), 0) FROM erasures").fetchone()[0])


def after(connection: Sql, number: int) -> tuple[str, list[Erased]]:
    """Return the salt, and the erasures with a higher number."""
    rows = connection.execute(
        "SELECT number, digest, whole FROM erasures WHERE number > ? ORDER BY number", (number,)
    ).fetchall()
    return salt_of(connection), [Erased(row[0], row[1], bool(row[2])) for row in rows]


@dataclass(slots=True)
class Reading:
    """A task that reads a user's words and writes data derived from them.

    Attributes:
        upto: the number of the newest erasure that the task has taken into account. This is the last erasure before the
            task began to read, or a later erasure that the task itself made.
    """

    upto: int


READING: ContextVar[Reading | None] = ContextVar("reading", default=None)
"""The `Reading` of the current task; None: its reads are not tracked.

The task's commits are refused if another task has erased words of the stream after the erasure `Reading.upto`.
"""


class TellsLast(Protocol):
    """The method of a store that `reading` calls."""

    async def last_erasure(self) -> int:
        """Return the number of the last erasure."""


@contextlib.asynccontextmanager
async def reading(store: TellsLast) -> AsyncIterator[Reading]:
    """Refuse commits of the current task inside this block if words of the stream were erased after the block began.

    A refused commit raises ErasedMeanwhile. In nested blocks, the beginning of the outer block counts.
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
    """Return what was erased in a stream after the erasure `since`.

    True: the whole stream; False: a part of the stream; None: nothing. Without an erasure after `since`, only the end
    of an index is read.
    """
    if last(connection) <= since:
        return None
    sql = "SELECT max(whole) FROM erasures WHERE digest = ? AND number > ?"
    (whole,) = connection.execute(sql, (digest_of(salt_of(connection), stream), since)).fetchone()
    return None if whole is None else bool(whole)


def check(connection: Sql, stream: str, opened: int | None, words_read: int | None = None) -> None:
    """Refuse to write words that were read before an erasure of their stream.

    Args:
        opened: refuse if the whole stream was erased after the erasure with this number. None: no check.
        words_read: refuse if any part of the stream was erased after the erasure with this number. None: no check.

    Raises:
        ErasedMeanwhile: such an erasure was made.
    """
    known = [each for each in (opened, words_read) if each is not None]
    if not known or (lost := lost_since(connection, stream, min(known))) is None:
        return
    if lost:
        raise ErasedMeanwhile("all data of this mind was erased: open it again")
    if words_read is not None and lost_since(connection, stream, words_read) is not None:
        raise ErasedMeanwhile(
            "texts of this mind were erased after this process read them: read the mind again", whole=False
        )
