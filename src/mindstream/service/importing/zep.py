"""Read files of Zep and Graphiti: episodes, facts (edges) with their validity, and summaries of entities (nodes).

The file is an object with any of the lists `episodes`, `edges`, `facts`, `nodes` and `messages`, or a single list that
may mix their entries.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mindstream.memory.store.record import Triple
from mindstream.service.importing.items import REEMBEDDED, Fields, Item, Tally, objects, present
from mindstream.service.importing.reading import MAX_FILE, MAX_OBJECT, Source

LISTS = ("nodes", "episodes", "messages", "edges", "facts")
MAX_NODES = 1_000_000
"""Maximum number of entity names that are kept in memory. They are needed for facts that name entities only by id."""


def read(source: Source, tally: Tally) -> Iterator[Item]:
    """Yield the episodes, facts and summaries of a file."""
    place, names = source.place(*LISTS), dict[str, str]()
    places = [f"{name}.item" for name in LISTS] if place not in ("", "item") else [place]
    for each in places:
        for raw in objects(source.values(each, MAX_FILE if len(places) > 1 else MAX_OBJECT), tally, each):
            if "fact" in raw:
                yield _fact(raw, names, tally)
            elif "content" in raw:
                yield _episode(raw, tally)
            else:
                yield from _node(raw, names, tally)


def _owner(fields: Fields) -> str:
    """Read the owner of the graph; "" if the object names none."""
    found = [fields.name(name) for name in ("user_id", "group_id", "graph_id")]
    return next((each for each in found if each), "")


def _fact(raw: dict[str, Any], names: dict[str, str], tally: Tally) -> Item:
    fields = Fields(raw, tally, "fact.")
    ends = [
        fields.name(f"{end}_node_name") or names.get(str(raw.get(f"{end}_node_uuid")), "")
        for end in ("source", "target")
    ]
    name, over = fields.name("name"), fields.moment("invalid_at")
    expired = fields.moment("expired_at")
    return Item(
        text=fields.text("fact"),
        source_id=fields.name("uuid"),
        created=fields.moment("created_at"),
        by="Zep",
        user=_owner(fields),
        valid_from=fields.moment("valid_at"),
        valid_until=expired if over is None else over,
        about=Triple(ends[0], name, ends[1]) if name and all(ends) else None,
        data=present(
            relation=name,
            metadata=fields.mapping("attributes"),
            episodes=fields.list("episodes"),
            expired_at=expired,
            more=fields.rest(fact_embedding=REEMBEDDED),
        ),
    )


def _episode(raw: dict[str, Any], tally: Tally) -> Item:
    """Return the item of an episode: a message of a thread, or a text or JSON document that was added."""
    fields = Fields(raw, tally, "episode.")
    role = fields.name("role_type") or (fields.name("role") if raw.get("role") in ("user", "assistant") else "")
    speaker = fields.name("role") or fields.name("name")
    happened, written = fields.moment("valid_at"), fields.moment("created_at")
    by = "" if role == "user" else speaker or role or fields.name("source_description") or "Zep"
    return Item(
        text=fields.text("content"),
        source_id=fields.name("uuid"),
        kind="observation",
        by=by,
        user=_owner(fields),
        created=written if happened is None else happened,
        episode=fields.name("thread_id") or fields.name("session_id"),
        data=present(
            role=role,
            speaker=speaker,
            metadata=fields.mapping("metadata"),
            written_at=written,
            more=fields.rest(entity_edges="facts name their episodes", processed="internal state of Zep"),
        ),
    )


def _node(raw: dict[str, Any], names: dict[str, str], tally: Tally) -> Iterator[Item]:
    """Yield the summary of an entity, and add its name to `names`."""
    fields = Fields(raw, tally, "node.")
    id_, name, summary = fields.name("uuid"), fields.name("name"), fields.text("summary")
    if id_ and name and len(names) < MAX_NODES:
        names[id_] = name
    created, user = fields.moment("created_at"), _owner(fields)
    data = present(node=name, labels=fields.list("labels"), metadata=fields.mapping("attributes"))
    fields.lose("name_embedding", REEMBEDDED)
    fields.lose_rest("part of the graph")
    if summary:
        text = summary if summary.startswith(name) else f"{name}: {summary}"
        yield Item(text=text, source_id=id_, created=created, by="Zep", user=user, data=data)
