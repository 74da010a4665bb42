"""`mindstream pool`: what its retriever has learned, and how large it does best."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mindstream.cli import asking
from mindstream.cli.clean import say
from mindstream.cli.files import open_writer
from mindstream.cli.json_lines import print_json
from mindstream.cli.plot import Axes, fitting_top, plot, stacked, svg
from mindstream.cli.progress import progress
from mindstream.service import pools
from mindstream.settings import Settings
from mindstream.sharing.events import Form, RetrieverTrained
from mindstream.sharing.growth import SizeCurve, SizePoint
from mindstream.text.counting import count_of


def train(settings: Settings, name: str, json: bool) -> int:
    """Learn from all of a pool now."""

    async def run() -> RetrieverTrained:
        async with pools.open_pool(settings, name) as pool:
            with progress(f"learning from {name}") as bar:
                return await pools.train(pool, bar)

    row = asyncio.run(run())
    if json:
        print_json({"pool": name, **row.model_dump(mode="json")})
    else:
        say(describe_version(row))
    return 0


def describe_version(row: RetrieverTrained) -> str:
    """Say what a version learned, and what the check on what was held out found."""
    begun = "begun anew" if row.anew and row.parent else "the first" if row.anew else f"after version {row.parent}"
    if not row.held:
        nothing = "nothing came of it that does better on what was held out"
        return f"version {row.number}, {begun}: {nothing}; it ranks as version {row.parent} does"
    line = f"version {row.number}, {begun}: learned from {count_of(row.learned_from, 'exemplar')} ({row.basis})"
    if not row.held_out and not row.before:
        return f"{line}; too little was held out to check it"
    return f"{line}; what it ranks first helps {row.held_out:.0%} of the pairs held out, {row.before:.0%} before"


def curve(settings: Settings, name: str, form: Form | None, file: Path | None, json: bool) -> int:
    """Print how well a pool does at each size, and what learning gains as it grows; draw both."""

    async def run() -> Curves:
        async with pools.open_pool(settings, name) as pool:
            with progress(f"learning from {name} as it grew") as bar:
                grown = await pools.growth(pool, bar)
            return Curves(name, await pools.size_curves(pool, form), grown, (await pool.state()).versions)

    curves = asyncio.run(run())
    if file:
        with open_writer(file) as write:
            for line in stacked(_pictures(curves)).splitlines():
                write(line)
    if json:
        for each in curves.sizes:
            points = [_point(point) for point in each.points]
            facts = {"asked": each.asked, "held_out": each.held_out, "by_hand": each.by_hand}
            print_json({"curve": "size", "form": each.form, "best": each.best, **facts, "points": points})
        print_json({"curve": "growth", "points": [_point(point) for point in curves.growth]})
        print_json({"curve": "versions", "points": [_checked(row) for row in curves.versions]})
        return 0
    _show(curves)
    if file:
        say(f"the picture is in {file}")
    return 0


def trim(settings: Settings, name: str, capacity: str, yes: bool, json: bool) -> int:
    """Let go of what is least worth keeping."""
    if not yes and not asking.confirm(f"{name} is trimmed to {capacity}, go on?"):
        return 0

    async def run() -> list[str]:
        async with pools.open_pool(settings, name) as pool:
            return await pools.trim(pool, capacity, settings.user)

    gone = asyncio.run(run())
    if json:
        print_json({"pool": name, "gone": gone})
    else:
        say(f"{count_of(len(gone), 'exemplar')} gone; what was laid in by hand stays, and what was drawn from them")
    return 0


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


def _pictures(curves: Curves) -> list[str]:
    named = {f"{each.form}, best {each.best}": _helped(each) for each in curves.sizes}
    sizes = svg(named, curves.axes(curves.sizes[0].points), curves.title)
    return [sizes, svg(curves.grown, curves.axes(curves.growth), GROWN)] if curves.growth else [sizes]


def _helped(curve: SizeCurve) -> list[float]:
    return [point.helped for point in curve.points]


def _point(point: SizePoint) -> dict[str, object]:
    return {"size": point.size, "helped": round(point.helped, 4), "untrained": round(point.untrained, 4)}


def _checked(row: RetrieverTrained) -> dict[str, object]:
    names = ("number", "held", "held_out", "before", "learned_from", "upto")
    return {name: getattr(row, name) for name in names}
