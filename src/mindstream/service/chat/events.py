"""What can happen to a talk that a chat page keeps, besides what can happen to any."""

from __future__ import annotations

from mindstream.log.declared import NoWords
from mindstream.log.events import Event


class Branched(Event):
    """A page shows another talk than the one that was heard: something was edited, or is to be answered again."""

    kind = "branched"
    session: NoWords[str]
    left: NoWords[tuple[str, ...]] = ()
    """Ids of the records of what was said in what is left: it is history."""
    taken_up: NoWords[tuple[str, ...]] = ()
    """Ids of those that had been left, and hold again."""


EVENTS: tuple[type[Event], ...] = (Branched,)
