"""The Pools page: its rubric, what became of each pair and why, recall before and after, who is trusted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from served import Served
from solving import RUBRIC
from studio import NARROW, WIDE, Studio

from mindstream.memory.store.sqlite import SqliteStore
from mindstream.sharing.admission import Pair, lay_in
from mindstream.sharing.pool import Pool

OpenStudio = Callable[..., Studio]


@pytest.fixture(scope="module", autouse=True)
def filled(served: Served) -> None:
    async def fill() -> None:
        async with SqliteStore(served.doors.house.settings.data) as store, Pool.open(store, "tea") as pool:
            await pool.freeze_rubric(RUBRIC, "ann")
            await lay_in(pool, [Pair("How hot is tea?", "Eighty degrees."), Pair("How long?", "Three minutes.")], "ann")

    with served.client() as client:
        client.post("/api/v1/users/ann/pools/tea", json={"domain": "Short answers on tea"}).raise_for_status()
    asyncio.run(fill())


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_it_shows_pairs_and_by_keys_the_rubric(studio: OpenStudio, node_tools: None, size: tuple[int, int]) -> None:
    seen = studio(dark=size == NARROW, size=size)
    seen.open("pools", user="ann")
    pairs = seen.page.get_by_role("list", name="Pairs")
    pairs.get_by_role("button", name="Why: How hot is tea?").click()
    sheet = seen.page.get_by_role("dialog", name="Why it was let in")
    sheet.get_by_text("A person laid it in").wait_for()
    seen.page.keyboard.press("Escape")
    assert seen.axe() == [] and seen.fits()
    seen.tab_to("tab", "Let in and refused")
    seen.page.keyboard.press("ArrowRight")
    seen.page.get_by_role("list", name="Criteria").get_by_text("Is it true for ordinary cases?").wait_for()
    assert seen.axe() == [] and seen.fits()


def test_recall_stands_before_and_after(studio: OpenStudio) -> None:
    seen = studio()
    seen.open("pools", user="ann", show="recall", q="How hot is tea?")
    now = seen.page.get_by_role("region", name="Now", exact=True)
    now.get_by_text("Eighty degrees.").wait_for()
    assert "as before" in now.inner_text()
