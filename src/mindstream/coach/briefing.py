"""What the Talker was told last by its Reasoner."""

from __future__ import annotations

from mindstream.log.events import Thought
from mindstream.memory.memory import Memory
from mindstream.reasoners.reasoner import Briefing

LOOKED_BACK = 100
"""So many rows of the log are looked through for the last thought of a slot."""


async def briefing_of(stream: Memory, slot: str) -> Briefing:
    """Return what the Reasoner of a slot left the Talker when it last thought; empty where it has not."""
    last = await stream.store.last(stream.key, Thought.kind)
    rows = [] if last is None else [last]
    if last and not (isinstance(last.event, Thought) and last.event.slot == slot):
        rows = await stream.store.events(stream.key, max(0, last.seq - LOOKED_BACK), [Thought.kind])
    own = (row.event for row in reversed(rows) if isinstance(row.event, Thought) and row.event.slot == slot)
    thought = next(own, None)
    return Briefing(thought.stands, thought.ask, thought.offer, thought.care) if thought else Briefing()
