"""A session of the OpenAI Agents SDK: items are returned unchanged, and their texts can be recalled.

await Runner.run(agent, "Hello!", session=MindstreamSession("monday", data="data", user="ann"))
"""

from __future__ import annotations

import asyncio
import copy
import json
from typing import TYPE_CHECKING, Any

from mindstream.adapters.loop import Data, Handle
from mindstream.adapters.storing import ALL, failures_logged, fit_text, memory_name, retain_each, session_name, storable
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import Record, RecordDraft
from mindstream.models.embedders.embedder import Embedder

if TYPE_CHECKING:
    from agents.memory import SessionSettings

    Item = Any


class MindstreamSession:
    """A conversation as an episode of a memory, with a record for each item. It implements the protocol `Session`.

    Args:
        session_id: the conversation; an existing conversation is continued.
        data: a folder, a database's URL, or a store.
        user: the owner of the memory, which holds all sessions of the user; None: the session has a separate memory.
        session_settings: settings with the default number of items for a run (`limit`).
        embed: an embedder, or its name; None: the embedder of the stored vectors.
    """

    def __init__(
        self,
        session_id: str,
        *,
        data: Data = "data",
        user: str | None = None,
        session_settings: SessionSettings | None = None,
        embed: Embedder | str | None = None,
    ) -> None:
        self.session_id, self.session_settings = session_id, session_settings
        self.handle = Handle(data, memory_name(session_id) if user is None else user, embed)
        self._episode, self._popping = session_name(session_id), asyncio.Lock()

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return the newest items, oldest first.

        Args:
            limit: maximum number of items; below 1: none. None: the limit of the session settings; without one, all
                items.
        """
        n = limit if limit is not None else getattr(self.session_settings, "limit", None)
        if n is not None and n <= 0:
            return []
        records = await self.handle.do(lambda memory: self._latest(memory, ALL if n is None else n))
        return [copy.deepcopy(each.data["item"]) for each in records]

    async def add_items(self, items: list[Any]) -> None:
        """Store items in one transaction. Failures are logged, so that the run continues."""
        drafts = [self._draft(item) for item in items]
        if drafts:
            with failures_logged("the conversation"):
                await self.handle.do(lambda memory: retain_each(memory, drafts))

    async def pop_item(self) -> Any | None:
        """Return the newest item; None: there is none. Forget the item, and the records derived only from the item."""

        async def pop(memory: Memory) -> Any | None:
            async with self._popping:
                for record in await self._latest(memory, 1):
                    await memory.forget(record.id)
                    return copy.deepcopy(record.data["item"])
            return None

        return await self.handle.do(pop)

    async def clear_session(self) -> None:
        """Forget the session, with the records that are derived only from it."""

        async def clear(memory: Memory) -> None:
            if await self._latest(memory, 1):
                await memory.forget(session=self._episode)

        await self.handle.do(clear)

    async def _latest(self, memory: Memory, n: int) -> list[Record]:
        return [each for each in await memory.latest("chat", n, episode=self._episode) if "item" in each.data]

    def _draft(self, item: Any) -> RecordDraft:
        plain = storable(item)  # a JSON copy that the caller cannot change
        plain = plain if isinstance(plain, dict) else {"content": plain}
        role = str(plain.get("role") or "")
        by = self.handle.user if role == "user" else role or str(plain.get("type") or "item")
        return RecordDraft(
            text=_words(plain),
            kind="chat",
            by=by,
            episode=self._episode,
            data={"by_user": role == "user", "item": plain},
        )


def _words(item: dict[str, Any]) -> str:
    """Return the text of an item for recall: a message's text, a call, a tool's result."""
    said = item.get("content") or item.get("output") or item.get("summary") or ""
    if isinstance(said, list):
        said = "\n".join(str(part.get("text") or "") for part in said if isinstance(part, dict))
    if item.get("name"):
        said = f"{item['name']}({item.get('arguments', '')})"
    words = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
    return fit_text(words, f"({item.get('type') or 'nothing'})")
