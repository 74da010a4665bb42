"""Read files of mem0: the result of `get_all` (of the open-source package or the platform), or an export.

The file is a list of memories, or an object with the list in `results`, `memories`, `data` or `items`. The object may
also contain the relations of a graph in `relations`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mindstream.memory.store.record import Triple
from mindstream.service.importing.items import Fields, Item, Tally, objects, present
from mindstream.service.importing.reading import MAX_FILE, Source

LISTS = ("results", "memories", "data", "items", "results.results")


def read(source: Source, tally: Tally) -> Iterator[Item]:
    """Yield the memories of a file, then the relations of its graph."""
    place = source.place(*LISTS)
    for raw in objects(source.values(place), tally, "memory"):
        if raw.get("event") == "DELETE" or raw.get("is_deleted") or raw.get("deleted_at"):
            tally.lose("items", raw.get("memory"), "it was deleted in mem0")
        else:
            yield _memory(raw, tally)
    if place not in ("", "item"):
        for raw in objects(source.values("relations.item", MAX_FILE), tally, "relations"):
            yield from _relation(raw, tally)


def _memory(raw: dict[str, Any], tally: Tally) -> Item:
    if isinstance(payload := raw.get("payload"), dict):  # a row of the vector store
        raw = {**payload, **{name: value for name, value in raw.items() if name != "payload"}}
    fields = Fields(raw, tally)
    return Item(
        text=fields.text("memory", "text", "content", "data"),
        source_id=fields.name("id"),
        created=fields.moment("created_at"),
        valid_until=fields.moment("expiration_date"),
        by=fields.name("actor_id") or "mem0",
        user=fields.name("user_id"),
        episode=fields.name("run_id"),
        keywords=fields.texts("categories"),
        data=present(
            metadata=fields.mapping("metadata"),
            agent_id=fields.name("agent_id"),
            app_id=fields.name("app_id"),
            role=fields.name("role"),
            updated_at=fields.name("updated_at"),
            more=fields.rest(hash="computed from the text", text_lemmatized="computed from the text"),
        ),
    )


def _relation(raw: dict[str, Any], tally: Tally) -> Iterator[Item]:
    fields = Fields(raw, tally, "relations.")
    subject, name = fields.name("source"), fields.name("relationship") or fields.name("relation")
    target = fields.name("target") or fields.name("destination")
    more = fields.rest()
    if subject and name and target:
        text = " ".join(each.replace("_", " ") for each in (subject, name, target))
        yield Item(text=text, by="mem0", about=Triple(subject, name, target), data=present(more=more))
    else:
        tally.lose("relations", raw, "it has no source, relationship or target")
