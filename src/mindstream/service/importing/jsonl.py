"""Read JSON Lines with an object with the field `text`, or a text, on each line, or one JSON list of these.

A line may also be a conversation, as for fine-tuning: `{"messages": [{"role": …, "content": …}]}`, or ShareGPT's
`{"conversations": [{"from": …, "value": …}]}`; each message is an item.

Other known fields: id, kind (note, observation or chat), created_at, user, by, episode, keywords, valid_from,
valid_until, metadata. Common alternative names of the text, the date and the speaker are also accepted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from mindstream.memory.store.record import FADING, Kind
from mindstream.service.importing.items import Fields, Item, Tally, present
from mindstream.service.importing.reading import Source

KINDS: frozenset[Kind] = FADING | {"chat"}
"""Kinds of records that can be imported; other kinds need fields that these files do not have."""

TEXTS = ("text", "content", "memory", "message")
LISTS = ("items", "memories", "messages", "records", "data")
"""Accepted names of the list of items, if the file is one object."""
TALKS = ("messages", "conversations", "conversation")
SHARED = {"value": "content", "from": "role"}
"""ShareGPT's names of fields, with ours."""
DATES = ("created_at", "timestamp", "created", "date")
OWN = ("user", "human")
"""Names of roles that mean the user."""


def read(source: Source, tally: Tally) -> Iterator[Item]:
    """Yield the items of a file."""
    values = source.lines() if source.is_lines() else enumerate(source.values(source.place(*LISTS)), 1)
    for number, part in ((number, part) for number, value in values for part in _messages(value)):
        raw = _with_text(part)
        if isinstance(raw, dict) and any(isinstance(raw.get(name), str) for name in TEXTS):
            yield _line(raw, tally)
        else:
            tally.lose("line", raw, f"it is not an object with {' or '.join(TEXTS)}; the first is line {number}")


def _messages(raw: Any) -> list[Any]:
    """Return the messages of a conversation with its other fields; of any other value, the value itself."""
    if not isinstance(raw, dict) or any(isinstance(raw.get(name), str) for name in TEXTS):
        return [raw]
    name = next((name for name in TALKS if isinstance(raw.get(name), list) and raw[name]), "")
    more = {key: value for key, value in raw.items() if key not in (name, "id")}
    return [{**more, **each} if isinstance(each, dict) else each for each in raw[name]] if name else [raw]


def _with_text(raw: Any) -> Any:
    """Return an object with one text in place of a nested message, of content in parts, or of a text alone."""
    if isinstance(raw, str):
        return {"text": raw}
    if not isinstance(raw, dict):
        return raw
    if not any(name in raw for name in TEXTS):  # `Text`, or ShareGPT's names
        raw = {SHARED.get(key.lower(), key.lower()): value for key, value in raw.items()}
    if isinstance(message := raw.get("message"), dict):
        raw = {**{name: value for name, value in raw.items() if name != "message"}, **message}
    if isinstance(parts := raw.get("content"), list) and (found := [text for each in parts if (text := _part(each))]):
        raw = {**raw, "content": "\n".join(found)}
    return raw


def _part(part: object) -> str:
    text = part.get("text") if isinstance(part, dict) else part
    return text if isinstance(text, str) else ""


def _line(raw: dict[str, Any], tally: Tally) -> Item:
    fields = Fields(raw, tally)
    kind = next((each for each in KINDS if each == raw.get("kind")), None)
    if kind is not None:
        fields.value("kind")
    fields.lose("kind", f"only {', '.join(each for each in get_args(Kind) if each in KINDS)} can be imported")
    by, role = fields.name("by"), fields.name("role")
    return Item(
        text=fields.text(*TEXTS),
        source_id=fields.name("id"),
        kind=kind or "note",
        created=fields.moment(next((name for name in DATES if name in raw), "")),
        valid_from=fields.moment("valid_from"),
        valid_until=fields.moment("valid_until"),
        by=by or ("" if role in OWN else role),
        user=fields.name("user"),
        episode=fields.name("episode"),
        keywords=fields.texts("keywords"),
        data=present(role=role, metadata=fields.mapping("metadata"), more=fields.rest()),
    )
