"""Talks as frameworks keep them: a message is a record of the kind chat, its own form beside what it says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mindstream.adapters.keeping import fit_text, storable
from mindstream.log.events import Corrected, Remembered
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import Record, RecordDraft
from mindstream.memory.store.store import Entry, Revision

ALL = 2**31


@dataclass(frozen=True, slots=True)
class Message:
    """A message: who says what, and the form in which its framework has it."""

    by_user: bool
    role: str
    text: str
    form: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Talk:
    """A session of a memory.

    Attributes:
        framework: whose messages are meant; others that stand in the same session are not touched.
    """

    framework: str
    session: str

    async def read(self, memory: Memory) -> list[Any]:
        """Return the messages in their framework's form, oldest first."""
        return [record.data[self.framework] for record in await self._records(memory)]

    async def add(self, messages: Sequence[Message], memory: Memory) -> None:
        """Write messages down, in one commit."""
        await self._write(memory, messages, [])

    async def set(self, messages: Sequence[Message], memory: Memory) -> None:
        """Put messages in the place of those that are there, in one commit; the old ones go to the archive."""
        await self._write(memory, messages, await self._records(memory))

    async def _records(self, memory: Memory) -> list[Record]:
        now = memory.clock.now()
        found = await memory.store.latest(memory.key, ["chat"], ALL, now=now, episode=self.session)
        return [record for record in found if self.framework in record.data]

    async def _write(self, memory: Memory, messages: Sequence[Message], old: Sequence[Record]) -> None:
        records = await memory.build_records(
            [
                RecordDraft(
                    text=fit_text(each.text, f"[{each.role}]"),
                    kind="chat",
                    episode=self.session,
                    by=memory.name if each.by_user else each.role,
                    data={"by_user": each.by_user, self.framework: storable(each.form)},
                )
                for each in messages
            ]
        )
        event = Remembered(count=len(records), kinds={"chat": len(records)})
        entries = [Entry(event, records[0].by, tuple(records))] if records else []
        entries += [Entry(Corrected(old=each.id, new=""), self.framework) for each in old]
        now = memory.clock.now()
        revisions = [Revision(id=each.id, forgotten=now) for each in old]
        if entries:
            await memory.commit(*entries, revisions=revisions)
