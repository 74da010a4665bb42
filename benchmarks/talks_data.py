"""Read a file of conversations as messages and questions, and write a conversation as a mind does."""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mindstream.clock import ManualClock
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import RecordDraft, fitted_text
from mindstream.models.embedders.embedder import Embedder


@dataclass(frozen=True)
class Message:
    """What somebody said."""

    id: str
    session: str
    at: float
    by: str
    text: str
    by_user: bool


@dataclass(frozen=True)
class Question:
    """A question, and the messages that answer it."""

    text: str
    type: str
    evidence: frozenset[str]


@dataclass(frozen=True)
class Talk:
    """A conversation and the questions about it."""

    name: str
    messages: tuple[Message, ...]
    questions: tuple[Question, ...]


def read_talks(path: Path) -> list[Talk]:
    """Read a file of conversations; questions without evidence are left out."""
    return [_talk(found) for found in json.loads(path.read_text())]


def _talk(found: dict[str, Any]) -> Talk:
    messages = tuple(
        Message(
            each["id"], each["session"], datetime.fromisoformat(each["at"]).replace(tzinfo=UTC).timestamp(),
            each["by"], fitted_text(each["text"]), each["role"] == "user",
        )
        for each in found["messages"]
    )  # fmt: skip
    known = {message.id for message in messages}
    questions = (
        Question(each["text"], each["type"], frozenset(each["evidence"]) & known) for each in found["questions"]
    )
    return Talk(found["id"], messages, tuple(question for question in questions if question.evidence))


def joined(talks: Sequence[Talk]) -> Talk:
    """Return several conversations as one."""
    return Talk(
        "together",
        tuple(
            replace(message, id=f"{talk.name} {message.id}", session=f"{talk.name} {message.session}")
            for talk in talks
            for message in talk.messages
        ),
        tuple(
            replace(question, evidence=frozenset(f"{talk.name} {id_}" for id_ in question.evidence))
            for talk in talks
            for question in talk.questions
        ),
    )


@asynccontextmanager
async def stream_of(talk: Talk, embedder: Embedder) -> AsyncIterator[Memory]:
    """Write a conversation to a separate temporary stream."""
    with tempfile.TemporaryDirectory() as folder:
        async with Memory.open(folder, "talk", embed=embedder, clock=ManualClock(talk.messages[-1].at)) as stream:
            await stream.retain_all(
                [
                    RecordDraft(
                        text=message.text, kind="chat", by=message.by, episode=message.session, created=message.at,
                        data={"by_user": message.by_user, "message": message.id},
                    )
                    for message in talk.messages
                ]
            )  # fmt: skip
            await stream.recall("warm", 1, touch=False)
            yield stream
            await stream.close()
            await stream.store.close()
