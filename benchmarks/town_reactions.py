"""Whether what happens to a thing changes what residents do within five minutes of the town's time.

    python benchmarks/town_reactions.py [--town smallville] [--days 1] [--seeds 2] [--moments 5] [--json]
    python benchmarks/town_reactions.py --save DIR --map DIR   # the authors' people on their map

A town lives with rules up to some moments, and from each goes on twice for 5 minutes: as it is, and with a thing in a
condition (`town set`). A case is a resident who is awake and sees the thing: it is in its room (`room`), or it has just
begun to do something with it (`use`). It changed if in these minutes it did another thing or was elsewhere because of it.
Things that are set at once lie in different rooms. Controls: harmless conditions, and residents who observe nothing;
`elsewhere`: of residents in rooms where nothing was set, how many changed. `unseen`: things in the same room, farther
than one sees.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mindstream.town.events import Acted
from mindstream.town.formats.maps import load_map
from mindstream.town.formats.saves import read_save
from mindstream.town.importing import begin_from_save, profile_of_save
from mindstream.town.journal import rows_after
from mindstream.town.packs import open_setting
from mindstream.town.perceive import is_in_sight, nearest_spot
from mindstream.town.profile import Profile
from mindstream.town.state import ResidentState
from mindstream.town.town import Town

CONDITIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "leaking": ("leaking", ("shower", "sink", "toilet", "bathtub", "basin")),
    "burning": ("burning", ("stove", "cooking area", "toaster", "oven", "bed", "desk")),
    "empty": ("empty", ("refrigerator", "fridge", "shelf", "larder")),
    "occupied": ("occupied", ("shower", "toilet", "bathtub", "bath")),
    "overflowing": ("overflowing", ("sink", "toilet", "bathtub", "basin")),
    "smoke": ("smoke coming out of it", ("stove", "cooking area", "oven", "computer", "desk", "table", "counter")),
    "out of": ("out of paper", ("toilet", "desk", "printer")),
    "broken part": ("a broken leg", ("bed", "table", "chair", "sofa", "desk", "seating", "bench")),
    "jammed": ("jammed", ("closet", "shelf", "desk", "piano", "computer", "counter")),
    "harmless: polished": ("freshly polished", ()),
    "harmless: tidy": ("clean and tidy", ()),
}
"""By kind: what is set, and for which things; for none in particular: for any."""
MINUTES = 5


@dataclass
class Tally:
    """Of one kind: cases, and how many changed; what was done, by words."""

    cases: int = 0
    changed: int = 0
    because_of_it: int = 0
    deeds: Counter[str] = field(default_factory=Counter)
    unchanged: list[str] = field(default_factory=list)

    def report(self) -> dict[str, Any]:
        share = round(self.because_of_it / self.cases, 3) if self.cases else None
        return {
            "cases": self.cases, "changed": self.changed, "because_of_it": self.because_of_it, "share": share,
            "deeds": dict(self.deeds.most_common(6)), "unchanged": self.unchanged[:5],
        }  # fmt: skip


@dataclass(frozen=True)
class Lived:
    """What residents did in the minutes after a moment: acts begun, and where they stood at the end."""

    acts: dict[str, list[Acted]]
    spots: dict[str, tuple[int, int]]

    def differs(self, other: Lived, name: str) -> bool:
        """Tell whether somebody did another thing."""
        return self._deeds(name) != other._deeds(name) or self.spots[name] != other.spots[name]

    def _deeds(self, name: str) -> list[tuple[int, str, str]]:
        return [(each.step, each.act.what, each.act.place) for each in self.acts.get(name, [])]


async def go_on(folder: Path, set_to: dict[str, str]) -> Lived:
    """Live on for some minutes in a copy, with things in these conditions."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        copy = Path(scratch) / "copy"
        shutil.copytree(folder, copy)
        async with Town.open(copy) as town:
            began = town.step
            for place, condition in set_to.items():
                await town.set_object(place, condition)
            await town.run(until=began + MINUTES * town.setting.profile.a_minute)
            acts: dict[str, list[Acted]] = defaultdict(list)
            async for row in rows_after(town.store):
                if isinstance(row.event, Acted) and row.event.step > began:
                    acts[row.mind].append(row.event)
            spots = {name: each.state.spot(town.step) for name, each in town.residents.items()}
            return Lived(acts, spots)


def find_cases(town: Town, meant: tuple[str, ...]) -> Iterator[tuple[str, str, list[str], list[str]]]:
    """Yield an object a room that holds residents who are awake: room, object, who sees it, who is too far away."""
    setting, world, step = town.setting, town.setting.world, town.step
    rooms: dict[int, list[ResidentState]] = defaultdict(list)
    for each in town.residents.values():
        if each.state.act is not None and not each.state.asleep:
            rooms[world.arena_of(each.state.spot(step))].append(each.state)
    for room, there in sorted(rooms.items()):
        things = [str(world.places[number]) for _, number in world.objects_in(room)] if room else []
        fitting = [each for each in dict.fromkeys(things) if not meant or each.rpartition(":")[2].endswith(meant)]
        used = {each.act.place for each in there if each.act}
        fitting.sort(key=lambda each: (each not in used, setting.draw("thing", step, each)))
        if fitting:
            thing = fitting[0]
            sees = {
                each.name: is_in_sight(setting, each.spot(step), nearest_spot(setting, thing, each.spot(step)))
                for each in there
            }
            yield str(world.places[room]), thing, *([name for name in sees if sees[name] is so] for so in (True, False))


