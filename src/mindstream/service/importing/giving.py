"""Export a memory in the formats of other programs; an import can read these files again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from mindstream.clock import Moment, format_iso
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import Record
from mindstream.service.calling import require_known
from mindstream.service.importing.items import present


@dataclass(slots=True)
class Given:
    """How many records an export has written, and how many it has left out."""

    records: int = 0
    left_out: int = 0


async def to_json_lines(opened: Memory, given: Given) -> AsyncIterator[str]:
    """Yield a JSON line for each record."""
    async for record in _held(opened, given):
        yield json.dumps(_line(record, opened.name), ensure_ascii=False)


async def _held(opened: Memory, given: Given) -> AsyncIterator[Record]:
    """Yield the current records in the order of writing, except beliefs and plans, which other formats do not have.
    Count the yielded records, and those left out, in `given`.

    Current means: neither archived, superseded nor expired.
    """
    now = opened.clock.now()
    await require_known(opened)
    async with opened.store.walk(opened.key) as (_, records):
        async for record in records:
            over = record.valid_until is not None and record.valid_until <= now
            if record.slot is not None or record.forgotten is not None or record.superseded_by or over:
                given.left_out += 1
            else:
                given.records += 1
                yield record


async def _listed(
    name: str, shape: Callable[[Record, str], dict[str, Any]], opened: Memory, given: Given
) -> AsyncIterator[str]:
    before = f'{{"{name}": ['
    async for record in _held(opened, given):
        yield before + json.dumps(shape(record, opened.name), ensure_ascii=False)
        before = ","
    yield "]}" if given.records else before + "]}"


def _mem0(record: Record, user: str) -> dict[str, Any]:
    metadata = _metadata(record) | ({"mindstream_kind": record.kind} if record.kind != "note" else {})
    digest = hashlib.md5(record.text.encode(), usedforsecurity=False).hexdigest()  # mem0 uses MD5
    return {
        "id": record.data.get("source_id") or record.id,
        "memory": record.text,
        "hash": digest,
        "metadata": metadata,
        "created_at": _iso(record.created),
        "updated_at": record.data.get("updated_at"),
        "user_id": user,
    } | present(
        run_id=record.episode,
        categories=list(record.keywords),
        agent_id=record.data.get("agent_id"),
        app_id=record.data.get("app_id"),
        role=record.data.get("role"),
        expiration_date=_until(record),
        actor_id=record.by if record.by != "mem0" else None,
    )


def _langmem(record: Record, user: str) -> dict[str, Any]:
    data, value = record.data, record.data.get("value")
    namespace = data.get("namespace") if record.data.get("source") == "langmem" else None
    said = {"kind": "Memory", "content": {"content": record.text}}
    updated = data.get("updated_at")
    return {
        "namespace": namespace or ["memories", user],
        "key": data.get("key") or record.id,
        "value": value if isinstance(value, dict) else said,
        "created_at": _iso(record.created),
        "updated_at": updated or _iso(record.created),
    }


def _line(record: Record, user: str) -> dict[str, Any]:
    return {"id": record.data.get("source_id") or record.id, "text": record.text, "kind": record.kind} | present(
        created_at=_iso(record.created),
        user=user,
        by=record.by,
        episode=record.episode,
        keywords=list(record.keywords),
        valid_until=_until(record),
        valid_from=None if record.valid_from is None else _iso(record.valid_from),
        metadata=_metadata(record),
    )


def _metadata(record: Record) -> dict[str, Any]:
    """Return the metadata that a record was imported with, or the data of a record that was not imported."""
    metadata = record.data.get("metadata")
    if isinstance(metadata, dict):
        return metadata
    return {name: value for name, value in record.data.items() if name not in ("source", "source_id", "tainted")}


def _until(record: Record) -> str | None:
    return None if record.valid_until is None else _iso(record.valid_until)


def _iso(at: Moment) -> str:
    """Return a time as ISO 8601. Microseconds are included, because an import computes ids from the time."""
    whole, rest = divmod(round(at * 1_000_000), 1_000_000)
    return f"{format_iso(whole)[:-1]}.{rest:06}Z" if rest else format_iso(whole)


WRITERS: Mapping[Literal["mem0", "langmem", "jsonl"], Callable[[Memory, Given], AsyncIterator[str]]] = {
    "mem0": partial(_listed, "results", _mem0),
    "langmem": partial(_listed, "items", _langmem),
    "jsonl": to_json_lines,
}
"""For each format, the function that yields its lines. mem0: an object as mem0's `get_all` returns it. langmem: an
object with items of a LangGraph store, as LangMem writes it. jsonl: a JSON line for each record."""
