"""Read JSON Lines, or one JSON list. Each line or list entry is a text, or an object with the field `text`.

A line may also be a conversation, as for fine-tuning: `{"messages": [{"role": …, "content": …}]}`, ShareGPT's
`{"conversations": [{"from": …, "value": …}]}`, or one of Open WebUI or LibreChat; each message is an item. Exports of
Telegram, Slack and Discord are read, too.

Other known fields: id, kind (one of `KINDS`), created_at, user, by, episode, keywords, valid_from, valid_until,
metadata. `NAMES` lists the names that other programs use for these fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, get_args

from mindstream.memory.store.record import FADING, Kind
from mindstream.models.fitting import bare_name
from mindstream.service.importing.items import Fields, Item, Tally, is_deleted, present
from mindstream.service.importing.reading import Source

KINDS: frozenset[Kind] = FADING | {"chat"}
"""Kinds of records that can be imported; other kinds need fields that these files do not have."""

TEXTS = ("text", "content", "memory", "message")
LISTS = ("items", "memories", "messages", "records", "data", "chats.list")
"""Accepted names of the list of items, if the file is one object."""
TALKS = ("messages", "conversations", "conversation")
PAIRS = (
    ("question", "answer"),
    ("prompt", "completion"),
    ("prompt", "response"),
    ("query", "response"),
    ("instruction", "output"),
    ("input", "output"),
)
"""Names of the fields of a question and its answer."""
NESTED = ("message", "data", "kwargs", "payload")
"""Accepted names of an object within a line, if that object contains the text."""
NAMES: Mapping[str, Sequence[str]] = {
    name: others.split()
    for name, others in {
        "content": "value note fact pagecontent parts",
        "created_at": "createdat timestamp created dateunixtime date ts time createtime sentat",
        "valid_from": "validfrom validat",
        "valid_until": "validuntil validto invalidat expiresat expirationdate expiredat",
        "user": "user userid",
        "by": "by author from sender speaker",
        "episode": "episode session sessionid threadid conversationid runid chatid",
        "keywords": "keywords tags categories labels",
    }.items()
}
"""For each field, its names in other programs, in lower case and without punctuation.

