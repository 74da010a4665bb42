"""The Life page: set a goal, live, answer questions, change ledger and orders."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from served import Served
from studio import HOSTILE, NARROW, WIDE, Studio, run_apart

from mindstream import SqliteStore
from mindstream.clock import HOUR_S, SystemClock
from mindstream.life.events import PermissionAsked, Questioned
from mindstream.memory.memory import Memory
from mindstream.memory.store.store import Entry
from mindstream.models.embedders.embedder import embedder

OpenStudio = Callable[..., Studio]
GOAL = "Keep a diary of the tides."
QUESTION = "At which stone do you read the water?"


@pytest.fixture(scope="module")
def living(served: Served) -> str:
    """A user whose life has an open question and waits for approval."""
    with served.client() as client:
        orders = ["every day at 8:00: read the water", "every monday at 9:00: count the boats"]
        given = client.post("/api/v1/users/ann/life/goal", json={"goal": GOAL, "orders": orders})
        given.raise_for_status()
    run_apart(_ask(served))
    return "ann"


async def _ask(served: Served) -> None:
    async with SqliteStore(served.api_app.runtime.settings.data.beside) as store:
        clock = SystemClock()
        memory = Memory(store, "ann", embedder("wordllama"), clock)
        until = clock.now() + HOUR_S
        await memory.commit(Entry(Questioned(id="1.1.1", tip=QUESTION, until=until), "life"))
        await memory.commit(
            Entry(
                PermissionAsked(id="1.2.1", tool="delete_file", arguments='{"path": "tides.md"}', foreign=True), "life"
            )
        )
        await memory.close()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_the_page_shows_goal_ledger_diary_and_orders(
    studio: OpenStudio, living: str, node_tools: None, dark: bool, size: tuple[int, int]
) -> None:
    seen = studio(dark=dark, size=size)
    seen.open("life", user=living)
    seen.page.get_by_role("region", name="State of the life").get_by_text(GOAL).wait_for()
    for region, words in (("Ledger", GOAL), ("Standing orders", "count the boats"), ("Diary", "It was given a goal")):
        seen.page.get_by_role("region", name=region).get_by_text(words).first.wait_for()
    assert seen.axe() == []
    assert seen.fits()


def test_a_first_goal_runs_with_rules(studio: OpenStudio, served: Served) -> None:
    seen = studio()
    seen.open("life", user="bob")
    seen.page.get_by_role("heading", name="There is no goal yet").wait_for()
    seen.page.get_by_label("Its goal").fill("Find out when the boat leaves.")
    seen.page.get_by_role("button", name="Give it this goal").click()
    seen.page.get_by_role("dialog").get_by_role("button", name="Give it").click()
    seen.page.get_by_role("button", name="Let it live").click()
    diary = seen.page.get_by_role("region", name="Diary")
    diary.get_by_text("Turn 1 ended").wait_for()
    diary.get_by_role("button", name="turn 1 step by step").click()
    seen.page.get_by_role("dialog", name="Turn 1").get_by_text("M2 said").first.wait_for()


def test_a_question_can_be_answered_with_the_keyboard(studio: OpenStudio, living: str, served: Served) -> None:
    seen = studio()
    seen.open("life", user=living)
    seen.tab_to("textbox", "Answer: At which stone")
    seen.page.keyboard.type("At the third one.")
    seen.page.keyboard.press("Enter")
    seen.page.get_by_role("region", name="Diary").get_by_text("At the third one.").wait_for()
    asks = seen.page.get_by_role("region", name="What it asks you")
    asks.get_by_text(QUESTION).wait_for(state="detached")
    asks.get_by_role("button", name="Refuse").click()
    asks.wait_for(state="detached")
    with served.client() as client:
        assert client.get("/api/v1/users/ann/life").json()["leave_wanted"] == []


def test_a_life_can_be_paused_and_its_ledger_and_orders_changed(
    studio: OpenStudio, living: str, served: Served
) -> None:
    seen = studio(size=NARROW)
    seen.open("life", user=living)
    seen.page.get_by_role("button", name="Pause").click()
    seen.page.get_by_role("button", name="Resume").click()
    ledger = seen.page.get_by_role("region", name="Ledger")
    ledger.get_by_label("Another task").fill("Buy a new lead line.")
    ledger.get_by_role("button", name="Add").click()
    ledger.get_by_role("button", name="Do sooner: Buy a new lead line.").click()
    ledger.get_by_role("listitem").first.get_by_text("Buy a new lead line.").wait_for()
    ledger.get_by_role("button", name="Give up: Buy a new lead line.").click()
    seen.page.get_by_role("dialog").get_by_role("button", name="Give it up").click()
    ledger.get_by_text("given up", exact=True).wait_for()
    orders = seen.page.get_by_role("region", name="Standing orders")
    orders.get_by_role("button", name="Take back: every monday").click()
    seen.page.get_by_role("dialog").get_by_role("button", name="Change them").click()
    orders.get_by_text("count the boats").wait_for(state="detached")
    with served.client() as client:
        assert client.get("/api/v1/users/ann/life").json()["orders"] == ["every day at 8:00: read the water"]


def test_an_earlier_state_can_be_shown(studio: OpenStudio, living: str, served: Served) -> None:
    with served.client() as client:
        rows = client.get("/api/v1/users/ann/log", params={"kinds": "life_began", "limit": 1}).json()["rows"]
        client.post("/api/v1/users/ann/life/tasks", json={"text": "Paint the hut."}).raise_for_status()
    seen = studio()
    seen.open("life", user=living, seq=rows[0]["seq"])
    diary = seen.page.get_by_role("region", name="Diary")
    diary.get_by_text("It was given a goal").wait_for()
    assert diary.get_by_role("listitem").count() == 1
    assert "Paint the hut." not in seen.page.get_by_role("main").inner_text()
    assert seen.page.get_by_role("button", name="Pause").count() == 0
    seen.page.get_by_role("slider").focus()
    seen.page.keyboard.press("End")
    seen.page.get_by_role("region", name="Ledger").get_by_text("Paint the hut.").wait_for()


def test_hostile_texts_are_shown_as_text(studio: OpenStudio, served: Served) -> None:
    with served.client() as client:
        goal = "\n".join(HOSTILE)
        client.post("/api/v1/users/eve/life/goal", json={"goal": goal}).raise_for_status()
        for text in HOSTILE:
            client.post("/api/v1/users/eve/life/tasks", json={"text": text[:300]}).raise_for_status()
            client.post("/api/v1/users/eve/life/say", json={"text": text}).raise_for_status()
    for size in (WIDE, NARROW):
        seen = studio(size=size)
        seen.open("life", user="eve")
        seen.page.get_by_role("region", name="Ledger").get_by_text("{{7*7}}").first.wait_for()
        assert seen.fits()
        assert seen.page.title().startswith("Life")
        assert seen.page.locator("main img, main script").count() == 0


def test_a_recorded_life_is_read_only(studio: OpenStudio, served: Served) -> None:
    seen = studio()
    seen.open("life", user="new")
    seen.page.get_by_role("link", name="museum").click()
    seen.page.get_by_role("region", name="State of the life").get_by_text("ferry Marta").wait_for()
    assert "recorded" in seen.page.locator(".how").inner_text()
    assert seen.page.get_by_role("button", name="Pause").count() == 0
    assert seen.page.get_by_label("Another task").count() == 0
    seen.page.get_by_role("slider").focus()
    seen.page.keyboard.press("Home")
    assert (
        seen.page.get_by_text("At that moment the mind had no goal yet.")
        .or_(seen.page.get_by_role("region", name="Diary"))
        .first.is_visible()
    )
