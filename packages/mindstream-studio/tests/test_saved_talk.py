"""A conversation saved to a file: complete, with reasons and optionally calls; nothing else, and no request."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from mindstream_studio.recorded import KINDS, STATIC, save_talk
from saving import held_in, look_at, save
from saying import BADLY, COFFEE, GOAL, say
from served import Served
from studio import HOSTILE, NARROW, WIDE, Studio, serve_studio

from mindstream.errors import InputError
from mindstream.settings import Settings

OpenStudio = Callable[..., Studio]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that logs prompts, with a conversation of two utterances between two others, and a hostile one."""
    settings = Settings(model="rules", keep_prompts=True)
    with serve_studio(tmp_path_factory.mktemp("saved") / "data", settings=settings) as server:
        say(server, "ann", COFFEE, "before")
        say(server, "ann", BADLY)
        say(server, "ann", "I live above a bakery.", "other")
        say(server, "ann", GOAL)
        say(server, "ann", "I have a cat.", "later")
        for text in HOSTILE:
            say(server, "eve", text)
        yield server


@pytest.fixture(scope="module")
def files(served: Served, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Ann's first conversation without calls and with them, and eve's, as files."""
    folder = tmp_path_factory.mktemp("files")
    settings = served.api_app.runtime.settings
    ann, eve = (settings.model_copy(update={"user": name}) for name in ("ann", "eve"))
    return {
        "talk": save(ann, folder / "talk.html", partial(save_talk, session="first")),
        "calls": save(ann, folder / "calls.html", partial(save_talk, session="first", with_calls=True)),
        "eve": save(eve, folder / "eve.html", partial(save_talk, session="first", with_calls=True)),
    }


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_a_saved_conversation_shows_the_page_without_requests(
    studio: OpenStudio, node_tools: None, files: dict[str, Path], dark: bool, size: tuple[int, int]
) -> None:
    seen = studio(dark=dark, size=size, url=files["talk"].parent.as_uri())
    asked = look_at(seen, files["talk"])
    talk = seen.page.get_by_role("region", name="The conversation")
    inside = seen.page.get_by_role("region", name="What goes on in the mind")
    talk.get_by_text("answered in").nth(1).wait_for()
    assert BADLY in talk.inner_text() and GOAL in talk.inner_text()
    assert seen.page.get_by_text("saved: rules").is_visible()
    inside.get_by_text("falling asleep slowly").wait_for()
    inside.get_by_role("button", name="Why: poor sleep").click()
    seen.page.get_by_role("dialog", name="What this belief is based on").get_by_text(BADLY).wait_for()
    assert seen.axe() == [] and seen.fits()
    seen.page.keyboard.press("Escape")
    talk.get_by_role("button", name="Why this answer: ").last.click()
    seen.page.get_by_role("dialog").get_by_text("How long each part took").wait_for()
    seen.page.keyboard.press("Escape")
    seen.page.get_by_role("slider", name="The moment that is shown").focus()
    seen.page.keyboard.press("Home")
    talk.get_by_text(GOAL).wait_for(state="detached")
    seen.page.reload()
    talk.get_by_text(BADLY).wait_for()
    assert talk.get_by_text(GOAL).count() == 0
    assert seen.page.get_by_role("textbox").count() == 0
    assert seen.page.get_by_role("link", name=re.compile("memory|Traces")).count() == 0
    assert seen.axe() == [] and seen.fits()
    assert {url.partition("#")[0] for url in asked} == {files["talk"].as_uri()}


def test_a_saved_conversation_contains_no_other_conversation(files: dict[str, Path]) -> None:
    held = held_in(files["talk"])
    words = str(held)
    assert COFFEE not in words and "bakery" not in words and "a cat" not in words
    assert held["calls"] == []
    assert {"heard", "said", "thought", "belief_changed", "decided"} <= {row["event"] for row in held["rows"]}
    recalled = [each["text"] for one in held["recalls"] for each in one["answer"]["memories"]]
    assert BADLY in recalled, "earlier messages of this conversation are recalled"
    assert files["talk"].stat().st_size < 200_000


def test_a_message_links_to_its_model_call_and_back(
    studio: OpenStudio, node_tools: None, files: dict[str, Path]
) -> None:
    seen = studio(url=files["calls"].parent.as_uri())
    asked = look_at(seen, files["calls"])
    talk = seen.page.get_by_role("region", name="The conversation")
    talk.get_by_role("button", name="Why this answer: ").last.click()
    seen.page.get_by_role("dialog").get_by_role("link", name="talker: talk").first.click()
    opened = seen.page.get_by_role("complementary", name="The opened call")
    opened.get_by_role("heading", name="What was asked").wait_for()
    opened.get_by_role("heading", name="All that resulted from this message").wait_for()
    assert seen.axe() == [] and seen.fits()
    opened.get_by_role("link", name="the talk as it stood then").click()
    talk.get_by_text(GOAL).wait_for()
    seen.page.go_back()
    opened.get_by_role("heading", name="What was asked").wait_for()
    seen.page.get_by_role("button", name="Close").click()
    listed = seen.page.get_by_role("region", name="Calls").get_by_role("listitem")
    assert listed.count() == len(held_in(files["calls"])["calls"]) > 2
    assert {url.partition("#")[0] for url in asked} == {files["calls"].as_uri()}


def test_hostile_texts_are_shown_as_text(studio: OpenStudio, files: dict[str, Path]) -> None:
    assert "<img" not in files["eve"].read_text("utf-8")
    for size in (WIDE, NARROW):
        seen = studio(size=size, url=files["eve"].parent.as_uri())
        look_at(seen, files["eve"])
        talk = seen.page.get_by_role("region", name="The conversation")
        talk.get_by_text("answered in").nth(len(HOSTILE) - 1).wait_for()
        shown = talk.inner_text()
        assert all(text[:40] in shown for text in HOSTILE)
        talk.get_by_role("button", name="Why this answer: ").first.click()
        seen.page.get_by_role("dialog").get_by_text("How long each part took").wait_for()
        assert seen.fits() and seen.page.title().startswith("Talk")
        assert seen.page.locator("main img, main script, aside img").count() == 0


def test_a_file_of_another_program_is_left_unchanged(served: Served, tmp_path: Path) -> None:
    other = tmp_path / "mine.html"
    other.write_text("<p>mine</p>", "utf-8")
    settings = served.api_app.runtime.settings.model_copy(update={"user": "ann"})
    with pytest.raises(InputError, match="exists already"):
        save(settings, other, partial(save_talk, session="first"))
    with pytest.raises(InputError, match="ann has no conversation 'none'"):
        save(settings, tmp_path / "none.html", partial(save_talk, session="none"))
    with pytest.raises(InputError, match="there is no user"):
        save(settings.model_copy(update={"user": "zoe"}), tmp_path / "none.html", partial(save_talk, session="first"))
    assert other.read_text("utf-8") == "<p>mine</p>" and not (tmp_path / "none.html").exists()


def test_saved_event_kinds_equal_those_of_the_page() -> None:
    page = (STATIC / "pages" / "talk" / "shapes.js").read_text("utf-8")
    assert tuple(re.findall(r'"(\w+)"', page.partition("KINDS = [")[2].partition("]")[0])) == KINDS
