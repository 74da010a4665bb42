"""A memory service for Google's Agent Development Kit: each user of an app has a memory of conversations.

Runner(…, memory_service=MindstreamMemoryService("data"))
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.genai import types

from mindstream.adapters.loop import Data, Handle
from mindstream.adapters.storing import ALL, failures_logged, fit_text, memory_name, retain_each, session_name, storable
from mindstream.clock import format_iso
from mindstream.errors import InputError
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import Record, RecordDraft
from mindstream.models.embedders.embedder import Embedder

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.adk.sessions.session import Session

DELETED = "deleted of "
"""Prefix of a session's name. The episode with this name holds the ids of the session's deleted events, which must not
be stored again."""


class MindstreamMemoryService(BaseMemoryService):
    """Memory of conversations, searched by mindstream's recall. Each user of an app has a memory, named `app|user`.

    Args:
        data: a folder, a database's URL, or a store.
        k: maximum number of results of a search.
        floor: minimum certainty (0 to 1) that the results contain an answer; below it, there are no results.
        embed: an embedder, or its name; None: the embedder of the stored vectors.
    """

    def __init__(
        self,
        data: Data = "data",
        *,
        k: int = 10,
        floor: float = 0.0,
        embed: Embedder | str | None = None,
    ) -> None:
        self.data, self.k, self.floor, self.embed = data, k, floor, embed
        self._alone = asyncio.Lock()

    def handle(self, app_name: str, user_id: str) -> Handle:
        """Return the memory of an app's user.

        Raises:
            InputError: the app's name contains a `|`; the name of the memory would be ambiguous.
        """
        if "|" in app_name:
            raise InputError(f"an app's name must not contain |, found {app_name!r}")
        return Handle(self.data, memory_name(f"{app_name}|{user_id}"), self.embed)

    async def add_session_to_memory(self, session: Session) -> None:
        """Store the events of a session that are not stored yet."""
        await self._add(session.app_name, session.user_id, session.id, session.events)

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,  # noqa: ARG002
    ) -> None:
        """Store events that are not stored yet; `custom_metadata` is ignored."""
        await self._add(app_name, user_id, session_id or "", events)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store facts as notes; known facts are not stored again. Metadata is stored, but not searched."""
        drafts = [
            RecordDraft(
                text=text,
                kind="note",
                by=entry.author or "",
                data={"metadata": {**(custom_metadata or {}), **entry.custom_metadata}},  # type: ignore[dict-item]
            )
            for entry in memories
            if (text := _words(entry.content))
        ]
        if drafts:
            await self.handle(app_name, user_id).do(lambda memory: memory.retain_all(drafts))

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """Return the best answers from the conversations and facts of this app's user."""
        if not query.strip():
            return SearchMemoryResponse()
        found = await self.handle(app_name, user_id).do(
            lambda memory: memory.recall(query, self.k, kinds=["chat", "note", "thought", "dream"], floor=self.floor)
        )
        return SearchMemoryResponse(memories=[_entry(each.record) for each in found])

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Forget a memory by the id of its entry; adding its session later does not restore it."""

        async def delete(memory: Memory) -> None:
            async with self._alone:
                if (record := await memory.get(str(memory_id))) is None:
                    return
                # the event's id is stored first, so that a crash does not lose it
                if event := record.data.get("event"):
                    await memory.retain("[deleted]", "document", episode=_gone(record.episode), data={"event": event})
                await memory.forget(record.id)

        if memory_id:
            await self.handle(app_name, user_id).do(delete)

    async def _add(self, app: str, user: str, session_id: str, events: Sequence[Event]) -> None:
        session = session_name(session_id)

        async def add(memory: Memory) -> None:
            async with self._alone:
                there = await memory.latest("chat", ALL, episode=session)
                gone = await memory.latest("document", ALL, episode=_gone(session))
                known, drafts = {each.data.get("event") for each in (*there, *gone)}, list[RecordDraft]()
                for event in events:
                    text = _words(event.content)
                    if text and not event.partial and event.id not in known:
                        known.add(event.id)
                        drafts.append(_draft(event, text, user, session))
                if drafts:
                    await retain_each(memory, drafts)

        with failures_logged("the session"):
            await self.handle(app, user).do(add)


def _gone(session: str) -> str:
    return f"{DELETED}{session}"[:500]


def _draft(event: Event, text: str, user: str, session: str) -> RecordDraft:
    assert event.content is not None
    is_user = event.author == "user"
    content: Any = event.content.model_dump(mode="json", exclude_none=True)
    return RecordDraft(
        text=text,
        kind="chat",
        by=user if is_user else event.author,
        episode=session,
        created=event.timestamp,
        data={"event": event.id, "author": event.author, "by_user": is_user, "content": storable(content)},
    )


def _entry(record: Record) -> MemoryEntry:
    content = record.data.get("content") or {"parts": [{"text": record.text}], "role": "user"}
    metadata = record.data.get("metadata")
    return MemoryEntry(
        id=record.id,
        content=types.Content.model_validate(content),
        author=str(record.data.get("author") or record.by),
        timestamp=format_iso(record.created),
        custom_metadata=metadata if isinstance(metadata, dict) else {},
    )


def _words(content: types.Content | None) -> str:
    """Return the text of a content, without calls, pictures and thoughts."""
    parts = (content.parts if content else None) or []
    return fit_text(" ".join(part.text for part in parts if part.text and not part.thought))
