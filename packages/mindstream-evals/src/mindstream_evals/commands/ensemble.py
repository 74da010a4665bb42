"""`mindstream town ensemble`: many runs of one town, and their statistics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import cycle
from pathlib import Path
from typing import Annotated

import leather
from mindstream_town import opened as towns
from mindstream_town.commands.group import MODEL, ROLE, ProfileOf
from mindstream_town.commands.run import Days, Hours, Span, Until, count_in_advance
from mindstream_town.ensemble import read_seeds

from mindstream.cli.shell.files import write_text
from mindstream.cli.shell.flags import AsJson, Yes, command, flag, group, names_in, switch, word
from mindstream.cli.shell.output import COLOURS, HEIGHT, WIDTH, complain, print_json, print_table, say
from mindstream.cli.shell.stopping import in_words, is_agreed, run_kept
from mindstream.errors import InputError
from mindstream.models.cached_prompts import Progress
from mindstream.settings import Settings
from mindstream.text.words import count_of
from mindstream_evals.commands.town import Questions
from mindstream_evals.runs import ensemble as service
from mindstream_evals.runs.ensemble import Ensemble, Wish
from mindstream_evals.runs.town import with_judge
from mindstream_evals.town.evaluate import Design

app = group()
FAILED = 1
NOTES = """Each run stores its town in DIR/CONDITION/seed-N, and every command for a town works
there. DIR/runs.jsonl stores the results of finished runs: after Ctrl-C, a crash or
a spent limit the same command resumes and does not repeat finished runs. The same
folder gets report.json, runs.csv and a chart, ensemble.svg. Limits apply to each run.
With --ray the runs use the cluster named by RAY_ADDRESS, else this machine.

