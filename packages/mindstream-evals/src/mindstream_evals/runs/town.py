"""Evaluate a town in a data folder with the models of a user's settings; results are stored next to the town."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from mindstream_town.formats.files import write_text
from mindstream_town.inspect.estimate import Counting, cost_usd
from mindstream_town.inspect.history import read_history
from mindstream_town.inspect.lookup import find_resident, format_time
from mindstream_town.opened import counting, find_past_step, look_in
from mindstream_town.residents.interview import open_interview

from mindstream.errors import InputError
from mindstream.evaluation_cache import EvaluationCache
from mindstream.models.roles import Models
from mindstream.models.rules import Rules
from mindstream.private_files import make_private_folder
from mindstream.service.opening import answering
from mindstream.settings import Settings
from mindstream_evals.runs.memory import Spent
from mindstream_evals.town.evaluate import (
    JUDGE,
    Design,
    Evaluation,
    Judged,
    Pair,
    count_asked,
    judged_by_people,
    pairs_of,
)
from mindstream_evals.town.questions import gather_facts, load_questions, write_answers
from mindstream_evals.town.report import Findings, build_page, report

NOBODY_JUDGES = (
    "no model judges: name one (--judge MODEL), or let people judge a page of pairs (--pairs-out"
    " pairs.html) and read their saved verdicts (--judged judged.csv)"
)
PersonAnswers = Mapping[tuple[str, str], str]


@dataclass(frozen=True)
class Wish:
    """The options of an evaluation.

    Attributes:
        at: time of the town as typed; "": its last step.
        questions_from: file of questions; None: the shipped questions.
        read_person: returns a person's answers; called with the residents' names and the questions' ids.
        verdicts: verdicts of people; empty: a model judges.
        out: file of the stored answers and verdicts; None: next to the town.
        pairs_out, answers_out: files to write.
    """

    design: Design = field(default_factory=Design)
    at: str = ""
    questions_from: Path | None = None
    read_person: Callable[[Sequence[str], Sequence[str]], PersonAnswers] = lambda *_: {}
    verdicts: tuple[tuple[str, float], ...] = ()
    out: Path | None = None
    pairs_out: Path | None = None
    answers_out: Path | None = None


@dataclass(frozen=True)
class Evaluated:
    """The result of an evaluation of a town's residents.

    Attributes:
        judged_by: name of the model that judged, `people`, or "" if nothing was judged.
        others: number of verdicts by people on pairs outside this comparison.
        unreadable: number of replies that could not be parsed.
    """

    town: str
    step: int
    time: str
    findings: Findings
    answered_by: str
    judged_by: str
    answers: int
    pairs: int
    judged: int
    others: int
    unreadable: int
    spent: Spent

    def as_json(self) -> dict[str, Any]:
        found = self.findings
        standings = [
            {key: value for key, value in asdict(each).items() if key != "rating"}
            | (
                {
                    "mu": each.rating.mu,
                    "sigma": each.rating.sigma,
                    "low": each.rating.interval[0],
                    "high": each.rating.interval[1],
                }
                if each.rating
                else {}
            )
            for each in found.standings
        ]
        return {
            "town": self.town,
            "step": self.step,
            "time": self.time,
            "answered_by": self.answered_by,
            "judged_by": self.judged_by,
            "answers": self.answers,
            "pairs": self.pairs,
            "judged": self.judged,
            "items": found.items,
            "conditions": standings,
            "kruskal_wallis": found.kruskal and asdict(found.kruskal),
            "dunn_holm": [asdict(each) for each in found.dunn],
            "agreed_when_turned": found.agreed,
            "first_preferred": found.first,
            "control_lost": found.control_lost,
            "unreadable": self.unreadable,
            "verdicts_of_other_pairs": self.others,
            "spent": asdict(self.spent),
        }


def with_judge(settings: Settings, judge: str) -> Settings:
    """Return settings with this model as judge; "": the judge is unchanged.

    If the settings name no default model, the default becomes the rules (for the residents).
    """
    named = {"model": settings.model or Rules.name}
    return settings.model_copy(update=named | ({"roles": {**settings.roles, JUDGE: judge}} if judge else {}))


def kept_in(settings: Settings, wish: Wish) -> Path:
    """Return the path of the stored answers and verdicts."""
    if wish.out:
        return wish.out
    if (folder := settings.data.folder) is None:
        make_private_folder(settings.data.beside)
        return settings.data.beside / "evaluation.jsonl"
    return folder.resolve().with_name(f"{folder.resolve().name}.evaluation.jsonl")


@contextlib.asynccontextmanager
async def open_evaluation(
    settings: Settings,
    wish: Wish,
    told: Callable[[int, int, str], None] = lambda *_: None,
    models: Models | None = None,
) -> AsyncIterator[tuple[Evaluation, Spent]]:
    """Open the town of the data folder for an evaluation. The evaluation adds only the log of its model calls.

    Args:
        models: models that the caller has opened; None: the models in the settings are opened.

    Raises:
        InputError: there is no town, the town has not reached the time `wish.at`, a resident is unknown, or a file
            cannot be used.
        SettingsError: a model cannot be used.
    """
    spent, ledger = Spent(), EvaluationCache(kept_in(settings, wish))
    questions = load_questions(wish.questions_from)
    async with look_in(settings) as look:
        if look.now < 0:
            raise InputError(f"{look.setting.name} has not run yet: run it with `mindstream town run --days 1`")
        step = find_past_step(look.setting, wish.at, look.now) if wish.at else None
        residents = tuple(find_resident(look.setting, each) for each in wish.design.residents)
        person = wish.read_person(sorted(look.setting.people), [each.id for each in questions])
        history = await read_history(look.store, look.now if step is None else step)
        design = replace(wish.design, residents=tuple(dict.fromkeys(residents)))
        async with contextlib.AsyncExitStack() as opened:
            calls = await opened.enter_async_context(counting(look, settings))
            if models is None:
                models = await opened.enter_async_context(answering(settings))
            named = models.with_listener(spent.take)
            named = named if named.only_rules else named.with_listener(calls.take)
            interviewer = await opened.enter_async_context(
                open_interview(look.store, step, models=named, embed=settings.embedder)
            )
            yield Evaluation(interviewer, history, named, design, questions, ledger, person, told), spent


async def estimate(evaluation: Evaluation, settings: Settings) -> tuple[Counting, float | None]:
    """Return the remaining calls and tokens, and their cost in US dollars; None if a price is unknown."""
    counted = (await count_asked(evaluation, evaluation.comparisons())).without_rules(settings.models)
    return counted, cost_usd(counted, settings.models)


async def evaluate(evaluation: Evaluation, wish: Wish, spent: Spent) -> Evaluated:
    """Interview the residents, judge pairs of answers, check the answers' claims, and return the results.

    Stored answers and verdicts are reused. If `wish` has verdicts of people, no model judges the pairs. If `wish` asks
    for the page on which people judge (`pairs_out`), no model judges pairs or checks claims.

    Raises:
        InputError: a file cannot be written.
        ModelError: a model is not available; results until then are stored.
    """
    comparisons = evaluation.comparisons()
    answers = await evaluation.answer(comparisons)
    pairs = pairs_of(comparisons, answers)
    if wish.answers_out:
        write_answers(wish.answers_out, answers.values())
    if wish.pairs_out:
        await _write_page(evaluation, wish.pairs_out, [each for each in pairs if not each.is_same])
    judged, others, judged_by = list[Judged](), 0, ""
    if wish.verdicts:
        judged, others = judged_by_people(pairs, wish.verdicts)
        judged_by = "people"
    elif evaluation.has_judge and not wish.pairs_out:
        judged = await evaluation.judge(pairs)
        judged_by = evaluation.models.of(JUDGE).name
    checks = evaluation.design.claims and evaluation.has_judge and not wish.pairs_out
    checked = await evaluation.check(answers.values()) if checks else []
    setting, step = evaluation.history.setting, evaluation.history.step
    return Evaluated(
        setting.name,
        step,
        format_time(setting, step),
        report(evaluation.conditions, judged, checked, evaluation.design.seed),
        evaluation.models.of("talker").name,
        judged_by,
        len(answers),
        len(pairs),
        len(judged),
        others,
        evaluation.asked.unreadable,
        spent,
    )


async def _write_page(evaluation: Evaluation, file: Path, pairs: Sequence[Pair]) -> None:
    shown = []
    for pair in pairs:
        facts = await gather_facts(evaluation.interviewer, pair.item, sorted((pair.first.text, pair.second.text)))
        shown.append((pair, facts))
    write_text(file, build_page(evaluation.history.setting.name, shown))


def require_use(evaluation: Evaluation, wish: Wish) -> None:
    """Refuse an evaluation that would neither judge answers nor write a file.

    Raises:
        InputError: there is no judge, no verdict of people, and no file to write.
    """
    if not (evaluation.has_judge or wish.verdicts or wish.pairs_out or wish.answers_out):
        raise InputError(NOBODY_JUDGES)


def answers_of(rows: Sequence[tuple[str, str, str]]) -> Callable[[Sequence[str], Sequence[str]], PersonAnswers]:
    """Return a function that checks and returns a person's answers. Blank answers are left out.

    Args:
        rows: the answers, each as (resident, question id, answer).

    Raises:
        InputError: a resident or question is unknown. The returned function raises it.
    """

    def read(names: Sequence[str], ids: Sequence[str]) -> PersonAnswers:
        for name, question, _ in rows:
            if name not in names:
                raise InputError(f"unknown resident {name!r:.99}")
            if question not in ids:
                raise InputError(f"unknown question {question!r:.99}")
        return {(name, question): said for name, question, said in rows if said.strip()}

    return read
