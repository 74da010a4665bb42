"""How news goes round in a town without a model, and who comes to what was agreed on, over seeds.

    python benchmarks/town_story.py [--town smallville] [--days 2] [--seeds 3] [--controls 1] [--json]

Structure lives here, not minds: news is told as it is remembered, with its appointment, and nobody reads a sentence.
So the figures say that what is told arrives, that an appointment is kept, and that nobody is where nobody can be; not
that anybody is believable. Controls live the same days without talk, or without recall: nobody hears of anything.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from mindstream.town.inspect.history import History, read_history
from mindstream.town.metrics.attendance import Event, trace_attendance
from mindstream.town.metrics.conduct import examine_conduct
from mindstream.town.metrics.counts import count_events
from mindstream.town.metrics.diffusion import trace_fact
from mindstream.town.metrics.fact import find_fact
from mindstream.town.metrics.relationships import trace_acquaintance
from mindstream.town.packs import find_pack
from mindstream.town.profile import Profile
from mindstream.town.setting import Setting
from mindstream.town.source import setting_of
from mindstream.town.town import Town

CONTROLS: dict[str, dict[str, Any]] = {"no_talk": {"talks": False}, "no_recall": {"recalls": False}}


async def live(setting: Setting, days: int, folder: Path) -> History:
    """Live some days and read what happened."""
    async with Town.open(folder, setting) as town:
        await town.run(until=setting.step_at(days, 0) - 1)
    return await read_history(folder)


def news_of(history: History) -> dict[str, Any]:
    """Follow every seed of the town's file: who was told of it, and who came to what takes place."""
    setting, found = history.setting, {}
    for name, person in setting.people.items():
        for seed in person.memories:
            known = trace_fact(history, find_fact(seed.text, history))
            chains = max((len(each.chain) for each in known.knowers), default=0)
            found[f"{name}: {seed.text:.50}"] = told = {
                "knew_at_start": known.count(0), "know": len(known.knowers), "longest_chain": chains,
            }  # fmt: skip
            if (at := seed.appointment) and at.place in setting.addresses:
                start, end = (setting.step_at_moment(each.timestamp()) for each in (at.start, at.end))
                there = trace_attendance(history, Event(setting.addresses[at.place], start, end), known)
                told |= {
                    "invited": len(there.invited), "came": len(there.minutes), "came_invited": len(there.came_invited),
                    "invitations": len(there.invitations), "talks_there": len(there.talked),
                }  # fmt: skip
    return found


def measure(history: History) -> dict[str, Any]:
    """Measure one life of a town."""
    known, conduct, counts = trace_acquaintance(history), examine_conduct(history), count_events(history)
    return {
        "seed": history.setting.seed, "residents": len(history.names), "news": news_of(history),
        "density": {"start": round(known.density(0), 3), "end": round(known.density(history.step), 3)},
        "conduct": {
            "plan_kept": round(conduct.adherence, 3), "acts_where_one_may": round(conduct.believable_share, 3),
            "why_not": conduct.not_believable, "in_walls": conduct.in_walls,
            "asleep_elsewhere": conduct.asleep_elsewhere, "talking_asleep": conduct.talking_asleep,
        },
        "talks_per_day": round(counts.talks_a_day, 1),
    }  # fmt: skip


async def tell(given: argparse.Namespace) -> dict[str, Any]:
    """Live with every seed and measure; then the controls."""
    town, cpu = find_pack(given.town), time.process_time()
    report: dict[str, Any] = {"load": os.getloadavg()[0], "runs": []}
    with tempfile.TemporaryDirectory() as scratch:
        for seed in range(1, given.seeds + 1):
            history = await live(setting_of(town, seed=seed), given.days, Path(scratch) / str(seed))
            report["runs"].append(measure(history))
        for label, profile in CONTROLS.items():
            for seed in range(1, given.controls + 1):
                setting = setting_of(town, seed=seed, profile=Profile(**profile))
                history = await live(setting, given.days, Path(scratch) / f"{label}{seed}")
                report.setdefault(label, []).append(news_of(history))
    return report | {"cpu_seconds": round(time.process_time() - cpu, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--town", default="smallville", help="a town of ours, or a path [%(default)s]")
    parser.add_argument("--days", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--controls", type=int, default=1, help="seeds for each control; 0: none [%(default)s]")
    parser.add_argument("--json", action="store_true", help="print one JSON object on one line")
    given = parser.parse_args()
    print(json.dumps(asyncio.run(tell(given)), indent=None if given.json else 1, ensure_ascii=False))


if __name__ == "__main__":
    main()