Exit code: 0; 1 if a run failed; 2 after a mistake; 130 after Ctrl-C."""


@dataclass(frozen=True)
class Runs:
    """Flags for the parts of residents to switch off, and for where the runs execute."""

    without: Annotated[
        list[str] | None,
        flag(
            "A,B",
            "Also run the town with these parts switched off together (a condition): observation, reflection,"
            " planning, recall, talk; repeat the flag for further conditions.",
        ),
    ] = None
    workers: Annotated[
        int, flag("N", "Number of concurrent runs [one per processor].", "--workers", min=0, max=100_000)
    ] = 0
    ray: Annotated[bool, switch("--ray", "Execute each run as a Ray task instead of in a local process.")] = False


@dataclass(frozen=True)
class Measuring:
    """Measures in addition to those of `town metrics`."""

    fact: Annotated[
        list[str] | None, flag("WORDS", "Also count the residents who know this fact at the end of a run; repeatable.")
    ] = None
    evaluate: Annotated[
        bool, switch("--evaluate", "Also rate how believably residents answer questions (see town evaluate).")
    ] = False
    judge: Annotated[
        str,
        flag(
            "NAME", "With --evaluate: the model that judges the answers [--role judge=NAME, else --model].", "--judge"
        ),
    ] = ""
    questions: Questions = 0
    pairs: Annotated[
        int, flag("N", "With --evaluate: number of pairs to judge (two answers to the same question) [all].", min=0)
    ] = 0


@command(
    app,
    "model roles fallback patience_s budget_calls budget_tokens budget_usd embedder",
    "mindstream town ensemble --seeds 1..20 --days 1 --into ./twenty",
    "mindstream town ensemble ./mine.toml --seeds 1..100 --without talk --without planning --into ./hundred --ray",
    'mindstream town ensemble --seeds 1..10 --until "Feb 14 19:00" --fact "a party" --into ./party',
    notes=NOTES,
    model=MODEL,
    roles=ROLE,
)
def ensemble(
    settings: Settings,
    seeds: Annotated[str, flag("N..M", "The seeds of the runs: 1..100, or 3,5,8..12.", "--seeds")],
    into: Annotated[Path, flag("DIR", "The folder of all runs.", "--into")],
    runs: Runs,
    measuring: Measuring,
    source: Annotated[str, word("TOWN", "A shipped town, or FILE.toml.")] = "smallville",
    profile: ProfileOf = None,
    days: Days = None,
    hours: Hours = None,
    until: Until = "",
    steps: Annotated[int | None, flag("N", "Run this number of steps.", min=1, max=2**40)] = None,
    yes: Yes = False,
    json: AsJson = False,
) -> int:
    """Run one town many times and compare the runs.

    The runs differ in their seeds, or in abilities of residents that are switched off (a condition).

    Each measure is given with mean, spread and 95 % interval (Student) over the seeds. Each condition is compared with
    the whole town, seed by seed (sign test, corrected by Holm). A run lasts one day by default.
    """
    span = Span(days, hours, until, steps)
    design = Design(questions=measuring.questions, pairs=measuring.pairs) if measuring.evaluate else None
    settings = with_judge(settings, measuring.judge) if design else settings
    conditions = tuple(tuple(sorted(names_in(each))) for each in runs.without or ())
    wish = Wish(
        source,
        tuple(read_seeds(seeds)),
        lambda setting: span.target(setting, -1),
        into,
        conditions,
        tuple(profile or ()),
        tuple(measuring.fact or ()),
        design,
        runs.workers,
        runs.ray,
    )
    if design and towns.is_free(settings):
        raise InputError("--evaluate needs a judge: name a model (--judge MODEL or --model MODEL), or omit --evaluate")
    if not (towns.is_free(settings) or yes or is_agreed(settings, lambda: _price(settings, wish), "Start the runs?")):
        return 0
    failed: list[bool] = []

    async def work(told: Progress) -> Ensemble:
        return await service.run_ensemble(settings, wish, told)

    def show(found: Ensemble) -> None:
        failed.append(bool(found.failed))
        if found.lived:
            write_text(wish.into / "ensemble.svg", draw(found))
        print_json(asdict(found)) if json else _show(found, wish)

    code = run_kept("towns", work, f"finished runs are in {wish.kept}, unfinished ones in their own folders", show)
    return code or FAILED * any(failed)


def _price(settings: Settings, wish: Wish) -> str:
    """Return the estimated cost of all runs in words; finished runs are included, although they are not repeated."""
    jobs = service.jobs_of(settings, wish)
    runs = len(jobs)
    counted, usd = count_in_advance(settings, jobs[0].setting, jobs[0].last + 1)
    every = in_words(counted.calls * runs, counted.tokens * runs, None if usd is None else usd * runs)
    return f"{count_of(runs, 'town')}: {every}"


def _show(found: Ensemble, wish: Wish) -> None:
    say(f"{found.town}, {count_of(found.steps, 'step')}: {count_of(len(found.lived), 'run')} in {wish.into}")
    rows = [
        (
            each.condition,
            each.measure,
            str(each.seeds),
            _number(each.mean),
            _number(each.spread),
            _interval(each.low, each.high),
            f"{_number(each.least)} to {_number(each.most)}",
        )
        for each in found.spreads
    ]
    if rows:
        print_table(("condition", "measure", "seeds", "mean", "spread", "95 %", "from, to"), rows, words=2)
    paired = [
        (
            each.condition,
            each.measure,
            f"{each.mean:+.3g}",
            _interval(each.low, each.high),
            str(each.more),
            str(each.fewer),
            f"{each.p:.3g}",
            f"{each.adjusted:.3g}",
        )
        for each in found.differences
    ]
    if paired:
        say("\ndifference to the whole town with the same seeds:")
        print_table(("condition", "measure", "mean", "95 %", "more", "fewer", "p", "p by Holm"), paired, words=2)
    for failed in found.failed:
        complain(f"seed {failed.seed}, {failed.condition}: {failed.why}")
    if found.failed:
        complain(f"{count_of(len(found.failed), 'run')} failed; the same command repeats only these")
    if found.lived:
        say(f"runs with the digests of their journals: {wish.into / 'runs.csv'}; chart: {wish.into / 'ensemble.svg'}")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}" if abs(value) < 100 else f"{value:,.0f}"


def _interval(low: float | None, high: float | None) -> str:
    return "-" if low is None else f"{_number(low)} to {_number(high)}"


def draw(found: Ensemble) -> str:
    """Return an SVG with a chart for each measure that differs between runs, or for every measure if none differs. Each
    run is a dot above its seed, in the colour of its condition."""
    grid = leather.Grid()
    values = {name: _values(found, name) for name in dict.fromkeys(each.measure for each in found.spreads)}
    conditions = list(dict.fromkeys(each.condition for each in found.lived))
    drawn = [name for name, each in values.items() if min(each) < max(each)] or list(values)
    for name in drawn:
        chart = leather.Chart(name)
        for condition, colour in zip(conditions, cycle(COLOURS), strict=False):
            dots = [
                (each.seed, each.measures[name])
                for each in found.lived
                if each.condition == condition and name in each.measures
            ]
            if dots:
                chart.add_dots(dots, name=condition, fill_color=colour)
        chart.add_y_scale(*_ends(values[name]))
        chart.add_x_axis(name="seed")
        grid.add_one(chart)
    columns = math.ceil(math.sqrt(len(drawn)))  # leather arranges the charts in this number of columns
    return str(grid.to_svg(width=WIDTH * columns, height=HEIGHT * -(-len(drawn) // columns)))


def _values(found: Ensemble, name: str) -> list[float]:
    return [each.measures[name] for each in found.lived if name in each.measures]


def _ends(values: Sequence[float]) -> tuple[float, float]:
    """Return the lower and upper end of an axis that contains the values; the ends always differ."""
    low, high = min(values), max(values)
    room = (high - low) * 0.1 or max(abs(high) * 0.1, 0.1)
    return (0.0 if 0 <= low < room * 2 else low - room), high + room
