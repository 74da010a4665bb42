"""Export and import a memory as JSON Lines, with few records in memory at a time.

The first line is a header (`Header`). Each other line is a record without its vector, which the import computes again.

An import first checks all lines (see export_file), then writes them in batches from a temporary copy. A single
transaction would hold the write lock while texts are embedded, and block all other minds.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace

from mindstream import redaction
from mindstream.clock import format_iso
from mindstream.errors import InputError
from mindstream.log.events import Remembered
from mindstream.memory.memory import Memory
from mindstream.memory.recall.embedding import asking, embed_each
from mindstream.memory.store.record import Record, Triple
from mindstream.memory.store.store import Entry
from mindstream.service.calling import require_known
from mindstream.service.export_file import Export, Header
from mindstream.service.memory import plain, read_slots


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import.

    Attributes:
        written: number of new records.
        known: number of records that already existed.
        own: number of versions of beliefs and plans that were skipped, because this memory has its own versions.
    """

    written: int
    known: int
    own: int


async def export(opened: Memory, header: Callable[..., Header] = Header) -> AsyncIterator[str]:
    """Yield the lines of a memory's export, as of the moment when the first line is requested.

    Raises:
        InputError: there are no data of that user.
    """
    await require_known(opened)
    async with opened.store.walk(opened.key) as (count, records):
        yield header(user=opened.name, exported=format_iso(opened.clock.now()), records=count).model_dump_json()
        async for record in records:
            yield json.dumps(plain(record), ensure_ascii=False)


async def import_records(opened: Memory, export: Export[Header], progress: Callable[[int], None]) -> Imported:
    """Embed and write the records that do not exist yet, in batches; `progress` is called with the number done.

    Raises:
        InputError: a record belongs to another user of this data folder; nothing is written.
        StorageError: the records cannot be written.
    """
    await _check_owners(opened, export)
    foreign = await _own_slots(opened, export)
    done = wrote = known = 0
    batches = export.batches()
    while batch := await asyncio.to_thread(next, batches, None):
        there = await opened.store.owners([record.id for record in batch])
        fresh = [record for record in batch if record.id not in there and record.slot not in foreign]
        if fresh:
            await _write(opened, fresh)
        done, wrote, known = done + len(batch), wrote + len(fresh), known + len(there)
        progress(done)
    return Imported(wrote, known, done - wrote - known)


async def _write(opened: Memory, records: list[Record]) -> None:
    opened.require_own_vectors()
    embedder = opened.embedder
    if redaction.is_on():
        records = await asyncio.to_thread(lambda: [_cleaned(record) for record in records])
    vectors = await embed_each(asking(embedder), [record.text for record in records])
    whole = [
        replace(
            record,
            stream=opened.key,
            embedder="" if isinstance(vector, str) else embedder.name,
            vector=None if isinstance(vector, str) else vector,
        )
        for record, vector in zip(records, vectors, strict=True)
    ]
    event = Remembered(count=len(whole), kinds=dict(Counter(record.kind for record in whole)))
    await opened.commit(Entry(event, "import", tuple(whole), system=True))


def _cleaned(record: Record) -> Record:
    return replace(
        record,
        text=redaction.clean(record.text).text,
        data=redaction.clean_within(dict(record.data)),
        keywords=tuple(redaction.clean_within([*record.keywords])),
        about=record.about and Triple(*redaction.clean_within([*record.about])),
    )


async def _check_owners(opened: Memory, export: Export[Header]) -> None:
    """Raise InputError if a record belongs to another user; the message does not name that user, for privacy."""
    for id_, owner in (await opened.store.owners(list(export.lines))).items():
        if owner != opened.key:
            raise InputError(
                f"{export.source}:{export.lines[id_]}: the record {id_} belongs to another user of this data folder:"
                " choose another folder with --data; nothing was imported"
            )


async def _own_slots(opened: Memory, export: Export[Header]) -> set[str | None]:
    """Return the slots of which this memory has a version that the import does not contain.

    The import leaves these slots out, so that two histories of a slot are not mixed.
    """
    current = await read_slots(opened.store, opened.key, opened.clock.now())
    return {record.slot for record in current if record.id not in export.lines}
