"""Whether what happens to a thing changes what residents do within five minutes of the town's time.

    python benchmarks/town_reactions.py [--town smallville] [--seeds 2] [--moments 6] [--uses 12] [--json]
    python benchmarks/town_reactions.py --save DIR --map DIR   # the authors' people on their map

A town lives with rules up to some moments of a day, and from each goes on for 5 minutes: as it is, and with things in a
condition (`town set`), one in a room. A case is a resident who is awake and sees the thing, in its `own` house or work
place or `out`, or who has come or is coming to `use` it. It changed if in these minutes it did another thing or stood
elsewhere; `because_of_it`: what it did was about the thing. `after`: from the first moment on for 90 minutes, how many
things are right again, and the most residents who set out to mend one.

Controls: harmless conditions; residents who observe nothing; things in the same room, farther than one sees
(`unseen`); residents who came into no room where something was set (`elsewhere`).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from mindstream.memory.store import Commit
from mindstream.town.events import Acted, ObjectChanged
from mindstream.town.formats.maps import load_map
from mindstream.town.formats.saves import read_save
from mindstream.town.importing import begin_from_save, profile_of_save
from mindstream.town.journal import rows_after
from mindstream.town.packs import open_setting
from mindstream.town.profile import Profile
from mindstream.town.sight import is_in_sight, nearest_spot
from mindstream.town.state import ResidentState
from mindstream.town.town import Town

MINUTES, LATER = 5, 90
WAKE, LATE = 6 / 24, 23 / 24
"""Moments lie between these parts of a day."""


class Kind(NamedTuple):
    """A condition in words, and the things it is set for, by the ends of their names; none: any."""

    words: str
    things: tuple[str, ...] = ()


KINDS = (
    Kind("leaking", ("shower", "sink", "toilet", "bathtub", "basin")),
    Kind("burning", ("stove", "cooking area", "toaster", "oven", "bed", "desk")),
    Kind("empty", ("refrigerator", "fridge", "shelf", "larder")),
    Kind("occupied", ("shower", "toilet", "bathtub", "bath")),
    Kind("overflowing", ("sink", "toilet", "bathtub", "basin")),
    Kind("smoke coming out of it", ("stove", "cooking area", "oven", "computer", "desk", "table", "counter")),
    Kind("out of paper", ("toilet", "desk", "printer")),
    Kind("a broken leg", ("bed", "table", "chair", "sofa", "desk", "seating", "bench")),
    Kind("jammed", ("closet", "shelf", "desk", "piano", "computer", "counter")),
)
HARMLESS = (Kind("freshly polished"), Kind("clean and tidy"))


@dataclass
class Tally:
    """Of one kind: cases, and how many changed; what was done, by words."""

    cases: int = 0
    changed: int = 0
    because_of_it: int = 0
    deeds: Counter[str] = field(default_factory=Counter)
    not_changed: list[str] = field(default_factory=list)

    def report(self) -> dict[str, Any]:
        share = round(self.because_of_it / self.cases, 3) if self.cases else None
        return {
            "cases": self.cases, "changed": self.changed, "because_of_it": self.because_of_it, "share": share,
            "deeds": dict(self.deeds.most_common(6)), "not_changed": self.not_changed[:5],
        }  # fmt: skip


Tallies = defaultdict[str, Tally]


@dataclass(frozen=True)
class Lived:
    """What happened in some minutes after a moment: acts begun, rooms each was in, where each stood at the end, and
    what became of things."""

    acts: dict[str, list[Acted]]
    rooms: dict[str, set[int]]
    spots: dict[str, tuple[int, int]]
    things: dict[str, str]

    def differs(self, other: Lived, name: str) -> bool:
        """Tell whether somebody did another thing."""
        return self._deeds(name) != other._deeds(name) or self.spots[name] != other.spots[name]

    def _deeds(self, name: str) -> list[tuple[int, str, str]]:
        return [(each.step, each.act.what, each.act.place) for each in self.acts.get(name, [])]


async def go_on(folder: Path, set_to: dict[str, str], minutes: int = MINUTES) -> Lived:
    """Live on for some minutes in a copy, with things in these conditions."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        copy = Path(scratch) / "copy"
        shutil.copytree(folder, copy)
        async with Town.open(copy) as town:
            began, world = town.step, town.setting.world
            rooms: dict[str, set[int]] = defaultdict(set)

            def look(step: int) -> None:
                for name, each in town.residents.items():
                    rooms[name].add(world.arena_of(each.state.spot(step)))

            acts: dict[str, list[Acted]] = defaultdict(list)
            things: dict[str, str] = {}

            def keep(commits: Sequence[Commit]) -> None:
                for commit in commits:
                    for entry in commit.entries:
                        if isinstance(entry.event, Acted):
                            acts[commit.mind].append(entry.event)
                        elif isinstance(entry.event, ObjectChanged):
                            things[entry.event.place] = entry.event.condition

            look(began)
            for place, condition in set_to.items():
                await town.set_object(place, condition)
            await town.run(began + minutes * town.setting.profile.a_minute, look, keep)
            spots = {name: each.state.spot(town.step) for name, each in town.residents.items()}
            return Lived(acts, rooms, spots, things)


