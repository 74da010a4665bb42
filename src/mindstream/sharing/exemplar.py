"""Exemplars: prompts (recalled examples and a query) and their answers; the k-shot prompt (Gao 2024, 3.1.1, 3.2.2)."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from typing import TypeAlias

from mindstream.memory.store.record import normalised
from mindstream.models.model import estimate_tokens
from mindstream.sharing.events import ExemplarOffered, Form

MAX_EXAMPLE = 2_000
"""Maximum number of characters of an example's query, and of its answer, in a composed prompt; the query itself is
never cut."""


Exemplar: TypeAlias = ExemplarOffered
"""A pair and its origin: the event that offered it."""


def exemplar_id(pool: str, writer: str, query: str, answer: str) -> str:
    """Return the id of a writer's pair: the same words are one exemplar in every process."""
    return _digest(pool, writer, normalised(query), normalised(answer))


def pair_id(exemplar: Exemplar) -> str:
    """Return a digest that two pairs share if their normalised words are equal, whatever their writers."""
    return _digest(normalised(exemplar.query), normalised(exemplar.answer))


def question_id(query: str) -> str:
    """Return a digest of the normalised words of a question."""
    return _digest(normalised(query))


def _digest(*parts: str) -> str:
    joined = "\0".join(parts).encode(errors="replace")
    return base64.b32encode(hashlib.blake2b(joined, digest_size=15).digest()).decode().lower()


def embedded_text(query: str, answer: str, examples: Sequence[Exemplar], form: Form) -> str:
    """Return the embedded text of a pair: its query, preceded in the composed form by the pairs of its examples; or
    both.

    The examples' own examples are not included, so that texts do not nest (those of the published code do).
    """
    if form == "pair":
        return f"{query}\n{answer[:MAX_EXAMPLE]}"
    if form == "bare" or not examples:
        return query
    told = [f"{each.query[:MAX_EXAMPLE]}\n{each.answer[:MAX_EXAMPLE]}" for each in examples]
    return "\n\n".join([*told, query])


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
