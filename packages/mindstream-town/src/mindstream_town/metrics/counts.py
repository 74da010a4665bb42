"""How often residents reflect and talk, and what models are asked for."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from mindstream.log.events import ModelCalled, Reflected
from mindstream_town.inspect.history import History


@dataclass(frozen=True)
class Counts:
    """What happens how often.

    Attributes:
        days: of the town, as far as it has lived.
        reflections: of each resident, by name. talks: conversations.
        calls: of models, by prompt.
    """

    days: float
    reflections: dict[str, int]
    talks: int
    calls: dict[str, int]

    @property
    def reflections_a_day(self) -> float:
        """Reflections per resident and day."""
        of_all = len(self.reflections) * self.days
        return sum(self.reflections.values()) / of_all if of_all else 0.0

    @property
    def talks_a_day(self) -> float:
        """Conversations of the whole town in a day."""
        return self.talks / self.days if self.days else 0.0


def count_events(history: History) -> Counts:
    """Count reflections, conversations and models' calls."""
    calls: Counter[str] = Counter()
    for rows in history.rows.values():
        calls.update(row.event.prompt for row in rows if isinstance(row.event, ModelCalled))
    return Counts(
        (history.step + 1) / history.setting.profile.a_day,
        {name: sum(1 for _ in history.events(name, Reflected)) for name in history.names},
        sum(1 for _ in history.talks()),
        dict(sorted(calls.items())),
    )
