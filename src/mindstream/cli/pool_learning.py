"""`mindstream pool`: train the retriever of a pool, measure the pool's best size, trim the pool."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from mindstream.cli.pool import ME, Name
from mindstream.cli.shell import output
from mindstream.cli.shell.files import write_text
from mindstream.cli.shell.flags import AsJson, Svg, Yes, command, flag, group, next_command
from mindstream.cli.shell.output import (
    Axes,
    complain,
    fitting_top,
    picture,
    plot,
    print_json,
    progress,
    say,
    tell,
)
from mindstream.service import pools
from mindstream.service.opening import answering
from mindstream.settings import Settings
from mindstream.sharing.events import RetrieverTrained
from mindstream.sharing.growth import SizeCurve, SizePoint, growth_curve
from mindstream.sharing.learning import LEAST, PoolLearner
from mindstream.sharing.pool import taught_by
from mindstream.text.words import count_of

app = group()


LABELLER = "The model that labels which exemplars help (role labeller) [rules: half ROUGE-L, half cosine]."
ASKED_FROM_USD = 0.10
"""Estimated cost in US dollars from which the user is asked before pairs are labelled; only in a terminal, if no budget
is set."""


@command(
    app,
    "model roles patience_s budget_calls budget_tokens budget_usd data user embedder",
    "mindstream pool train verse",
    "mindstream pool train verse --role labeller=gguf:small.gguf",
    "mindstream pool train verse --model openai:gpt-5-mini --max-calls 200",
    user=ME,
    model=LABELLER,
)
async def train(settings: Settings, name: Name, yes: Yes = False, json: AsJson = False) -> None:
    """Train the retriever, which ranks the exemplars, on the whole pool.

    The retriever also learns from each admitted pair. This command trains it on all pairs again, and from scratch if
    the embedder has changed. A model labels how likely each answer is with other pairs as examples: by
    log-probabilities if the model returns them, otherwise by its own estimates; without a model, rules do this. An
    estimate of the cost is shown first. Labels are stored, so that the same command continues after Ctrl-C or a failure
    of the model. After Ctrl-C the pool keeps the last version that did better on held-out pairs.
    """
    async with pools.open_pool(settings, name) as pool, answering(settings) as models:
        total = len((await pool.member_state(settings.user)).teaching(pool.guarded))
        learner = PoolLearner(pool, await pools.open_labeller(models))
        if not await _agreed(settings, learner, yes):
            return
        with progress(f"learning from {name}") as bar:
            row = await learner.train(
                settings.user, lambda done: bar(done, total), lambda done: bar(done, total, f"labelling {name}")
            )
        before = _before((await pool.state()).versions, row)
    tell(json, {"pool": name, **row.model_dump(mode="json")}, "\n".join([describe_version(row), *before]))


async def _agreed(settings: Settings, learner: PoolLearner, yes: bool) -> bool:
    """Show the estimated cost of labelling; return whether to do it, after a question if it is high."""
    cost = await learner.cost(settings.user)
    if cost is None or learner.labeller is None:
        complain("no model is configured: rules label which exemplars help (--model, or --role labeller=NAME)")
        return True
    expected = pools.labelling_estimate(cost, learner.labeller)
    basis, model = learner.labeller.key
    how = "by log-probabilities" if basis == "logprobs" else "by its own estimates"
    complain(f"{model} labels {count_of(cost.pairs, 'exemplar')} {how}: {expected}")
    limited = yes or settings.budget_usd is not None or not output.is_answerable()
    return limited or (expected.cost_usd or 0.0) < ASKED_FROM_USD or output.confirm("Continue?")


def describe_version(row: RetrieverTrained) -> str:
    """Describe a version of the retriever: what it learned from, and the result of its check on held-out pairs."""
    begun = "restarted" if row.anew and row.parent else "the first" if row.anew else f"after version {row.parent}"
    if not row.held:
        nothing = f"training by {taught_by(row)} did not improve the results on held-out pairs"
        return f"version {row.number}, {begun}: {nothing}; it ranks as version {row.parent} does"
    learned = f"learned from {count_of(row.learned_from, 'exemplar')}, taught by {taught_by(row)}"
    line = f"version {row.number}, {begun}: {learned}"
    if not row.held_out and not row.before:
        return f"{line}; too few held-out pairs to check it"
    return f"{line}; the exemplar ranked first helps {row.held_out:.0%} of the held-out pairs, {row.before:.0%} before"


def _before(versions: Sequence[RetrieverTrained], row: RetrieverTrained) -> list[str]:
    """Return a note if the labels of the version before came from another method (basis) or model."""
    before = next((each for each in versions if each.number == row.parent), None)
    if before is None or (before.basis, before.labeller) == (row.basis, row.labeller):
        return []
    return [
        f"version {before.number} was taught by {taught_by(before)}, this one by {taught_by(row)}: they are not mixed"
    ]


@command(app, "data user embedder", "mindstream pool curve verse --svg curve.svg", user=ME)
async def curve(
    settings: Settings,
    name: Name,
    form: Annotated[
        Literal["composed", "bare"] | None,
        typer.Option(help="The text to embed: the query with its examples, or the query alone [both, if they differ]."),
    ] = None,
    file: Svg = None,
    json: AsJson = False,
) -> None:
    """Show the quality of a pool's recall at each pool size, the best size, and the gain of training as the pool grows.

    For each pair that the retriever was not trained on (for all pairs, if these are too few), three exemplars are
    recalled. Their quality is the similarity of their answers to the pair's own answer: half ROUGE-L, half cosine.
    """
    async with pools.open_pool(settings, name) as pool:
        with progress(f"learning from {name} as it grew") as bar:
            total = len((await pool.member_state(settings.user)).teaching(pool.guarded))
            learns = total >= LEAST
            grown = await growth_curve(pool, settings.user, lambda done: bar(done, total)) if learns else []
        curves = Curves(name, await pools.size_curves(pool, settings.user, form), grown, (await pool.state()).versions)
    if file:
        write_text(file, _picture(curves))
    if json:
        for each in curves.sizes:
            points = [_point(point) for point in each.points]
            facts = {"asked": each.asked, "held_out": each.held_out, "by_hand": each.by_hand}
            print_json({"curve": "size", "form": each.form, "best": each.best, **facts, "points": points})
        print_json({"curve": "growth", "points": [_point(point) for point in curves.growth]})
        print_json({"curve": "versions", "points": [_checked(row) for row in curves.versions]})
        return
    _show(curves, settings)
    if file:
        say(f"the picture is in {file}")


@command(app, "data user embedder", "mindstream pool trim verse --capacity best", user=ME)
def trim(
    settings: Settings,
    name: Name,
    capacity: Annotated[str, flag("N|best", "Number of exemplars to keep; best: the best size of `pool curve`.")],
    yes: Yes = False,
    json: AsJson = False,
) -> None:
    """Remove the least useful exemplars of a pool, by grade, use and similarity; pairs added by hand stay."""
    if not yes and not output.confirm(f"Trim {name} to {capacity}?"):
        return

    async def run() -> list[str]:
        async with pools.open_pool(settings, name) as pool:
            return await pools.trim(pool, capacity, settings.user)

    gone = asyncio.run(run())
    left = "pairs added by hand stay, and so does everything derived from the removed ones"
    tell(json, {"pool": name, "gone": gone}, f"{count_of(len(gone), 'exemplar')} removed; {left}")


@dataclass(frozen=True)
class Curves:
    """The curves that `pool curve` shows."""

    pool: str
    sizes: Sequence[SizeCurve]
    growth: Sequence[SizePoint]
    versions: Sequence[RetrieverTrained]

    @property
    def title(self) -> str:
        return f"Quality of exemplars for the pairs of {self.pool}, by size of the pool under the capacity policy"

    @property
    def grown(self) -> dict[str, list[float]]:
        return {"untrained": [each.untrained for each in self.growth], "trained": [each.helped for each in self.growth]}

    def axes(self, points: Sequence[SizePoint]) -> Axes:
        """Return axes that fit all curves."""
        found = [*self.growth, *(point for each in self.sizes for point in each.points)]
        top = fitting_top(max(point.helped, point.untrained) for point in found)
        return Axes(points[-1].size, "exemplars in the pool", "", points[0].size, top)


GROWN = "The same quality while the pool grew, with a trained and an untrained retriever"


def _show(curves: Curves, settings: Settings) -> None:
    say(f"{curves.title}\n")
    drawn = {each.form[0]: _helped(each) for each in reversed(curves.sizes)}
    say("\n".join(plot(drawn, curves.axes(curves.sizes[0].points))))
    for each in curves.sizes:
        who = "pairs held out from training" if each.held_out else "pairs, some of them trained on"
        say(f"\n{each.form[0]}: {each.form}, {each.asked} {who}")
        say("  " + ", ".join(f"{point.size}: {point.helped:.1%}" for point in each.points))
        laid = f" ({each.by_hand} pairs were added by hand, and stay)" if each.by_hand else ""
        trim = next_command(settings, f"mindstream pool trim {curves.pool} --capacity {each.best}")
        say(f"  best size: {each.best}{laid}; {trim}")
    if curves.growth:
        say(f"\n{GROWN}\n")
        marked = {name[0]: shares for name, shares in curves.grown.items()}
        say("\n".join(plot(marked, curves.axes(curves.growth))))
        last = curves.growth[-1]
        say(f"\nu: untrained, {last.untrained:.1%} at the end; t: trained, {last.helped:.1%}")
    versions = curves.versions
    say(f"\n{describe_version(versions[-1])}" if versions else "\nthe retriever is not trained yet")


def _picture(curves: Curves) -> str:
    named = {f"{each.form}, best {each.best}": _helped(each) for each in curves.sizes}
    charts = {curves.title: (named, curves.axes(curves.sizes[0].points))}
    return picture(charts | ({GROWN: (curves.grown, curves.axes(curves.growth))} if curves.growth else {}))


def _helped(curve: SizeCurve) -> list[float]:
    return [point.helped for point in curve.points]


def _point(point: SizePoint) -> dict[str, object]:
    return {"size": point.size, "helped": round(point.helped, 4), "untrained": round(point.untrained, 4)}


def _checked(row: RetrieverTrained) -> dict[str, object]:
    names = ("number", "held", "held_out", "before", "learned_from", "upto")
    return {name: getattr(row, name) for name in names}
