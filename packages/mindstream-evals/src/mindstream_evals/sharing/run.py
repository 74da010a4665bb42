"""Run an experiment: fill the pools stage by stage, and let agents answer with exemplars recalled from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mindstream import chance
from mindstream.errors import ReplyInvalid
from mindstream.memory.store.record import normalised
from mindstream.models.ask import speak
from mindstream.models.embedders.embedder import Embedder
from mindstream.models.model import Model
from mindstream.sharing.admission import Pair, lay_in, offer
from mindstream.sharing.events import Form
from mindstream.sharing.exemplar import Exemplar, question_id, shots
from mindstream.sharing.grading import general_rubric
from mindstream.sharing.guarding import find_faults
from mindstream.sharing.pool import Pool
from mindstream.text.words import batches
from mindstream.together import together
from mindstream_evals.sharing.agents import AnswerByExample, Cast, Exchange
from mindstream_evals.sharing.studies import STAGES, Cell, CellAnswer, Design, Ledger, cells

OWNER = "experimenter"
AT_ONCE = 3
"""Number of agents that answer concurrently."""
Arm = tuple[str, Form, bool]
"""A pool: scope (a domain, `single`, or `none`), embedded form, and whether answers are exchanged at random."""
Told = list[tuple[str, Exchange]]
"""Pairs of an agent's name and an exchange."""


@dataclass(frozen=True)
class Stock:
    """The content of a pool.

    Attributes:
        scope: the domain, or `single` for all domains.
        seeds: initial exemplars; stream: exchanges offered later, in this order.
    """

    scope: str
    form: Form
    shuffled: bool
    seeds: Told
    stream: Told

    @property
    def name(self) -> str:
        """The name of the pool."""
        return "-".join([self.scope, self.form, *(["shuffled"] if self.shuffled else [])])

    def portion(self, stage: int) -> Told:
        """Return the exchanges that are offered in a stage (1 to STAGES)."""
        ends = [round(len(self.stream) * at / STAGES) for at in (stage - 1, stage)]
        return self.stream[ends[0] : ends[1]]


