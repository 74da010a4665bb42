"""What tools gave in a run that was broken off: the next run about the same goes on there, and calls nothing twice."""

from __future__ import annotations

from collections import defaultdict, deque

from mindstream.log.events import Observed, Thought, ToolCalled
from mindstream.memory.stream import Stream
from mindstream.models.model import Call

FRESH_S = 600.0
"""What a tool gave longer ago is asked for again."""
MOST = 1_000
"""So many rows of the log are looked through."""


class Calls:
    """What calls gave, each to be given once; a call that failed is made again."""

    def __init__(self) -> None:
        self._given: defaultdict[tuple[str, str], deque[str]] = defaultdict(deque)

    def add(self, tool: str, arguments: str, text: str) -> None:
        """Keep what a call gave."""
        self._given[tool, arguments].append(text)

    def given(self, call: Call) -> str | None:
        """Return what such a call gave, and keep it no longer; None where there was none."""
        texts = self._given.get((call.tool, call.arguments))
        return texts.popleft() if texts else None


def calls_since(stream: Stream, slot: str, seq: int) -> Calls:
    """Read the calls of a slot's runs since a row of the log; those of a run that came to an end are done with."""
    made: dict[str, ToolCalled] = {}
    calls, now = Calls(), stream.clock.now()
    for row in stream.store.events(stream.name, seq, ["tool_called", "observed", "thought"], MOST):
        match row.event:
            case Thought() if row.event.slot == slot:
                made, calls = {}, Calls()
            case ToolCalled() if row.event.slot == slot and row.event.id:
                made[row.event.id] = row.event
            case Observed() if row.event.slot == slot and not row.event.failed and now - row.at <= FRESH_S:
                if call := made.pop(row.event.id, None):
                    calls.add(call.tool, call.arguments, row.event.text)
    return calls
