"""A resident's stream: ranked as its town ranks, and what a recall does to memories is written with the step."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from mindstream.memory.memory import Memory
from mindstream.memory.recall.policies import Policy
from mindstream.memory.recall.recall import Recollection
from mindstream.memory.recall.touch import Touch
from mindstream.memory.store.record import Ids
from mindstream.memory.store.store import Revision
from mindstream.town.residents.ranking import ByRank


class ResidentMemory(Memory):
    """A stream whose recalls wait to be written until its resident's turn is."""

    policy: Policy | None = None
    _recalls: tuple[Touch, ...] = ()

    def begin_turn(self) -> None:
        """Let go of what this process keeps between writes: a turn is the same for one that has just begun."""
        self._recalls = ()
        self._lately.forget(self.key)
        self.ids = Ids(self.name, self.ids.seed)

    async def recall(self, query: str, k: int = 10, *, touch: bool = True, **asked: Any) -> Recollection:
        """Return the k records that answer best (see `Stream.recall`)."""
        policy = await self.policy.within(self) if isinstance(self.policy, ByRank) else self.policy
        found = await super().recall(query, k, touch=False, **({"policy": policy} | asked))
        if touch and found.touch is not None:
            self.touch_later(found.touch)
        return found

    def touch_later(self, touch: Touch) -> None:
        """Let a recall do to memories what it does, with the next turn that is written; each counts once."""
        if touch not in self._recalls:
            self._recalls += (touch,)

    async def take_touched(self, written: Callable[[], Awaitable[None]]) -> list[Revision]:
        """Return what the recalls since the last time do to memories, once all that came before is `written`."""
        recalls, self._recalls = self._recalls, ()
        if not recalls:
            return []
        await written()
        return await self.touched(recalls)