@dataclass
class Experiment:
    """Agents, their models, and the stored answers.

    Attributes:
        answered: called with the number of answered cells and the number of all cells.
        verdicts: number of offered pairs by verdict in this run.
    """

    cast: Cast
    design: Design
    answerers: Mapping[str, Model]
    scorer: Model
    embedder: Embedder
    ledger: Ledger
    answered: Callable[[int, int], None] = lambda _done, _all: None
    verdicts: dict[str, int] = field(default_factory=lambda: {"admitted": 0, "rejected": 0})

    def __post_init__(self) -> None:
        self._agents = {each.name: each for each in self.cast.agents}
        self._all = len(cells(self.design, self.cast.agents))

    def arms(self) -> dict[Arm, list[Cell]]:
        """Return the unanswered cells by the pool that they recall from."""
        found: dict[Arm, list[Cell]] = {}
        for cell in cells(self.design, self.cast.agents):
            if cell.key not in self.ledger.answers:
                scope = self._agents[cell.agent].domain if cell.pool == "domain" else cell.pool
                found.setdefault((scope, cell.form, cell.control == "shuffled"), []).append(cell)
        return found

    async def run(self, folder: Path) -> None:
        """Answer all unanswered cells; pools are created in `folder`, or continued if they exist there.

        Raises:
            ModelError: a model is not available; earlier answers are stored.
        """
        for arm in self.arms():
            await self.answer(arm, folder)

    async def answer(self, arm: Arm, folder: Path) -> None:
        """Answer the unanswered cells of one pool. Raises: see `run`."""
        arms = self.arms()
        self._left = sum(map(len, arms.values()))
        if arm[0] == "none":
            await self._answer_all(arms[arm], None, {})
        else:
            await self._answer_from(self.stock(*arm), arms[arm], folder)

    def stock(self, scope: str, form: Form, shuffled: bool = False) -> Stock:
        """Return the content of a pool. The single pool gets only the first exchanges of each agent, so that it is no
        larger than a domain pool."""
        seeds, stream = list[tuple[str, Exchange]](), list[tuple[str, Exchange]]()
        for agent in self.cast.agents:
            if scope in (agent.domain, "single"):
                share = len(self.cast.domains[agent.domain]) / len(self.cast.agents) if scope == "single" else 1
                seeds += [(agent.name, each) for each in _first(agent.seeds, share)]
                stream += [(agent.name, each) for each in _first(agent.stream, share)]
        stream = chance.sample(stream, len(stream), self.design.seed, "stream")
        if shuffled:
            seeds, stream = self._shuffle(seeds), self._shuffle(stream)
        return Stock(scope, form, shuffled, seeds, stream)

    def _shuffle(self, told: Told) -> Told:
        """Exchange the answers at random: each question gets the answer of another one."""
        order = chance.sample(range(len(told)), len(told), self.design.seed, "answers")
        taken = dict(zip(order, [*order[1:], *order[:1]], strict=True))
        return [
            (name, each.model_copy(update={"answer": told[taken[at]][1].answer}))
            for at, (name, each) in enumerate(told)
        ]

    async def _answer_from(self, stock: Stock, some: Sequence[Cell], folder: Path) -> None:
        async with Pool.open(folder, stock.name, embed=self.embedder, guarded=False) as pool:
            if not await pool.exists():
                await pool.create(stock.scope, OWNER, members=["*"], form=stock.form)
            rubric = self.cast.rubrics.get(stock.scope) or general_rubric(stock.scope)
            await pool.freeze_rubric(rubric, OWNER)
            whose = dict[str, str]()
            for agent in self._agents:
                laid = [Pair(each.query, each.answer) for name, each in stock.seeds if name == agent]
                await lay_in(pool, laid, OWNER)
                wrote = {(normalised(each.query), normalised(each.answer)) for each in laid}
                state = await pool.state()
                whose |= {
                    id_: agent
                    for id_, each in state.standings.items()
                    if (normalised(each.exemplar.query), normalised(each.exemplar.answer)) in wrote
                }
            for stage in range(1, max(cell.stage for cell in some) + 1):
                for agent, each in stock.portion(stage):
                    await self._offer(pool, stock, agent, each, whose)
                await pool.retriever.settle()
                await self._answer_all([cell for cell in some if cell.stage == stage], pool, whose)

    async def _offer(self, pool: Pool, stock: Stock, agent: str, exchange: Exchange, whose: dict[str, str]) -> None:
        """Offer an exchange to the pool for an agent; with `own_answers` the agent answers the question itself."""
        query, key = exchange.query, f"stream/{stock.name}/{agent}/{question_id(exchange.query)}"
        known = self.ledger.answers.get(key)
        if known is None:
            recalled = shots(await pool.recall(query, self.design.most, reader=agent))
            shown = tuple(each.id for each in recalled)
            known = CellAnswer(exchange.answer, "", shown)
            if self.design.own_answers and not stock.shuffled:
                known = CellAnswer(await self._say(agent, query, recalled), self.answerers[agent].name, shown)
                self.ledger.keep(key, known)
        if find_faults(query, known.text):
            self.verdicts["rejected"] += 1  # the pool cannot store this answer
            return
        served = pool.served(await pool.member_state(agent), agent)
        pair = Pair(query, known.text, known.model, examples=tuple(each for each in known.shown if each in served))
        judged = await offer(pool, pair, agent, self.scorer)
        self.verdicts[judged.verdict] += 1
        whose[judged.id] = agent

    async def _answer_all(self, some: Sequence[Cell], pool: Pool | None, whose: Mapping[str, str]) -> None:
        for batch in batches(some, AT_ONCE):
            await together(*(self._answer(cell, pool, whose) for cell in batch))

    async def _answer(self, cell: Cell, pool: Pool | None, whose: Mapping[str, str]) -> None:
        query = self._agents[cell.agent].tests[cell.test].query
        kept = shots(await self._examples(cell, query, pool) if pool else [])
        text = await self._say(cell.agent, query, kept)
        shown = tuple(whose.get(each.id, "") for each in kept)
        self.ledger.keep(cell.key, CellAnswer(text, self.answerers[cell.agent].name, shown))
        self._left -= 1
        self.answered(self._all - self._left, self._all)

    async def _say(self, agent: str, query: str, kept: Sequence[Exemplar]) -> str:
        """Return an agent's answer, after exemplars with the nearest last; "" if the reply is invalid."""
        nearest_last = tuple(Exchange(query=each.query, answer=each.answer) for each in reversed(kept))
        prompt = AnswerByExample(about=self._agents[agent].about, query=query, examples=nearest_last)
        try:
            return "".join([piece async for piece in speak(self.answerers[agent], prompt)]).strip()
        except ReplyInvalid:
            return ""

    async def _examples(self, cell: Cell, query: str, pool: Pool) -> list[Exemplar]:
        if cell.control != "random":
            return await pool.recall(query, cell.shots, reader=cell.agent)
        served = sorted(pool.served(await pool.member_state(cell.agent), cell.agent))
        drawn = chance.sample(served, cell.shots, self.design.seed, "random", cell.agent, cell.test)
        return [pool.known(id_).exemplar for id_ in drawn]


def _first(exchanges: Sequence[Exchange], share: float) -> list[Exchange]:
    """Return the first part (`share`) of an agent's exchanges, without those that a pool cannot store."""
    sound = [each for each in exchanges if not find_faults(each.query, each.answer)]
    return sound[: round(len(sound) * share)]
