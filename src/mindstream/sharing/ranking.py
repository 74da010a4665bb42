"""The interface of retrievers: a ranking policy that is notified of every admission, so that it can learn."""

from __future__ import annotations

from mindstream.memory.recall.policies import Cosine, Policy
from mindstream.sharing.exemplar import Exemplar
from mindstream.sharing.state import PoolState


class Retriever:
    """Rank all exemplars of a pool. This default ranks by cosine and learns nothing."""

    @property
    def policy(self) -> Policy:
        """The current ranking policy. It is read before each recall and must not wait."""
        return Cosine()

    @property
    def version(self) -> int:
        """The number of the version that ranks now; 0: untrained."""
        return 0

    async def catch_up(self, state: PoolState) -> None:
        """Take over what other processes have trained; called before each recall."""

    async def admitted(self, pair: Exemplar) -> None:
        """Note an exemplar that was admitted. What it raises is logged and has no other effect."""

    async def settle(self) -> None:
        """Wait until everything admitted has been learned, or cannot be."""

    async def close(self) -> None:
        """Stop. What has not been learned is learned by the next process that admits an exemplar."""
