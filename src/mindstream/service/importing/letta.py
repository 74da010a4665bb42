"""Read files of Letta: an agent file (`.af`) with memory blocks and messages, or passages of archival memory as JSON.

Agent files from before July 2025 contain one agent, with `core_memory` and `messages` at the top level.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from mindstream.service.importing.items import REEMBEDDED, Fields, Item, Tally, is_deleted, objects, present
from mindstream.service.importing.reading import MAX_FILE, Source

MACHINERY = ("tools", "sources", "files", "groups", "mcp_servers", "skills", "archives")
"""Lists in an agent file that configure the agent; they contain no memories and are not imported."""
SPEAKS = "send_message"
"""The tool by which older agents send messages to the user."""


def read(source: Source, tally: Tally) -> Iterator[Item]:
    """Yield the memories of an agent file, or of a list of passages."""
    place = source.place("agents", "core_memory", "messages", "blocks", "passages", *MACHINERY)
    alone = place in ("", "item")
    for raw in objects(source.values(*((place,) if alone else ("passages.item", MAX_FILE))), tally, "passage"):
        if "message_type" in raw or "role" in raw:
            yield from _message(raw, tally)
        elif "memory" in raw or "core_memory" in raw:
            yield from _agent(raw, tally)
        else:
            yield from _passage(raw, tally)
    if alone:
        return
    for where, what, read_one in PLACES:
        for raw in objects(source.values(where, MAX_FILE), tally, what):
            yield from read_one(raw, tally)
    for name in MACHINERY:
        for value in source.values(f"{name}.item", MAX_FILE):
            tally.lose(name, value, "configuration of the agent")


def _agent(raw: dict[str, Any], tally: Tally) -> Iterator[Item]:
    """Yield the memory blocks and messages of an agent.

    Args:
        raw: the agent, in the form of an agent file or of the API.
    """
    fields = Fields(raw, tally, "agent.")
    name = fields.text("name")
    for place in ("blocks", "core_memory"):
        for block in objects(fields.list(place), tally, "block"):
            yield from _block(block, tally)
    for place in ("memory", "core_memory"):
        yield from _blocks(fields.mapping(place), tally)
    for message in objects(fields.list("messages"), tally, "message"):
        yield from _message(message, tally, name)
    fields.lose_rest("configuration of the agent")


def _blocks(memory: dict[str, Any], tally: Tally) -> Iterator[Item]:
    """Yield the blocks of an agent's memory. They are in the list `blocks`, or values whose keys are their labels."""
    for label, value in memory.items():
        listed = value if label == "blocks" and isinstance(value, list) else ()
        for block in listed or [
            {"label": label, **value} if isinstance(value, dict) else {"label": label, "value": value}
        ]:
            if isinstance(block, dict):
                yield from _block(block, tally)


def _passage(raw: dict[str, Any], tally: Tally) -> Iterator[Item]:
    if isinstance(inner := raw.get("passage"), dict):
        raw = {**{name: value for name, value in raw.items() if name != "passage"}, **inner}
    fields = Fields(raw, tally)
    if is_deleted(raw):
        tally.lose("items", raw.get("text"), "it was deleted in Letta")
        return
    yield Item(
        text=fields.text("text", "content"),
        source_id=fields.name("id"),
        created=fields.moment("created_at"),
        by="Letta",
        keywords=fields.texts("tags"),
        data=present(
            metadata=fields.mapping("metadata"),
            updated_at=fields.name("updated_at"),
            more=fields.rest(embedding_config=REEMBEDDED),
        ),
    )


def _block(raw: dict[str, Any], tally: Tally) -> Iterator[Item]:
    fields = Fields(raw, tally, "block.")
    label, value = fields.text("label"), fields.text("value")
    data = present(label=label, description=fields.text("description"), metadata=fields.mapping("metadata"))
    fields.lose("id", "ids start from 0 in each file; the block is identified by its text")
    fields.lose_rest("only about how the block is edited")
    if value:
        yield Item(text=value, source_id=f"block {label}: {value}", by="Letta", data=data)


def _message(raw: dict[str, Any], tally: Tally, agent: str = "") -> Iterator[Item]:
    kind = str(raw.get("message_type") or "")  # in the API's form, this holds the role: "user_message"
    role, said = str(raw.get("role") or kind.removesuffix("_message")), _said(raw)
    if role not in ("user", "assistant") or not said:
        tally.lose(f"messages: {role}", raw.get("content") or raw, "no text of the user or the agent")
        return
    for part in objects(_parts(raw), tally, "message.content"):
        if part.get("type") != "text":
            tally.lose(f"message.content: {part.get('type')}", part, "not part of the conversation")
    fields = Fields(raw, tally, "message.")
    for name in ("role", "message_type"):
        fields.value(name)
    fields.value("content" if "content" in raw else "text")
    fields.lose("id", "ids start from 0 in each file; the message is identified by its date and text")
    created, model = fields.moment("created_at" if "created_at" in raw else "date"), fields.name("model")
    fields.lose_rest("only about how the message was made")
    by = "" if role == "user" else agent or "Letta"
    yield Item(text=said, kind="observation", created=created, by=by, data=present(role=role, model=model))


def _said(raw: dict[str, Any]) -> str:
    """Return the text of a message: the argument of `send_message`, the content of a JSON envelope, or plain text."""
    for call in raw.get("tool_calls") or []:
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict) and function.get("name") == SPEAKS:
            return _within(function.get("arguments"))
    texts = [part.get("text") for part in _parts(raw) if isinstance(part, dict) and part.get("type") == "text"]
    text = "\n".join(each for each in texts if isinstance(each, str)).strip()
    return _within(text) if text.startswith('{"type"') or text.startswith('{\n  "type"') else text


def _parts(raw: dict[str, Any]) -> list[Any]:
    content = raw.get("content") or raw.get("text")
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def _within(text: object) -> str:
    """Return the message in a JSON envelope; "": the envelope has no message, but reports an event of the program."""
    try:
        found = json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        return ""
    event = found.get("type") if isinstance(found, dict) else None
    message = found.get("message") if isinstance(found, dict) and event in (None, "user_message") else None
    return message.strip() if isinstance(message, str) else ""


PLACES: tuple[tuple[str, str, Callable[[dict[str, Any], Tally], Iterator[Item]]], ...] = (
    ("blocks.item", "block", _block),
    ("core_memory.item", "block", _block),
    ("core_memory", "core_memory", _blocks),
    ("agents.item", "agent", _agent),
    ("messages.item", "message", _message),
)
"""The places of memories in an agent file (see `Source.values`), each with its name in the tally and its reader."""
