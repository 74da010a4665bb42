"""The k-shot prompt: exemplars joined in order, the query last (Gao 2024, 3.2.2)."""

from __future__ import annotations

from collections.abc import Sequence

from mindstream.sharing.exemplar import Exemplar
from mindstream.text.context import estimated_tokens

TOKENS = 1_500
"""So long the exemplars of a prompt are together."""


def shots(found: Sequence[Exemplar], tokens: int = TOKENS) -> tuple[list[Exemplar], list[Exemplar]]:
    """Part what was found, the best first, into what fits whole and what does not; a shot is never cut in two.

    One that is too long is left out, and a shorter one behind it may stay.
    """
    kept, left = list[Exemplar](), list[Exemplar]()
    for each in found:
        size = estimated_tokens(render_shot(each)) + 1
        fits = size <= tokens
        tokens -= size if fits else 0
        (kept if fits else left).append(each)
    return kept, left


def render_shot(exemplar: Exemplar) -> str:
    """Write an exemplar for a prompt, as data: where it goes it is fenced by the prompt's own template."""
    return f"Question: {exemplar.query}\nAnswer: {exemplar.answer}"


def kshot_text(found: Sequence[Exemplar], query: str) -> str:
    """Join exemplars, the best last and so next to the query, which ends it."""
    return "\n\n".join([*(render_shot(each) for each in reversed(found)), f"Question: {query}\nAnswer:"])