class Case(NamedTuple):
    """A thing in a room; who uses it, or is on the way to it; who sees it; who is in its room and too far away."""

    thing: str
    room: int
    users: Sequence[str]
    see: Sequence[str]
    too_far: Sequence[str]


def find_cases(town: Town, kind: Kind) -> Iterator[Case]:
    """Yield one thing of each room where one is needed or somebody is awake, what is needed first."""
    setting, world, step = town.setting, town.setting.world, town.step
    soon = step + (MINUTES - 2) * setting.profile.a_minute
    there: dict[int, list[ResidentState]] = defaultdict(list)
    uses: dict[str, list[str]] = defaultdict(list)
    for name, resident in town.residents.items():
        act = resident.state.act
        if act is not None and not act.asleep:
            there[world.arena_of(resident.state.spot(step + 1))].append(resident.state)
            if step < act.until - setting.profile.a_minute and act.arrives <= min(soon, act.until):
                uses[act.place].append(name)
    things: dict[int, list[str]] = defaultdict(list)
    for place, address in setting.addresses.items():
        if address.level == 4 and (not kind.things or address.last.endswith(kind.things)):
            things[world.arena_of(world.spots(address)[0])].append(place)
    for room, within in sorted(things.items()):
        thing = min(within, key=lambda each: (each not in uses, setting.draw("thing", step, each)))
        awake = [each for each in there[room] if each.name not in uses[thing]]
        sees = {
            each.name: is_in_sight(setting, each.spot(step + 1), nearest_spot(setting, thing, each.spot(step + 1)))
            for each in awake
        }
        if uses[thing] or sees:
            see, too_far = ([name for name in sees if sees[name] is so] for so in (True, False))
            yield Case(thing, room, uses[thing], see, too_far)


async def try_moment(folder: Path, tallies: Tallies, kinds: Sequence[Kind], after: dict[str, Any] | None) -> None:
    """Go on from a moment once as it is, and once with each kind of condition."""
    async with Town.open(folder) as town:
        cases = {kind: list(find_cases(town, kind)) for kind in kinds}
        states = {name: each.state for name, each in town.residents.items()}
        homes = {name: each.home.split(":")[1] for name, each in town.setting.people.items()}
    plain = await go_on(folder, {})
    for kind, found in cases.items():
        if not found:
            continue
        set_to = {each.thing: kind.words for each in found}
        odd = await go_on(folder, set_to)
        for case in found:
            for name in case.users:
                _count(tallies[f"{kind.words}, use"], case.thing, states[name], plain, odd)
            for name in case.see:
                is_own = case.thing.split(":")[1] == homes[name] or states[name].act.what.startswith("working")  # type: ignore[union-attr]
                _count(tallies[f"{kind.words}, {'own' if is_own else 'out'}"], case.thing, states[name], plain, odd)
            for name in case.too_far:
                _count(tallies["control: unseen"], case.thing, states[name], plain, odd)
        rooms = {case.room for case in found}
        for name, state in states.items():
            if not (odd.rooms[name] & rooms or state.asleep):
                _count(tallies["control: elsewhere"], "", state, plain, odd)
        if after is not None and kind not in HARMLESS and kind.words != "occupied":
            _count_after(after, await go_on(folder, set_to, LATER), set_to)


def _count(tally: Tally, thing: str, state: ResidentState, plain: Lived, odd: Lived) -> None:
    assert state.act is not None
    because = [each.act for each in odd.acts.get(state.name, []) if thing and each.act.sees_to == thing]
    tally.cases += 1
    tally.changed += plain.differs(odd, state.name)
    tally.because_of_it += bool(because)
    if because:
        tally.deeds[because[0].what] += 1
    else:
        tally.not_changed.append(f"{state.name}, {state.act.what}: {thing}")


