"""Kill a town with `kill -9` at random moments, resume it each time, and compare its journal with an uninterrupted run.

    python benchmarks/kill_town.py --json [--kills 20] [--seeds 5] [--town smallville] [--steps 8640] [--model rules]
                                   [--order free] [--control chance]

For each seed a town runs in lock-step without kills, in its own process with another hash seed and time zone, and once
more in another folder, in the given order, killed repeatedly. The journals must be complete and the same, byte for
byte. `scenes` and `paper` use a scripted model with random delays, so that residents overtake each other. Three
controls must fail: `chance` draws from the process's own random numbers, `rows` deletes one resident's acts at each
kill, and `deaf` (with `--order free`) schedules as if residents saw and heard only those at their own place.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from dataclasses import fields, replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

from killed import FORK, kill_again_and_again
from mindstream_town import clockwork
from mindstream_town.inspect.estimate import LIVED, Counting
from mindstream_town.journal import check_journal, write_journal
from mindstream_town.packs import open_setting
from mindstream_town.setting import Setting
from mindstream_town.town import Order, Town
from mindstream_town.world.reach import reach_of

from mindstream.models.embedders.embedder import embedder
from mindstream.models.model import Part, Request
from mindstream.models.roles import Models

LONGEST_S = 0.005
ELSEWHERE = {"PYTHONHASHSEED": "7", "TZ": "Pacific/Kiritimati"}
JOURNAL = "journal.jsonl"


class Slow:
    """Rules that behave like a language model; each reply comes after a random delay."""

    name = "scripted"

    def __init__(self) -> None:
        self._mind, self._chance = Counting(name=LIVED), random.SystemRandom()

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        await asyncio.sleep(self._chance.uniform(0, LONGEST_S))
        async for part in self._mind.reply(request):
            yield part


def setting_of(town: str, seed: int, model: str) -> Setting:
    """Return the setting of a town whose residents' days are simulated by a model: rules, scenes or paper."""
    setting = open_setting(town, seed=seed)
    lives = {} if model == "rules" else {"lives": model}
    return replace(setting, profile=setting.profile.model_copy(update=lives))


class Chancy(Setting):
    """The control: draws from the process instead of from the seed."""

    def draw(self, *_: object) -> float:
        return random.random()


def with_chance(setting: Setting) -> Setting:
    return Chancy(**{each.name: getattr(setting, each.name) for each in fields(setting)})


async def live(
    folder: Path, setting: Setting, model: str, steps: int, order: Order = "lockstep", *, is_wrong: bool = False
) -> None:
    """Start or resume the town and run it for the given number of steps; then write the journal.

    Args:
        is_wrong: whether the scheduler is wrong, so that a failure, as of two groups that write to one memory, is
            expected and ends the run.
    """
    new = setting if not (folder / "begun").exists() else None
    models: Models | str = "rules" if model == "rules" else Models(Slow())
    if new is not None and (folder / "mindstream.db").exists():  # killed during its first start
        with contextlib.closing(sqlite3.connect(folder / "mindstream.db")) as file:
            tables = file.execute("SELECT count(*) FROM sqlite_master WHERE name = 'log'").fetchone()[0]
            new = None if tables and file.execute("SELECT count(*) FROM log").fetchone()[0] else setting
    began = time.perf_counter()
    async with Town.open(folder, new, model=models, lease_s=0.5, order=order) as town:
        (folder / "begun").touch()
        if isinstance(setting, Chancy):
            town.setting = setting
            town._clockwork.setting = setting
        with contextlib.suppress(*((Exception,) if is_wrong else ())):
            await town.run(until=steps - 1)
        await write_journal(town.store, setting, folder / JOURNAL)
    (folder / "done").write_text(str(time.perf_counter() - began))


def _process(folder: Path, setting: Setting, model: str, steps: int, order: Order, deaf: bool) -> None:
    if deaf:
        vars(clockwork)["reach_of"] = lambda world, *_: reach_of(world, 0, 0)
    asyncio.run(live(folder, setting, model, steps, order, is_wrong=deaf))


