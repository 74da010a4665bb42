"""Import samples into the store of a test."""

from __future__ import annotations

import io
from pathlib import Path

from mindstream import ManualClock, SqliteStore
from mindstream.identifiers import StreamName
from mindstream.memory.store.record import Record
from mindstream.models.embedders.embedder import WordLlama
from mindstream.service.importing.reading import Form, Source, reader
from mindstream.service.importing.writing import Import

SAMPLES = Path(__file__).with_name("samples")
NOW = 1_790_000_000.0


async def take_in(
    store: SqliteStore, form: Form, file: str | bytes, *, each_user: bool = False, trusted: bool = False
) -> Import:
    """Import a sample by its name, or bytes, into ann's memory."""
    data = (SAMPLES / file).read_bytes() if isinstance(file, str) else file
    run = Import(form, store, WordLlama(), ManualClock(NOW), "ann", each_user, trusted)
    await run.run(reader(form)(Source("file", io.BytesIO(data)), run.tally), lambda _: None)
    return run


async def held(store: SqliteStore, user: str = "ann") -> list[Record]:
    """Return all records of a user, in the order of writing."""
    return (await store.changes(StreamName("user", user).key, 0)).records
