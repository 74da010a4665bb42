"""The sleeps of a stream, as its log has them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mindstream.log.events import Logged, Slept
from mindstream.memory.store.store import read_log

if TYPE_CHECKING:
    from mindstream.memory.stream import Stream


@dataclass(frozen=True, slots=True)
class PastNight:
    """A sleep that was: the row in which it began to fade, and the row of each step, in order."""

    begun: int
    steps: dict[str, Logged] = field(default_factory=dict)

    def step(self, name: str) -> Slept | None:
        """Return what was told of a step; None: it was not done."""
        row = self.steps.get(name)
        return row.event if row is not None and isinstance(row.event, Slept) else None


async def read_nights(stream: Stream) -> list[PastNight]:
    """Return all sleeps, oldest first, those that were undone too."""
    nights: dict[int, PastNight] = {}
    async for row in read_log(stream.store, stream.key, kinds=[Slept.kind]):
        if isinstance(row.event, Slept):
            begun = row.seq if row.event.step == "fading" else row.event.cause
            nights.setdefault(begun, PastNight(begun)).steps[row.event.step] = row
    return [night for night in nights.values() if "fading" in night.steps]
