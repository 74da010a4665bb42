"""What in a pack names something that is not there: a field, a topic. Takes plain data, so that it can say where."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

Where = tuple[str | int, ...]
Fault = tuple[Where, str]
"""A place in a pack, and what is wrong there."""


def dangling(data: Any) -> Iterator[Fault]:
    """Name what names something that is not there: a field, a topic."""
    if not isinstance(data, dict):
        return
    fields = set(data.get("fields") or ()) if isinstance(data.get("fields"), dict) else set()
    topics = {str(topic.get("id")) for topic in _mappings(data, "topics")}
    for at, phase in enumerate(_mappings(data, "phases")):
        for key in ("fields", "needs"):
            yield from _missing(("phases", at, key), phase.get(key), fields, "the field", "`fields`")
    for at, topic in enumerate(_mappings(data, "topics")):
        yield from _missing(("topics", at, "field"), [topic.get("field") or ""], fields | {""}, "the field", "`fields`")
    for name in ("steps", "resources"):
        for at, item in enumerate(_mappings(data, name)):
            for key in ("topics", "not_for"):
                yield from _missing((name, at, key), item.get(key), topics, "the topic", "topics.yaml")


def _mappings(data: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    items = data.get(name)
    return [item if isinstance(item, dict) else {} for item in items] if isinstance(items, list | tuple) else []


def _missing(where: Where, named: Any, known: set[str], what: str, of: str) -> Iterator[Fault]:
    for name in named if isinstance(named, list | tuple) else ():
        if isinstance(name, str) and name not in known:
            yield where, f"names {what} {name!r}, which {of} does not have{suggest(name, known)}"


def suggest(name: str, known: set[str]) -> str:
    """Name what was probably meant, as the end of a message; "" where nothing is near."""
    near = difflib.get_close_matches(name, sorted(map(str, known)), 1)
    return f"; did you mean {near[0]!r}?" if near else ""
