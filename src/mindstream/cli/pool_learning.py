"""`mindstream pool`: what its retriever has learned, and how large it does best."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
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
from mindstream.sharing.growth import SizeCurve
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
    line = f"version {row.number}, {begun}: learned from {count_of(row.learned_from, 'exemplar')} ({row.basis})"
    if not row.held:
        return f"{line}; on what was held out it did worse, so it ranks as version {row.parent} does"
    if not row.held_out and not row.before:
        return f"{line}; too little was held out to check it"
    return f"{line}; what it ranks first helps {row.held_out:.0%} of the pairs held out, {row.before:.0%} before"


def curve(settings: Settings, name: str, form: Form | None, file: Path | None, json: bool) -> int:
    """Print how well a pool does at each size, and how its versions did; draw both."""

    async def run() -> tuple[list[SizeCurve], list[RetrieverTrained]]:
        async with pools.open_pool(settings, name) as pool:
            return await pools.size_curves(pool, form), (await pool.state()).versions

    found, versions = asyncio.run(run())
    if file:
        with open_writer(file) as write:
            for line in stacked(_pictures(name, found, versions)).splitlines():
                write(line)
    if json:
        for each in found:
            points = [{"size": point.size, "helped": round(point.helped, 4)} for point in each.points]
            facts = {"asked": each.asked, "held_out": each.held_out, "by_hand": each.by_hand, "version": each.version}
            print_json({"curve": "size", "form": each.form, "best": each.best, **facts, "points": points})
        print_json({"curve": "versions", "points": [_point(row) for row in versions]})
        return 0
    _show(name, found, versions)
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


def _show(name: str, found: Sequence[SizeCurve], versions: Sequence[RetrieverTrained]) -> None:
    say(f"How well {name}'s own pairs are helped, by size of the pool\n")
    say("\n".join(plot({each.form[0]: _helped(each) for each in reversed(found)}, _sizes(found))))
    for each in found:
        who = "pairs held out from training" if each.held_out else "pairs, some of them trained on"
        ranked = f"version {each.version}" if each.version else "the untrained retriever"
        say(f"\n{each.form[0]}: {each.form}, {each.asked} {who}, ranked by {ranked}")
        say("  " + ", ".join(f"{point.size}: {point.helped:.1%}" for point in each.points))
        laid = f" ({each.by_hand} were laid in by hand, and stay)" if each.by_hand else ""
        say(f"  best size: {each.best}{laid}; mindstream pool trim {name} --capacity {each.best}")
    if len(versions) > 1:
        say("\nHow often what ranks first helps, on what is held out, by version\n")
        say("\n".join(plot({"*": _shares(versions)}, _line(versions))))
    say(f"\n{describe_version(versions[-1])}" if versions else "\nthe retriever has learned nothing yet")


def _pictures(name: str, found: Sequence[SizeCurve], versions: Sequence[RetrieverTrained]) -> list[str]:
    title = f"How well {name}'s own pairs are helped, by size of the pool"
    sizes = svg({f"{each.form}, best {each.best}": _helped(each) for each in found}, _sizes(found), title)
    if len(versions) < 2:
        return [sizes]
    checked = "How often what ranks first helps, on what is held out"
    return [sizes, svg({"held-out check": _shares(versions)}, _line(versions), checked)]


def _sizes(found: Sequence[SizeCurve]) -> Axes:
    first, last = found[0].points[0].size, found[0].points[-1].size
    top = fitting_top(share for each in found for share in _helped(each))
    return Axes(last, "exemplars in the pool", "", first, top)


def _line(versions: Sequence[RetrieverTrained]) -> Axes:
    return Axes(versions[-1].number, "version of the retriever", "", versions[0].number)


def _helped(curve: SizeCurve) -> list[float]:
    return [point.helped for point in curve.points]


def _shares(versions: Sequence[RetrieverTrained]) -> list[float]:
    return [row.held_out for row in versions]


def _point(row: RetrieverTrained) -> dict[str, object]:
    names = ("number", "held", "held_out", "before", "learned_from", "upto")
    return {name: getattr(row, name) for name in names}
