"""How quick and how large a town is, with rules: a day of 25, many in one town, many towns side by side; what it asks.

    python benchmarks/town.py [--town smallville] [--runs 3] [--json]

`day`: 25 residents, 8,640 steps, rules and journal (medians of the runs). `one_town`: copies of the town's people and
map side by side on one map. `side_by_side`: towns of 25 in one process, each in a folder of its own. `asks`: calls and
tokens of an agent-day by kind, and what that costs at named prices, static words cached. The load stands beside it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import tempfile
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from town_copies import copied_in_one

from mindstream.town.estimate import cost_usd, count_calls
from mindstream.town.packs import open_setting
from mindstream.town.setting import Setting
from mindstream.town.town import Town

PRICED = ("openai:gpt-5-nano", "openai:gpt-5-mini", "google:gemini-2.5-flash-lite")


def rss_mb() -> float:
    """Return the resident memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def size_of(folder: Path) -> int:
    """Return how many bytes lie in a folder."""
    return sum(path.stat().st_size for path in folder.iterdir())


async def live_day(setting: Setting, folder: Path) -> dict[str, Any]:
    """Live one day and return what it took."""
    before = rss_mb()
    async with Town.open(folder, setting) as town:
        wall, cpu = time.perf_counter(), time.process_time()
        await town.run(until=setting.profile.a_day - 1)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        return {
            "residents": len(setting.people), "steps": setting.profile.a_day, "seconds": round(wall, 2),
            "cpu_seconds": round(cpu, 2),
            "agent_steps_per_second": round(len(setting.people) * setting.profile.a_day / wall),
            "rss_mb_per_resident": round((rss_mb() - before) / len(setting.people), 3),
            "log_mb": round(size_of(folder) / 1e6, 2), "digest": await town.digest(),
        }  # fmt: skip


async def live_days(settings: list[Setting], folder: Path) -> dict[str, Any]:
    """Live one day in many towns at once."""
    before, towns = rss_mb(), []
    async with contextlib.AsyncExitStack() as stack:
        for number, setting in enumerate(settings):
            towns.append(await stack.enter_async_context(Town.open(folder / str(number), setting)))
        wall = time.perf_counter()
        await asyncio.gather(*(town.run(until=town.setting.profile.a_day - 1) for town in towns))
        wall = time.perf_counter() - wall
        residents = sum(len(setting.people) for setting in settings)
        return {
            "towns": len(settings), "residents": residents, "seconds": round(wall, 2),
            "seconds_per_resident": round(wall / residents, 4),
            "agent_steps_per_second": round(residents * settings[0].profile.a_day / wall),
            "rss_mb_per_resident": round((rss_mb() - before) / residents, 3),
        }  # fmt: skip


async def measure(town: str, runs: int, copies: int, towns: int) -> dict[str, Any]:
    setting = open_setting(town, seed=1)
    report: dict[str, Any] = {"load": os.getloadavg()[0], "cores": os.cpu_count()}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        days = [await live_day(setting, folder / f"day{run}") for run in range(runs)]
        numbers = {name: statistics.median(day[name] for day in days) for name in days[0] if name != "digest"}
        report["day"] = numbers | {"same_journal": len({day["digest"] for day in days}) == 1}
        if copies:
            report["one_town"] = await live_day(copied_in_one(setting, copies), folder / "many")
        if towns:
            report["side_by_side"] = await live_days(
                [replace(setting, seed=seed) for seed in range(1, towns + 1)], folder / "towns"
            )
    counted = await count_calls(setting, setting.profile.a_day)
    people = len(setting.people)
    report["asks"] = {
        "calls": sum(each.calls for each in counted.by_kind.values()),
        "by_kind_per_agent_day": {
            kind: {name: round(number / people, 1) for name, number in asdict(each).items()}
            for kind, each in sorted(counted.by_kind.items())
        },
        "usd_per_agent_day": {
            name: None if (cost := cost_usd(counted, {"default": name})) is None else round(cost / people, 4)
            for name in PRICED
        },
    }
    report["load_after"] = os.getloadavg()[0]
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--town", default="smallville", help="a town of ours, or a file [%(default)s]")
    parser.add_argument("--runs", type=int, default=3, help="days lived by 25 [%(default)s]")
    parser.add_argument("--copies", type=int, default=8, help="copies in one town; 0: none [%(default)s]")
    parser.add_argument("--towns", type=int, default=40, help="towns side by side; 0: none [%(default)s]")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    report = asyncio.run(measure(given.town, given.runs, given.copies, given.towns))
    print(json.dumps(report, indent=None if given.json else 1))


if __name__ == "__main__":
    main()
