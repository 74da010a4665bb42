"""Run the experiment of memory sharing with a user's settings: assign models to the agents, fill the pools stage by
stage, let agents answer with exemplars recalled from them, score the answers."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mindstream import chance
from mindstream.engines import Engine, open_engine
from mindstream.errors import InputError, ReplyInvalid
from mindstream.memory.store.record import normalised
from mindstream.models.embedders.embedder import Embedder, embedder
from mindstream.models.model import Model, estimate_tokens
from mindstream.models.prompt import speak
from mindstream.planning.estimate import Estimate, RoleEstimate, priced
from mindstream.private_files import make_private_folder
from mindstream.service.opening import answering
from mindstream.settings import Settings
from mindstream.sharing.admission import Pair, lay_in, offer
from mindstream.sharing.events import Form
from mindstream.sharing.exemplar import Exemplar, question_id, shots
from mindstream.sharing.grading import general_rubric
from mindstream.sharing.guarding import find_faults
from mindstream.sharing.pool import Pool
from mindstream.text.words import batches
from mindstream.together import together
from mindstream_evals.sharing.agents import AnswerByExample, Cast, Exchange, load_cast
from mindstream_evals.sharing.studies import (
    STAGES,
    Cell,
    CellAnswer,
    Design,
    Ledger,
    cells,
    rows,
    score_answers,
    write_blind,
)

OWNER = "experimenter"
AT_ONCE = 3
"""Maximum number of tests that are answered concurrently."""
Arm = tuple[str, Form, bool]
"""A pool, as a tuple:

- scope: the name of a domain; `single`: one pool for all domains; `none`: no pool.
- form: the form in which the exemplars are embedded (see `Form`).
- shuffled: whether the answers of the exemplars are exchanged at random (a control).
"""
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
        answered: called with the number of answered cells and the number of all cells. A cell is a test that one agent
            answers under one condition.
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
        """Return the unanswered cells, grouped by the pool that they recall from, the form of the exemplars, and
        whether the exemplars are shuffled."""
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
        """Answer the unanswered cells of one pool. Raise ModelError if a model is not available; earlier answers are
        stored."""
        arms = self.arms()
        self._left = sum(map(len, arms.values()))
        if arm[0] == "none":
            await self._answer_all(arms[arm], None, {})
        else:
            await self._answer_from(self.stock(*arm), arms[arm], folder)

    def stock(self, scope: str, form: Form, shuffled: bool = False) -> Stock:
        """Return the content of a pool: the pool of a domain, or the pool "single" of all agents.

        The pool "single" gets only the first exchanges of each agent, so that it is about as large as the pool of a
        domain.
        """
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
        """Offer an exchange to the pool for an agent; with `own_answers` the agent answers the question itself, except
        for a shuffled pool."""
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
        """Return an agent's answer to a query; its prompt shows these exemplars, the nearest last. Return "" if the
        reply is invalid."""
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
    """Return the first exchanges of an agent, without those that a pool refuses.

    Args:
        share: how many to return, as a share (0 to 1) of the exchanges that a pool can store.
    """
    sound = [each for each in exchanges if not find_faults(each.query, each.answer)]
    return sound[: round(len(sound) * share)]


RULES = "rules"
RUBRIC_TOKENS, GRADES_TOKENS = 600, 250
"""Approximate tokens of a rubric in a prompt, and of the grades in a reply."""
MEANING = "rules copy the nearest exemplar's answer: the scores measure recall alone, and are low without exemplars"


@dataclass(frozen=True)
class ExperimentSettings:
    """The agents, their models, and the files of an experiment.

    Attributes:
        data: folder of the user's own agents, or of the published question sets; None: the nine included agents.
        models: names of the models, which are assigned to the agents in turn.
        scorer: model that grades offered pairs; "": the first of `models`.
        ray: whether to answer from each pool in a Ray task, one task per processor at a time; needs `out`.
        blind: folder for unlabelled answers with and without exemplars.
        bert_model: model of BERTScore; "": no BERTScore.
    """

    design: Design
    agents: tuple[str, ...] = ()
    data: Path | None = None
    models: tuple[str, ...] = ()
    scorer: str = ""
    bert_model: str = ""
    blind: Path | None = None
    out: Path | None = None
    ray: bool = False


@dataclass(frozen=True)
class Report:
    """The result: the settings that the answers depend on (`how`), and the rows of the studies."""

    how: dict[str, Any]
    rows: tuple[dict[str, Any], ...]


async def run_experiment(settings: Settings, wish: ExperimentSettings, answered: Callable[[int, int], None]) -> Report:
    """Answer the missing tests, and score all answers.

    Raises:
        InputError: agents, a file or a folder cannot be used.
        ModelError: a model is not available; answers until then are in the file.
    """
    cast = load_cast(wish.agents, wish.data)
    if not any(each.tests for each in cast.agents):
        raise InputError(
            "no test is left: the question or the answer of each test also occurs in the pairs that agents put into"
            " the pools"
        )
    table, scorer = _who(settings, wish, cast)
    how = {
        "agents": table,
        "data": _digest_of(each.model_dump_json() for each in cast.agents),
        "embedder": settings.embedder,
        "scorer": scorer,
        "seed": wish.design.seed,
        "shots of the stream": wish.design.most,
    }
    how |= {"answers of the stream": "their own"} if wish.design.own_answers else {}
    if wish.ray and wish.out is None:
        raise InputError("--ray needs --out FILE.jsonl: workers store their answers next to that file")
    ledger = Ledger(wish.out, how)
    score_answers([], wish.bert_model)  # raises an error now if a package is missing
    async with _open(settings, wish, cast, ledger, answered) as experiment:
        with _pools_folder(wish) as folder:
            if wish.ray:
                await _run_as_tasks(settings, wish, how, experiment, folder)
            else:
                await experiment.run(folder)
    if wish.blind:
        how["blind pairs"] = write_blind(wish.blind, cast, wish.design, ledger.answers)
    how |= {"tests left out": cast.left_out, "offered": experiment.verdicts}
    how |= {RULES: MEANING} if RULES in table.values() else {}
    found = rows(wish.design, cast.agents, _score(cast, wish, ledger))
    return Report(how, tuple(found))


def _who(settings: Settings, wish: ExperimentSettings, cast: Cast) -> tuple[dict[str, str], str]:
    """Return the name of each agent's model, by agent, and the name of the scorer's model."""
    names = wish.models or (settings.model or RULES,)
    return {each.name: names[at % len(names)] for at, each in enumerate(cast.agents)}, wish.scorer or names[0]


@contextlib.asynccontextmanager
async def _open(
    settings: Settings,
    wish: ExperimentSettings,
    cast: Cast,
    ledger: Ledger,
    answered: Callable[[int, int], None] = lambda *_: None,
) -> AsyncIterator[Experiment]:
    table, scorer = _who(settings, wish, cast)
    roles = {f"agent {name}": model for name, model in table.items()} | {"scorer": scorer}
    asked = settings.model_copy(update={"model": RULES, "roles": roles})
    async with answering(asked) as models:
        answerers = {name: models.of(f"agent {name}") for name in table}
        yield Experiment(
            cast, wish.design, answerers, models.of("scorer"), embedder(settings.embedder), ledger, answered
        )


async def answer_arm(
    settings: Settings, wish: ExperimentSettings, how: dict[str, Any], arm: Arm, folder: Path
) -> dict[str, int]:
    """Answer the tests of one arm in a worker process; return the number of offered pairs by verdict."""
    ledger = Ledger(wish.out, how, "-".join(map(str, arm)))
    async with _open(settings, wish, load_cast(wish.agents, wish.data), ledger) as experiment:
        await experiment.answer(arm, folder)
    return experiment.verdicts


async def _run_as_tasks(
    settings: Settings, wish: ExperimentSettings, how: dict[str, Any], experiment: Experiment, folder: Path
) -> None:
    """Answer from each pool in a Ray task; merge the results when all tasks have ended or were stopped.

    Raises:
        InputError: the workers do not share the folder of `out`.
        ModelError: a model is not available.
    """
    wanted, arms = len(cells(wish.design, experiment.cast.agents)), experiment.arms()
    done = wanted - sum(map(len, arms.values()))
    experiment.answered(done, wanted)

    async def one(engine: Engine, arm: Arm) -> None:
        nonlocal done
        for verdict, n in (await engine.run(answer_arm, settings, wish, how, arm, folder)).items():
            experiment.verdicts[verdict] += n
        done += len(arms[arm])
        experiment.answered(done, wanted)

    try:
        async with open_engine(True) as engine:
            ended = await asyncio.gather(*(one(engine, arm) for arm in arms), return_exceptions=True)
    finally:
        experiment.ledger.take_in()
    if failed := next(filter(None, ended), None):
        raise failed
    if experiment.arms():
        raise InputError(f"{wish.out} lacks answers of workers: all machines of the cluster must share its folder")


@contextlib.contextmanager
def _pools_folder(wish: ExperimentSettings) -> Iterator[Path]:
    """Yield a folder for the pools of this design.

    The folder is next to the file of answers, and a resumed run uses it again. Without such a file (`out` is None) the
    folder is temporary.
    """
    if wish.out is None:
        with tempfile.TemporaryDirectory() as scratch:
            yield Path(scratch)
        return
    folder = wish.out.with_name(f"{wish.out.name}.pools") / _digest_of([repr(wish.design)])
    make_private_folder(folder)
    yield folder


def experiment_estimate(settings: Settings, wish: ExperimentSettings) -> Estimate:
    """Estimate the use of models of a whole experiment, for answers and grades, as if no answer were stored yet.

    Raises:
        InputError: agents cannot be read.
    """
    cast = load_cast(wish.agents, wish.data)
    names = wish.models or (settings.model or RULES,)
    wanted = cells(wish.design, cast.agents)
    scopes = {(cell.pool, cell.form, cell.control == "shuffled") for cell in wanted if cell.pool != "none"}
    asked, table = list[RoleEstimate](), dict[str, str]()
    offered, said = 0, 0
    for at, agent in enumerate(cast.agents):
        tests = sum(cell.agent == agent.name for cell in wanted)
        stream = len(agent.stream) * sum(1 / len(cast.domains) if pool == "single" else 1 for pool, *_ in scopes)
        own = stream * wish.design.own_answers
        role, texts = f"agent {agent.name}", [*agent.seeds, *agent.stream, *agent.tests]
        long = sum(estimate_tokens(f"{each.query}{each.answer}") for each in texts) // max(1, len(texts))
        calls = round(tests + own)
        asked.append(RoleEstimate(role, calls, calls * long * (1 + wish.design.most), calls * long))
        table[role] = names[at % len(names)]
        offered, said = offered + round(stream), said + round(stream * long)
    asked.append(RoleEstimate("scorer", offered, offered * RUBRIC_TOKENS + said, offered * GRADES_TOKENS))
    return priced(asked, table | {"scorer": wish.scorer or names[0]})


def _score(cast: Cast, wish: ExperimentSettings, ledger: Ledger) -> dict[Cell, dict[str, float]]:
    wanted = cells(wish.design, cast.agents)
    tests = {each.name: each.tests for each in cast.agents}
    answers = [ledger.answers[cell.key] for cell in wanted]
    pairs = [(answer.text, tests[cell.agent][cell.test].answer) for cell, answer in zip(wanted, answers, strict=True)]
    scores = score_answers(pairs, wish.bert_model)
    own = [_own_share(cell, answer) for cell, answer in zip(wanted, answers, strict=True)]
    return {cell: {**each, "own_exemplars": mine} for cell, each, mine in zip(wanted, scores, own, strict=True)}


def _own_share(cell: Cell, answer: CellAnswer) -> float:
    """Return the share of the shown exemplars that the agent itself wrote; 0 if none were shown."""
    return answer.shown.count(cell.agent) / len(answer.shown) if answer.shown else 0.0


def _digest_of(told: Iterable[str]) -> str:
    return hashlib.blake2b("\n".join(told).encode(), digest_size=8).hexdigest()


def split_shots(text: str) -> tuple[int, ...]:
    """Parse numbers of exemplars, such as 0,1,2,3; a repeated number counts once.

    Raises:
        InputError: a part is not a number of one or two digits.
    """
    parts: Sequence[str] = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isascii() and part.isdigit() and len(part) < 3 for part in parts):
        raise InputError(
            f"--shots: expected numbers of one or two digits separated by commas, such as 0,1,2,3, found {text[:40]!r}"
        )
    return tuple(dict.fromkeys(int(part) for part in parts))
