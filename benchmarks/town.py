"""Measure speed and memory of towns with rules: a day of 25 residents, many in one town, many towns; and model calls.

    python benchmarks/town.py [--town smallville] [--runs 3] [--copies 8] [--towns 40] [--json]

`day`: 25 residents, 8,640 steps, rules and journal; the fastest of the runs, by CPU. `one_town`: copies of the town's
residents and map side by side on one map. `side_by_side`: towns of 25 in one process, each in its own folder. `asks`:
calls and tokens per agent-day by kind, in scenes and step by step as in Park 2023 (`paper`), counted with rule-based
defaults that answer at the length of a model; and their cost at named prices, with static text cached.

Every run is a separate process. Its memory is the growth from before the town was opened to the end of the day, per
resident: state, stream, vectors, plans, caches, and SQLite's memory. Code, map and the embedder's table of tokens
(`base_mb`) are loaded before, and do not grow with residents. Open towns are excluded from garbage collection
(`gc.freeze`), as `mindstream town run` does. The machine's load is reported too.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from mindstream_town.inspect.estimate import cost_usd, count_calls
from mindstream_town.packs import open_setting
from mindstream_town.setting import Setting
from mindstream_town.town import Town
from town_copies import copied_in_one

from mindstream.models.embedders.embedder import table

PRICED = ("openai:gpt-5-nano", "openai:gpt-5-mini", "google:gemini-2.5-flash-lite")


def rss_mb() -> float:
    """Return the resident memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def size_of(folder: Path) -> int:
    """Return the number of bytes in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


async def live(settings: Sequence[Setting], folder: Path) -> dict[str, Any]:
    """Run one day of these towns concurrently; return the measurements."""
    table()  # read once
    before, towns, steps = rss_mb(), [], settings[0].profile.a_day
    residents = sum(len(setting.people) for setting in settings)
    async with contextlib.AsyncExitStack() as stack:
        wall, cpu = time.perf_counter(), time.process_time()
        for number, setting in enumerate(settings):
            towns.append(await stack.enter_async_context(Town.open(folder / str(number), setting)))
        gc.freeze()
        await asyncio.gather(*(town.run(until=steps - 1) for town in towns))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        after = rss_mb()
        return {
            "towns": len(towns), "residents": residents, "steps": steps, "seconds": round(wall, 2),
            "cpu_seconds": round(cpu, 2), "agent_steps_per_second": round(residents * steps / wall),
            "days_per_hour": round(3_600 / wall, 1), "base_mb": round(before, 1),
            "mb_per_resident": round((after - before) / residents, 3),
            "log_mb": round(size_of(folder) / 1e6, 2),
            "digest": await towns[0].digest(),
        }  # fmt: skip


def settings_of(part: str, setting: Setting, copies: int, towns: int) -> list[Setting]:
    """Return the towns of a part of the benchmark."""
    if part == "one_town":
        return [copied_in_one(setting, copies)]
    return [setting] if part == "day" else [replace(setting, seed=seed) for seed in range(1, towns + 1)]


def measure_apart(part: str, given: argparse.Namespace) -> dict[str, Any]:
    """Measure a part in a separate process."""
    asked = [f"--{name}={getattr(given, name)}" for name in ("town", "copies", "towns")]
    done = subprocess.run(
        [sys.executable, __file__, f"--part={part}", *asked], check=True, stdout=subprocess.PIPE, text=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def measure_part(given: argparse.Namespace) -> dict[str, Any]:
    """Measure a part in this process."""
    settings = settings_of(given.part, open_setting(given.town, seed=1), given.copies, given.towns)
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(live(settings, Path(folder)))


def count_asks(town: str, lives: str) -> dict[str, Any]:
    """Count a day's model requests and their cost; `lives`: in scenes, or as in the paper."""
    setting = open_setting(town, seed=1)
    setting = replace(setting, profile=setting.profile.model_copy(update={"lives": lives}))
    counted = asyncio.run(count_calls(setting, setting.profile.a_day, models={"default": PRICED[0]}))
    people, kinds = len(setting.people), counted.by_kind.values()
    return {
        "calls": sum(each.calls for each in kinds),
        "calls_per_agent_day": round(sum(each.calls for each in kinds) / people, 1),
        "tokens_per_agent_day": round(sum(each.tokens_in + each.tokens_out for each in kinds) / people),
        "by_kind_per_agent_day": {
            kind: {name: round(number / people, 1) for name, number in asdict(each).items()}
            for kind, each in sorted(counted.by_kind.items())
        },
        "usd_per_agent_day": {
            name: None if (cost := cost_usd(counted, {"default": name})) is None else round(cost / people, 4)
            for name in PRICED
        },
    }


def measure(given: argparse.Namespace) -> dict[str, Any]:
    """Measure all parts, one after the other."""
    report: dict[str, Any] = {"load": os.getloadavg()[0], "cores": os.cpu_count()}
    days = [measure_apart("day", given) for _ in range(given.runs)]
    if days:
        same = len({day["digest"] for day in days}) == 1
        report["day"] = min(days, key=lambda day: float(day["cpu_seconds"])) | {"same_journal": same}
    if given.copies:
        report["one_town"] = measure_apart("one_town", given)
    if given.towns:
        report["side_by_side"] = measure_apart("side_by_side", given)
    if given.runs:
        report["asks"] = {lives: count_asks(given.town, lives) for lives in ("scenes", "paper")}
    report["load_after"] = os.getloadavg()[0]
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--town", default="smallville", help="a bundled town, or a file [%(default)s]")
    parser.add_argument("--runs", type=int, default=3, help="number of runs of the day with 25; 0: none [%(default)s]")
    parser.add_argument("--copies", type=int, default=8, help="copies in one town; 0: none [%(default)s]")
    parser.add_argument("--towns", type=int, default=40, help="towns side by side; 0: none [%(default)s]")
    parser.add_argument("--part", choices=("day", "one_town", "side_by_side"), help="only this part, in this process")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    report = measure_part(given) if given.part else measure(given)
    print(json.dumps(report, indent=None if given.json else 1))


if __name__ == "__main__":
    main()
