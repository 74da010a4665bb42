"""A second, independent implementation of the decay rules in docs/memory.md, to compare with the first."""

from __future__ import annotations

from dataclasses import dataclass, field

from mindstream.clock import DAY_S, HOUR_S
from mindstream.memory.recall.recall import Touch


@dataclass
class Law:
    """The strength of records: [level, lasting, time] by id, without archived ones."""

    held: dict[str, list[float]] = field(default_factory=dict)
    forgotten: set[str] = field(default_factory=set)

    def recall(self, touch: Touch) -> None:
        for id_ in touch.returned:
            level, lasting, time = self.held[id_]
            interval = min(HOUR_S * 2**level, DAY_S)
            rises = not lasting and (level == 0 or touch.at - time > interval)
            self.held[id_] = [level + rises, lasting or level + rises >= 5, touch.at]
        self.fade([id_ for id_ in touch.passed_over if id_ in self.held], touch.at, 30 * DAY_S)

    def fade(self, ids: list[str], now: float, after: float) -> list[str]:
        for id_ in ids:
            level, lasting, time = self.held[id_]
            if not lasting and now - time > after:
                self.held[id_][0] = level - 1
        gone = [id_ for id_ in ids if self.held[id_][0] < 0]
        for id_ in gone:
            del self.held[id_]
        self.forgotten.update(gone)
        return gone
