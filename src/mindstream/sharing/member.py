"""An agent's place in a pool: what any mind is handed to take part, by one argument."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mindstream.errors import InputError
from mindstream.memory.recall.exemplars import Example
from mindstream.models.roles import AnyModels, open_models
from mindstream.sharing.admission import Pair, offer
from mindstream.sharing.events import ExemplarJudged
from mindstream.sharing.exemplar import Exemplar
from mindstream.sharing.pool import Pool
from mindstream.sharing.shots import TOKENS, render_shot, shots


@dataclass(frozen=True)
class Member:
    """An agent of a pool; as `exemplars=` any mind, planner or life takes it.

    Attributes:
        agent: under whose name it reads and writes; model: who answers for it.
        scorer: the model that grades what it offers: a model, its name, or `Models` (role `scorer`); None: it only
            reads.
        private: what it offers nobody else reads until it is shared (`Pool.release`).
        render: how an exemplar is shown.
    """

    pool: Pool
    agent: str
    model: str = ""
    scorer: AnyModels | None = None
    private: bool = False
    tokens: int = TOKENS
    render: Callable[[Exemplar], str] = render_shot

    async def examples(self, query: str, k: int = 3) -> list[Example]:
        """Return shots for a query, best first, that fit whole into the tokens."""
        kept = shots(await self.pool.recall(query, k, reader=self.agent), self.tokens)
        return [Example(self.render(each), each.id, self.pool.is_strangers(each.id)) for each in kept]

    async def offer(self, query: str, answer: str, shown: Sequence[Example], *, asked_by: str = "") -> ExemplarJudged:
        """Hand in what was answered after these were shown: it is drawn from them.

        Raises:
            InputError: it has no scorer.
            SettingsError: the scorer is neither a model nor the name of one.
        """
        if self.scorer is None:
            raise InputError(f"{self.agent!r} only reads: nobody grades what it offers (`Member(…, scorer=…)`)")
        pair = Pair(query, answer, self.model, asked_by, tuple(each.id for each in shown), self.private)
        async with open_models(self.scorer) as models:
            return await offer(self.pool, pair, self.agent, models.of("scorer"))

    async def helped(self, shown: Sequence[Example], value: float, query: str = "") -> None:
        """Tell how good the answer was, from 0 to 1, that these stood before.

        Args:
            query: what was asked; where it comes again, what helped with it then counts more than what helps mostly.
        """
        await self.pool.helped([each.id for each in shown], value, self.agent, query)


def plan_shot(exemplar: Exemplar) -> str:
    """Show an exemplar whose answer is a plan as a planner reads them."""
    return f"Question: {exemplar.query}\n{exemplar.answer}"
