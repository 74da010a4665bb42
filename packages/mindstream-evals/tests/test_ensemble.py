"""Many runs of one town: the same journals in any process, in spite of kills, compared by seed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from doing import ENGINES, begin_ray
from hamlet import HAMLET, hamlet, live
from mindstream_evals.runs.ensemble import Ensemble, Wish, run_ensemble
from mindstream_town.ensemble import Lived, differences, read_seeds, spreads

from mindstream.errors import InputError
from mindstream.settings import Settings
from mindstream.significance import student

MORNING, LONG = 10 * 360, 4 * 8_640
BEGUN = 150_000
"""Size in bytes of the database of a town that has run for a while, with its write-ahead log."""
RULES = Settings(model="rules")


def wish(tmp_path: Path, last: int = MORNING, ray: bool = False, **more: object) -> Wish:
    file = tmp_path / "hamlet.toml"
    file.write_text(HAMLET)
    if ray:
        begin_ray()
    return Wish(**{"town": str(file), "seeds": (1, 2), "last": lambda _: last, "into": tmp_path / "runs",
                   "workers": 2, "ray": ray} | more)  # type: ignore[arg-type]  # fmt: skip


def digests(found: Ensemble) -> dict[tuple[str, int], str]:
    return {(each.condition, each.seed): each.digest for each in found.lived}


@ENGINES
async def test_ensemble_runs_have_the_same_journals_as_single_runs(ray: bool, tmp_path: Path) -> None:
    found = await run_ensemble(RULES, wish(tmp_path, ray=ray, without=(("talk",),)))
    assert not found.failed
    alone = {
        (condition, seed): await live(tmp_path / f"{condition} {seed}", hamlet(seed, **left_out), MORNING)
        for condition, left_out in (("full", {}), ("without talk", {"talks": False})) for seed in (1, 2)
    }  # fmt: skip
    assert digests(found) == alone and len(set(alone.values())) == 4


def lives_in(database: Path) -> Iterator[int]:
    """Yield the processes that have a database open."""
    for each in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if "python" in (each / "exe").readlink().name and any(
                link.readlink() == database for link in (each / "fd").iterdir()
            ):
                yield int(each.name)


def wait_until_lived(database: Path) -> None:
    """Wait until a town has run for a while."""
    written = (database, database.with_name(f"{database.name}-wal"))
    while sum(path.stat().st_size for path in written if path.exists()) < BEGUN:
        time.sleep(0.01)


def kill_who_lives_in(database: Path) -> int:
    """Kill with `kill -9` the process that runs a town, once it does; return 0 if it was too late."""
    wait_until_lived(database)
    until = time.monotonic() + 60
    while time.monotonic() < until:
        for pid in lives_in(database):
            if pid != os.getpid():
                os.kill(pid, signal.SIGKILL)
                return pid
    return 0


@ENGINES
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="who has a file open is known by /proc")
async def test_a_killed_worker_does_not_change_the_journals(ray: bool, tmp_path: Path) -> None:
    wanted = wish(tmp_path, LONG, ray)
    database = tmp_path / "runs" / "full" / "seed-1" / "mindstream.db"
    killing = asyncio.ensure_future(asyncio.to_thread(kill_who_lives_in, database))
    found = await run_ensemble(RULES, wanted)
    assert await killing, "a worker was killed"
    assert not found.failed
    alone = {("full", seed): await live(tmp_path / str(seed), hamlet(seed), LONG) for seed in (1, 2)}
    assert digests(found) == alone


@pytest.mark.slow
async def test_finished_runs_are_kept_and_failed_runs_are_repeated(tmp_path: Path) -> None:
    broken = tmp_path / "runs" / "full" / "seed-2" / "mindstream.db"
    broken.parent.mkdir(parents=True)
    broken.write_text("no database")
    told = list[str]()
    found = await run_ensemble(RULES, wish(tmp_path), lambda done, of, words: told.append(words))
    assert [each.seed for each in found.lived] == [1] and [each.seed for each in found.failed] == [2]
    assert "damaged" in found.failed[0].why and told[-1].startswith("2 of 2 towns") and "1 failed" in told[-1]
    broken.unlink()
    kept = wish(tmp_path).kept.read_bytes()
    again = await run_ensemble(RULES, wish(tmp_path, seeds=(1, 2, 3)))
    assert [each.seed for each in again.lived] == [1, 2, 3] and not again.failed
    assert again.lived[0] == found.lived[0] and wish(tmp_path).kept.read_bytes().startswith(kept)
    assert wish(tmp_path).kept.read_text().count('"seed": 1,') == 1
    longer = await run_ensemble(RULES, wish(tmp_path, MORNING + 360))
    assert digests(longer)["full", 1] == await live(tmp_path / "1", hamlet(), MORNING + 360), "towns are continued"
    shorter = await run_ensemble(RULES, wish(tmp_path, MORNING - 360))
    assert ["has run beyond the last step" in each.why for each in shorter.failed] == [True, True]
    report = json.loads((tmp_path / "runs" / "report.json").read_text())
    assert [each["seed"] for each in report["failed"]] == [1, 2]


@pytest.mark.slow
async def test_a_stopped_ensemble_resumes_each_town(tmp_path: Path) -> None:
    running = asyncio.ensure_future(run_ensemble(RULES, wish(tmp_path, LONG)))
    database = tmp_path / "runs" / "full" / "seed-1" / "mindstream.db"
    await asyncio.to_thread(wait_until_lived, database)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert not list(lives_in(database)), "workers have ended"
    found = await run_ensemble(RULES, wish(tmp_path, LONG))
    assert not found.failed
    alone = {("full", seed): await live(tmp_path / str(seed), hamlet(seed), LONG) for seed in (1, 2)}
    assert digests(found) == alone


def lived(condition: str, seed: int, value: float) -> Lived:
    return Lived(condition, seed, 1, "", {"talks": value}, 0.0)


def test_measures_are_summarised_over_seeds_and_compared_by_seed() -> None:
    values = {1: 4.0, 2: 6.0, 3: 8.0, 4: 10.0}
    runs = [lived("full", seed, value) for seed, value in values.items()]
    runs += [lived("without talk", seed, value - seed) for seed, value in values.items()] + [
        lived("without talk", 9, 99)
    ]
    full, other = spreads(runs)
    assert (full.condition, full.seeds, full.mean, full.least, full.most) == ("full", 4, 7.0, 4.0, 10.0)
    assert full.spread == pytest.approx(math.sqrt(20 / 3))
    assert (full.low, full.high) == pytest.approx((7 - 3.182 * math.sqrt(20 / 12), 7 + 3.182 * math.sqrt(20 / 12)))
    assert other.seeds == 5
    (paired,) = differences(runs)
    assert (paired.seeds, paired.mean, paired.more, paired.fewer, paired.p) == (4, -2.5, 0, 4, 0.125)
    assert spreads(runs[:1])[0].low is None and not differences(runs[:4])


@pytest.mark.parametrize(("n", "t"), [(2, 12.7062), (11, 2.2281), (31, 2.0423), (61, 2.0003), (1_001, 1.9623)])
def test_the_interval_of_a_mean_uses_students_t(n: int, t: float) -> None:
    values = [float(each) for each in range(n)]
    low, high = student(values)
    deviation = math.sqrt(sum((each - (n - 1) / 2) ** 2 for each in values) / (n - 1))
    assert (high - low) / 2 == pytest.approx(t * deviation / math.sqrt(n), rel=1e-3)


@pytest.mark.parametrize(("typed", "seeds"), [("1..4", [1, 2, 3, 4]), ("3, 5,8..9,5", [3, 5, 8, 9]), ("0", [0])])
def test_seed_ranges_are_parsed(typed: str, seeds: list[int]) -> None:
    assert read_seeds(typed) == seeds


@pytest.mark.parametrize("typed", ["", "a..b", "4..1", "1..", "..3", "-3..2", "1...4", "1..9999999999999"])
def test_invalid_seed_ranges_are_refused(typed: str) -> None:
    with pytest.raises(InputError, match="seeds"):
        read_seeds(typed)
