"""Whether a source is trusted: its pairs are weighed together, since one alone says little (Wald's sequential test).

Each pair that the guard can measure (see guard) gives evidence for its source or against it. Nothing of a new source is
served before the evidence is for it; where it turns against it nothing is served any more, what was written before
included. The source of a pair is whoever asked: an attacker who may only talk is a source of its own.

A talker's pairs may fit their queries well, and carry what it is after (Dong 2025, MINJA): a name, a code, an address
that its answers bring up again and again. Where nobody else's do, they wait until another source's does, or a person
has looked.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from mindstream.sharing.events import ExemplarJudged

ENOUGH = 1.5
"""From so many log odds on, for a source, what it wrote is served."""
MOST = 2.0
"""So many log odds one pair gives at most, for or against."""
ORDER = -1.0
"""What a pair that gives orders weighs."""
ALLOWANCE = 0.5
"""What each measured pair gets in advance: honest ones are farther from what was laid in than that is from itself."""
TWICE = 2
"""A stranger needs so many measured pairs; what so many of its answers name, and nobody else's, is what it is after."""
UNFIT = -2.0
"""A pair whose own log odds are below that is not served, whoever wrote it."""


@dataclass
class Mentions:
    """Which names, codes and numbers stand in the answers of which sources."""

    by_source: dict[str, dict[str, set[str]]] = field(default_factory=dict)

    def add(self, source: str, pair: str, named: Iterable[str]) -> None:
        """Take in what an answer names; `pair` tells different pairs from one that was said twice."""
        for name in named:
            self.by_source.setdefault(name, {}).setdefault(source, set()).add(pair)

    def agenda(self, source: str, named: Iterable[str]) -> str:
        """Return what an answer names that others of its source name, too, and no other source does; "" for nothing."""
        for name in named:
            sources = self.by_source.get(name, {})
            if len(sources) == 1 and len(sources.get(source, ())) >= TWICE:
                return name
        return ""


@dataclass
class SourceRecord:
    """What is known of a source.

    Attributes:
        evidence: log odds that it is honest, from what could be measured.
        pairs: how many pairs were measured.
        by_person: what a person said; None: nobody looked.
    """

    evidence: float = 0.0
    pairs: int = 0
    by_person: bool | None = None

    def add(self, judged: ExemplarJudged) -> None:
        """Take a judged pair into account; honest evidence is bounded, so that no credit can be saved up."""
        if judged.orders:
            weight = ORDER
        elif judged.fit is None:
            return
        else:
            weight = min(MOST, max(-MOST, judged.fit + ALLOWANCE))
        self.pairs += 1
        self.evidence = min(self.evidence + weight, 3 * ENOUGH)

    def doubt(self, judged: ExemplarJudged, source: str) -> str:
        """Say why a pair of this source is not served; "" where nothing speaks against it."""
        if self.by_person is not None:
            return "" if self.by_person else f"a person said that {source!r} is not to be trusted"
        if judged.orders:
            return "it gives orders to whoever reads it"
        if judged.fit is not None and judged.fit < UNFIT:
            return f"its answer does not belong to its query (log odds {judged.fit:.1f})"
        if self.pairs and self.evidence < ENOUGH:
            known = f"the log odds of its {self.pairs} measured pairs are {self.evidence:.1f}"
            return f"{source!r} is not trusted yet: {known}, and {ENOUGH:g} are wanted"
        return ""
