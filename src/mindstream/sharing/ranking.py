"""Who ranks a pool: a policy for recall, told of every admission so that it can learn from it."""

from __future__ import annotations

from typing import Protocol

from mindstream.memory.policies import Cosine, Policy
from mindstream.sharing.exemplar import Exemplar


class Retriever(Protocol):
    """Ranks the exemplars of a pool, all of them."""

    @property
    def policy(self) -> Policy:
        """How exemplars are ranked now; asked for before each recall, and never waited for."""

    async def admitted(self, pair: Exemplar) -> None:
        """Take notice of an exemplar that was admitted; what it raises is logged, and nothing else."""


class Untrained:
    """Cosine, as it comes."""

    policy: Policy = Cosine()

    async def admitted(self, pair: Exemplar) -> None:
        """Nothing is learned."""
