"""`mindstream pool`: what its retriever has learned, how large it does best, what sharing is worth."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from mindstream.cli.pool import ME, Name
from mindstream.cli.shell import output
from mindstream.cli.shell.files import write_text
from mindstream.cli.shell.flags import AsJson, Svg, Yes, command, flag, group
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
from mindstream.sharing.why import taught_by
from mindstream.text.words import count_of

app = group()


LABELLER = "Who says which exemplars help (role labeller) [rules: a stand-in, half ROUGE-L, half cosine]."
ASKED_FROM_USD = 0.10
"""Labelling that will cost so much is asked about, where somebody is there and no budget was set."""


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
    """Have the retriever learn from all of the pool, now.

    It learns from each admission in any case; this weighs all of it anew, and begins anew where the embedder is another
    one. With a model it learns how unlikely each answer is after others as examples: by log-probabilities where the
    model tells them, else as it states them. What that takes is said before. What was labelled is kept, so that a run
    that was stopped, or whose model failed, goes on with the same command. Stopped by Ctrl-C, it keeps the last version
    that held.
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
    """Say what labelling will take; ask where that is much."""
    cost = await learner.cost(settings.user)
    if cost is None or learner.labeller is None:
        complain("no model is configured: a stand-in says which exemplars help (--model, or --role labeller=NAME)")
        return True
    expected = pools.labelling_estimate(cost, learner.labeller)
    basis, model = learner.labeller.key
    how = "by log-probabilities" if basis == "logprobs" else "as it states them"
    complain(f"{model} labels {count_of(cost.pairs, 'exemplar')} {how}: {expected}")
    limited = yes or settings.budget_usd is not None or not output.is_answerable()
    return limited or (expected.cost_usd or 0.0) < ASKED_FROM_USD or output.confirm("go on?")


def describe_version(row: RetrieverTrained) -> str:
    """Say what a version learned, and what the check on what was held out found."""
    begun = "begun anew" if row.anew and row.parent else "the first" if row.anew else f"after version {row.parent}"
    if not row.held:
        nothing = f"nothing came of what {taught_by(row)} taught that does better on what was held out"
        return f"version {row.number}, {begun}: {nothing}; it ranks as version {row.parent} does"
    learned = f"learned from {count_of(row.learned_from, 'exemplar')}, taught by {taught_by(row)}"
    line = f"version {row.number}, {begun}: {learned}"
    if not row.held_out and not row.before:
        return f"{line}; too little was held out to check it"
    return f"{line}; what it ranks first helps {row.held_out:.0%} of the pairs held out, {row.before:.0%} before"


def _before(versions: Sequence[RetrieverTrained], row: RetrieverTrained) -> list[str]:
    """Say so where another basis, or another model, taught the version before."""
    before = next((each for each in versions if each.number == row.parent), None)
    if before is None or (before.basis, before.labeller) == (row.basis, row.labeller):
        return []
    return [
        f"version {before.number} was taught by {taught_by(before)}, this one by {taught_by(row)}: nothing is mixed"
    ]


@command(app, "data user embedder", "mindstream pool curve verse --svg curve.svg", user=ME)
async def curve(
    settings: Settings,
    name: Name,
    form: Annotated[
        Literal["composed", "bare"] | None, typer.Option(help="What is embedded [both, where they differ].")
    ] = None,
    file: Svg = None,
    json: AsJson = False,
) -> None:
    """Show how well the pool does at each size, the best size, and what learning gains as it grows.

    Pairs of the pool that the retriever was not trained on are asked for three shots, and how near the shots' answers
    are to theirs counts: half ROUGE-L, half the cosine.
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
    _show(curves)
    if file:
        say(f"the picture is in {file}")


@command(app, "data user embedder", "mindstream pool trim verse --capacity best", user=ME)
def trim(
    settings: Settings,
    name: Name,
    capacity: Annotated[str, flag("N|best", "How many stay; best: as `pool curve` says.")],
    yes: Yes = False,
    json: AsJson = False,
) -> None:
    """Let go of what is least worth keeping, by grade, use and likeness; what you laid in stays."""
    if not yes and not output.confirm(f"{name} is trimmed to {capacity}, go on?"):
        return

    async def run() -> list[str]:
        async with pools.open_pool(settings, name) as pool:
            return await pools.trim(pool, capacity, settings.user)

    gone = asyncio.run(run())
    left = "what was laid in by hand stays, and what was drawn from them"
    tell(json, {"pool": name, "gone": gone}, f"{count_of(len(gone), 'exemplar')} gone; {left}")


@dataclass(frozen=True)
class Curves:
    """What is drawn of a pool."""

    pool: str
    sizes: Sequence[SizeCurve]
    growth: Sequence[SizePoint]
    versions: Sequence[RetrieverTrained]

    @property
    def title(self) -> str:
        return f"How well {self.pool}'s own pairs are helped, by what the capacity policy keeps"

    @property
    def grown(self) -> dict[str, list[float]]:
        return {"untrained": [each.untrained for each in self.growth], "trained": [each.helped for each in self.growth]}

    def axes(self, points: Sequence[SizePoint]) -> Axes:
        """Return axes that all of the curves have."""
        found = [*self.growth, *(point for each in self.sizes for point in each.points)]
        top = fitting_top(max(point.helped, point.untrained) for point in found)
        return Axes(points[-1].size, "exemplars in the pool", "", points[0].size, top)


GROWN = "The same as the pool grew, the retriever learning and untrained"


def _show(curves: Curves) -> None:
    say(f"{curves.title}\n")
    drawn = {each.form[0]: _helped(each) for each in reversed(curves.sizes)}
    say("\n".join(plot(drawn, curves.axes(curves.sizes[0].points))))
    for each in curves.sizes:
        who = "pairs held out from training" if each.held_out else "pairs, some of them trained on"
        say(f"\n{each.form[0]}: {each.form}, {each.asked} {who}")
        say("  " + ", ".join(f"{point.size}: {point.helped:.1%}" for point in each.points))
        laid = f" ({each.by_hand} were laid in by hand, and stay)" if each.by_hand else ""
        say(f"  best size: {each.best}{laid}; mindstream pool trim {curves.pool} --capacity {each.best}")
    if curves.growth:
        say(f"\n{GROWN}\n")
        marked = {name[0]: shares for name, shares in curves.grown.items()}
        say("\n".join(plot(marked, curves.axes(curves.growth))))
        last = curves.growth[-1]
        say(f"\nu: untrained, {last.untrained:.1%} at the end; t: trained, {last.helped:.1%}")
    versions = curves.versions
    say(f"\n{describe_version(versions[-1])}" if versions else "\nthe retriever has learned nothing yet")


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
