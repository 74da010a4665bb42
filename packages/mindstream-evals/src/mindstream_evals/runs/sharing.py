"""Run the experiment of memory sharing with a user's settings: assign models to the agents, score the answers."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mindstream.engines import Engine, open_engine
from mindstream.errors import InputError
from mindstream.models.embedders.embedder import embedder
from mindstream.models.model import estimate_tokens
from mindstream.planning.estimate import Estimate, RoleEstimate, priced
from mindstream.private_files import make_private_folder
from mindstream.service.opening import answering
from mindstream.settings import Settings
from mindstream_evals.sharing.agents import Cast, load_cast
from mindstream_evals.sharing.run import Arm, Experiment
from mindstream_evals.sharing.studies import (
    Cell,
    CellAnswer,
    Design,
    Ledger,
    cells,
    rows,
    score_answers,
    write_blind,
)

RULES = "rules"
RUBRIC_TOKENS, GRADES_TOKENS = 600, 250
"""Approximate tokens of a rubric in a prompt, and of the grades in a reply."""
MEANING = "rules copy the nearest exemplar's answer: the scores measure recall alone, and are low without exemplars"


@dataclass(frozen=True)
class ExperimentSettings:
    """The agents, their models, and the files of an experiment.

    Attributes:
        data: folder of the user's own agents, or of the published question sets; None: the nine included agents.
        models: assigned to the agents in turn; scorer: model that grades offered pairs, "": the first of `models`.
        ray: answer from each pool in a Ray task, one per processor at a time; needs `out`.
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
        raise InputError("no test is left: each question or answer also occurs in a pool or in the stream")
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
    """Return the name of each agent's model, and of the scorer."""
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
    """Answer from one pool in a worker process; return the number of offered pairs by verdict."""
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
    """Yield a folder for the pools of this design, next to the file of answers, so that a resumed run reuses them."""
    if wish.out is None:
        with tempfile.TemporaryDirectory() as scratch:
            yield Path(scratch)
        return
    folder = wish.out.with_name(f"{wish.out.name}.pools") / _digest_of([repr(wish.design)])
    make_private_folder(folder)
    yield folder


def experiment_estimate(settings: Settings, wish: ExperimentSettings) -> Estimate:
    """Return the maximum use of models of a whole experiment: answers and grades.

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
    """Return the share of the shown exemplars that the agent itself wrote."""
    return answer.shown.count(cell.agent) / len(answer.shown) if answer.shown else 0.0


def _digest_of(told: Iterable[str]) -> str:
    return hashlib.blake2b("\n".join(told).encode(), digest_size=8).hexdigest()


def split_shots(text: str) -> tuple[int, ...]:
    """Parse numbers of exemplars, such as 0,1,2,3."""
    parts: Sequence[str] = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isascii() and part.isdigit() and len(part) < 3 for part in parts):
        raise InputError(f"--shots: expected numbers separated by commas, such as 0,1,2,3, found {text[:40]!r}")
    return tuple(dict.fromkeys(int(part) for part in parts))
