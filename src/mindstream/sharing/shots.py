"""The k-shot prompt: exemplars in order, the query last (Gao 2024, 3.2.2)."""

from __future__ import annotations

from collections.abc import Sequence

from mindstream.models.shorten import estimate_tokens
from mindstream.sharing.exemplar import Exemplar

TOKENS = 1_500
"""Maximum number of tokens of all exemplars in a prompt."""


def shots(found: Sequence[Exemplar], tokens: int = TOKENS) -> list[Exemplar]:
    """Return the exemplars that fit completely, best first; an exemplar is never cut.

    One that is too long is skipped; a shorter one after it may still fit.
    """
    kept = list[Exemplar]()
    for each in found:
        if (size := estimate_tokens(render_shot(each)) + 1) <= tokens:
            tokens -= size
            kept.append(each)
    return kept


def render_shot(exemplar: Exemplar) -> str:
    """Format an exemplar for a prompt. It is untrusted data: the prompt's template delimits it."""
    return f"Question: {exemplar.query}\nAnswer: {exemplar.answer}"


def kshot_text(found: Sequence[Exemplar], query: str) -> str:
    """Join exemplars, the best one last, next to the query that ends the prompt."""
    return "\n\n".join([*(render_shot(each) for each in reversed(found)), f"Question: {query}\nAnswer:"])
