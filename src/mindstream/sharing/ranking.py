"""Who ranks a pool: a policy for recall, told of every admission so that it can learn from it."""

from __future__ import annotations

from mindstream.memory.recall.policies import Cosine, Policy
from mindstream.sharing.exemplar import Exemplar
from mindstream.sharing.state import PoolState


class Retriever:
    """Ranks the exemplars of a pool, all of them; as it is here by the cosine, and nothing is learned."""

    @property
    def policy(self) -> Policy:
        """How exemplars are ranked now; asked for before each recall, and never waited for."""
        return Cosine()

    @property
    def version(self) -> int:
        """The number of the version that ranks now; 0: untrained."""
        return 0

    async def catch_up(self, state: PoolState) -> None:
        """Take over what other processes have learned; called before each recall."""

    async def admitted(self, pair: Exemplar) -> None:
        """Take notice of an exemplar that was admitted; what it raises is logged, and nothing else."""

    async def settle(self) -> None:
        """Wait until all that was admitted is learned from, or cannot be."""

    async def close(self) -> None:
        """Leave off; what was not learned yet is learned by whoever admits next."""
