"""An exemplar: a prompt (recalled examples and a query) and its answer (Gao 2024, 3.1.1)."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from typing import TypeAlias

from mindstream.memory.store.record import normalised
from mindstream.sharing.events import ExemplarOffered, Form

LONGEST_EXAMPLE = 2_000
"""Maximum number of characters of an example's query, and of its answer, in a composed prompt; the query itself is
never cut."""


Exemplar: TypeAlias = ExemplarOffered
"""A pair and its origin: the event that offered it."""


def exemplar_id(pool: str, writer: str, query: str, answer: str) -> str:
    """Return the id of a writer's pair: the same words are one exemplar in every process."""
    return _digest(pool, writer, normalised(query), normalised(answer))


def pair_id(exemplar: Exemplar) -> str:
    """Return a digest that two pairs share if their normalised words are equal, whoever wrote them."""
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
        return f"{query}\n{answer[:LONGEST_EXAMPLE]}"
    if form == "bare" or not examples:
        return query
    told = [f"{each.query[:LONGEST_EXAMPLE]}\n{each.answer[:LONGEST_EXAMPLE]}" for each in examples]
    return "\n\n".join([*told, query])
