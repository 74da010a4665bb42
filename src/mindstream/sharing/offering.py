"""What a person lets be offered to a pool out of a talk or a run: shown to them, and private until they share it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from mindstream.errors import InputError, MindstreamError
from mindstream.foreign_code import describe
from mindstream.memory.recall.exemplars import Example
from mindstream.models.model import Model
from mindstream.sharing.member import Member

REMEMBERED = 50
"""For so many questions is it known which exemplars stood before them."""


@dataclass
class Offering:
    """A member's way to offer; as `exemplars=` it hands out what the pool finds, and knows what it was.

    Attributes:
        scorer: who grades; None: not known yet.
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
        """Offer an answer in private; return what came of it, in a line."""
        shown = shown or self._shown.get(query, ())
        pool = self.member.pool.name
        if any(each.foreign for each in shown):
            return f"not offered to {pool}: words of strangers stood before the answer"
        member = replace(self.member, scorer=self.scorer, private=True)
        try:
            judged = await member.offer(query, answer, shown)
        except (MindstreamError, TimeoutError) as error:
            return f"{pool} has not taken it yet: {describe(error)}"
        if judged.verdict == "rejected":
            return f"{pool} rejected {judged.id}: {judged.reasons[0] if judged.reasons else 'it had too few points'}"
        return (
            f"{pool} admitted {judged.id}; it is private: mindstream pool share {pool} {judged.id} lets others read it"
        )


def offered_pool(pool: str, offer: str) -> str:
    """Return the pool that is opened: what was shown out of one is not offered to another.

    Raises:
        InputError: two are named.
    """
    if pool and offer and pool != offer:
        raise InputError(
            f"--offer {offer!r}: answers that {pool!r} has stood before are offered to {pool!r} or to none"
        )
    return offer or pool
