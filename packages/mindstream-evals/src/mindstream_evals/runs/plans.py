"""Compare strategies on a set of questions, with the models and tools of a user's settings."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mindstream.encodings import csv_text
from mindstream.engines import open_engine
from mindstream.errors import BudgetSpent, InputError, SettingsError
from mindstream.evaluation_cache import EvaluationCache
from mindstream.models.cached_prompts import CachedPrompts, Progress
from mindstream.models.model import Request
from mindstream.models.roles import Models
from mindstream.models.rules import Rules
from mindstream.paths import write_text
from mindstream.planning.estimate import cost_of, estimate
from mindstream.planning.exemplars import NONE, SHIPPED, choose_exemplars
from mindstream.planning.planner import UNPLANNED, WITHOUT_TOOLS, Strategy
from mindstream.private_files import make_private_folder
from mindstream.service.opening import answering
from mindstream.service.solving import open_tools
from mindstream.settings import Settings
from mindstream.tools.mcp.pins import Approve
from mindstream.tools.named import Means
from mindstream_evals.planning.evaluate import Evaluation, Outcome, Way, check_failures, judge_prompt, shuffled
from mindstream_evals.planning.questions import Question, draw, read_questions, score
from mindstream_evals.planning.report import Findings, report
from mindstream_evals.runs.memory import Spent

JUDGE, VERDICT = "judge", 40
"""JUDGE: the role of the judge. VERDICT: estimated number of tokens of its reply."""
LLM = "llm"


@dataclass(frozen=True)
class Wish:
    """The options of an evaluation.

    Attributes:
        data: file of the questions.
        form: format of this file; "": detected.
        limit: number of questions, drawn by the seed; 0: all.
        exemplars: sources of exemplars; each adds a variant of the strategies that plan.
        tools: names of the tools; None: the calculator and the model.
        docs: folders to search instead of the documents of each question.
        failures: probability that a call fails, by tool.
        control: whether the judge is checked. If so, the judge also gets answers to other questions, and must call all
            of these answers wrong.
        out: folder of the results; None: next to the file.
        ray: whether each question is solved in a Ray task.
    """

    data: Path
    form: str = ""
    how: tuple[Strategy, ...] = ("rewoo", "react", "direct", "cot")
    exemplars: tuple[str, ...] = (NONE,)
    limit: int = 0
    seed: int = 0
    tools: tuple[str, ...] | None = None
    docs: tuple[Path, ...] = ()
    mcp: tuple[str, ...] = ()
    failures: Mapping[str, float] = field(default_factory=dict)
    replans: int = 1
    own_knowledge: bool = False
    judge: str = ""
    control: bool = False
    out: Path | None = None
    at_once: int = 4
    ray: bool = False

    @property
    def folder(self) -> Path:
        """The folder of results."""
        return self.out or self.data.with_name(f"{self.data.stem}.evaluation")

    @property
    def kept(self) -> Path:
        """The file in which answers and verdicts are cached."""
        return self.folder / "kept.jsonl"


@dataclass
class Opened:
    """An open evaluation: its questions, its models, and the use of these models in calls, tokens and money
    (`spent`)."""

    wish: Wish
    form: str
    questions: Sequence[Question]
    evaluation: Evaluation
    models: Models
    spent: Spent

    @property
    def has_judge(self) -> bool:
        """Whether a model judges the answers."""
        return bool(self.wish.judge) or self.models.has(JUDGE)


@dataclass(frozen=True)
class Evaluated:
    """The result of an evaluation of planning strategies. `unreadable`: number of verdicts that could not be parsed,
    even after a retry."""

    data: str
    form: str
    questions: int
    models: Mapping[str, str]
    failures: Mapping[str, float]
    findings: Findings
    unreadable: int
    spent: Spent


@dataclass(frozen=True)
class Expected:
    """Estimated remaining calls, tokens and US dollars (None: a price is unknown)."""

    calls: int
    tokens: int
    usd: float | None


@asynccontextmanager
async def open_evaluation(
    settings: Settings,
    wish: Wish,
    told: Progress = lambda *_: None,
    approve: Approve | None = None,
    part: str = "",
) -> AsyncIterator[Opened]:
    """Open the questions, models, tools and stored results.

    Args:
        part: a name for this process, if another process writes the file of stored results (see `EvaluationCache`);
            "": no other process writes the file.

    Raises:
        UserError: a file, a model, a tool, a folder or a server cannot be used.
        ToolError: the user's approval allows no tool of an MCP server.
    """
    questions, form = read_questions(wish.data, wish.form)
    questions = draw(questions, wish.limit, wish.seed)
    ways = _ways(wish)
    spent = Spent()
    async with AsyncExitStack() as opened:
        models = await opened.enter_async_context(answering(settings, on_call=spent.take))
        roles = dict.fromkeys(
            role for way in ways for role in (("worker",) if way.how in UNPLANNED else ("planner", "solver"))
        )
        if unable := [role for role in roles if models.of(role).name == Rules.name]:
            raise SettingsError(f"no model is set for {unable[0]}: add --model NAME or --role {unable[0]}=NAME")
        names = wish.tools if wish.tools is not None else ("calculator", LLM)
        means = Means(None, None, settings.data, embed=settings.embedder)
        tools, _ = await open_tools(
            settings, [each for each in names if each != LLM], wish.docs, wish.mcp, means, approve, opened
        )
        _folder(wish)
        asked = CachedPrompts(models, EvaluationCache(wish.kept, part=part), told, wish.at_once)
        evaluation = Evaluation(
            asked,
            ways,
            tools,
            LLM in names,
            not wish.docs,
            wish.failures,
            wish.seed,
            wish.replans,
            wish.own_knowledge,
            settings.embedder,
            f"{[*map(str, wish.docs)]} {wish.mcp} {settings.prompts}",
        )
        await _check_failures(evaluation, questions, wish)
        yield Opened(wish, form, questions, evaluation, models, spent)


def _ways(wish: Wish) -> list[Way]:
    """Return the strategies; one that plans occurs once per source of exemplars."""
    found = []
    for how in dict.fromkeys(wish.how):
        for named in wish.exemplars[: 1 if how in UNPLANNED else None]:
            label = f"{how}+{named}" if len(wish.exemplars) > 1 and how not in UNPLANNED else how
            found.append(Way(how, label, None if named == SHIPPED else choose_exemplars(named, ())))
    return found


def _folder(wish: Wish) -> None:
    try:
        make_private_folder(wish.folder)
    except OSError as error:
        raise InputError(f"{wish.folder} cannot be created: {error.strerror}; name another folder with --out") from None


async def _check_failures(evaluation: Evaluation, questions: Sequence[Question], wish: Wish) -> None:
    """Refuse a failure rate for a tool that no strategy calls."""
    if wish.failures:
        calling = [how for how in wish.how if how not in WITHOUT_TOOLS]
        names = [spec.name for spec in await _specs(evaluation, questions)] if calling else []
        check_failures(wish.failures, names)


async def _specs(evaluation: Evaluation, questions: Sequence[Question]) -> list[Any]:
    """Return the specs of the tools, with those for the documents of the first question that has documents."""
    llm = [each.spec for each in evaluation.llm()]
    first = next((each for each in questions if each.context and evaluation.own_documents), None)
    if first is None:
        return [*evaluation.specs(), *llm]
    async with evaluation.documents(first) as documents:
        return [*evaluation.specs(documents), *llm]


async def expect(opened: Opened) -> Expected:
    """Estimate the remaining model calls, tokens and cost; placeholders stand for answers that are not stored yet."""
    evaluation, names = opened.evaluation, dict(opened.models.names)
    names |= {role: opened.models.of(role).name for role in ("planner", "worker", "solver") if _answers(opened, role)}
    specs = await _specs(evaluation, opened.questions)
    calls, tokens, usd = 0, 0, list[float | None]()
    for question in opened.questions:
        for way in evaluation.ways:
            found = evaluation.find(question, way, evaluation.specs())
            if found is None:
                own = [] if way.how in WITHOUT_TOOLS else specs
                one = estimate(question.text, way.how, own, names, way.shots(specs))
                calls, tokens = calls + one.calls, tokens + one.tokens
                usd.append(one.cost_usd)
            if opened.has_judge:
                prompt = judge_prompt(question, found.answer if found else " ".join(question.answers[:1]) * 2)
                known = found and (
                    evaluation.asked.ledger.find(evaluation.asked.key(prompt))
                    or score(question.kind, question.answers, found.answer).exact
                )
                if not known:
                    asked = Request(prompt, JUDGE).tokens
                    calls, tokens = calls + 1, tokens + asked + VERDICT
                    usd.append(cost_of(opened.models.of(JUDGE).name, asked, VERDICT))
    return Expected(calls, tokens, None if None in usd else sum(each or 0.0 for each in usd))


def _answers(opened: Opened, role: str) -> bool:
    try:
        opened.models.of(role)
    except SettingsError:
        return False
    return True


async def solve_question(settings: Settings, wish: Wish, number: int) -> tuple[list[Outcome], Spent]:
    """Solve one question in a worker process; results are stored in a part file of the evaluation's file."""
    async with open_evaluation(settings, wish, part=str(number)) as opened:
        return await opened.evaluation.solve_one(opened.questions[number]), opened.spent


