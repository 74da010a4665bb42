"""Other decay settings, replayed on logged recalls: records kept, lost, and kept without use."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from mindstream.clock import DAY_S, HOUR_S, ManualClock
from mindstream.memory.forgetting_curve import Strength
from mindstream.memory.lifecycle.replay import (
    Happened,
    RecallLog,
    RecordSpan,
    grid,
    rank,
    read_recalls,
    replay,
)
from mindstream.memory.memory import Memory
from mindstream.memory.store.sqlite import SqliteStore
from mindstream.models.embedders.embedder import shared_embedder

GENTLE = Strength(asleep_s=60 * DAY_S, passed_over_s=90 * DAY_S)
ASKED = ("the walnut tree", "the ledger of the mill", "a recipe for rye bread", "Klara's letter", "a map of Bergen")


async def live(memory: Memory, clock: ManualClock, days: int = 70) -> None:
    """Ask about five things every twenty days, from the third day on; note three others a day and never ask about
    them.
    """
    for thing in ASKED:
        await memory.retain(f"It stands in the yellow folder: {thing}.", "note")
    for day in range(days):
        for n in range(3):
            await memory.retain(f"Parcel {day * 3 + n} came by carrier {n}.", "note")
        clock.advance(12 * HOUR_S)
        if day % 20 == 2:
            for thing in ASKED:
                await memory.recall(thing, 1)
                clock.advance(60)
        clock.advance(11 * HOUR_S)
        await memory.sleep(n=40)
        clock.advance(HOUR_S)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> RecallLog:
    return asyncio.run(lived(tmp_path_factory.mktemp("lived") / "data"))


async def lived(folder: Path) -> RecallLog:
    clock = ManualClock()
    async with SqliteStore(folder) as store, Memory(
        store, "ann", shared_embedder(), clock, strength=GENTLE, seed=1
    ) as memory:  # fmt: skip
        await live(memory, clock)
        rows = [row.seq async for row in memory.log()]
        found = await read_recalls(memory)
        assert [row.seq async for row in memory.log()] == rows, "reading writes nothing"
        return found


async def test_replaying_the_current_settings_archives_the_same_records(log: RecallLog) -> None:
    today = replay(log, GENTLE)
    assert today.forgotten == log.forgotten and today.forgotten, "record by record: sleeps draw the same records"
    assert today.lost == 0, "no archived record was returned"


async def test_stricter_settings_lose_records_that_were_asked_again(log: RecallLog) -> None:
    assert len(log.asked) == 5 * 4 and not log.is_thin
    hard = replay(log, Strength(asleep_s=7 * DAY_S, passed_over_s=7 * DAY_S))
    assert hard.lost > 0 and hard.held < replay(log, GENTLE).held
    assert hard.lost == replay(log, Strength(asleep_s=7 * DAY_S, passed_over_s=7 * DAY_S)).lost, (
        "the same result each time"
    )


async def test_the_best_settings_lose_nothing_and_keep_the_fewest_unused_records(log: RecallLog) -> None:
    outcomes = [replay(log, laws) for laws in grid(GENTLE)]
    best, *_, worst = rank(outcomes, GENTLE)
    today = outcomes[0]
    assert today.laws == GENTLE and best.lost == 0 and best.idle < today.idle
    assert worst.lost == max(each.lost for each in outcomes) > 0
    days = replay(log, best.laws, by_day=True).by_day
    assert len(days) == int(log.days) + 1 and all(0 <= share <= 1 for share in days) and days[-1] < days[0]


def test_replay_matches_a_calculation_by_hand() -> None:
    """One record is asked for again after three days; a sleep a day draws all records."""
    sleeps = [Happened(day * DAY_S, day, drawn=9) for day in range(1, 30)]
    asked = [Happened(day * DAY_S + HOUR_S, day, ("a",)) for day in (3, 12)]
    happened = sorted([*sleeps, *asked], key=lambda each: each.at)
    log = RecallLog(
        "ann", [RecordSpan("a", 0.0, float("inf")), RecordSpan("b", 0.0, 2 * DAY_S)], happened,
        frozenset((each.at, "a") for each in asked), frozenset(),
    )  # fmt: skip
    two = replay(log, Strength(asleep_s=2 * DAY_S))
    assert (two.asked, two.lost, two.forgotten) == (2, 2, {"a"}), "archived on the third day; b had expired"
    ten = replay(log, Strength(asleep_s=10 * DAY_S))
    assert (ten.lost, ten.forgotten, ten.held) == (0, {"a"}, 0), "two levels by its recalls, archived from day 23 to 25"


def test_a_log_with_too_little_data_is_reported_as_thin() -> None:
    assert RecallLog("ann", (), (), frozenset(), frozenset()).is_thin
    many = frozenset((float(n), "a") for n in range(30))
    assert not RecallLog("ann", (), (Happened(0.0), Happened(20 * DAY_S)), many, frozenset()).is_thin
    assert RecallLog("ann", (), (Happened(0.0), Happened(3 * DAY_S)), many, frozenset()).is_thin


def test_the_duration_of_a_log_is_never_negative() -> None:
    """A recall is written to the log later than it happened."""
    log = RecallLog("ann", (), (Happened(2 * DAY_S), Happened(1 * DAY_S)), frozenset(), frozenset())
    assert log.days == 1
    assert RecallLog("ann", (), (), frozenset(), frozenset()).days == 0
