"""The rule of FoldTurns: which turns they were, and what was called in them how often.

What was found and told stands in memory already, for M2's rule remembers it at once: said again in a fold, it would
come back as an echo of itself.
"""

from __future__ import annotations

import re
from collections import Counter

from mindstream.life.fold_turns import FoldTurns
from mindstream.life.rules.phrases import phrase
from mindstream.models.prompt import rule

TURN = re.compile(r"\A\D{0,10}(\d+)")
CALL = re.compile(r"^-> (\w+)\(", re.MULTILINE)


@rule(FoldTurns)
def fold_by_rules(ask: FoldTurns) -> str:
    """Count what was done."""
    numbers = [found[1] for text in ask.turns if (found := TURN.match(text))] or ["?"]
    counts = Counter(name for text in ask.turns for name in CALL.findall(text))
    done = ", ".join(f"{name} {count}" for name, count in counts.most_common()) or "…"
    return phrase("folded", ask.language, numbers[0], numbers[-1], done)