async def try_moment(folder: Path, tallies: dict[str, Tally], kinds: dict[str, tuple[str, tuple[str, ...]]]) -> None:
    """Go on from a moment once as it is, and once with each kind of condition."""
    async with Town.open(folder) as town:
        cases = {kind: list(find_cases(town, meant)) for kind, (_, meant) in kinds.items()}
        states = {name: each.state for name, each in town.residents.items()}
        rooms = {name: town.setting.world.arena_of(each.spot(town.step)) for name, each in states.items()}
        places = [str(each) for each in town.setting.world.places]
    plain = await go_on(folder, {})
    for kind, found in cases.items():
        if not found:
            continue
        odd = await go_on(folder, {thing: kinds[kind][0] for _, thing, _, _ in found})
        for _, thing, sees, too_far in found:
            for name in sees:
                _count(tallies, kind, thing, states[name], plain, odd)
            for name in too_far:
                tallies["unseen"].cases += 1
                tallies["unseen"].changed += plain.differs(odd, name)
        set_in = {room for room, *_ in found}
        for name, room in rooms.items():
            if places[room] not in set_in and not states[name].asleep:
                tallies["elsewhere"].cases += 1
                tallies["elsewhere"].changed += plain.differs(odd, name)


def _count(tallies: dict[str, Tally], kind: str, thing: str, state: ResidentState, plain: Lived, odd: Lived) -> None:
    assert state.act is not None
    needs = state.act.place == thing
    tally = tallies[f"{kind}, {'use' if needs else 'room'}"]
    because = [each.act for each in odd.acts.get(state.name, []) if each.act.sees_to == thing]
    tally.cases += 1
    tally.changed += plain.differs(odd, state.name)
    tally.because_of_it += bool(because)
    if because:
        tally.deeds[because[0].what] += 1
    else:
        tally.unchanged.append(f"{state.name}, {state.act.what}: {thing}")


async def live(given: argparse.Namespace, folder: Path, seed: int, observes: bool) -> None:
    """Begin a town in a folder."""
    if given.save:
        save = read_save(given.save)
        profile = profile_of_save(save).model_copy(update={"observes": observes})
        await begin_from_save(folder, save, load_map(given.map), seed=seed, profile=profile)
        return
    async with Town.open(folder, open_setting(given.town, seed=seed, profile=Profile(observes=observes))):
        pass


async def measure(given: argparse.Namespace) -> dict[str, Any]:
    """Live with every seed up to each moment, and try all conditions there; then the controls."""
    tallies: dict[str, dict[str, Tally]] = {name: defaultdict(Tally) for name in ("seen", "control: blind")}
    kinds = {k: v for k, v in CONDITIONS.items() if not given.kinds or k in given.kinds.split(",")}
    kinds |= {words: (words, tuple(filter(None, things.split("|")))) for words, _, things in (each.partition("=") for each in given.also)}
    for seed in range(1, given.seeds + 1):
        for observes, label in ((True, "seen"), (False, "control: blind"))[: 1 + (seed == 1)]:
            with tempfile.TemporaryDirectory() as scratch:
                folder = Path(scratch) / "town"
                await live(given, folder, seed, observes)
                async with Town.open(folder) as town:
                    first, day = max(town.step, 0), town.setting.profile.a_day
                    draws = [town.setting.draw("moment", seed, n) for n in range(given.moments)]
                wake, late = 6 / 24, 23 / 24
                for n, draw in enumerate(draws):
                    share = wake + (late - wake) * (n + draw) / given.moments
                    async with Town.open(folder) as town:
                        await town.run(until=first + int(day * share))
                        print(f"seed {seed}, {label}: {town.setting.when(town.step):%H:%M:%S}", file=sys.stderr)
                    await try_moment(folder, tallies[label], kinds)
    return {
        label: {kind: tally.report() for kind, tally in sorted(each.items())} for label, each in tallies.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--town", default="smallville", help="a town of ours, or a path [%(default)s]")
    parser.add_argument("--save", type=Path, help="a saved simulation of Park 2023 to begin from")
    parser.add_argument("--map", type=Path, help="its map")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--moments", type=int, default=6, help="of a day [%(default)s]")
    parser.add_argument("--kinds", default="", help="only these, with commas between")
    parser.add_argument("--also", action="append", default=[], help="other words, and for which things: 'cracked=sink|table'")
    parser.add_argument("--json", action="store_true", help="print one JSON object on one line")
    given = parser.parse_args()
    if bool(given.save) != bool(given.map):
        parser.error("--save and --map go together")
    print(json.dumps(asyncio.run(measure(given)), indent=None if given.json else 1))


if __name__ == "__main__":
    main()
