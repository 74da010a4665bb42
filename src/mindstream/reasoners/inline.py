"""Reasoners in step with whoever calls: nothing goes on beside, the order is the caller's (a town and its clock)."""

from __future__ import annotations

from collections.abc import Sequence

from mindstream.log.events import Event, Logged
from mindstream.memory.record import Record
from mindstream.memory.store import Entry
from mindstream.reasoners.run import Run
from mindstream.reasoners.runner import Runner
from mindstream.reasoners.trigger import Turn


class Inline(Runner):
    """Runs reasoners at once, one after the other in the order in which they were added.

    The same triggers, occasions, commits and bounded tries as beside a conversation; what a process that died has not
    finished is taken up by `catch_up`. A run that fails is tried again at once, and is set aside in the end.
    """

    async def happen(
        self, event: Event, records: Sequence[Record] = (), *, by: str = "", phase: str = ""
    ) -> list[Logged]:
        """Write down that something happens, and let whoever it wakes think about it; return what was logged of it.

        Args:
            records: what is remembered of it (see Stream.build_records).
            by: who did it; the stream itself where nobody is named.
            phase: what triggers may ask for.
        """
        stream = self.stream
        turn = Turn(await stream.store.count(stream.name, event.kind) + 1, phase, phase, event.kind)
        entry = Entry(event, by or stream.name, tuple(records))
        logged = await stream.commit(entry, wake=self.claims(turn))
        await self.catch_up()
        return logged

    async def catch_up(self) -> None:
        """Think about all that is open, until nothing is."""
        for slot in self._slots.values():
            while work := await self._take(slot, self._one_by_one(await self._ours(slot))):
                await self._think(slot, Run(work))