If a line has several of these names, the first in this list counts.
"""
OWN = ("user", "human", "me")
"""Names of roles that mean the user."""
ROLES = (*OWN, "ai", "assistant", "bot", "gpt", "model", "system", "tool", "function")
UNKNOWN = "unknown"
"""The author of a message whose author was deleted."""


def read(source: Source, tally: Tally) -> Iterator[Item]:
    """Yield the items of a file."""
    yield from read_values(
        source.lines() if source.is_lines() else enumerate(source.values(source.place(*LISTS)), 1), tally
    )


def read_values(values: Iterable[tuple[int, Any]], tally: Tally) -> Iterator[Item]:
    """Yield the items in values (pairs of line number and value); add to `tally` what is left out."""
    for number, raw in ((number, part) for number, value in values for part in _parts(value)):
        if not isinstance(raw, dict) or not _has_text(raw):
            tally.lose("line", raw, f"it is not an object with {' or '.join(TEXTS)}; the first is line {number}")
        elif is_deleted(raw):
            tally.lose("items", next(raw[name] for name in TEXTS if name in raw), "it was deleted in the other program")
        else:
            yield _line(raw, tally)


def _has_text(raw: dict[str, Any]) -> bool:
    return any(isinstance(raw.get(name), str) for name in TEXTS)


def _parts(raw: Any) -> Iterator[Any]:
    """Yield the messages of a line; the line may also be an object that contains a list of items."""
    listed = raw if isinstance(raw, dict) and not _has_text(raw) else {}
    chats = listed.get("chats")
    lists = (chats.get("list") if isinstance(chats, dict) else None, *(listed.get(name) for name in LISTS))
    values = next((each for each in lists if isinstance(each, list) and each), None)
    if values is None or values is listed.get("messages"):
        yield from _messages(raw)
    else:
        for value in values:
            yield from _messages(value)


def _messages(raw: Any) -> list[Any]:
    """Return the messages of a conversation, each with the fields of the conversation.

    Of an object with a question and its answer, return question and answer as two messages. Return any other value as
    the only message.
    """
    if isinstance(raw, dict) and isinstance(chat := raw.get("chat"), dict):  # Open WebUI
        raw = {**{name: value for name, value in raw.items() if name != "chat"}, **chat}
    if not isinstance(raw, dict) or _has_text(raw):
        return [_with_text(raw)]
    name = next((name for name in TALKS if isinstance(raw.get(name), list) and raw[name]), "")
    if not name:
        return _question_and_answer(raw) or [_with_text(raw)]
    more = {key: value for key, value in raw.items() if key not in (name, "id") and not isinstance(value, list | dict)}
    more = _named({**more, "metadata": raw.get("metadata"), "episode": raw.get("episode", raw.get("id"))})
    messages = map(_with_text, raw[name])
    return [{**more, **each} if isinstance(each, dict) else each for each in messages]


def _question_and_answer(raw: Mapping[str, Any]) -> list[Any]:
    """Return a question and its answer as two messages; [] if the object has no such fields.

    No message is made of an empty text.
    """
    keys = {bare_name(key): key for key in raw}
    for asked, answered in PAIRS:
        if asked in keys and answered in keys:
            more = {key: each for key, each in raw.items() if key not in (keys[asked], keys[answered], "id")}
            question = [raw[keys[asked]], more.pop(keys.get("input", ""), "") if asked == "instruction" else ""]
            texts = "\n".join(each for each in question if isinstance(each, str) and each), raw[keys[answered]]
            said = [
                {"role": role, "text": text, **({"id": f"{raw['id']}.{number}"} if raw.get("id") else {})}
                for number, (role, text) in enumerate(zip(("user", "assistant"), texts, strict=True), 1)
                if isinstance(text, str) and text.strip()
            ]
            return [{**_named(more), **each} for each in said]
    return []


def _with_text(raw: Any) -> Any:
    """Return a value as an object that has its text in one field.

    The value may be a plain text, an object that nests its message, or an object that splits its text into parts. Any
    other value is returned unchanged.
    """
    if isinstance(raw, str):
        return {"text": raw}
    if not isinstance(raw, dict):
        return raw
    if raw.get("type") == "message" and "ts" in raw:  # Slack
        raw = {"by" if name == "user" else name: value for name, value in raw.items()}
    raw = _named(raw)
    inner = next((name for name in NESTED if isinstance(raw.get(name), dict)), "")
    if inner and not _has_text(raw):
        raw = {**{name: value for name, value in raw.items() if name != inner}, **_named(raw[inner])}
    for name in TEXTS:
        if isinstance(parts := raw.get(name), list) and (found := [text for each in parts if (text := _part(each))]):
            spans = any(isinstance(each, str) for each in parts) and any(isinstance(each, dict) for each in parts)
            raw = {**raw, name: ("" if spans else "\n").join(found)}  # Telegram splits a text into spans
    return raw


def _named(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object whose fields have the names that are used here."""
    given = {bare_name(key): key for key in reversed([*raw]) if raw[key] is not None and raw[key] != ""}
    found = {key.lower() if key.lower() in TEXTS else key: value for key, value in raw.items()}
    for name, others in NAMES.items():
        key = next((given[other] for other in others if other in given), "")
        if key and not (name == "content" and any(text in given for text in TEXTS)):
            found[name] = found.pop(key)
    by = found.get("by")
    if isinstance(by, dict):  # Discord
        found["by"] = next((each for name in ("name", "username", "id") if (each := by.get(name))), UNKNOWN)
    elif by is None and "from" in found:  # Telegram: the account was deleted
        found["by"] = UNKNOWN
    for name in ("by", "type"):  # the role is in `by` (ShareGPT) or in `type` (LangChain)
        if "role" not in found and str(found.get(name)).casefold() in ROLES:
            found["role"] = found.pop(name)
    return found


def _part(part: object) -> str:
    text = part.get("text") if isinstance(part, dict) else part
    text = text.get("value") if isinstance(text, dict) else text
    return text if isinstance(text, str) else ""


def _line(raw: dict[str, Any], tally: Tally) -> Item:
    fields = Fields(raw, tally)
    kind = next((each for each in KINDS if each == raw.get("kind")), None)
    if kind is not None:
        fields.value("kind")
    fields.lose("kind", f"only {', '.join(each for each in get_args(Kind) if each in KINDS)} can be imported")
    by, role, listed = fields.name("by"), fields.name("role"), fields.text("keywords")
    return Item(
        text=fields.text(*TEXTS),
        source_id=fields.name("id"),
        kind=kind or "note",
        created=fields.moment("created_at"),
        valid_from=fields.moment("valid_from"),
        valid_until=fields.moment("valid_until"),
        by=by or ("" if role.casefold() in OWN else role),
        user=fields.name("user"),
        episode=fields.name("episode"),
        keywords=tuple(filter(None, map(str.strip, listed.split(",")))) or fields.texts("keywords"),
        data=present(role=role, metadata=fields.mapping("metadata"), more=fields.rest()),
    )
