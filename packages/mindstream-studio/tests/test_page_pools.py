"""The Pools page: its rubric, each pair with verdict and reason, recall before and after training, trust."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest
from fake_endpoint import KEY, FakeEndpoint
from served import Served
from solving import RUBRIC, answer, ended
from studio import HOSTILE, NARROW, WIDE, Studio, run_apart, serve_studio

from mindstream.memory.store.sqlite import SqliteStore
from mindstream.sharing.admission import Pair, lay_in
from mindstream.sharing.pool import Pool

OpenStudio = Callable[..., Studio]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with the double of an endpoint as scorer."""
    with FakeEndpoint() as door, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", KEY)
        door.otherwise = answer
        with serve_studio(tmp_path_factory.mktemp("pools") / "data", model=f"{door.url}#any") as server:
            yield server


async def freeze(served: Served, pool: str, by: str) -> None:
    """Freeze a rubric, as its owner does on the command line."""
    async with SqliteStore(served.api_app.runtime.settings.data.beside) as store, Pool.open(store, pool) as opened:
        await opened.freeze_rubric(RUBRIC, by)


@pytest.fixture(scope="module", autouse=True)
def filled(served: Served) -> None:
    async def fill() -> None:
        async with SqliteStore(served.api_app.runtime.settings.data.beside) as store, Pool.open(store, "tea") as pool:
            await pool.freeze_rubric(RUBRIC, "ann")
            await lay_in(pool, [Pair("How hot is tea?", "Eighty degrees."), Pair("How long?", "Three minutes.")], "ann")

    with served.client() as client:
        client.post(
            "/api/v1/users/ann/pools/tea", json={"domain": "Short answers on tea", "members": ["ann"]}
        ).raise_for_status()
    asyncio.run(fill())


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_pairs_and_rubric_are_shown_and_reachable_by_keyboard(
    studio: OpenStudio, node_tools: None, size: tuple[int, int]
) -> None:
    seen = studio(dark=size == NARROW, size=size)
    seen.open("pools", user="ann")
    pairs = seen.page.get_by_role("list", name="Pairs")
    pairs.get_by_role("button", name="Why: How hot is tea?").click()
    sheet = seen.page.get_by_role("dialog", name="Why it was let in")
    sheet.get_by_text("A person added this pair by hand").wait_for()
    seen.page.keyboard.press("Escape")
    assert seen.axe() == [] and seen.fits()
    seen.tab_to("tab", "Let in and refused")
    seen.page.keyboard.press("ArrowRight")
    seen.page.get_by_role("list", name="Criteria").get_by_text("Is it true for ordinary cases?").wait_for()
    assert seen.axe() == [] and seen.fits()


def test_recall_before_and_after_training_is_shown(studio: OpenStudio) -> None:
    seen = studio()
    seen.open("pools", user="ann", show="recall", q="How hot is tea?")
    now = seen.page.get_by_role("region", name="Current ranking", exact=True)
    now.get_by_text("Eighty degrees.").wait_for()
    assert "same rank" in now.inner_text()


def test_a_pool_can_be_created_and_offers_show_verdict_and_reason(
    studio: OpenStudio, served: Served, node_tools: None
) -> None:
    seen = studio()
    seen.forgive("422 (Unprocessable Entity)")  # the invalid name
    seen.open("pools", user="bea")
    seen.page.get_by_role("heading", name="There is no pool yet").wait_for()
    begin = seen.page.get_by_role("button", name="Begin it")
    assert begin.is_disabled() and seen.axe() == []
    seen.page.get_by_label("Its name").fill("no such name!")
    begin.click()
    seen.page.get_by_role("alert").wait_for()
    seen.page.get_by_label("Its name").fill("milk")
    seen.page.get_by_label("What its answers are about").fill("Milk in tea")
    begin.click()
    seen.page.get_by_role("heading", name="Milk in tea").wait_for()
    seen.page.get_by_text("owner must freeze a rubric first").wait_for()
    run_apart(freeze(served, "milk", "bea"))
    seen.page.reload()
    seen.page.get_by_text("Offer an answer", exact=True).click()
    for question, given, became in (
        ("How warm is the milk?", "As warm as the tea.", "It was let in, with 90 points of 100"),
        ("When is it poured?", "Blue.", "It was refused, with 10 points of 100"),
    ):
        seen.page.get_by_label("The question").fill(question)
        seen.page.get_by_label("The answer", exact=True).fill(given)
        seen.page.get_by_role("button", name="Offer it, to be judged").click()
        seen.page.get_by_role("status").filter(has_text=became).wait_for()
    pairs = seen.page.get_by_role("list", name="Pairs")
    refused = pairs.get_by_role("listitem").filter(has_text="When is it poured?")
    refused.get_by_text("refused, 10 of 100").wait_for()
    assert "It says a colour, and no heat." in refused.inner_text()
    refused.get_by_role("button", name="Why: When is it poured?").click()
    sheet = seen.page.get_by_role("dialog", name="Why it was refused")
    sheet.get_by_text("60 were needed.").wait_for()
    assert "It says a colour, and no heat." in sheet.inner_text() and "Nobody could use it." in sheet.inner_text()
    assert seen.axe() == [] and seen.fits()
    seen.page.keyboard.press("Escape")
    seen.page.get_by_role("button", name="Refused").click()
    pairs.get_by_text("How warm is the milk?").wait_for(state="detached")
    assert pairs.get_by_text("When is it poured?").is_visible()
    seen.page.get_by_text("Begin another pool").click()
    seen.page.get_by_label("Its name").fill("sugar")
    begin.click()
    seen.page.get_by_role("region", name="The pool sugar").wait_for()
    seen.page.get_by_role("group", name="Which pool").get_by_role("button", name="milk").click()
    seen.page.get_by_role("region", name="The pool milk").wait_for()


