"""An agent's place in a pool: what any mind is handed to take part, by one argument."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from mindstream.models.model import Model
from mindstream.sharing.admission import Pair, offer
from mindstream.sharing.events import ExemplarJudged
from mindstream.sharing.exemplar import Exemplar
from mindstream.sharing.pool import Pool
from mindstream.sharing.shots import TOKENS, render_shot, shots


@dataclass
class Member:
    """An agent of a pool.

    Attributes:
        agent: under whose name it reads and writes; model: who answers for it.
        render: how an exemplar is shown.
        shown: the ids of what it was given last: its next answer is drawn from these.
    """

    pool: Pool
    agent: str
    model: str = ""
    tokens: int = TOKENS
    render: Callable[[Exemplar], str] = render_shot
    shown: tuple[str, ...] = field(default=(), init=False)
    _asked: str = field(default="", init=False)

    async def examples(self, query: str, k: int = 3) -> list[str]:
        """Return shots for a query, best first, that fit whole into the tokens."""
        self._asked = query
        kept, _ = shots(await self.pool.recall(query, k, reader=self.agent), self.tokens)
        self.shown = tuple(each.id for each in kept)
        return [self.render(each) for each in kept]

    async def offer(self, query: str, answer: str, scorer: Model, *, asked_by: str = "") -> ExemplarJudged:
        """Hand in what was answered after `examples`, with where it was drawn from."""
        pair = Pair(query, answer, model=self.model, asked_by=asked_by, examples=self.shown)
        return await offer(self.pool, pair, self.agent, scorer)

    async def helped(self, value: float) -> None:
        """Tell how good the answer was, from 0 to 1, that the last examples stood before."""
        await self.pool.helped(self.shown, value, self.agent, self._asked)


def plan_shot(exemplar: Exemplar) -> str:
    """Show an exemplar whose answer is a plan as a planner reads them."""
    return f"Question: {exemplar.query}\n{exemplar.answer}"
