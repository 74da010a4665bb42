"""A memory service of Google's Agent Development Kit: conversations of an app's users, a memory each.

Runner(…, memory_service=MindstreamMemoryService("data"))
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.genai import types

from mindstream.adapters.keeping import fit_text, keep, retain_each, storable
from mindstream.adapters.loop import Handle
from mindstream.clock import format_iso
from mindstream.errors import InputError
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import Record, RecordDraft
from mindstream.memory.store.store import Store
from mindstream.models.embedders.embedder import Embedder

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.adk.sessions.session import Session

MOST = 1_000_000
DELETED = "deleted of "
"""What an event's id stands under that was deleted, beside the session's name: it is not to come back."""


class MindstreamMemoryService(BaseMemoryService):
    """What was said, found by mindstream's recall; each app's user has a memory, named `app|user`.

    Args:
        data: a folder, a database's URL, or a store.
        k: so many memories a search finds at most.
        floor: with less certainty (0 to 1) it finds none.
        embed: an embedder, or the name of one; None: the one that made the vectors of the memory.
    """

    def __init__(
        self,
        data: str | Path | Store = "data",
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
            InputError: the app's name has a `|`, so that it could be another app's user.
        """
        if "|" in app_name:
            raise InputError(f"an app's name has no | in it, not {app_name!r}")
        return Handle(self.data, f"{app_name}|{user_id}", self.embed)

    async def add_session_to_memory(self, session: Session) -> None:
        """Take in what of a session is not in memory yet."""
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
        """Take in events that are not in memory yet; `custom_metadata` is not heeded."""
        await self._add(app_name, user_id, session_id or "", events)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Take in facts as notes; one that is known already is not kept twice. Metadata is kept, and not searched."""
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
        """Return what answers best of what this app's user said, was told, or is known."""
        if not query.strip():
            return SearchMemoryResponse()
        found = await self.handle(app_name, user_id).do(
            lambda memory: memory.recall(query, self.k, kinds=["chat", "note", "thought", "dream"], floor=self.floor)
        )
        return SearchMemoryResponse(memories=[_entry(each.record) for each in found])

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Forget a memory for good, by the id of its entry; it does not come back with its session."""

        async def delete(memory: Memory) -> None:
            async with self._alone:
                if (record := await memory.get(str(memory_id))) is None:
                    return
                if event := record.data.get("event"):  # a mark first: whoever dies between has not lost it
                    await memory.retain("[deleted]", "document", episode=_gone(record.episode), data={"event": event})
                await memory.forget(record.id)

        if memory_id:
            await self.handle(app_name, user_id).do(delete)

    async def _add(self, app: str, user: str, session: str, events: Sequence[Event]) -> None:
        async def add(memory: Memory) -> None:
            async with self._alone:
                there = await memory.latest("chat", MOST, episode=session)
                gone = await memory.latest("document", MOST, episode=_gone(session))
                known, drafts = {each.data.get("event") for each in (*there, *gone)}, list[RecordDraft]()
                for event in events:
                    text = _words(event.content)
                    if text and not event.partial and event.id not in known:
                        known.add(event.id)
                        drafts.append(_draft(event, text, user, session))
                if drafts:
                    await retain_each(memory, drafts)

        await keep("the session", self.handle(app, user).do(add))


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
    """Return the words of what was said; nothing where it is a call, a picture or a thought."""
    parts = (content.parts if content else None) or []
    said = " ".join(part.text for part in parts if part.text and not part.thought)
    return fit_text(said)
