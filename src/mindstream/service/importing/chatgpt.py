"""Read ChatGPT's data export: conversations.json, whole or in numbered parts, alone or in the ZIP archive.

A conversation is a tree of messages. Only the branch that the user saw last (it ends in `current_node`) is imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mindstream.clock import Moment
from mindstream.service.importing.items import Fields, Item, Tally, branch, objects, present, read_moment
from mindstream.service.importing.reading import Source

SPOKEN = ("text", "multimodal_text")
BY = {"user": "", "assistant": "ChatGPT"}
"""The author that is stored for each role; "": the user. Messages of other roles are internal and not imported."""
EVERYONE = "all"
"""The recipient of messages to the user; messages to other recipients are tool calls."""


def _is_conversations(name: str) -> bool:
    """Return whether a file of the archive contains conversations."""
    name = name.casefold()
    return name.startswith("conversations") and name.endswith(".json")


def read(source: Source, tally: Tally) -> Iterator[Item]:
    """Yield the messages of each conversation, in order."""
    for raw in conversations(source, tally):
        yield from _conversation(raw, tally)


def conversations(source: Source, tally: Tally) -> Iterator[dict[str, Any]]:
    """Yield the conversations of a file or an archive as JSON objects."""
    for member in source.members(_is_conversations, tally):
        yield from objects(member.values(member.place("conversations")), tally, "conversation")


def _conversation(raw: dict[str, Any], tally: Tally) -> Iterator[Item]:
    fields = Fields(raw, tally, "conversation.")
    episode, title = fields.name("conversation_id") or fields.name("id"), fields.name("title")
    fields.lose("id", "the same as conversation_id")
    created, updated, mapping = fields.moment("create_time"), fields.moment("update_time"), fields.mapping("mapping")
    at = fields.name("current_node")
    fields.lose_rest("only messages, title and dates are read")
    nodes = {id_: node for id_, node in mapping.items() if isinstance(node, dict)}
    shown = branch({id_: node.get("parent") for id_, node in nodes.items()}, at if at in nodes else _newest(nodes))
    dates = (read_moment(_object(nodes[id_].get("message")).get("create_time")) for id_ in shown)
    at_last = next((at for at in (created, *dates, updated) if at is not None), None)
    for id_ in shown:
        for item in _message(nodes[id_], episode, title, at_last, tally):
            at_last = at_last if item.created is None else item.created
            yield item
    for id_ in nodes.keys() - set(shown):
        if isinstance(nodes[id_].get("message"), dict):
            tally.lose("messages of other branches", _words(nodes[id_]["message"]), "another branch was chosen")


def _newest(nodes: Mapping[str, Any]) -> str:
    """Return the id of the newest message; "": there is no message.

    If no message has a date, return the id of the last message in the file.
    """
    dated = {id_: node["message"] for id_, node in nodes.items() if isinstance(node.get("message"), dict)}
    return max(reversed(dated), key=lambda id_: read_moment(dated[id_].get("create_time")) or 0, default="")


def _message(node: dict[str, Any], episode: str, title: str, at_last: Moment | None, tally: Tally) -> Iterator[Item]:
    message = node.get("message")
    if not isinstance(message, dict):
        return  # the root of the tree has no message
    author, metadata, content = _object(message.get("author")), _object(message.get("metadata")), _content(message)
    role, form, text = str(author.get("role")), content.get("content_type"), _words(message)
    to = message.get("recipient") or EVERYONE
    if form == "user_editable_context":
        yield from _instructions(content, tally)
    elif role not in BY or form not in SPOKEN or metadata.get("is_visually_hidden_from_conversation"):
        tally.lose(f"messages: {role}, {form}", text or content, "not part of the conversation")
    elif to != EVERYONE:
        tally.lose(f"messages: {role} to {to}", text, "a tool call")
    else:
        for part in _parts(message):
            if not isinstance(part, str) and not _part(part):
                tally.lose("message.content.parts", part, "images and files are not read")
        if text:
            yield _said(message, text, episode, title, at_last, tally)


def _said(message: dict[str, Any], text: str, episode: str, title: str, at_last: Moment | None, tally: Tally) -> Item:
    fields = Fields(message, tally, "message.")
    about = Fields(fields.mapping("metadata"), tally, "message.metadata.")
    role, model = str(fields.mapping("author")["role"]), about.name("model_slug")
    files = [str(each["name"]) for each in about.list("attachments") if isinstance(each, dict) and each.get("name")]
    created, id_ = fields.moment("create_time") or at_last, fields.name("id")
    fields.value("content")
    about.lose_rest("only the model and names of files are kept")
    fields.lose_rest("only about how the message was shown")
    data = present(role=role, title=title, model=model, files=[*files])
    return Item(text=text, source_id=id_, kind="observation", created=created, by=BY[role], episode=episode, data=data)


def _instructions(content: Mapping[str, Any], tally: Tally) -> Iterator[Item]:
    """Yield the user's custom instructions; each conversation repeats them, but equal texts become one note."""
    fields = Fields(content, tally, "custom instructions.")
    fields.text("content_type")
    for name in ("user_profile", "user_instructions"):
        if text := fields.text(name):
            yield Item(text=text, source_id=f"{name}: {text}", data=present(role="user", title="custom instructions"))
    fields.lose_rest("only the user's own texts are read")


def _words(message: Mapping[str, Any]) -> str:
    found = [part if isinstance(part, str) else _part(part) for part in _parts(message)]
    return "\n".join(each for each in found if each).strip()


def _parts(message: Mapping[str, Any]) -> list[Any]:
    content = _content(message)
    parts = content.get("parts", [content.get("text")] if content.get("content_type") in SPOKEN else None)
    return [each for each in parts if each is not None] if isinstance(parts, list) else []


def _content(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message's content; some tools replace it by plain text."""
    content = message.get("content")
    return {"content_type": SPOKEN[0], "parts": [content]} if isinstance(content, str) else _object(content)


def _part(part: object) -> str:
    """Return the text of a part that is an object, such as the transcript of audio; "" if the part has no text."""
    text = _object(part).get("text")
    return text if isinstance(text, str) else ""


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
