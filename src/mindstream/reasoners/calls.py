"""What tools gave in a run that was broken off: the next run about the same goes on there, and calls nothing twice."""

from __future__ import annotations

from collections import defaultdict, deque

from mindstream.log.events import Observed, Thought, ToolCalled
from mindstream.memory.memory import Memory
from mindstream.models.model import Call
from mindstream.tools.call import ForeignText

FRESH_S = 600.0
"""What a tool gave longer ago is asked for again."""
MOST = 1_000
"""So many rows of the log are looked through."""


class Calls:
    """What the calls of a slot's runs gave since a row of the log (None: there were none), each to be given once.

    A call that failed is made again. Those of a run that came to an end are done with.
    """

    def __init__(self, memory: Memory, slot: str, since: int | None) -> None:
        self._memory, self._slot, self._since = memory, slot, since
        self._given: defaultdict[tuple[str, str], deque[str]] | None = None

    async def recorded_result(self, call: Call) -> str | None:
        """Return what such a call gave, and keep it no longer; None where there was none."""
        if self._given is None:
            self._given = await self._read()
        texts = self._given.get((call.tool, call.arguments))
        return texts.popleft() if texts else None

    async def _read(self) -> defaultdict[tuple[str, str], deque[str]]:
        made: dict[str, ToolCalled] = {}
        given: defaultdict[tuple[str, str], deque[str]] = defaultdict(deque)
        if self._since is None:
            return given
        stream, slot, now = self._memory, self._slot, self._memory.clock.now()
        for row in await stream.store.events(stream.key, self._since, ["tool_called", "observed", "thought"], MOST):
            match row.event:
                case Thought() if row.event.slot == slot:
                    made.clear()
                    given.clear()
                case ToolCalled() if row.event.slot == slot and row.event.id:
                    made[row.event.id] = row.event
                case Observed() if row.event.slot == slot and not row.event.failed and now - row.at <= FRESH_S:
                    if call := made.pop(row.event.id, None):
                        text = ForeignText(row.event.text) if row.event.foreign else row.event.text
                        given[call.tool, call.arguments].append(text)
        return given
