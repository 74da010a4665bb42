"""The experiment of memory sharing with a person's settings: which models answer, and the scores of what they said."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mindstream.errors import InputError
from mindstream.models.embedders.named import embedder
from mindstream.service.opening import answering
from mindstream.settings import Settings
from mindstream.sharing.experiment.agents import Cast, load_cast
from mindstream.sharing.experiment.cells import Cell, CellAnswer, Ledger
from mindstream.sharing.experiment.run import Experiment
from mindstream.sharing.experiment.scores import score_answers
from mindstream.sharing.experiment.studies import Design, cells, rows

RULES = "rules"
MEANING = "rules copy the nearest exemplar's answer: what recall alone is worth, and nothing without an exemplar"


@dataclass(frozen=True)
class ExperimentSettings:
    """Who takes part, and where answers are kept.

    Attributes:
        data: a folder of one's own agents, or the published pairs.
        models: who answers, given to the agents in turn; scorer: who grades what streams in, "": the first of them.
        bert_model: by whom BERTScore is measured; "": it is not.
    """

    design: Design
    agents: tuple[str, ...] = ()
    data: Path | None = None
    models: tuple[str, ...] = ()
    scorer: str = ""
    bert_model: str = ""
    out: Path | None = None


@dataclass(frozen=True)
class Report:
    """What came of it: how it was done, and the rows of the studies."""

    how: dict[str, Any]
    rows: tuple[dict[str, Any], ...]


async def run_experiment(settings: Settings, wish: ExperimentSettings, answered: Callable[[int, int], None]) -> Report:
    """Answer what is not answered yet, and score all.

    Raises:
        InputError: agents, a file or a folder cannot be used.
        ModelError: a model cannot be had; what was answered is in the file.
    """
    cast = load_cast(wish.agents, wish.data)
    if not any(each.tests for each in cast.agents):
        raise InputError("no test is left: each question or answer stands in a pool or in what streams in")
    names = wish.models or (settings.model or RULES,)
    scorer = wish.scorer or names[0]
    table = {each.name: names[at % len(names)] for at, each in enumerate(cast.agents)}
    how = {
        "agents": table, "data": _digest(cast), "embedder": settings.embedder, "scorer": scorer,
        "seed": wish.design.seed, "shots of the stream": wish.design.most,
    }  # fmt: skip
    ledger = Ledger(wish.out, how)
    score_answers([], wish.bert_model)  # what is missing is missed before anything is answered
    roles = {f"agent {name}": model for name, model in table.items()} | {"scorer": scorer}
    asked = settings.model_copy(update={"model": RULES, "roles": roles})
    async with answering(asked) as models:
        answerers = {name: models.of(f"agent {name}") for name in table}
        experiment = Experiment(
            cast, wish.design, answerers, models.of("scorer"), embedder(settings.embedder), ledger, answered
        )
        with tempfile.TemporaryDirectory() as folder:
            await experiment.run(Path(folder))
    how |= {"tests left out": cast.left_out, "offered": experiment.verdicts}
    how |= {RULES: MEANING} if RULES in table.values() else {}
    found = rows(wish.design, cast.agents, _score(cast, wish, ledger))
    return Report(how, tuple(found))


def _score(cast: Cast, wish: ExperimentSettings, ledger: Ledger) -> dict[Cell, dict[str, float]]:
    wanted = cells(wish.design, cast.agents)
    tests = {each.name: each.tests for each in cast.agents}
    answers = [ledger.answers[cell.key] for cell in wanted]
    pairs = [(answer.text, tests[cell.agent][cell.test].answer) for cell, answer in zip(wanted, answers, strict=True)]
    scores = score_answers(pairs, wish.bert_model)
    own = [_own_share(cell, answer) for cell, answer in zip(wanted, answers, strict=True)]
    return {cell: {**each, "own_exemplars": mine} for cell, each, mine in zip(wanted, scores, own, strict=True)}


def _own_share(cell: Cell, answer: CellAnswer) -> float:
    """Return how many of the exemplars came from the agent itself."""
    return answer.shown.count(cell.agent) / len(answer.shown) if answer.shown else 0.0


def _digest(cast: Cast) -> str:
    told: Iterator[str] = (each.model_dump_json() for each in cast.agents)
    return hashlib.blake2b("\n".join(told).encode(), digest_size=8).hexdigest()


def split_shots(text: str) -> tuple[int, ...]:
    """Read how many shots are wanted, as 0,1,2,3."""
    parts: Sequence[str] = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isascii() and part.isdigit() and len(part) < 3 for part in parts):
        raise InputError(f"shots are numbers with commas between, as 0,1,2,3, and not {text[:40]!r}")
    return tuple(dict.fromkeys(int(part) for part in parts))
