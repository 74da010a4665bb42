"""The rule of FoldTurns: of each turn what was said at its end, and what was remembered in it."""

from __future__ import annotations

import re

from mindstream.life.fold_turns import FoldTurns
from mindstream.models.prompt import rule

LONGEST, OF_A_TURN = 1_500, 240
TURN = re.compile(r"Turn (\d+)\n")


@rule(FoldTurns)
def fold_by_rules(ask: FoldTurns) -> str:
    """Keep the last words of each turn, the newest first to stay where there is no room for all."""
    lines: list[str] = []
    for text in reversed(ask.turns):
        number = TURN.match(text)
        said = [line for line in text.splitlines()[1:] if line.strip() and not line.startswith(("->", "<"))]
        line = f"{number[1] if number else '?'}: {said[-1][:OF_A_TURN] if said else '…'}"
        if sum(map(len, lines)) + len(line) > LONGEST:
            break
        lines.insert(0, line)
    return "\n".join(lines) or "…"