def lose_rows(folder: Path) -> bool:
    """The control: delete one resident's acts and the saves; return whether there were any."""
    if not (folder / "begun").exists():
        return False
    with contextlib.closing(sqlite3.connect(folder / "mindstream.db")) as file, file:
        first = "(SELECT min(mind) FROM log WHERE kind = 'resident_acted')"
        lost = file.execute(f"DELETE FROM log WHERE kind = 'resident_acted' AND mind = {first}").rowcount
        file.execute("DELETE FROM log WHERE kind = 'town_saved'")
    return lost > 0


def compare(
    town: str, seed: int, model: str, steps: int, kills: int, control: str = "", order: Order = "lockstep"
) -> dict[str, Any]:
    """Run the town once in lock-step without kills and once with many kills; return the comparison."""
    embedder("wordllama")  # once, for all processes that are forked from here
    setting = setting_of(town, seed, model)
    with tempfile.TemporaryDirectory() as folder:
        calm, wild = Path(folder) / "calm", Path(folder) / "wild"
        calm.mkdir()
        wild.mkdir()
        seconds = _live_elsewhere(calm, town, seed, model, steps)
        setting = with_chance(setting) if control == "chance" else setting
        killed = kill_again_and_again(
            partial(FORK.Process, target=_process, args=(wild, setting, model, steps, order, control == "deaf")),
            wild / "done", kills,
            1.8 * seconds / max(1, kills), random.Random(),
            partial(lose_rows, wild) if control == "rows" else lambda: True,
        )  # fmt: skip
        one, other = ((each / JOURNAL).read_bytes() for each in (calm, wild))
        pairs = enumerate(zip_longest(one.splitlines(), other.splitlines(), fillvalue=b""), 1)
        return {
            "seed": seed, "model": model, "order": order, "killed": killed, "same_journal": one == other,
            "rows": check_journal(wild / JOURNAL), "digest": one[-35:-3].decode(),
            "first_difference": next(
                ([n, a[:300].decode(), b[:300].decode()] for n, (a, b) in pairs if a != b), None
            ),
            "bytes_per_agent_day": round(len(one) / len(setting.people) / steps * setting.profile.a_day),
            "log_bytes_per_agent_day": round(
                sum(each.stat().st_size for each in calm.glob("mindstream.db*"))
                / len(setting.people) / steps * setting.profile.a_day
            ),
            "seconds_in_peace": round(seconds, 1),
        }  # fmt: skip


def _live_elsewhere(folder: Path, town: str, seed: int, model: str, steps: int) -> float:
    """Run without kills, in a process that shares nothing with this one; return the seconds."""
    given = ["--live", str(folder), "--town", town, "--seed", str(seed), "--model", model, "--steps", str(steps)]
    subprocess.run([sys.executable, __file__, *given], env=os.environ | ELSEWHERE, check=True)
    return float((folder / "done").read_text())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--town", default="smallville", help="a bundled town, or a file [%(default)s]")
    parser.add_argument("--kills", type=int, default=20, help="number of kills per town [%(default)s]")
    parser.add_argument("--seeds", type=int, default=5, help="number of towns [%(default)s]")
    parser.add_argument("--steps", type=int, default=8_640, help="steps of each town [%(default)s]")
    parser.add_argument(
        "--model", choices=("rules", "scenes", "paper"), default="rules", help="who thinks [%(default)s]"
    )
    parser.add_argument("--control", choices=("chance", "rows", "deaf"), default="", help="what must fail")
    parser.add_argument("--order", choices=("lockstep", "free"), default="lockstep", help="of the killed town's steps")
    parser.add_argument("--json", action="store_true", help="print one JSON object per town")
    parser.add_argument("--live", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=1, help="the first seed [%(default)s]")
    given = parser.parse_args()
    if given.live:
        setting = setting_of(given.town, given.seed, given.model)
        asyncio.run(live(given.live, setting, given.model, given.steps))
        return
    for seed in range(given.seed, given.seed + given.seeds):
        report = compare(given.town, seed, given.model, given.steps, given.kills, given.control, given.order)
        print(json.dumps(report, indent=None if given.json else 1), flush=True)


if __name__ == "__main__":
    main()
