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
"""Maximum number of characters of an example's query, and of an answer, in the text that is embedded for a pair. The
pair's own query is never cut."""


Exemplar: TypeAlias = ExemplarOffered
"""A pair of query and answer with its origin. The event by which the pair was offered is used as the exemplar."""


def exemplar_id(pool: str, writer: str, query: str, answer: str) -> str:
    """Return the id of a writer's pair in a pool; the same normalised words give the same id in every process."""
    return _digest(pool, writer, normalised(query), normalised(answer))


def pair_id(exemplar: Exemplar) -> str:
    """Return a digest of the normalised words of a pair; it does not depend on the writer."""
    return _digest(normalised(exemplar.query), normalised(exemplar.answer))


def question_id(query: str) -> str:
    """Return a digest of the normalised words of a question."""
    return _digest(normalised(query))


def _digest(*parts: str) -> str:
    joined = "\0".join(parts).encode(errors="replace")
    return base64.b32encode(hashlib.blake2b(joined, digest_size=15).digest()).decode().lower()


def embedded_text(query: str, answer: str, examples: Sequence[Exemplar], form: Form) -> str:
    """Return the text of a pair that is embedded.

    `bare`: the query. `pair`: query and answer. `composed`: the query, preceded by the query and answer of each of its
    examples. Examples that those examples had are not included (in the code of the paper they are).
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
    """Return the exemplars that fit completely into a number of tokens, in the given order; an exemplar is never cut.

    An exemplar that does not fit is skipped; a shorter one after it may still fit.
    """
    kept = list[Exemplar]()
    for each in found:
        if (size := estimate_tokens(render_shot(each)) + 1) <= tokens:
            tokens -= size
            kept.append(each)
    return kept


def render_shot(exemplar: Exemplar) -> str:
    """Format an exemplar for a prompt. Exemplars are untrusted data, so the prompt's template delimits them."""
    return f"Question: {exemplar.query}\nAnswer: {exemplar.answer}"


def kshot_text(found: Sequence[Exemplar], query: str) -> str:
    """Return a k-shot prompt: the exemplars in reverse order, so that the best is last, then the query."""
    return "\n\n".join([*(render_shot(each) for each in reversed(found)), f"Question: {query}\nAnswer:"])
