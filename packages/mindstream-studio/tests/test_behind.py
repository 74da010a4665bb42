"""From a frame of a town or a line of a conversation to the model call behind it, and back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fake_endpoint import KEY, Asked, FakeEndpoint, Says
from hamlet import PROSE
from mindstream_town.opened import begin, find_setting, read_profile
from saying import BADLY, GOAL, say
from served import Served
from solving import ended
from studio import NARROW, WIDE, Studio, serve_studio

from mindstream.service.operations.offered import Offered
from mindstream.settings import Settings

OpenStudio = Callable[..., Studio]


def mind(_: Asked) -> Says:
    """Plan one thing for the day."""
    return Says(json.dumps({"items": [{"from": "00:00", "to": "24:00", "what": "resting", "place": ""}]}))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that logs prompts; it offers a hamlet whose residents have planned their day."""
    folder = tmp_path_factory.mktemp("behind")
    (folder / "hamlet.toml").write_text(PROSE)
    setting = find_setting(str(folder / "hamlet.toml"), 1, read_profile((), ()))
    with ThreadPoolExecutor(1) as apart:
        apart.submit(asyncio.run, begin(Settings(data=folder / "hamlet"), setting)).result()
    with FakeEndpoint() as door, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", KEY)
        door.otherwise = mind
        offered = Offered(towns={("local", "hamlet"): folder / "hamlet"})
        settings = Settings(model=f"{door.url}#any", roles={"talker": "rules", "reasoner": "rules"}, keep_prompts=True)
        with serve_studio(folder / "data", settings=settings, offered=offered) as server:
            with server.client() as client:
                ended(client, client.post("/api/v1/towns/hamlet/run", json={"steps": 5}).json()["id"])
            yield server


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_a_town_frame_links_to_its_model_call_and_back(
    studio: OpenStudio, served: Served, node_tools: None, size: tuple[int, int]
) -> None:
    seen = studio(size=size)
    seen.open("town", town="hamlet", who="Ada Brook", t=4)
    seen.page.locator(".town .transport").wait_for()
    seen.page.get_by_role("button", name="Why: Ada Brook").click()
    why = seen.page.get_by_role("dialog", name="Why Ada Brook does that")
    why.get_by_text("Model calls at step 0").wait_for()
    why.locator("p", has_text="Model calls at step 0").get_by_role("link").first.click()
    opened = seen.page.get_by_role("complementary", name="The opened call")
    opened.get_by_text("Ada Brook, at step 0.").wait_for()
    opened.get_by_role("heading", name="What was asked").wait_for()
    assert "resting" in opened.inner_text()
    assert seen.axe() == [] and seen.fits()
    opened.get_by_role("link", name="the town at that moment").click()
    seen.page.locator(".town h2", has_text="Ada Brook").wait_for()
    assert str(seen.page.locator(".clock .now").inner_text()) == "00:00"
    seen.page.go_back()
    opened.get_by_text("Ada Brook, at step 0.").wait_for()


@pytest.fixture(scope="module")
def told(served: Served) -> list[int]:
    """Send two utterances that are answered; return their rows."""
    return [say(served, "ann", BADLY), say(served, "ann", GOAL)]


def test_a_message_links_to_its_model_call_and_back(studio: OpenStudio, served: Served, told: list[int]) -> None:
    seen = studio()
    seen.open("talk", user="ann")
    talk = seen.page.get_by_role("region", name="The conversation")
    talk.get_by_text("answered in").nth(1).wait_for()
    talk.get_by_role("button", name="Why this answer: ").last.click()
    sheet = seen.page.get_by_role("dialog")
    sheet.get_by_role("link", name="talker: talk").first.click()
    opened = seen.page.get_by_role("complementary", name="The opened call")
    opened.get_by_role("heading", name="What was asked").wait_for()
    assert newest(served, "ann", role="talker", about=told[1])["seq"] == int(seen.page.url.partition("call=")[2])
    opened.get_by_role("link", name="the talk as it stood then").click()
    talk.get_by_text(GOAL).wait_for()
    seen.page.go_back()
    opened.get_by_role("heading", name="What was asked").wait_for()
    seen.page.go_back()
    talk.get_by_text("answered in").nth(1).wait_for()


def test_a_belief_links_to_the_model_call_that_formed_it(studio: OpenStudio, served: Served, told: list[int]) -> None:
    seen = studio()
    seen.open("talk", user="ann")
    inside = seen.page.get_by_role("region", name="What goes on in the mind")
    inside.get_by_role("button", name="Why: poor sleep").click()
    seen.page.get_by_role("dialog").get_by_role("link", name="the call of the model").click()
    opened = seen.page.get_by_role("complementary", name="The opened call")
    opened.get_by_text("asked by").wait_for()
    assert "the reasoner" in opened.inner_text() and BADLY in opened.inner_text()


def newest(served: Served, user: str, **asked: Any) -> dict[str, Any]:
    with served.client() as client:
        found: list[dict[str, Any]] = client.get(f"/api/v1/users/{user}/calls", params=asked).json()["calls"]
    return found[0]
