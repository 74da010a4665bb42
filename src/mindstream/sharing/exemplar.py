"""An exemplar: a prompt as it was put, recalled examples and a query together, and its answer (Gao 2024, 3.1.1)."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from typing import TypeAlias

from mindstream.memory.store.record import normalised
from mindstream.sharing.events import ExemplarOffered, Form

LONGEST_EXAMPLE = 2_000
"""So many characters of an example's query and answer stand in a composed prompt; the query itself is never cut."""


Exemplar: TypeAlias = ExemplarOffered
"""A pair, and where it comes from: the row that offered it."""


def exemplar_id(pool: str, writer: str, query: str, answer: str) -> str:
    """Return the id of a writer's pair: the same words twice are one exemplar, in every process."""
    return _digest(pool, writer, normalised(query), normalised(answer))


def pair_id(exemplar: Exemplar) -> str:
    """Return a short text that two pairs have alike where their words count as the same, whoever wrote them."""
    return _digest(normalised(exemplar.query), normalised(exemplar.answer))


def question_id(query: str) -> str:
    """Return a short text that a question has alike each time it is asked, and that has none of its words."""
    return _digest(normalised(query))


def _digest(*parts: str) -> str:
    joined = "\0".join(parts).encode(errors="replace")
    return base64.b32encode(hashlib.blake2b(joined, digest_size=15).digest()).decode().lower()


def embedded_text(query: str, answer: str, examples: Sequence[Exemplar], form: Form) -> str:
    """Return what of a pair is embedded: its query; before it in the composed form its examples' own pairs; or both.

    Only those: an example's prompt is not repeated, so that texts do not nest (the published code's do).
    """
    if form == "pair":
        return f"{query}\n{answer[:LONGEST_EXAMPLE]}"
    if form == "bare" or not examples:
        return query
    told = [f"{each.query[:LONGEST_EXAMPLE]}\n{each.answer[:LONGEST_EXAMPLE]}" for each in examples]
    return "\n\n".join([*told, query])
