"""`mindstream memory fit`: settings are compared by a replay of the log; nothing is changed."""

from __future__ import annotations

import asyncio
from pathlib import Path

from running import run
from test_law_replay import GENTLE, live

from mindstream.clock import ManualClock
from mindstream.memory.memory import Memory
from mindstream.memory.store.sqlite import SqliteStore
from mindstream.models.embedders.embedder import shared_embedder

OWN = ["memory", "policy", f"asleep_s={GENTLE.asleep_s:.0f}", f"passed_over_s={GENTLE.passed_over_s:.0f}"]


def test_a_log_with_too_little_data_is_reported(folder: Path) -> None:
    assert run("memory", "retain", "Ann likes tea", "--data", folder).code == 0
    assert "too short for a result" in run("memory", "fit", "--data", folder).out
    assert run("memory", "fit", "--data", folder, "--json").rows[0]["thin"] is True


async def lived(folder: Path) -> None:
    clock = ManualClock()
    async with SqliteStore(folder) as store, Memory(
        store, "you", shared_embedder(), clock, strength=GENTLE, seed=1
    ) as memory:  # fmt: skip
        await live(memory, clock)


def test_settings_are_compared_with_the_current_one_and_nothing_changes(folder: Path, tmp_path: Path) -> None:
    asyncio.run(lived(folder))
    assert run(*OWN, "--data", folder).code == 0
    before = run("log", "--data", folder, "--json").rows
    picture = tmp_path / "held.svg"
    done = run("memory", "fit", "--data", folder, "--svg", picture)
    assert done.code == 0, done.err
    rows = run("memory", "fit", "--data", folder, "--json").rows
    today = next(row for row in rows if row["today"])
    assert rows[0]["lost"] == 0 == today["lost"] and rows[0]["in_vain"] < today["in_vain"]
    assert rows[-1]["lost"] > 0 and len(rows) == len({tuple(row.values())[2:6] for row in rows}) > 200
    assert "nothing was changed" in done.out and f"asleep_s={rows[0]['asleep_s']:g}" in done.out
    assert (done.out.count("of 20") == 11 and picture.read_text().startswith("<?xml")) or "<svg" in picture.read_text()
    assert run("log", "--data", folder, "--json").rows == before
