"""The k-shot prompt: exemplars joined in order, the query last (Gao 2024, 3.2.2)."""

from __future__ import annotations

from collections.abc import Sequence

from mindstream.models.shorten import estimate_tokens
from mindstream.sharing.exemplar import Exemplar

TOKENS = 1_500
"""So long the exemplars of a prompt are together."""


def shots(found: Sequence[Exemplar], tokens: int = TOKENS) -> list[Exemplar]:
    """Return what fits whole of what was found, the best first; a shot is never cut in two.

    One that is too long is left out, and a shorter one behind it may stay.
    """
    kept = list[Exemplar]()
    for each in found:
        if (size := estimate_tokens(render_shot(each)) + 1) <= tokens:
            tokens -= size
            kept.append(each)
    return kept


def render_shot(exemplar: Exemplar) -> str:
    """Write an exemplar for a prompt, as data: where it goes it is fenced by the prompt's own template."""
    return f"Question: {exemplar.query}\nAnswer: {exemplar.answer}"


def kshot_text(found: Sequence[Exemplar], query: str) -> str:
    """Join exemplars, the best last and so next to the query, which ends it."""
    return "\n\n".join([*(render_shot(each) for each in reversed(found)), f"Question: {query}\nAnswer:"])
