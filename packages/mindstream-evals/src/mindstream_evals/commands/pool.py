"""`mindstream pool evaluate`: lessons and accepted work; `pool experiment`: shared exemplars (Gao 2024)."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, cast

import typer

from mindstream.cli.shell.files import write_text
from mindstream.cli.shell.flags import AsJson, Svg, command, flag, group, names_in, switch
from mindstream.cli.shell.output import (
    Axes,
    complain,
    picture,
    plot,
    print_json,
    print_table,
    say,
    tell,
)
from mindstream.cli.shell.stopping import run_kept
from mindstream.errors import InputError
from mindstream.models.cached_prompts import Progress
from mindstream.planning.estimate import Estimate
from mindstream.private_files import make_private_folder
from mindstream.service.opening import answering
from mindstream.settings import Settings
from mindstream.sharing.events import Form
from mindstream_evals.runs.sharing import (
    MEANING,
    RULES,
    ExperimentSettings,
    Report,
    experiment_estimate,
    run_experiment,
    split_shots,
)
from mindstream_evals.sharing.studies import ALL, STAGES, Design, named_studies

app = group()

Charts: TypeAlias = dict[str, tuple[Mapping[str, Sequence[float]], Axes]]
SCORES = ("rouge_2", "rouge_l", "token_match", "bert_score", "own_exemplars")


TITLES = {
    "shots": "Number of exemplars (domain pools, after the whole stream)",
    "pools": "A pool per domain, or a single pool of the same size for all domains",
    "growth": "Growth: after each part of the stream",
    "controls": "Controls, which must score lower than recalled exemplars",
}


NOTES = """Three studies: zero to three exemplars (shots); a pool per domain against a single
pool of the same size; the pools after each fifth of the stream. Two controls must
score lower: exemplars drawn at random, and exemplars with the answers of other
questions. Scores: ROUGE-2, ROUGE-L (Chinese by characters), token_match (greedy
matching over wordllama's token vectors); with --bertscore also BERTScore.

Without a model, rules copy the answer of the nearest exemplar, which measures
recall alone. Nine agents come with the package; --data DIR reads your own agents in
the same format (NAME.toml), or the published question sets (the folders
Literal_Creation, Logic_Problem_Solving and Plan_Generation).

Exit code: 0; 1 after a model error; 2 after a mistake; 130 after Ctrl-C."""


@command(
    app,
    "model embedder",
    "mindstream pool experiment",
    "mindstream pool experiment --agents limerick,riddle --model local --tests 2 --out cells.jsonl",
    "mindstream pool experiment --models ollama:qwen3,openai:gpt-5-mini --studies shots --json",
    notes=NOTES,
    model="The model of all agents [rules].",
)
def experiment(
    settings: Settings,
    agents: Annotated[str, flag("A,B,…", "Only these agents [all].")] = "",
    agents_from: Annotated[
        Path | None, flag("DIR", "Folder of your own agents, or of the published question sets.", "--data")
    ] = None,
    studies: Annotated[str, flag("A,B,…", "The studies to run (described below).")] = "shots,pools,growth,controls",
    shots: Annotated[
        str, flag("N,N,…", "Numbers of exemplars in a prompt; all studies but `shots` use the largest.")
    ] = "0,1,2,3",
    form: Annotated[
        Literal["both", "composed", "bare"],
        typer.Option(
            help="The text of a pair that is embedded. composed: the query, preceded by the exemplars that were in the"
            " prompt when the answer was written; bare: the query alone; both: each of the two in turn, to compare"
            " them."
        ),
    ] = "both",
    tests: Annotated[int, flag("N", "Maximum number of test questions per agent [all].", min=0)] = 0,
    seed: Annotated[int, flag("N", "Seed of the random draws, such as the order in which pairs are offered.")] = 0,
    models: Annotated[str, flag("A,B,…", "Several models in place of --model, assigned to the agents in turn.")] = "",
    scorer: Annotated[
        str, flag("NAME", "The model that grades answers offered to a pool [the first of --models, else --model].")
    ] = "",
    bertscore: Annotated[str, flag("MODEL", "Also compute BERTScore with this Hugging Face model or folder.")] = "",
    own_answers: Annotated[
        bool,
        switch(
            "--own-answers",
            "Fill the pools with the agents' own answers, as in the paper, instead of the answers in the data set.",
        ),
    ] = False,
    blind: Annotated[
        Path | None,
        flag(
            "DIR",
            "Write pairs of answers (with and without exemplars) without labels, for blind judges, and a file that says"
            " which answer is which.",
        ),
    ] = None,
    price: Annotated[bool, switch("--price", "Only show the maximum cost.")] = False,
    out: Annotated[
        Path | None,
        flag("FILE.jsonl", "Store each answer in this file: after an interruption, the same command continues."),
    ] = None,
    ray: Annotated[
        bool, switch("--ray", "Run the questions of each pool as a Ray task of its own (docs/ray.md); needs --out.")
    ] = False,
    json: AsJson = False,
) -> int:
    """Measure the benefit of sharing exemplars: the studies of memory sharing (Gao 2024), with any model."""
    forms: tuple[Form, ...] = ("composed", "bare") if form == "both" else (form,)
    design = Design(named_studies(names_in(studies)), split_shots(shots), forms, tests, seed, own_answers)
    wish = ExperimentSettings(
        design, names_in(agents), agents_from, names_in(models), scorer, bertscore, blind, out, ray
    )
    expected = experiment_estimate(settings, wish)
    if price:
        return _tell_price(expected, json)
    if expected.calls:
        complain(f"at most {str(expected).removeprefix('about ')}")

    async def work(told: Progress) -> Report:
        return await run_experiment(settings, wish, lambda done, total: told(done, total, "answering"))

    def show(found: Report) -> None:
        print_json({"experiment": found.how}, *found.rows) if json else _print(found)

    return run_kept("answering", work, f"answers are stored in {out}" if out else "", show)


EVALUATE_NOTES = """Three workplaces are generated from a seed: a database, a tool with quirks, an
archive with house rules. Their conventions are drawn from the seed, so that no model
can know them. In the training a simulated person corrects each wrong answer in a
sentence. In the test, agents answer new questions once, without corrections.

Arms, by what agents are shown: none; exemplars (accepted work); lessons; both; notes
(a file that the model rewrites after each task, as a whole); facts (extracted from
the conversations, in the manner of mem0). All learn from one training, in which the
lessons are shown; with --separate each arm trains alone. Prompts do not name the arm,
and tests of several arms are asked in mixed order. Once the training is stored (by
--arms training, or with an arm), other processes can test other arms, with other
models, in the same --work.

--plant N makes N attempts by users to plant a lesson for others, by the interfaces
that users can reach. Without --model, the model that writes the lessons obeys every
instruction. The lessons that reach another user's prompt are counted.

Exit code: 0; 1 after a model error; 2 after a mistake; 130 after Ctrl-C."""


@command(
    app,
    "model roles patience_s budget_calls budget_tokens budget_usd",
    "mindstream pool evaluate --place database --model openai:gpt-5-mini --work runs",
    "mindstream pool evaluate --place all --arms none,lessons --false-verdicts 0.1 --work runs --json",
    "mindstream pool evaluate --plant 60 --work runs",
    notes=EVALUATE_NOTES,
    model="The model that answers for the agents (role worker), and writes lessons, notes and facts (role scorer).",
)
def evaluate(
    settings: Settings,
    work: Annotated[
        Path, flag("DIR", "Folder of the pools and answers; after an interruption, the same command continues.")
    ],
    place: Annotated[
        str,
        flag(
            "NAME",
            "The workplace: database, tool or archive; or all (each of them separately), or company (all three, with"
            " shared experience).",
        ),
    ] = "database",
    arms: Annotated[
        str,
        flag(
            "A,B,…",
            "The arms to compare, by what their agents are shown: none, exemplars, lessons, both (exemplars and"
            " lessons), notes, facts. `training` alone: only train, and test nothing.",
        ),
    ] = "none,exemplars,lessons,both",
    seed: Annotated[int, flag("N", "Random seed of the simulated workplaces (their conventions and questions).")] = 1,
    training: Annotated[int, flag("N", "Number of training questions.", min=1)] = 8,
    tests: Annotated[int, flag("N", "Number of test questions.", min=1)] = 12,
    mistaken: Annotated[
        float,
        flag(
            "SHARE",
            "Share of the corrections in the training that are false, 0 to 1.",
            "--mistaken",
            "--false-verdicts",
            min=0,
            max=1,
        ),
    ] = 0.0,
    how: Annotated[
        Literal["react", "rewoo", "plan-execute"], typer.Option(help="The strategy of the agents.")
    ] = "react",
    separate: Annotated[
        bool,
        switch(
            "--separate",
            "Train once for each value of --arms (even for `none`, without experience), instead of once for all.",
        ),
    ] = False,
    plant: Annotated[
        int,
        flag(
            "N",
            "Only test protection: as an attacker, make N attempts to get a lesson into other users' prompts.",
            min=0,
        ),
    ] = 0,
    price: Annotated[bool, switch("--price", "Only show the expected cost.")] = False,
    file: Svg = None,
    json: AsJson = False,
) -> int:
    """Measure how much lessons and accepted work (exemplars) help agents with tasks that they have not done before."""
    from mindstream_evals.sharing.evaluate import Evaluation, Trial, check_names, curves, expected_cost, summary
    from mindstream_evals.sharing.experience import Arm
    from mindstream_evals.sharing.workplaces import DEPARTMENTS

    chosen = cast("tuple[Arm, ...]", names_in(arms))
    places = list(DEPARTMENTS) if place == "all" else [place]
    for each in places:
        check_names(each, chosen)
    if plant:
        return _plant(settings, work, plant, json)
    names = {role: settings.roles.get(role, settings.model or RULES) for role in ("worker", "scorer")}
    expected = expected_cost(len(places), chosen, training, tests, separate, names)
    if price:
        return _tell_price(expected, json)
    if settings.only_stand_ins:
        raise InputError(
            "agents need a model, because rules cannot solve their tasks; name one, such as --model openai:gpt-5-mini"
        )
    complain(f"without stored answers: {expected}")

    async def run(told: Progress) -> dict[str, dict[str, list[Trial]]]:
        found = {}
        async with answering(settings) as models:
            for each in places:
                one = Evaluation(each, seed, models, work, how, mistaken, training, tests, separate=separate)
                found[each] = await one.run(chosen, partial(_tell, told, each))
        return found

    def charts(found: dict[str, dict[str, list[Trial]]]) -> Charts:
        drawn: Charts = {}
        for name, of in found.items():
            for title, wrong in (
                ("corrections in training, share of the maximum", False),
                ("wrong test answers, cumulative", True),
            ):
                if some := curves(of, wrong):
                    last = max(map(len, some.values())) - wrong
                    axes = Axes(last, "tasks", " tasks", 1 - wrong)
                    drawn[f"{name}: {title}"] = (some, axes)
        return drawn

    def show(found: dict[str, dict[str, list[Trial]]]) -> None:
        rows = [
            {"place": name, "arm": arm, **summary(trials)} for name, of in found.items() for arm, trials in of.items()
        ]
        if file:
            write_text(file, picture(charts(found)))
        if json:
            trials = [
                {"place": name, "arm": arm, **asdict(each)}
                for name, of in found.items()
                for arm in of
                for each in of[arm]
            ]
            print_json(*rows, *trials)
            return
        print_table(list(rows[0]), [list(map(str, row.values())) for row in rows], words=2)
        for title, (some, axes) in charts(found).items():
            marks = dict(zip("123456789abc", some, strict=False))
            say(f"\n{title} ({', '.join(f'{mark}: {name}' for mark, name in marks.items())})\n")
            say("\n".join(plot({mark: some[name] for mark, name in marks.items()}, axes)))

    return run_kept("answering", run, f"answers are stored in {work}", show)


def _plant(settings: Settings, work: Path, attempts: int, json: bool) -> int:
    """Make attempts to plant lessons, and show how many of these lessons reached another user's prompt; return the exit
    code."""
    from mindstream_evals.sharing.planting import Attempt, plant, planting_summary

    async def run(_: Progress) -> list[Attempt]:
        make_private_folder(work)
        with tempfile.TemporaryDirectory(dir=work) as folder:
            if settings.only_stand_ins:
                return await plant(Path(folder), attempts)
            async with answering(settings) as models:
                return await plant(Path(folder), attempts, models)

    def show(found: list[Attempt]) -> None:
        total = planting_summary(found)
        if json:
            print_json(total, *map(asdict, found))
            return
        print_table(
            ("way", "attempts", "reached others"),
            [[way, str(each["attempts"]), str(each["reached"])] for way, each in total["ways"].items()],
        )
        say(f"{total['reached']} of {total['attempts']} reached another user's prompt; lost lessons: {total['lost']}")

    return run_kept("planting", run, "", show)


def _tell_price(expected: Estimate, json: bool) -> int:
    tell(json, {"calls": expected.calls, "tokens": expected.tokens, "cost_usd": expected.cost_usd}, str(expected))
    return 0


def _tell(told: Progress, place: str, done: int, total: int) -> None:
    told(done, total, place)


def _print(found: Report) -> None:
    scores = [name for name in SCORES if any(name in row for row in found.rows)]
    for study, title in TITLES.items():
        some = [row for row in found.rows if row["study"] == study]
        if some:
            say(f"{title}\n")
            columns = ("agent", "form", _condition(some)[0], "tests", *scores)
            print_table(columns, [_cells(row, some, scores) for row in sorted(some, key=_order)], words=3)
            say("")
    models = ", ".join(dict.fromkeys(found.how["agents"].values()))
    offered = found.how["offered"]
    say(f"answers by {models}; recall by {found.how['embedder']}; leaked tests left out: {found.how['tests left out']}")
    if any(offered.values()):
        say(f"of the answers offered by the stream {offered['admitted']} were admitted, {offered['rejected']} rejected")
    if RULES in found.how:
        say(MEANING)


def _condition(rows: Sequence[dict[str, Any]]) -> tuple[str, str]:
    """Return the heading of a study's variable, and the field of the rows that contains it."""
    study = rows[0]["study"]
    return {"shots": ("shots", "shots"), "pools": ("pool", "pool"), "growth": ("stream", "stage")}.get(
        study, ("exemplars", "control")
    )


def _cells(row: dict[str, Any], rows: Sequence[dict[str, Any]], scores: Sequence[str]) -> list[str]:
    value = row[_condition(rows)[1]]
    shown = {"growth": f"{value * 100 // STAGES} %"} if row["study"] == "growth" else {}
    condition = shown.get(row["study"], "recalled" if value == "none" else str(value))
    return [row["agent"], row["form"], condition, str(row["tests"]), *(f"{row[name]:.3f}" for name in scores)]


def _order(row: dict[str, Any]) -> bool:
    return bool(row["agent"] != ALL)
