"""The Traces page: each call with its text, totals that filter the list, links to a call and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from fake_endpoint import KEY, Fails, FakeEndpoint, Says
from served import Served
from studio import HOSTILE, NARROW, WIDE, Studio, serve_studio

from mindstream.settings import Settings

OpenStudio = Callable[..., Studio]
ANSWER = "Good to hear from you, ann."


@pytest.fixture(scope="module")
def door() -> Iterator[FakeEndpoint]:
    with FakeEndpoint() as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, door: FakeEndpoint) -> Iterator[Served]:
    """A server that logs prompts, with an answered message, and a call that failed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", KEY)
        settings = Settings(model=f"{door.url}#any", keep_prompts=True, budget_tokens=1_000_000)
        with serve_studio(tmp_path_factory.mktemp("traces") / "data", settings=settings) as server:
            say(server, door, "ann", "The owl sat on the roof.", Says(ANSWER))
            say(server, door, "eve", "\n".join(HOSTILE[:3]), Says(HOSTILE[0] + HOSTILE[3]))
            say(server, door, "fay", "Hello?", Fails(400))
            yield server


def say(server: Served, door: FakeEndpoint, user: str, text: str, answer: Any) -> None:
    door.otherwise = answer
    events = {"Accept": "text/event-stream"}
    with server.client() as client:
        client.post(f"/api/v1/users/{user}/send", json={"text": text}, headers=events).raise_for_status()
        while not calls(server, user, role="reasoner"):
            Event().wait(0.05)


def calls(server: Served, user: str, **asked: Any) -> list[dict[str, Any]]:
    with server.client() as client:
        found: list[dict[str, Any]] = client.get(f"/api/v1/users/{user}/calls", params=asked).json()["calls"]
    return found


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_a_call_shows_its_text_and_links_to_the_conversation(
    studio: OpenStudio, node_tools: None, served: Served, dark: bool, size: tuple[int, int]
) -> None:
    seen = studio(dark=dark, size=size)
    call = calls(served, "ann", role="talker")[0]
    seen.open("traces", user="ann", call=call["seq"])
    opened = seen.page.get_by_role("complementary", name="The opened call")
    opened.get_by_text(ANSWER, exact=True).wait_for()
    opened.get_by_text("what ann said", exact=False).wait_for()
    assert opened.get_by_text("The owl sat on the roof.").count() >= 2, "in its purpose and in the prompt"
    opened.get_by_role("listitem").filter(has_text="this call").wait_for()
    assert seen.axe() == [] and seen.fits()
    opened.get_by_role("link", name="the talk as it stood then").click()
    seen.page.get_by_role("heading", name="Talk", level=1).wait_for()
    seen.page.get_by_role("region", name="The conversation").get_by_text("The owl sat on the roof.").wait_for()
    seen.page.go_back()
    opened.get_by_text(ANSWER, exact=True).wait_for()


def test_totals_by_day_and_role_narrow_the_list(studio: OpenStudio, node_tools: None, served: Served) -> None:
    seen = studio()
    seen.open("traces", user="fay")
    came_to = seen.page.get_by_role("region", name="Total cost")
    came_to.get_by_text("at most 1,000,000 tokens").wait_for()
    listed = seen.page.get_by_role("region", name="Calls").get_by_role("listitem")
    came_to.get_by_role("table", name="By role").get_by_role("button", name="talker").click()
    seen.page.get_by_text("of the talker").wait_for()
    count = len(calls(served, "fay", role="talker"))
    listed.nth(count - 1).wait_for()
    seen.page.wait_for_function("many => document.querySelectorAll('.call').length === many", arg=count)
    came_to.get_by_role("table", name="By day").get_by_role("button").first.click()
    came_to.get_by_role("columnheader", name="role, on").wait_for()
    assert seen.axe() == []
    came_to.get_by_role("button", name="failed").click()
    listed.first.get_by_text("failed:").wait_for()
    seen.page.get_by_role("button", name="Remove the filter: calls that failed").click()
    seen.page.wait_for_function("many => document.querySelectorAll('.call').length > many", arg=count)


def test_the_page_can_be_used_with_the_keyboard(studio: OpenStudio, served: Served) -> None:
    seen = studio()
    seen.open("traces", user="ann")
    first = calls(served, "ann")[0]
    seen.tab_to("button", (first["prompt"] or first["role"]).replace("_", " "))
    seen.page.keyboard.press("ArrowDown")
    seen.page.keyboard.press("Enter")
    opened = seen.page.get_by_role("complementary", name="The opened call")
    opened.get_by_role("heading", name="What the call was for").wait_for()
    assert f"call={calls(served, 'ann')[1]['seq']}" in seen.page.url
    seen.page.keyboard.press("Escape")
    opened.wait_for(state="detached")


def test_prompts_and_replies_are_shown_as_text(studio: OpenStudio, served: Served) -> None:
    seen = studio(size=NARROW)
    seen.open("traces", user="eve", call=calls(served, "eve", role="talker")[0]["seq"])
    opened = seen.page.get_by_role("complementary", name="The opened call")
    opened.get_by_role("heading", name="What was answered").wait_for()
    assert HOSTILE[0] in opened.inner_text() and HOSTILE[1] in opened.inner_text()
    assert opened.locator("img, script").count() == 0 and "taken" not in seen.page.title()
    assert seen.fits()


def test_an_earlier_moment_shows_the_calls_until_then(studio: OpenStudio, served: Served) -> None:
    seen = studio()
    all_of_it = calls(served, "ann")
    seen.open("traces", user="ann", seq=all_of_it[1]["seq"])
    seen.page.wait_for_function("many => document.querySelectorAll('.call').length === many", arg=len(all_of_it) - 1)
    seen.page.get_by_text(f"{len(all_of_it) - 1} call").first.wait_for()
    seen.open("traces", user="ann", seq=1)
    seen.page.get_by_role("heading", name="No model had been asked yet").wait_for()


def test_a_mind_without_calls_explains_what_to_do(studio: OpenStudio, node_tools: None) -> None:
    seen = studio()
    seen.open("traces", user="nobody")
    seen.page.get_by_role("heading", name="No model has been asked yet").wait_for()
    assert seen.page.get_by_role("link", name="talk", exact=True).get_attribute("href") == "#/talk?user=nobody"
    assert seen.axe() == []


def test_without_kept_prompts_the_page_names_the_setting(studio: OpenStudio, tmp_path: Path) -> None:
    with serve_studio(tmp_path / "data") as plain:
        with plain.client() as client:
            client.post(
                "/api/v1/users/ann/send", json={"text": "Hello!"}, headers={"Accept": "text/event-stream"}
            ).raise_for_status()
        seen = studio(url=plain.url)
        seen.open("traces", user="ann", call=calls(plain, "ann", role="talker")[0]["seq"])
        seen.page.get_by_text("MINDSTREAM_KEEP_PROMPTS=1").wait_for()
        seen.page.get_by_text("rules", exact=True).wait_for()
        seen.leave()
