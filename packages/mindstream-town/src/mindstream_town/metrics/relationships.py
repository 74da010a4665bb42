"""Who knows whom: the network of a town and its density over time (Park 2023, 7.1.2)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

from mindstream_town.events import Talked
from mindstream_town.inspect.history import History


@dataclass(frozen=True)
class Acquaintance:
    """The pairs of residents who can each say from the own stream who the other is, since which step."""

    residents: int
    since: dict[tuple[str, str], int]

    def density(self, step: int) -> float:
        """Return 2|E| / (|V| (|V| - 1)) after a step."""
        pairs = self.residents * (self.residents - 1)
        return 2 * sum(each <= step for each in self.since.values()) / pairs if pairs else 0.0

    def curve(self, steps: Iterable[int]) -> list[float]:
        """Return the density after each of some steps."""
        return [self.density(step) for step in steps]


def trace_acquaintance(history: History) -> Acquaintance:
    """Find who knows whom: an edge where both do, each by a first memory that names the other, or by a talk."""
    known: dict[tuple[str, str], int] = {}
    for name in history.names:
        for record in history.records[name]:
            if record.kind == "note" and not record.evidence:
                step = history.step_of(record.created)
                for other in history.names:
                    if other != name and other in record.text:
                        known.setdefault((name, other), step)
        for step, talk in history.events(name, Talked):
            pair = name, talk.partner
            known[pair] = min(step, known.get(pair, step))
    edges = {
        (a, b): max(known[a, b], known[b, a])
        for a, b in combinations(history.names, 2)
        if (a, b) in known and (b, a) in known
    }
    return Acquaintance(len(history.names), edges)
