"""`mindstream plan evaluate`: compare strategies on a set of questions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal, cast, get_args

from mindstream_town.opened import is_free
from rich.console import Console

from mindstream.cli.permission import Asker, server_approval
from mindstream.cli.screens.run import PlainScreen
from mindstream.cli.shell import output
from mindstream.cli.shell.flags import (
    AsJson,
    Docs,
    Mcp,
    Trust,
    Yes,
    command,
    flag,
    group,
    names_in,
    split_names,
    switch,
)
from mindstream.cli.shell.output import cell, print_json, print_table, say
from mindstream.cli.shell.stopping import in_words, is_agreed, run_kept
from mindstream.cli.solve import Replans, Tools
from mindstream.errors import InputError
from mindstream.models.cached_prompts import Progress
from mindstream.models.rules import Rules
from mindstream.planning.exemplars import NONE
from mindstream.planning.planner import Strategy
from mindstream.settings import Settings
from mindstream.text.words import count_of
from mindstream.tools.mcp.pins import Approve
from mindstream_evals.planning.evaluate import read_failures
from mindstream_evals.planning.report import PairFound, WayFound
from mindstream_evals.runs import plans as service
from mindstream_evals.runs.plans import Evaluated, Expected, Wish

app = group()
MOST_PAIRS = 6
"""Maximum number of pairs of strategies for a table of all pairs. If there are more, the table has only the pairs with
the first strategy."""
Form = Literal["hotpotqa", "gsm8k", "strategyqa", "triviaqa", "plain"]
NOTES = """The format is detected from the file: HotpotQA (its contexts are the documents of
each question), GSM8K, StrategyQA and TriviaQA as published; else CSV or JSON
Lines with a question and an answer.

DIR/kept.jsonl stores each call: after Ctrl-C, a model error or a spent limit, the
same command resumes. DIR/answers.csv has each answer, DIR/report.json the printed
figures.

Exit code: 0; 1 after a model error or a spent budget; 2 after a mistake;
130 after Ctrl-C."""


@dataclass(frozen=True)
class Compared:
    """The strategies and questions to compare."""

    form: Annotated[Form | None, flag("FORM", "The format of the file [detected].", "--form")] = None
    how: Annotated[str, flag("A,B", "Strategies: rewoo, react, plan-execute; without tools: direct, cot.", "--how")] = (
        "rewoo,react,direct,cot"
    )
    exemplars: Annotated[
        str,
        flag(
            "A,B",
            "Example plans in the planner's prompt: none, shipped, or a FILE; several are compared.",
            "--exemplars",
        ),
    ] = NONE
    limit: Annotated[
        int, flag("N", "Number of questions, drawn at random with --seed [all].", "--limit", "-n", min=0)
    ] = 0
    seed: Annotated[int, flag("N", "Seed of the random draw of questions and of the failures of --fail.", "--seed")] = 0
    fail: Annotated[
        list[str] | None,
        flag("TOOL=P", "Let calls of TOOL fail with probability P, in all strategies; repeatable.", "--fail"),
    ] = None
    judge: Annotated[
        str, flag("MODEL", "The model that judges the answers [none: text comparison only].", "--judge")
    ] = ""
    control: Annotated[
        Literal["shuffled"] | None,
        flag(
            "shuffled",
            "With --judge: also let the judge score the control (each question with the answer to the next one, which"
            " should be wrong). Without this flag, the control is only compared as text.",
            "--control",
        ),
    ] = None
    out: Annotated[Path | None, flag("DIR", "The folder of all results [next to FILE].", "--out")] = None
    estimate: Annotated[bool, switch("--estimate", "Only show what it would cost.")] = False
    at_once: Annotated[
        int,
        flag(
            "N", "Number of concurrent questions; measured seconds are exact only with 1.", "--at-once", min=1, max=64
        ),
    ] = 4
    ray: Annotated[bool, switch("--ray", "Run each question as a Ray task (docs/ray.md).")] = False


@dataclass(frozen=True)
class Means:
    """What the strategies may use: tools, replans, and the model's own knowledge."""

    tools: Tools = None
    docs: Docs = None
    mcp: Mcp = None
    trust: Trust = False
    replans: Replans = 1
    own_knowledge: Annotated[
        bool, switch("--own-knowledge", "If a tool fails, the model may use its own knowledge.")
    ] = False


@command(
    app,
    "model roles fallback patience_s budget_calls budget_tokens budget_usd embedder",
    "mindstream plan evaluate --data hotpot_dev_distractor_v1.json --limit 50 --model openai:gpt-5-mini --estimate",
    "mindstream plan evaluate --data gsm8k_test.jsonl --how direct,cot --model ollama:qwen3 --limit 100",
    "mindstream plan evaluate --data hotpot.json --fail docs=0.3 --own-knowledge --model ollama:qwen3",
    "mindstream plan evaluate --data mine.csv --docs ./reports --how rewoo --exemplars none,shipped --model local",
    notes=NOTES,
    model="The model that plans, works and answers; same values as for `mindstream chat`.",
    roles="The model for one role: planner, worker, solver, replanner, judge; repeatable.",
)
def evaluate(
    settings: Settings,
    data: Annotated[Path, flag("FILE", "The questions and their expected answers.", "--data")],
    compared: Compared,
    means: Means,
    yes: Yes = False,
    json: AsJson = False,
) -> int:
    """Solve a set of questions by several strategies, and compare accuracy and cost.

    Shows three shares of right answers: those that equal the expected answer (exact), contain it (contained), or have
    the same meaning (judged, with --judge). Each share has a 95 % interval (Wilson). Tokens are shown twice: with
    cached input tokens in full, and with cached input tokens at a tenth. Pairs of strategies are compared on the same
    questions (McNemar, corrected by Holm). A control is always shown: it scores each answer against the expected answer
    of another question.
    """
    if compared.judge:
        settings = settings.model_copy(update={"roles": {**settings.roles, service.JUDGE: compared.judge}})
    if not settings.model and not settings.roles:
        settings = settings.model_copy(update={"model": Rules.name})
    wish = _wish(data, compared, means)
    approve = _approval(means.trust, json)
    expected = asyncio.run(_expect(settings, wish, approve))

    def told() -> str:
        return in_words(expected.calls, expected.tokens, expected.usd)

    if compared.estimate:
        print_json(asdict(expected)) if json else say(told())
        return 0
    if expected.calls and not is_free(settings) and not yes and not is_agreed(settings, told):
        return 0
    return _run(settings, wish, approve, json)


