"""The Memory page: it searches, explains, and shows the evidence of a record, by mouse and keys, wide and narrow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from lived import FADED, SAID, THOUGHT, live_some_weeks
from served import Served
from studio import NARROW, WIDE, Studio, run_apart, serve_studio

from mindstream import Memory

OpenStudio = Callable[..., Studio]
KEY = "The spare key hangs behind the blue door."


@pytest.fixture(scope="module", autouse=True)
def remembered(served: Served) -> None:
    with served.client() as client:
        for text in (KEY, "Ann drinks tea at four, with milk.", "On Sundays the boat leaves at ten."):
            client.post("/api/v1/users/ann/memories", json={"text": text}).raise_for_status()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_a_search_shows_what_it_found_and_why(
    studio: OpenStudio, node_tools: None, dark: bool, size: tuple[int, int]
) -> None:
    seen = studio(dark=dark, size=size)
    seen.open("memory", user="ann")
    seen.page.get_by_role("searchbox").fill("where is the key?")
    seen.page.get_by_role("button", name="Search").click()
    first = seen.page.get_by_role("region", name="What was found").get_by_role("listitem").first
    assert KEY in first.inner_text()
    first.get_by_role("button", name="Why").click()
    sheet = seen.page.get_by_role("dialog", name="Why this memory was found")
    sheet.wait_for()
    assert "words" in sheet.inner_text() and "you said it" in sheet.inner_text()
    assert seen.axe() == []
    seen.page.keyboard.press("Escape")
    first.get_by_role("button", name=KEY).first.click()
    seen.page.get_by_role("complementary", name="The opened memory").get_by_text(
        "It is not based on other records"
    ).wait_for()
    assert seen.axe() == []
    assert seen.fits()


def test_the_page_can_be_used_with_the_keyboard(studio: OpenStudio) -> None:
    seen = studio()
    seen.open("memory", user="ann")
    seen.tab_to("searchbox", "Ask this memory")
    seen.page.keyboard.type("when does the boat leave?")
    seen.page.keyboard.press("Enter")
    seen.tab_to("button", "Why: On Sundays")
    seen.page.keyboard.press("Enter")
    seen.page.get_by_role("dialog").wait_for()
    seen.page.keyboard.press("Escape")
    assert seen.page.evaluate("document.activeElement.textContent") == "why"


async def let_decay(folder: Path, user: str) -> None:
    async with Memory.open(folder, user, policy="decay"):
        pass


def test_records_are_listed_before_they_are_forgotten(studio: OpenStudio, served: Served, node_tools: None) -> None:
    run_apart(let_decay(served.api_app.runtime.settings.data.beside, "bob"))
    with served.client() as client:
        made = client.post("/api/v1/users/bob/memories", json={"text": "Bob owes Ida ten crowns."}).json()["id"]
        seen = studio()
        seen.open("memory", user="bob", id=made)
        opened = seen.page.get_by_role("complementary", name="The opened memory")
        opened.get_by_role("img", name="Probability that it is still active").wait_for()
        seen.page.locator(".u-over").first.wait_for()
        seen.forgive("404")  # a request sent at the moment of forgetting
        opened.get_by_role("button", name="Forget").click()
        dialog = seen.page.get_by_role("dialog", name="Forget this memory for good?")
        dialog.get_by_text("Nothing else is deleted with it.").wait_for()
        assert seen.axe() == []
        seen.page.keyboard.press("Escape")
        dialog.wait_for(state="detached")
        assert client.get(f"/api/v1/users/bob/memories/{made}").status_code == 200
        opened.get_by_role("button", name="Forget").click()
        dialog.get_by_role("button", name="Forget it").click()
        seen.page.get_by_role("heading", name="bob has no memories yet").wait_for()
        seen.page.get_by_role("status").get_by_text("Forgotten for good: 1 memory.").wait_for()
        seen.page.get_by_role("button", name="Close this notice").click()
        assert client.get(f"/api/v1/users/bob/memories/{made}").status_code == 404
        for text in ("Bob keeps bees.", "Bob sings bass."):  # also if it is about to be stored
            seen.page.get_by_label("Something to remember").fill(text)
            seen.page.get_by_role("button", name="Remember").click()
            seen.page.get_by_role("button", name=text).wait_for()


async def note_much(folder: Path) -> None:
    async with Memory(folder, "eva") as memory:
        said = await memory.retain("I collect stamps of fifty-two countries.", "chat", by="eva")
        for number in range(52):
            await memory.retain(f"Eva has a stamp of country {number}.", "note", evidence=[said.id])


def test_memories_that_the_preview_does_not_list_are_counted(studio: OpenStudio, tmp_path: Path) -> None:
    run_apart(note_much(tmp_path / "data"))
    with serve_studio(tmp_path / "data") as served:
        seen = studio(url=served.url)
        seen.open("memory", user="eva", kind="chat")
        seen.page.get_by_role("button", name="I collect stamps").click()
        seen.page.get_by_role("button", name="Forget").click()
        seen.page.get_by_role("dialog").get_by_text("and 2 more").wait_for()
        seen.leave()


def test_a_correction_is_previewed_and_then_applied(studio: OpenStudio, served: Served) -> None:
    with served.client() as client:
        made = client.post("/api/v1/users/cid/memories", json={"text": "Cid lives in Oslo."}).json()["id"]
    seen = studio(size=NARROW)
    seen.open("memory", user="cid", id=made)
    seen.page.get_by_role("button", name="Correct", exact=True).click()
    seen.page.get_by_label("What it should say").fill("Cid lives in Bergen.")
    seen.page.get_by_role("button", name="Look at the change").click()
    seen.page.get_by_role("dialog").get_by_role("button", name="Correct it").click()
    seen.page.get_by_role("dialog").wait_for(state="detached")
    seen.page.get_by_role("complementary").get_by_role("paragraph").get_by_text("Cid lives in Bergen.").wait_for()
    seen.page.get_by_text("This memory does not fade, because of its kind or of the retention policy.").wait_for()
    assert seen.fits()


def test_sleep_can_be_started_and_undone(studio: OpenStudio, served: Served, node_tools: None) -> None:
    with served.client() as client:
        client.post("/api/v1/users/dan/memories", json={"text": "Dan plays the oboe."}).raise_for_status()
    seen = studio(dark=True)
    seen.open("memory", user="dan")
    seen.page.get_by_role("link", name="Sleep and dreams").click()
    part = seen.page.get_by_role("region", name="Sleep")
    part.get_by_role("button", name="Sleep now").click()
    seen.page.get_by_role("dialog").get_by_text(
        "With retention “decay”: some memories (20 by default) are drawn at random."
    ).wait_for()
    seen.page.get_by_role("dialog").get_by_role("button", name="Sleep", exact=True).click()
    part.get_by_role("row").nth(1).get_by_role("button", name="Undo").click()
    seen.page.get_by_role("dialog").get_by_role("button", name="Undo it").click()
    part.get_by_text("undone", exact=True).wait_for()
    assert seen.axe() == []


def test_a_thought_shows_its_evidence_down_to_messages(studio: OpenStudio, tmp_path: Path, node_tools: None) -> None:
    run_apart(live_some_weeks(tmp_path / "data"))
    with serve_studio(tmp_path / "data") as served:
        seen = studio(url=served.url)
        seen.open("memory", user="ann", kind="thought")
        seen.page.get_by_role("button", name=THOUGHT).click()
        opened = seen.page.get_by_role("complementary", name="The opened memory")
        opened.get_by_role("button", name=f"chat {SAID}").wait_for()
        assert opened.locator("path.edge").count() == 4  # from the message to two notes, from these to the thought
        assert seen.axe() == []
        opened.get_by_role("button", name=f"chat {SAID}").focus()
        seen.page.keyboard.press("ArrowRight")
        assert seen.page.evaluate("document.activeElement.textContent").startswith("note")
        seen.page.keyboard.press("ArrowLeft")
        seen.page.keyboard.press("Enter")
        opened.get_by_text("It is not based on other records in this memory").wait_for()
        seen.open("memory", user="ann", view="sleep")
        seen.page.get_by_role("button", name="Read the dream").click()
        assert FADED in seen.page.get_by_role("dialog").inner_text()
        seen.page.keyboard.press("Escape")
        assert seen.axe() == []
        seen.leave()


def test_an_earlier_state_contains_no_later_records(studio: OpenStudio, served: Served) -> None:
    with served.client() as client:
        for text in ("Fay came first.", "Gil came second."):
            client.post("/api/v1/users/fay/memories", json={"text": text}).raise_for_status()
        first = client.get("/api/v1/users/fay/log", params={"limit": 1}).json()["rows"][0]["seq"]
    seen = studio()
    seen.open("memory", user="fay", seq=first)
    seen.page.get_by_text("Fay came first.").wait_for()
    assert "Gil came second." not in seen.page.get_by_role("main").inner_text()
    seen.open("memory", user="fay", seq=first, q="who came?")
    seen.page.get_by_role("region", name="What was found").get_by_text("Fay came first.").wait_for()
    assert "Gil came second." not in seen.page.get_by_role("main").inner_text()


def test_a_recorded_memory_is_read_only(studio: OpenStudio, node_tools: None) -> None:
    seen = studio(dark=True, size=NARROW)
    seen.open("memory", user="ann", **{"from": "recorded"}, view="sleep")
    seen.page.get_by_role("button", name="Read the dream").first.click()
    seen.page.get_by_role("dialog").get_by_role("heading", name="The dream").wait_for()
    assert seen.axe() == []
    seen.page.keyboard.press("Escape")
    assert seen.page.get_by_role("button", name="Sleep now").count() == 0
    assert seen.page.get_by_role("button", name="Undo").count() == 0
    assert seen.fits()
