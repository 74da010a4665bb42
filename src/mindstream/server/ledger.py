"""What the server keeps of itself in the data folder: writes done, what tokens spent, what was posted. No words."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from mindstream.clock import DAY_S, Clock
from mindstream.errors import StorageError
from mindstream.log.files import private_file

FILE = "server.db"
T = TypeVar("T")


class Ledger:
    """A small SQLite file; each call runs in a thread, one at a time."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._path, self._clock = folder / FILE, clock
        self._connection: sqlite3.Connection | None = None
        self._one_at_a_time = asyncio.Lock()

    async def begin(self, key: str, request: str) -> tuple[str, int, str] | None:
        """Take a key for a request; return what stands there: the request, the status (0: not done), the answer.

        Keys are kept for a day.
        """
        now = self._clock.now()

        def take(connection: sqlite3.Connection) -> tuple[str, int, str] | None:
            connection.execute("DELETE FROM writes WHERE at < ?", (now - DAY_S,))
            found: tuple[str, int, str] | None = connection.execute(
                "SELECT request, status, answer FROM writes WHERE key = ?", (key,)
            ).fetchone()
            if found is None:
                connection.execute("INSERT INTO writes VALUES (?, ?, ?, 0, '')", (key, now, request))
            return found

        return await self._do(take)

    async def done(self, key: str, status: int, answer: str) -> None:
        """Keep what a request was answered with."""
        sql = "UPDATE writes SET status = ?, answer = ? WHERE key = ?"
        await self._do(lambda connection: connection.execute(sql, (status, answer, key)) and None)

    async def drop(self, key: str) -> None:
        """Let a key be taken again: nothing was done."""
        await self._do(lambda connection: connection.execute("DELETE FROM writes WHERE key = ?", (key,)) and None)

    async def spent(self, token: str, day: int) -> tuple[int, int, float]:
        """Return the calls, tokens and US dollars that a token has spent on a day."""
        sql = "SELECT calls, tokens, usd FROM spent WHERE token = ? AND day = ?"
        found = await self._do(lambda connection: connection.execute(sql, (token, day)).fetchone())
        return found or (0, 0, 0.0)

    async def spend(self, token: str, day: int, calls: int, tokens: int, usd: float) -> None:
        """Keep what a token has spent on a day."""
        sql = "INSERT OR REPLACE INTO spent VALUES (?, ?, ?, ?, ?)"
        await self._do(lambda connection: connection.execute(sql, (token, day, calls, tokens, usd)) and None)

    async def delivered(self, receiver: str) -> int | None:
        """Return the seq up to which all was posted to a receiver; None: nothing ever was."""
        sql = "SELECT seq FROM delivered WHERE receiver = ?"
        found = await self._do(lambda connection: connection.execute(sql, (receiver,)).fetchone())
        return None if found is None else int(found[0])

    async def deliver(self, receiver: str, seq: int) -> None:
        """Keep up to which seq all was posted to a receiver."""
        sql = "INSERT OR REPLACE INTO delivered VALUES (?, ?)"
        await self._do(lambda connection: connection.execute(sql, (receiver, seq)) and None)

    async def _do(self, what: Callable[[sqlite3.Connection], T]) -> T:
        async with self._one_at_a_time:
            return await asyncio.to_thread(self._in_thread, what)

    def _in_thread(self, what: Callable[[sqlite3.Connection], T]) -> T:
        try:
            with self._opened() as connection:
                return what(connection)
        except sqlite3.Error as error:
            raise StorageError(f"{self._path} cannot be used: {error}") from None

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            made = sqlite3.connect(self._path, check_same_thread=False, timeout=10)
            private_file(self._path)
            made.execute("PRAGMA journal_mode = WAL")
            made.execute("PRAGMA synchronous = FULL")
            with made:
                made.execute(
                    "CREATE TABLE IF NOT EXISTS writes"
                    " (key TEXT PRIMARY KEY, at REAL, request TEXT, status INTEGER, answer TEXT) WITHOUT ROWID"
                )
                made.execute("CREATE INDEX IF NOT EXISTS writes_by_time ON writes (at)")
                made.execute(
                    "CREATE TABLE IF NOT EXISTS spent"
                    " (token TEXT, day INTEGER, calls INTEGER, tokens INTEGER, usd REAL, PRIMARY KEY (token, day))"
                )
                made.execute("CREATE TABLE IF NOT EXISTS delivered (receiver TEXT PRIMARY KEY, seq INTEGER)")
            self._connection = made
        return self._connection

    async def close(self) -> None:
        """Let go of the file."""
        async with self._one_at_a_time:
            connection, self._connection = self._connection, None
            if connection is not None:
                await asyncio.to_thread(connection.close)
