"""Read files of mem0: the result of `get_all` (of the open-source package or the platform), or an export.

The file is a list of memories, an object with the list in `results`, `memories`, `data` or `items`, or a list of such
objects (pages). The object that is the file, and each page of a list, may also contain the relations of a graph in
`relations`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mindstream.memory.store.record import Triple
from mindstream.service.importing.items import Fields, Item, Tally, is_deleted, objects, present
from mindstream.service.importing.reading import MAX_FILE, Source

LISTS = ("results", "memories", "data", "items")
TEXTS = ("memory", "text", "content", "data")


def read(source: Source, tally: Tally) -> Iterator[Item]:
    """Yield the memories and the relations of a file; if the file is a list of pages, page by page."""
    place = source.place(*LISTS, *(f"{outer}.{inner}" for outer in LISTS for inner in LISTS))
    for memories, relations in map(_unpacked, source.values(place)):
        for raw in objects(memories, tally, "memory"):
            if is_deleted(raw):
                tally.lose("items", raw.get("memory"), "it was deleted in mem0")
            else:
                yield _memory(raw, tally)
        for raw in objects(relations, tally, "relations"):
            yield from _relation(raw, tally)
    if place not in ("", "item"):
        for raw in objects(source.values("relations.item", MAX_FILE), tally, "relations"):
            yield from _relation(raw, tally)


def _unpacked(page: Any) -> tuple[list[Any], list[Any]]:
    """Return the memories and the relations in a page of results. A value that is no such page is returned as the only
    memory."""
    if not isinstance(page, dict) or any(isinstance(page.get(name), str) for name in TEXTS):
        return [page], []
    inner = next((page[name] for name in LISTS if isinstance(page.get(name), list | dict)), None)
    if isinstance(inner, list):
        relations = page.get("relations")
        return inner, relations if isinstance(relations, list) else []
    if not inner:
        return [page], []
    return _unpacked({**{key: value for key, value in page.items() if value is not inner}, **inner})


def _memory(raw: dict[str, Any], tally: Tally) -> Item:
    if isinstance(payload := raw.get("payload"), dict):  # a row of the vector store
        raw = {**payload, **{name: value for name, value in raw.items() if name != "payload"}}
    fields = Fields(raw, tally)
    return Item(
        text=fields.text(*TEXTS),
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