@asynccontextmanager
async def _as_tasks(settings: Settings, opened: Opened) -> AsyncIterator[None]:
    """Solve each question in a Ray task during the block, if the wish (the options of the evaluation) asks for Ray.

    Each task gets the budget that remains when the task begins, so concurrent tasks together may exceed the budget.
    The results are merged when all tasks have ended or were stopped.
    """
    wish, evaluation = opened.wish, opened.evaluation
    if not wish.ray:
        yield
        return
    number = {each.id: at for at, each in enumerate(opened.questions)}
    try:
        async with open_engine(True, wish.at_once, 1 / wish.at_once) as engine:

            async def solve(question: Question) -> list[Outcome]:
                left = opened.spent.rest(settings)
                try:
                    outcomes, spent = await engine.run(solve_question, left, wish, number[question.id])
                except BudgetSpent:  # its message names the budget left for this task, not the evaluation's
                    raise BudgetSpent(
                        "the budget of the evaluation is spent: raise it and repeat the command"
                    ) from None
                opened.spent.add(spent)
                return outcomes

            evaluation.elsewhere = solve
            yield
    finally:
        evaluation.asked.ledger.merge_parts()


async def evaluate(opened: Opened, settings: Settings) -> Evaluated:
    """Solve the questions, judge the answers, and write and return a report; stored results are reused.

    Raises:
        InputError: a file cannot be written.
        ModelError: a model is not available, or the budget is spent; results until then are stored.
    """
    wish, questions, evaluation = opened.wish, opened.questions, opened.evaluation
    async with _as_tasks(settings, opened):
        outcomes = await evaluation.solve(questions)
    control = shuffled(questions, outcomes)
    judged = await evaluation.judge(questions, outcomes) if opened.has_judge else None
    lost = await evaluation.judge(questions, control) if opened.has_judge and wish.control else None
    findings = report(questions, outcomes, control, judged, lost)
    found = Evaluated(
        wish.data.name,
        opened.form,
        len(questions),
        opened.models.names,
        wish.failures,
        findings,
        evaluation.asked.unreadable,
        opened.spent,
    )
    write_text(wish.folder / "answers.csv", _answers_table(opened, outcomes, judged))
    write_text(wish.folder / "report.json", json.dumps(asdict(found), ensure_ascii=False, indent=1) + "\n")
    return found


def _answers_table(opened: Opened, outcomes: Sequence[Any], judged: Mapping[tuple[str, str], bool] | None) -> str:
    """Format the answers as CSV, each next to the expected answer."""
    by_id, rows = {each.id: each for each in opened.questions}, list[list[object]]()
    for each in outcomes:
        question = by_id[each.question]
        scored = score(question.kind, question.answers, each.answer)
        right = "" if judged is None else judged.get((each.question, each.way), "")
        cells = (
            each.question,
            each.way,
            question.text,
            " | ".join(question.answers),
            each.answer,
            scored.exact,
            scored.contained,
            right,
            each.tokens,
            each.stopped,
        )
        rows.append([f"'{cell}" if str(cell).startswith(("=", "+", "-", "@")) else cell for cell in cells])
    columns = ("question", "way", "text", "expected", "answer", "exact", "contained", "judged", "tokens", "stopped")
    return csv_text(columns, rows)
