"""Read Claude's data export: conversations.json, alone or in the ZIP archive.

A conversation is a list of messages. If the messages name their parents, they form branches, and only one branch is
imported: the one that the file marks as current, else that of the newest message.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from mindstream.service.importing.chatgpt import conversations
from mindstream.service.importing.items import Fields, Item, Tally, branch, objects, present
from mindstream.service.importing.reading import Source

SPOKEN = ("text", "voice_note")
"""Types of content blocks with words of the user or of Claude."""
PASTED = ("", "paste.txt", "pasted-text.txt")
"""Names of attachments that Claude makes from a long text that the user pastes."""
BY = {"human": "", "user": "", "assistant": "Claude"}


def read(source: Source, tally: Tally) -> Iterator[Item]:
    """Yield the messages of each conversation, in order."""
    for raw in conversations(source, tally):
        yield from _conversation(raw, tally)


def _conversation(raw: dict[str, Any], tally: Tally) -> Iterator[Item]:
    fields = Fields(raw, tally, "conversation.")
    episode, title, leaf = fields.name("uuid"), fields.name("name"), fields.name("current_leaf_message_uuid")
    began, messages = fields.moment("created_at"), fields.list("chat_messages")
    fields.lose_rest("only messages, name and dates are read")
    said = list(objects(messages, tally, "message"))
    chosen = _branch(said, leaf)
    for message in said:
        if chosen is None or str(message.get("uuid")) in chosen:
            item = _message(message, episode, title, tally)
            if item is not None:
                yield item if item.created is not None else replace(item, created=began)
        else:
            tally.lose("messages of other branches", message.get("text"), "another branch was chosen")


def _branch(messages: list[dict[str, Any]], leaf: str) -> set[str] | None:
    """Return the ids of the messages of the branch that ends at `leaf`.

    If no message has the id `leaf`, the branch ends at the newest message. Return None if no message names another
    message as its parent: then there are no branches.
    """
    parents = {str(each.get("uuid")): each.get("parent_message_uuid") for each in messages}
    if not any(isinstance(parent, str) and parent in parents for parent in parents.values()):
        return None
    at: object = leaf if leaf in parents else max(messages, key=lambda each: str(each.get("created_at"))).get("uuid")
    return set(branch(parents, at))


def _message(raw: dict[str, Any], episode: str, title: str, tally: Tally) -> Item | None:
    fields = Fields(raw, tally, "message.")
    role, blocks, whole = (
        fields.name("sender") or fields.name("role"),
        fields.list("content"),
        fields.text("text", "content"),
    )
    said: list[str] = []
    for block in objects(blocks, tally, "message.content"):
        text = block.get("text")
        if block.get("type") in SPOKEN and isinstance(text, str):
            said.append(text)
        else:
            tally.lose(f"message.content: {block.get('type')}", block, "not part of the conversation")
    blocks_said = len(said)
    attached = [
        each for name in ("files", "attachments") for each in objects(fields.list(name), tally, f"message.{name}")
    ]
    files = [str(each["file_name"]) for each in attached if each.get("file_name")]
    for each in attached:
        if isinstance(pasted := each.get("extracted_content"), str) and str(each.get("file_name") or "") in PASTED:
            said.append(pasted)
        elif each.get("extracted_content"):
            tally.lose("message.attachments.extracted_content", each["extracted_content"], "files are not read")
    created, id_ = fields.moment("created_at"), fields.name("uuid")
    fields.lose_rest("only about how the message was shown")
    spoken = "\n".join(said[:blocks_said]).strip() or whole.strip()
    words = "\n".join(filter(None, (spoken, *said[blocks_said:]))).strip()
    if role not in BY or not words:
        tally.lose(f"messages: {role}", raw.get("text") or raw, "no text")
        return None
    data = present(role="user" if not BY[role] else role, title=title, files=[*files])
    return Item(text=words, source_id=id_, kind="observation", created=created, by=BY[role], episode=episode, data=data)