def _count_after(after: dict[str, Any], lived: Lived, set_to: dict[str, str]) -> None:
    """Count what became of things, and how many set out to mend each."""
    for thing in set_to:
        by = Counter(
            name for name, acts in lived.acts.items() for each in acts
            if each.act.sees_to == thing and each.act.why == "react"
        )  # fmt: skip
        if by:
            after["seen_to"] += 1
            after["right_again"] += lived.things.get(thing) == ""
            after["most_who_mend"] = max(after["most_who_mend"], len(by))
            after["most_tasks_of_one"] = max(after["most_tasks_of_one"], *by.values())


async def begin(given: argparse.Namespace, folder: Path, seed: int, observes: bool) -> None:
    """Begin a town in a folder."""
    if given.save:
        save = read_save(given.save)
        profile = profile_of_save(save).model_copy(update={"observes": observes})
        await begin_from_save(folder, save, load_map(given.map), seed=seed, profile=profile)
        return
    async with Town.open(folder, open_setting(given.town, seed=seed, profile=Profile(observes=observes))):
        pass


async def choose_moments(folder: Path, kinds: Sequence[Kind], moments: int, uses: int) -> list[int]:
    """Return steps of a first day: some by the clock, some at which somebody sets out to use such a thing."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        copy = Path(scratch) / "copy"
        shutil.copytree(folder, copy)
        async with Town.open(copy) as town:
            setting, first = town.setting, max(town.step, 0)
            day = setting.profile.a_day
            await town.run(until=first + day - 1)
            found: dict[str, list[int]] = defaultdict(list)
            async for row in rows_after(town.store):
                if isinstance(row.event, Acted) and not row.event.act.asleep and row.event.step > first:
                    thing = row.event.act.place.rpartition(":")[2]
                    for kind in kinds:
                        if kind.things and thing.endswith(kind.things):
                            found[kind.words].append(row.event.step)
    draw = setting.draw
    chosen = {first + int(day * (WAKE + (LATE - WAKE) * (n + draw("moment", n)) / moments)) for n in range(moments)}
    for n in range(uses):
        steps = found.get(kinds[n % len(kinds)].words, [])
        if steps:
            chosen.add(steps[int(draw("use", n) * len(steps))])
    return sorted(chosen)


async def measure(given: argparse.Namespace) -> dict[str, Any]:
    """Live with every seed up to each moment, and try all conditions there; with the first also the blind control."""
    kinds = [
        *(each for each in (*KINDS, *HARMLESS) if not given.only),
        *map(_kind, given.only),
        *map(_kind, given.also),
    ]
    seen, blind = Tallies(Tally), Tallies(Tally)
    after = dict.fromkeys(("seen_to", "right_again", "most_who_mend", "most_tasks_of_one"), 0)
    for seed in range(1, given.seeds + 1):
        for observes, tallies in ((True, seen), (False, blind))[: 1 + (seed == 1)]:
            with tempfile.TemporaryDirectory() as scratch:
                folder = Path(scratch) / "town"
                await begin(given, folder, seed, observes)
                steps = await choose_moments(folder, kinds, given.moments, given.uses)
                for n, step in enumerate(steps):
                    async with Town.open(folder) as town:
                        await town.run(until=step)
                        when = f"{town.setting.when(step):%H:%M:%S}"
                    print(f"seed {seed}, {'seen' if observes else 'blind'}: {when}", file=sys.stderr)
                    await try_moment(folder, tallies, kinds, after if observes and n % 4 == 0 else None)
    blind_changed = {kind: each.changed for kind, each in blind.items() if each.changed}
    return {
        "kinds": {kind: seen[kind].report() for kind in sorted(seen)},
        "after": after,
        "control: blind": {"cases": sum(each.cases for each in blind.values()), "changed": blind_changed},
    }


def _kind(text: str) -> Kind:
    words, _, things = text.partition("=")
    return Kind(words, tuple(filter(None, things.split("|"))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--town", default="smallville", help="a town of ours, or a path [%(default)s]")
    parser.add_argument("--save", type=Path, help="a saved simulation of Park 2023 to begin from")
    parser.add_argument("--map", type=Path, help="its map")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--moments", type=int, default=6, help="of a day, by the clock [%(default)s]")
    parser.add_argument("--uses", type=int, default=12, help="moments at which somebody sets out to use such a thing")
    parser.add_argument(
        "--also", action="append", default=[], help="other words, for which things: 'cracked=sink|table'"
    )
    parser.add_argument("--only", action="append", default=[], help="these instead")
    parser.add_argument("--json", action="store_true", help="print one JSON object on one line")
    given = parser.parse_args()
    if bool(given.save) != bool(given.map):
        parser.error("--save and --map go together")
    print(json.dumps(asyncio.run(measure(given)), indent=None if given.json else 1))


if __name__ == "__main__":
    main()
