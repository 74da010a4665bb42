"""`mindstream town evaluate`: rate how believably residents answer, and which parts of the memory contribute."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, cast

from mindstream_town.commands.group import At
from mindstream_town.commands.run import show_counts
from mindstream_town.inspect.estimate import Counting
from mindstream_town.opened import is_free
from mindstream_town.residents.interview import Condition

from mindstream.cli.shell.flags import AsJson, Yes, command, flag, group, names_in, switch
from mindstream.cli.shell.output import complain, print_json, print_table, say
from mindstream.cli.shell.stopping import in_words, is_agreed, run_kept
from mindstream.models.cached_prompts import Progress
from mindstream.settings import Settings
from mindstream.text.words import count_of
from mindstream_evals.runs import town as service
from mindstream_evals.runs.town import Evaluated, Wish
from mindstream_evals.town.evaluate import Design
from mindstream_evals.town.questions import read_person, read_verdicts, write_questions

app = group()
NOTES = """Answers and verdicts are stored in a file next to the town (DIR.evaluation.jsonl):
after Ctrl-C, a model error or a spent limit, the same command resumes. The
evaluation does not change the town.

Exit code: 0; 1 after a model error or a spent budget; 2 after a mistake;
130 after Ctrl-C."""
CONDITIONS = "full,no_reflection,no_reflection_no_plan,none"

Questions = Annotated[
    int, flag("N", "Number of questions to each resident, equally from all categories [all 25].", min=0)
]


@dataclass(frozen=True)
class Compared:
    """The residents, conditions and questions to compare."""

    residents: Annotated[str, flag("A,B", "Only these residents [all].", "--residents")] = ""
    conditions: Annotated[
        str,
        flag(
            "A,B",
            "Compare residents who may use all memories (full), all but thoughts (no_reflection), all but thoughts and"
            " plans (no_reflection_no_plan), or none.",
            "--conditions",
        ),
    ] = CONDITIONS
    questions: Questions = 0
    pairs: Annotated[
        int, flag("N", "Number of pairs of answers to judge, each pair to the same question [all].", min=0)
    ] = 0
    control: Annotated[
        Literal["shuffled"] | None,
        flag("shuffled", "As a control, also compare answers given by other residents, which must lose.", "--control"),
    ] = None
    person: Annotated[
        Path | None, flag("FILE", "Add a person's answers: CSV or JSON of resident, question, answer.", "--person")
    ] = None
    questions_from: Annotated[
        Path | None,
        flag(
            "FILE.toml", 'Your own questions, in TOML tables [category] with lines id = "question".', "--questions-from"
        ),
    ] = None
    seed: Annotated[int, flag("N", "Seed of the random draws.", "--seed")] = 0


@dataclass(frozen=True)
class Judging:
    """The judge, and the files to write."""

    judge: Annotated[
        str, flag("NAME", "The model that judges pairs of answers [--role judge=NAME, else --model].", "--judge")
    ] = ""
    no_claims: Annotated[bool, switch("--no-claims", "Do not check whether facts support the answers.")] = False
    pairs_out: Annotated[
        Path | None,
        flag("FILE.html", "Write a page on which people judge the pairs; no model judges them.", "--pairs-out"),
    ] = None
    judged: Annotated[
        list[Path] | None, flag("FILE.csv", "Verdicts saved from the page of --pairs-out; repeatable.", "--judged")
    ] = None
    answers: Annotated[Path | None, flag("FILE.csv", "Write all answers to this file.", "--answers")] = None
    questions_out: Annotated[
        Path | None, flag("FILE.csv", "Write the questions for a person to answer, and stop.", "--questions-out")
    ] = None
    out: Annotated[Path | None, flag("FILE.jsonl", "Store answers and verdicts in this file.", "--out")] = None
    dry_run: Annotated[bool, switch("--dry-run", "Only show what it would cost.")] = False


@command(
    app,
    "model roles fallback patience_s budget_calls budget_tokens budget_usd town embedder",
    "mindstream town evaluate --data ./ville --model openai:gpt-5-mini --judge openai:gpt-5 --dry-run",
    "mindstream town evaluate --data ./ville --model openai:gpt-5-mini --questions 5 --pairs 40 --control shuffled",
    "mindstream town evaluate --data ./ville --model ollama:qwen3 --pairs 40 --pairs-out pairs.html",
    "mindstream town evaluate --data ./ville --model ollama:qwen3 --pairs 40 --judged judged.csv",
    "mindstream town evaluate --data ./ville --questions-out mine.csv",
    notes=NOTES,
    model="The model that answers for the residents [rules, which quote memories].",
    roles="The model for one role: talker, judge; repeatable.",
)
def evaluate(
    settings: Settings, compared: Compared, judging: Judging, at: At = "", yes: Yes = False, json: AsJson = False
) -> int:
    """Ask residents 25 questions under four conditions of their memory, and rate how believable the answers are.

    As in Park 2023 (section 6), a judge sees two answers and the facts about the resident, but not the conditions.
    The results are TrueSkill ratings, the Kruskal-Wallis test, Dunn's test with Holm's correction, and the number of
    unsupported claims.
    """
    settings = service.with_judge(settings, judging.judge)
    wish = _wish(compared, judging, at)
    if judging.questions_out:
        return asyncio.run(_write_questions(settings, wish, judging.questions_out))
    if not is_free(settings) or judging.dry_run:
        counted, usd = asyncio.run(_estimate(settings, wish))
        if judging.dry_run:
            show_counts(counted, usd, json, "stored answers are not requested again")
            return 0

        def price() -> str:
            return in_words(counted.calls, counted.tokens, usd)

        if counted.by_kind and not yes and not is_agreed(settings, price):
            return 0
    return _run(settings, wish, json)


def _wish(compared: Compared, judging: Judging, at: str) -> Wish:
    conditions = cast(tuple[Condition, ...], names_in(compared.conditions))
    design = Design(
        names_in(compared.residents),
        conditions,
        compared.questions,
        compared.pairs,
        compared.control is not None,
        not judging.no_claims,
        compared.seed,
    )
    file = compared.person
    return Wish(
        design,
        at,
        compared.questions_from,
        (lambda names, ids: read_person(file, names, ids) if file else {}),
        tuple(read_verdicts(judging.judged or ())),
        judging.out,
        judging.pairs_out,
        judging.answers,
    )


async def _write_questions(settings: Settings, wish: Wish, file: Path) -> int:
    async with service.open_evaluation(settings, wish) as (evaluation, _):
        items = evaluation.items()
        write_questions(file, items)
    say(f"{count_of(len(items), 'question')} in {file}: fill in the last column, and pass the file to --person")
    return 0


async def _estimate(settings: Settings, wish: Wish) -> tuple[Counting, float | None]:
    async with service.open_evaluation(settings, wish) as (evaluation, _):
        service.require_use(evaluation, wish)
        return await service.estimate(evaluation, settings)


def _run(settings: Settings, wish: Wish, json: bool) -> int:
    async def work(told: Progress) -> Evaluated:
        async with service.open_evaluation(settings, wish, told) as (evaluation, spent):
            service.require_use(evaluation, wish)
            return await service.evaluate(evaluation, wish, spent)

    def show(found: Evaluated) -> None:
        print_json(found.as_json()) if json else _show(found, wish)

    kept = f"answers and verdicts are stored in {service.kept_in(settings, wish)}"
    return run_kept("answering", work, kept, show)


def _show(found: Evaluated, wish: Wish) -> None:
    say(
        f"{found.town}, {found.time}: {count_of(found.answers, 'answer')} by {found.answered_by}, "
        f"{count_of(found.pairs, 'pair')}"
    )
    if wish.pairs_out:
        say(
            f"the pairs are in {wish.pairs_out}: open this page in a browser, judge, save; then repeat the command with"
            " --judged judged.csv instead of --pairs-out"
        )
    if not found.judged:
        if not wish.pairs_out:
            complain("no pair was judged" if wish.verdicts else service.NOBODY_JUDGES)
        return
    _show_standings(found)
    _show_tests(found)


def _show_standings(found: Evaluated) -> None:
    rows = []
    for each in found.findings.standings:
        rating = each.rating
        skill = (f"{rating.mu:.2f}", "{:.1f} to {:.1f}".format(*rating.interval)) if rating else ("-", "-")
        made_up = "-" if each.claims is None else f"{each.unsupported} of {each.claims}"
        rows.append((each.condition, *skill, str(each.won), str(each.drawn), str(each.lost), made_up))
    print_table(("condition", "TrueSkill", "95 %", "won", "drawn", "lost", "claims made up"), rows)
    pairs = f"{count_of(found.judged, 'pair')} of {count_of(found.findings.items, 'question')}"
    say(f"{pairs} judged by {found.judged_by}")
    if all(each.claims is None for each in found.findings.standings):
        say("unsupported claims are not counted: this needs a model that judges, and no --no-claims")


def _show_tests(found: Evaluated) -> None:
    tests = found.findings
    say("order: " + " > ".join(each.condition for each in tests.standings if each.rating))
    if tests.kruskal is not None:
        say(
            f"Kruskal-Wallis: H({tests.kruskal.df}) = {tests.kruskal.h:.2f}, p = {tests.kruskal.p:.3g},"
            f" n = {tests.kruskal.n}"
        )
    rows = [
        (f"{each.first} / {each.second}", f"{each.z:.2f}", f"{each.p:.3g}", f"{each.adjusted:.3g}")
        for each in tests.dunn
    ]
    if rows:
        print_table(("Dunn", "z", "p", "p by Holm"), rows)
    if tests.agreed is not None:
        first = "" if tests.first is None else f"; the answer shown first won {tests.first:.0%} of the decided verdicts"
        say(f"{tests.agreed:.0%} of the pairs got the same verdict in both orders{first}")
    if tests.control_lost is not None:
        words = (
            "the answers of other residents ranked last, as expected"
            if tests.control_lost
            else ("the answers of other residents did not rank last: do not trust this judge, or judge more pairs")
        )
        say(f"control: {words}")
    if found.unreadable:
        say(f"left out, because the reply could not be parsed even after a retry: {found.unreadable}")
    if found.others:
        say(
            f"{count_of(found.others, 'verdict')} of other pairs ignored: check that the flags are those of --pairs-out"
        )
    if found.spent.calls:
        usd = "" if found.spent.usd is None else f", {found.spent.usd:,.4f} US dollars"
        say(f"{count_of(found.spent.calls, 'call')}, {found.spent.tokens:,} tokens{usd}")
