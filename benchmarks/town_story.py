"""The story of a town, measured over seeds: how news spreads, who gets to know whom, who comes to a party.

    python benchmarks/town_story.py [--town smallville] [--days 2] [--seeds 10] [--controls 1] [--json]
    python benchmarks/town_story.py --fact "there is a flower show in the park on Wednesday" --to "Maria Lopez"

Nothing in the town knows these facts: they are words of whoever measures, looked for in what residents remember. A fact
that is given with --fact becomes a memory of one resident (--to) before the first day. Controls live the same days with
talk, or with recall, switched off: by word nobody hears of anything. Medians over the seeds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from mindstream.town.history import History, read_history
from mindstream.town.metrics.attendance import Event, trace_attendance
from mindstream.town.metrics.conduct import examine_conduct
from mindstream.town.metrics.counts import count_events
from mindstream.town.metrics.curves import draw_curves, hours
from mindstream.town.metrics.diffusion import trace_fact
from mindstream.town.metrics.fact import read_fact
from mindstream.town.metrics.relationships import trace_acquaintance
from mindstream.town.packs import find_pack
from mindstream.town.profile import Profile
from mindstream.town.setting import Setting
from mindstream.town.source import setting_of
from mindstream.town.town import Town
from mindstream.town.world.address import Address

FACTS = {
    "party": "there is a Valentine's Day party at Hobbs Cafe",
    "candidacy": "Sam Moore is running for mayor | Sam Moore is a candidate for mayor | Sam Moore stands for mayor",
}
PARTY = ("Hobbs Cafe", 1, 17 * 60, 19 * 60)
"""Where the party is, on which day after the first, from which minute to which."""
CONTROLS: dict[str, dict[str, Any]] = {"no_talk": {"talks": False}, "no_recall": {"recalls": False}}


def give_fact(setting: Setting, fact: str, name: str) -> Setting:
    """Return a town in which somebody remembers one thing more."""
    person = setting.people[name]
    told = person.model_copy(update={"memories": (*person.memories, fact.split("|")[0].strip())})
    return replace(setting, people={**setting.people, name: told})


async def live(setting: Setting, days: int, folder: Path) -> History:
    """Live some days and read what happened."""
    async with Town.open(folder, setting) as town:
        await town.run(until=setting.step_at(days, 0) - 1)
    return await read_history(folder)


def measure(history: History, facts: dict[str, str]) -> dict[str, Any]:
    """Measure one life of a town."""
    setting, steps = history.setting, hours(history)
    report: dict[str, Any] = {"seed": setting.seed, "residents": len(history.names)}
    curves = {}
    for label, words in facts.items():
        diffusion = trace_fact(history, read_fact(words, setting))
        report[label] = {
            "knew_at_start": diffusion.count(0), "heard": diffusion.heard(history.step),
            "heard_or_seen": diffusion.count(history.step), "traced": diffusion.traced(history.step),
            "how": diffusion.by_how(),
            "longest_chain": max((len(each.chain) for each in diffusion.knowers), default=0),
        }  # fmt: skip
        curves[label] = [diffusion.heard(step) / len(history.names) for step in steps]
    known = trace_acquaintance(history)
    curves["who knows whom"] = known.curve(steps)
    report["density"] = {"start": round(known.density(0), 3), "end": round(known.density(history.step), 3)}
    place, day, start, end = PARTY
    address = Address((setting.world.name, place))
    if "party" in facts and str(address) in setting.addresses and setting.step_at(day, end) <= history.step:
        event = Event(
            read_fact(facts["party"], setting), address, setting.step_at(day, start), setting.step_at(day, end)
        )
        there = trace_attendance(history, event)
        report["at_the_party"] = {
            "invited": len(there.invited), "came": len(there.minutes), "came_invited": len(there.came_invited),
            "prepared": sorted(there.prepared), "invitations": len(there.invitations), "talks": len(there.talked),
        }  # fmt: skip
    conduct, counts = examine_conduct(history), count_events(history)
    report["conduct"] = {
        "plan_adherence": round(conduct.adherence, 3), "believable_places": round(conduct.believable_share, 3),
        "not_believable": conduct.not_believable, "in_walls": conduct.in_walls,
        "asleep_elsewhere": conduct.asleep_elsewhere, "talking_asleep": conduct.talking_asleep,
    }  # fmt: skip
    report["reflections_per_resident_day"] = round(counts.reflections_a_day, 2)
    report["talks_per_day"] = round(counts.talks_a_day, 1)
    report["picture"] = draw_curves(history, steps, curves, f"{setting.name}: what is heard, and who knows whom")
    return report


def medians(reports: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the median of every number, however deep it stands."""
    found: dict[str, Any] = {}
    for name, value in reports[0].items():
        values = [report[name] for report in reports if name in report]
        if isinstance(value, dict) and name not in ("how", "not_believable"):
            found[name] = medians(values)
        elif isinstance(value, int | float) and name != "seed":
            found[name] = statistics.median(values)
        elif isinstance(value, list):
            found[name] = statistics.median(len(each) for each in values)
    return found


async def tell(given: argparse.Namespace) -> dict[str, Any]:
    """Live with every seed and measure; then the controls."""
    facts = dict(FACTS)
    town, cpu = find_pack(given.town), time.process_time()
    if given.fact:
        facts = {"fact": given.fact}

    def setting_with(seed: int, **profile: Any) -> Setting:
        setting = setting_of(town, seed=seed, profile=Profile(**profile))
        return give_fact(setting, given.fact, given.to) if given.fact else setting

    report: dict[str, Any] = {"load": os.getloadavg()[0], "facts": facts}
    with tempfile.TemporaryDirectory() as scratch:
        runs = []
        for seed in range(1, given.seeds + 1):
            history = await live(setting_with(seed), given.days, Path(scratch) / str(seed))
            runs.append(measure(history, facts))
        report |= {"picture": runs[0]["picture"]}
        runs = [{name: value for name, value in each.items() if name != "picture"} for each in runs]
        report |= {"medians": medians(runs), "runs": runs}
        for label, profile in CONTROLS.items():
            controls = []
            for seed in range(1, given.controls + 1):
                history = await live(setting_with(seed, **profile), given.days, Path(scratch) / f"{label}{seed}")
                whole = measure(history, facts)
                controls.append({name: whole[name] for name in (*facts, "density")})
            if controls:
                report[label] = controls
    report["cpu_seconds"] = round(time.process_time() - cpu, 1)
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--town", default="smallville", help="a town of ours, or a path [%(default)s]")
    parser.add_argument("--days", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--controls", type=int, default=1, help="seeds for each control; 0: none [%(default)s]")
    parser.add_argument("--fact", default="", help="measure this instead, in words; other wordings after |")
    parser.add_argument("--to", default="", help="who remembers it from the beginning")
    parser.add_argument("--plot", default="", help="write the first run's curves as SVG")
    parser.add_argument("--json", action="store_true", help="print one JSON object on one line")
    given = parser.parse_args()
    if bool(given.fact) != bool(given.to):
        parser.error("--fact and --to go together: what is told, and to whom")
    report = asyncio.run(tell(given))
    picture = report.pop("picture")
    if given.plot:
        Path(given.plot).write_text(picture, "utf-8")
    print(json.dumps(report, indent=None if given.json else 1))


if __name__ == "__main__":
    main()