def test_a_change_of_trust_is_previewed_before_it_applies(studio: OpenStudio, served: Served) -> None:
    with served.client() as client:
        client.post("/api/v1/users/ann/pools/herbs", json={"members": ["ann", "bob"]}).raise_for_status()
        run_apart(freeze(served, "herbs", "ann"))
        pair = {"query": "What is mint for?", "answer": "For the evening."}
        ended(client, client.post("/api/v1/users/bob/pools/herbs/offer", json=pair).json()["id"])
    seen = studio(size=NARROW)
    seen.open("pools", user="ann", pool="herbs", show="trust")
    table = seen.page.get_by_role("table", name="Where pairs come from")
    row = table.get_by_role("row").filter(has_text="bob")
    row.get_by_text("by its pairs").wait_for()
    row.get_by_role("button", name="Do not trust").click()
    dialog = seen.page.get_by_role("dialog", name="Stop trusting this source?")
    dialog.get_by_text("1 judged pair so far").wait_for()
    dialog.get_by_role("button", name="Leave it").click()
    assert row.get_by_text("by its pairs").is_visible()
    row.get_by_role("button", name="Do not trust").click()
    dialog.get_by_role("button", name="Do not trust it").click()
    row.get_by_text("no, a person said").wait_for()
    assert seen.fits()
    seen.page.get_by_role("tab", name="Let in and refused").click()
    held = seen.page.get_by_role("list", name="Pairs").get_by_role("listitem").first
    held.get_by_text("but not shown as an example").wait_for()
    seen.open("pools", user="bob", pool="herbs", show="trust")
    seen.page.get_by_text("ann owns this pool, and decides which sources are trusted.").wait_for()
    assert table.get_by_role("button").count() == 0


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_hostile_texts_are_shown_as_text(studio: OpenStudio, served: Served, size: tuple[int, int]) -> None:
    user, pool = f"eve{size[0]}", f"spoilt{size[0]}"
    with served.client() as client:
        client.post(
            f"/api/v1/users/{user}/pools/{pool}", json={"domain": HOSTILE[0], "members": [user]}
        ).raise_for_status()
        run_apart(freeze(served, pool, user))
        for text in HOSTILE:
            offered = client.post(f"/api/v1/users/{user}/pools/{pool}/offer", json={"query": text, "answer": text})
            ended(client, offered.raise_for_status().json()["id"])
    seen = studio(size=size)
    seen.open("pools", user=user, pool=pool)
    pairs = seen.page.get_by_role("list", name="Pairs")
    pairs.get_by_role("listitem").nth(len(HOSTILE) - 1).wait_for()
    shown = seen.page.locator("main").inner_text()
    assert all(text[:40] in shown for text in HOSTILE) and seen.fits()
    for at in range(len(HOSTILE)):
        pairs.get_by_role("button", name="Why: ").nth(at).click()
        sheet = seen.page.get_by_role("dialog")
        assert sheet.locator(".card").inner_text() in HOSTILE and seen.fits()
        seen.page.keyboard.press("Escape")
    seen.open("pools", user=user, pool=pool, show="recall", q=HOSTILE[0])
    seen.page.get_by_role("region", name="Current ranking", exact=True).wait_for()
    assert seen.fits() and seen.page.title().startswith("Pools")
    assert seen.page.locator("main img, main script, aside img").count() == 0


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_lessons_show_what_they_rest_on_and_are_retired(
    studio: OpenStudio, node_tools: None, served: Served, size: tuple[int, int]
) -> None:
    text = f"A cup is {size[0]} drops. {HOSTILE[0]} {HOSTILE[2]}"
    with served.client() as client:
        body = {"text": text, "applies": "water is measured"}
        client.post("/api/v1/users/ann/pools/tea/lessons", json=body).raise_for_status()
    seen = studio(dark=size == NARROW, size=size)
    seen.open("pools", user="ann", pool="tea", show="lessons")
    row = (
        seen.page.get_by_role("list", name="Lessons").get_by_role("listitem").filter(has_text=f"{size[0]} drops").first
    )
    row.get_by_text("What it is based on").click()
    row.get_by_text("written by hand by ann, confirmed by 0 tasks").wait_for()
    row.get_by_text("written by hand", exact=True).wait_for()
    assert seen.axe() == [] and seen.fits()
    row.get_by_role("button", name="Retire").click()
    seen.page.get_by_role("button", name="Retire it").click()
    row.wait_for(state="detached")
    seen.page.get_by_label("Show retired lessons too").check()
    row.get_by_text("retired").first.wait_for()
