"""The shell: a page recovers after a server restart, users' text never becomes markup, colours persist."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from served import Served, ServerProcess
from studio import HOSTILE, NARROW, WIDE, Studio

OpenStudio = Callable[..., Studio]


def remember(url: str, text: str, user: str = "ann") -> str:
    made = httpx.post(f"{url}/api/v1/users/{quote(user, safe='')}/memories", json={"text": text}, timeout=30)
    return str(made.raise_for_status().json()["id"])


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_page_recovers_after_a_server_restart(studio: OpenStudio, tmp_path: Path, how: signal.Signals) -> None:
    with ServerProcess(tmp_path / "data", "--studio") as server:
        port = int(server.url.rpartition(":")[2])
        remember(server.url, "It was there before.")
        seen = studio(url=server.url)
        seen.open("memory", user="ann")
        seen.page.get_by_text("It was there before.").wait_for()
        remember(server.url, "It came while the page was open.")
        seen.page.get_by_text("It came while the page was open.").wait_for()
        server.end(how)
        seen.page.get_by_text("The server cannot be reached.").wait_for()
    with ServerProcess(tmp_path / "data", "--studio", port=port) as server:
        remember(server.url, "It came after the restart.")
        seen.page.get_by_text("It came after the restart.").wait_for()
        assert not seen.page.get_by_text("The server cannot be reached.").is_visible()
    seen.forgive("ERR_", "Failed to load resource")


def test_events_before_the_event_stream_opens_are_not_missed(studio: OpenStudio, served: Served) -> None:
    remember(served.url, "It was there before.", "ira")
    seen = studio()
    stream = seen.hold("**/api/v1/events*")
    seen.open("memory", user="ira")
    seen.page.get_by_text("It was there before.").wait_for()
    stream.wait()
    remember(served.url, "It came before anybody listened.", "ira")
    stream.release()
    seen.page.get_by_text("It came before anybody listened.").wait_for()


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_hostile_texts_are_shown_as_text(studio: OpenStudio, served: Served, size: tuple[int, int]) -> None:
    ids = [remember(served.url, text, "eve") for text in HOSTILE]
    seen = studio(size=size)
    seen.open("memory", user="eve")
    seen.page.get_by_role("listitem").nth(len(HOSTILE) - 1).wait_for()
    shown = seen.page.get_by_role("region", name="Time line").inner_text()
    assert all(text[:40] in shown for text in HOSTILE)
    assert seen.fits()
    for id_, text in zip(ids, HOSTILE, strict=True):
        seen.open("memory", user="eve", id=id_, q=text)
        opened = seen.page.get_by_role("complementary", name="The opened memory")
        opened.get_by_role("paragraph").first.wait_for()
        assert opened.get_by_role("paragraph").first.inner_text() == text
        assert seen.fits()
    assert seen.page.title().startswith("Memory")
    assert seen.page.locator("main img, main script").count() == 0


def test_colours_follow_the_system_until_chosen(studio: OpenStudio) -> None:
    seen = studio(dark=True)
    seen.open("memory", user="ann")
    paper = "getComputedStyle(document.body).backgroundColor"
    dark = seen.page.evaluate(paper)
    seen.page.get_by_role("button", name="Colours").click()
    light = seen.page.evaluate(paper)
    assert (light, light != dark) == ("rgb(255, 255, 255)", True)
    seen.page.reload()
    seen.page.get_by_role("heading", level=1).wait_for()
    assert seen.page.evaluate(paper) == light


def test_recorded_minds_are_marked_and_a_name_with_a_slash_opens(studio: OpenStudio, served: Served) -> None:
    remember(served.url, "Ann likes tea.", "ann")
    remember(served.url, "Both like cake.", "Ann/team")
    seen = studio()
    seen.open("memory")  # the first one of the list
    seen.page.get_by_text("Both like cake.").wait_for()
    listed = seen.page.get_by_label("Whose mind").get_by_role("option").all_inner_texts()
    assert listed.count("ann") == listed.count("ann (recorded)") == 1, listed
    seen.page.get_by_label("Whose mind").select_option("ann (recorded)")
    seen.page.wait_for_url("**from=recorded**")


def test_a_link_to_an_unknown_page_opens_the_first(studio: OpenStudio) -> None:
    seen = studio()
    seen.open("nowhere", user="ann")
    assert "#/talk?user=ann" in seen.page.url


def test_unused_modules_are_not_fetched(studio: OpenStudio, served: Served) -> None:
    remember(served.url, "Hal whistles.", "hal")
    seen = studio()
    fetched: list[str] = []
    seen.page.on("request", lambda request: fetched.append(request.url))
    seen.open("memory", user="hal")
    seen.page.get_by_text("Hal whistles.").wait_for()
    assert not [
        url for url in fetched if "uplot.js" in url or "dagre.js" in url or ("pages/life" in url and ".js" in url)
    ]


@pytest.mark.slow
def test_an_empty_studio_begins_with_a_recording_and_a_recorded_town_is_awake(
    studio: OpenStudio, tmp_path: Path
) -> None:
    with ServerProcess(tmp_path / "data", "--studio") as server:
        seen = studio(url=server.url)
        seen.page.goto(f"{server.url}/studio/")
        seen.page.get_by_text("This is a recorded talk.").wait_for()
        seen.page.get_by_role("link", name="Begin a talk of your own").click()
        seen.page.get_by_text("Nothing has been said yet").wait_for()
        seen.open("town", **{"from": "recorded"})
        seen.page.get_by_text("06:01").first.wait_for()  # its first happening; it plays unless motion is reduced
        seen.leave()
