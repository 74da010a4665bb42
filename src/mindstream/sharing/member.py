"""An agent's membership in a pool: the one argument by which a mind, planner or life takes part."""

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
    """An agent of a pool; minds, planners and lives take it as `exemplars=`.

    Attributes:
        agent: the name under which it reads and writes; model: the model that answers for it.
        scorer: the model that grades its offers: a model, its name, or `Models` (role `scorer`); None: it only reads.
        private: only it can read its offers until they are shared (`Pool.release`).
        render: formats an exemplar.
    """

    pool: Pool
    agent: str
    model: str = ""
    scorer: AnyModels | None = None
    private: bool = False
    tokens: int = TOKENS
    render: Callable[[Exemplar], str] = render_shot

    async def examples(self, query: str, k: int = 3) -> list[Example]:
        """Return shots for a query, best first, that fit completely into the tokens."""
        kept = shots(await self.pool.recall(query, k, reader=self.agent), self.tokens)
        return [Example(self.render(each), each.id, self.pool.is_strangers(each.id)) for each in kept]

    async def offer(self, query: str, answer: str, shown: Sequence[Example], *, asked_by: str = "") -> ExemplarJudged:
        """Offer an answer, as derived from the examples that were shown.

        Raises:
            InputError: it has no scorer.
            SettingsError: the scorer is neither a model nor the name of one.
        """
        if self.scorer is None:
            raise InputError(f"{self.agent!r} only reads: no scorer grades its offers (`Member(…, scorer=…)`)")
        pair = Pair(query, answer, self.model, asked_by, tuple(each.id for each in shown), self.private)
        async with open_models(self.scorer) as models:
            return await offer(self.pool, pair, self.agent, models.of("scorer"))

    async def helped(self, shown: Sequence[Example], value: float, query: str = "") -> None:
        """Record how good the answer was, from 0 to 1, that had these examples in its prompt.

        Args:
            query: the question; if it comes again, what helped with it counts more than what usually helps.
        """
        await self.pool.helped([each.id for each in shown], value, self.agent, query)


def plan_shot(exemplar: Exemplar) -> str:
    """Format an exemplar whose answer is a plan, for planners."""
    return f"Question: {exemplar.query}\n{exemplar.answer}"
