"""Files in which servers of older versions kept what is a table of the store now: taken in once, and deleted."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import sqlite3
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ValidationError

from mindstream.clock import Clock
from mindstream.errors import InputError, StorageError
from mindstream.location import Location
from mindstream.memory.store.store import KeptStore
from mindstream.paths import read_text
from mindstream.server.ledger import DELIVERED, SPENT, WRITE
from mindstream.server.tokens import Token, Tokens
from mindstream.service.operations.own import SERVER

TOKENS, LEDGER, RESULTS = "tokens.json", "server.db", "operations"
MOST_BYTES = 16_000_000


class _Held(BaseModel):
    tokens: list[Token] = []


async def take_in(data: Location, store: KeptStore, clock: Clock) -> None:
    """Take in tokens and the ledger; results of operations, which are kept for a day, are deleted.

    Raises:
        StorageError: a file cannot be read; it stays where it is.
    """
    if (folder := data.folder) is None:
        return
    tokens = Tokens(lambda: store, clock)
    for each in await asyncio.to_thread(_read_tokens, folder / TOKENS):
        await tokens.keep(each)
    for name, value in (await asyncio.to_thread(_read_ledger, folder / LEDGER)).items():
        await store.keep(SERVER, name, clock.now(), lambda before, value=value: before or value)  # type: ignore[misc]
    await asyncio.to_thread(_delete, folder)


def _read_tokens(path: Path) -> list[Token]:
    if not path.exists():
        return []
    try:
        return _Held.model_validate_json(read_text(path, MOST_BYTES)).tokens
    except (ValidationError, InputError):
        raise StorageError(f"{path} holds no tokens that could be read: move it away, and make new ones") from None


def _read_ledger(path: Path) -> Mapping[str, str]:
    if not path.exists():
        return {}
    try:
        with contextlib.closing(sqlite3.connect(path)) as old:
            found = {
                f"{SPENT}{token}:{day}": json.dumps([calls, tokens, usd])
                for token, day, calls, tokens, usd in old.execute("SELECT token, day, calls, tokens, usd FROM spent")
            }
            found |= {f"{DELIVERED}{name}": str(seq) for name, seq in old.execute("SELECT * FROM delivered")}
            rows = old.execute("SELECT key, at, request, status, answer FROM writes")
            return found | {f"{WRITE}{key}": json.dumps(row) for key, *row in rows}
    except sqlite3.Error as error:
        raise StorageError(f"{path} cannot be read: {error}; move it away") from None


def _delete(folder: Path) -> None:
    for each in [folder / TOKENS, *folder.glob(f"{LEDGER}*"), folder / f".{TOKENS}.lock"]:
        each.unlink(missing_ok=True)
    shutil.rmtree(folder / RESULTS, ignore_errors=True)
