"""Offer answers of a conversation or run to a pool, with the user's permission; they are private until the user shares
them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from mindstream.errors import InputError, MindstreamError
from mindstream.foreign_code import describe
from mindstream.memory.recall.exemplars import Example
from mindstream.models.model import Model
from mindstream.sharing.member import Member

REMEMBERED = 50
"""Number of questions for which the shown exemplars are remembered."""


@dataclass
class Offering:
    """A member's offers. As `exemplars=` it returns what the pool finds, and remembers it for the offer.

    Attributes:
        scorer: the model that grades; None: not known yet.
    """

    member: Member
    scorer: Model | None = None
    _shown: dict[str, tuple[Example, ...]] = field(default_factory=dict)

    async def examples(self, query: str, k: int) -> Sequence[Example]:
        """Return exemplars for a question, and remember them."""
        found = tuple(await self.member.examples(query, k))
        self._shown[query] = found
        for old in list(self._shown)[:-REMEMBERED]:
            del self._shown[old]
        return found

    async def offer(self, query: str, answer: str, shown: Sequence[Example] = ()) -> str:
        """Offer an answer as private; return the result in one line."""
        shown = shown or self._shown.get(query, ())
        pool = self.member.pool.name
        if any(each.foreign for each in shown):
            return f"not offered to {pool}: the prompt of the answer contained untrusted text"
        member = replace(self.member, scorer=self.scorer, private=True)
        try:
            judged = await member.offer(query, answer, shown)
        except (MindstreamError, TimeoutError) as error:
            return f"{pool} has not accepted it yet: {describe(error)}"
        if judged.verdict == "rejected":
            return f"{pool} rejected {judged.id}: {judged.reasons[0] if judged.reasons else 'it had too few points'}"
        return (
            f"{pool} admitted {judged.id}; it is private: mindstream pool share {pool} {judged.id} lets others read it"
        )


def offered_pool(pool: str, offer: str) -> str:
    """Return the pool to open: answers based on exemplars of one pool are not offered to another.

    Raises:
        InputError: two pools are named.
    """
    if pool and offer and pool != offer:
        raise InputError(f"--offer {offer!r}: answers based on exemplars of {pool!r} can be offered only to {pool!r}")
    return offer or pool