def _approval(trust: bool, json: bool) -> Approve | None:
    screen = PlainScreen(Console(stderr=True, highlight=False))
    return server_approval(trust, Asker(screen) if output.is_answerable() and not json else None, screen)


def _wish(data: Path, compared: Compared, means: Means) -> Wish:
    known, ways = get_args(Strategy), names_in(compared.how)
    if unknown := [each for each in ways if each not in known]:
        raise InputError(f"--how: unknown strategy {unknown[0]!r}; use one or more of: {', '.join(known)}")
    return Wish(
        data,
        compared.form or "",
        cast(tuple[Strategy, ...], ways),
        names_in(compared.exemplars) or (NONE,),
        compared.limit,
        compared.seed,
        split_names(means.tools),
        tuple(means.docs or ()),
        tuple(means.mcp or ()),
        read_failures(compared.fail or ()),
        means.replans,
        means.own_knowledge,
        compared.judge,
        compared.control is not None,
        compared.out,
        compared.at_once,
        compared.ray,
    )


async def _expect(settings: Settings, wish: Wish, approve: Approve | None) -> Expected:
    async with service.open_evaluation(settings, wish, approve=approve) as opened:
        return await service.expect(opened)


def _run(settings: Settings, wish: Wish, approve: Approve | None, json: bool) -> int:
    async def work(told: Progress) -> Evaluated:
        async with service.open_evaluation(settings, wish, told, approve) as opened:
            return await service.evaluate(opened, settings)

    def show(found: Evaluated) -> None:
        print_json(asdict(found)) if json else _show(found, wish)

    return run_kept("solving", work, f"results of model calls are stored in {wish.kept}", show)


def _show(found: Evaluated, wish: Wish) -> None:
    failing = "".join(f", {tool} fails {share:.0%}" for tool, share in found.failures.items())
    say(f"{found.data} ({found.form}): {count_of(found.questions, 'question')}{failing}")
    columns = ("way", "exact", "contained", "judged", "F1", "tokens", "cached at a tenth", "calls", "seconds", "USD")
    print_table(columns, [_cells(each) for each in found.findings.ways])
    _show_pairs(found)
    _show_control(found.findings.control)
    for each in found.findings.ways:
        if each.no_answer or each.failed:
            failed = f"{count_of(each.failed, 'call')} of tools failed by --fail"
            say(f"{each.way}: {count_of(each.no_answer, 'question')} without an answer, {failed}")
    if found.unreadable:
        say(f"verdicts that could not be parsed, even after a retry: {found.unreadable}")
    say(f"used now: {count_of(found.spent.calls, 'call')}, {found.spent.tokens:,} tokens; answers: {wish.folder}")


def _cells(each: WayFound) -> tuple[str, ...]:
    return (
        each.way,
        str(each.exact),
        str(each.contained),
        cell(each.judged),
        f"{each.f1:.2f}",
        f"{each.tokens:,.0f}",
        f"{each.tokens_at_a_tenth:,.0f}",
        f"{each.calls:.1f}",
        f"{each.seconds:.1f}",
        cell(each.usd, ".4f"),
    )


def _show_pairs(found: Evaluated) -> None:
    """Show how pairs of strategies differ; with over MOST_PAIRS pairs, only those with the first strategy."""
    pairs, first = found.findings.pairs, found.findings.ways[0].way
    shown = pairs if len(pairs) <= MOST_PAIRS else [each for each in pairs if each.first == first]
    if not shown:
        return
    say(f"\npairs of strategies, {found.findings.by}{'' if len(shown) == len(pairs) else ' (all pairs: report.json)'}:")
    heads = ("ways", "only the first", "only the second", "p", "p by Holm", "tokens")
    print_table(heads, [_pair_cells(each) for each in shown])


def _pair_cells(each: PairFound) -> tuple[str, ...]:
    tokens = "-" if each.tokens is None else f"{each.tokens:.2f} : 1"
    return (
        f"{each.first} / {each.second}",
        str(each.only_first),
        str(each.only_second),
        f"{each.p:.3g}",
        f"{each.adjusted:.3g}",
        tokens,
    )


def _show_control(control: Sequence[WayFound]) -> None:
    """Show the control: how many answers count as right when they are scored against another question.

    Hardly any should count, except answers to yes/no questions.
    """
    if not control:
        return
    found = []
    for name in ("exact", "contained", "judged"):
        shares = [share for each in control if (share := getattr(each, name)) is not None]
        if shares:
            found.append(f"{name} {sum(each.hits for each in shares)} of {sum(each.of for each in shares)}")
    say(f"\ncontrol, answers scored against another question: {', '.join(found)}")
