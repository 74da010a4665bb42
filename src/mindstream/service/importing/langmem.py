"""Read items of LangMem or any LangGraph store, which have a namespace, key, value and dates.

The file is a list of items, an object with the list in `items` (as the store's search returns), or JSON Lines. Rows of
the store's database table are read, too; they have `prefix` in place of the namespace, and the value as JSON text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from mindstream.service.importing.items import Fields, Item, Tally, objects, present
from mindstream.service.importing.reading import Source

OWNED = ("memories", "users", "user")
"""Parts of a namespace, such as ("memories", "ann"), before the user's name. In a namespace without any of these parts,
the last part is the user's name."""
TEXTS = ("content", "text", "memory", "data")
"""Accepted names of the field with the text in an item's value."""


def read(source: Source, tally: Tally) -> Iterator[Item]:
    """Yield the items of a file."""
    for raw in objects(source.values(source.place("items")), tally, "item"):
        yield _item(raw, tally)


def _item(raw: dict[str, Any], tally: Tally) -> Item:
    fields = Fields(raw, tally)
    path = fields.text("namespace", "prefix")  # `prefix` in a row of the store's table
    namespace: list[Any] = fields.list("namespace") or list(filter(None, path.split(".")))
    key, value = fields.name("key"), fields.value("value")
    if isinstance(value, str) and value.lstrip().startswith("{"):
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    text, whole = _words(value)
    return Item(
        text=text,
        source_id=json.dumps([namespace, key]) if key else "",
        by="LangMem",
        user=_user(namespace),
        created=fields.moment("created_at") or fields.moment("createdAt"),
        data=present(
            namespace=namespace,
            key=key,
            value=None if whole else value,
            updated_at=fields.name("updated_at") or fields.name("updatedAt"),
            more=fields.rest(),
        ),
    )


def _words(value: object) -> tuple[str, bool]:
    """Return the text of a value, and whether the text is all of it. Without a text, return the value as JSON."""
    if isinstance(value, str):
        return value, True
    if isinstance(value, dict):
        only = value.keys() <= {"kind", "content"} and value.get("kind") in (None, "Memory")
        for name in TEXTS:
            text, whole = _words(value[name]) if isinstance(value.get(name), str | dict) else ("", False)
            if text:
                return text, whole and (only or len(value) == 1)
        return (json.dumps(value, ensure_ascii=False), False) if value else ("", True)
    return ("" if value is None else json.dumps(value, ensure_ascii=False)), False


def _user(namespace: list[Any]) -> str:
    names = [str(each) for each in namespace]
    after = [names[at + 1] for at, each in enumerate(names[:-1]) if each in OWNED]
    return after[0] if after else names[-1] if names else ""
