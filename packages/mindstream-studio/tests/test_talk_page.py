"""The Talk page: messages are answered, with the reasoning next to them; any moment, and its explanation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fake_endpoint import KEY, FakeEndpoint, Says, Stalls
from saying import BADLY, COFFEE, GOAL, say
from served import Served
from studio import HOSTILE, NARROW, WIDE, Studio, serve_studio

OpenStudio = Callable[..., Studio]


@pytest.fixture(scope="module")
def told(served: Served) -> list[int]:
    """A conversation of two utterances, and one of the next day; the rows of the messages."""
    return [say(served, "ann", BADLY), say(served, "ann", GOAL), say(served, "ann", COFFEE, "second")]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_a_message_is_answered_and_the_reasoning_shown(
    studio: OpenStudio, node_tools: None, dark: bool, size: tuple[int, int]
) -> None:
    seen = studio(dark=dark, size=size)
    user = f"new{dark}{size[0]}"
    seen.open("talk", user=user)
    seen.page.get_by_role("heading", name="Nothing has been said yet").wait_for()
    assert seen.axe() == []
    seen.page.get_by_label("What you say").fill(BADLY)
    seen.page.get_by_role("button", name="Say it").click()
    talk = seen.page.get_by_role("region", name="The conversation")
    talk.get_by_text("answered in").wait_for()
    inside = seen.page.get_by_role("region", name="What goes on in the mind")
    inside.get_by_text("poor sleep", exact=True).wait_for()
    assert BADLY in talk.inner_text()
    assert inside.locator(".fresh").first.inner_text() in ("goal_setting", "poor sleep")
    inside.get_by_text("it is your turn").wait_for()
    assert " ms" in inside.locator(".times").inner_text()
    inside.get_by_role("button", name="Why: poor sleep").click()
    sheet = seen.page.get_by_role("dialog", name="What this belief is based on")
    sheet.get_by_text(BADLY).wait_for()
    assert seen.axe() == [] and seen.fits()
    seen.page.keyboard.press("Escape")
    assert seen.axe() == [] and seen.fits()


@pytest.mark.parametrize(
    ("written_s", "said_s", "first_s", "whole_s"),
    [(0.374, 0.36, 0.36, 0.36), (2.5, 2.0, 1.0, 2.0), (0.9, 1.0, 0.2, 0.7), (0.36, 0.36, None, 0.3)],
    ids=["first-is-all", "written-late", "written-before", "no-stream"],
)
def test_the_timeline_shows_the_first_word_before_the_whole_answer(
    studio: OpenStudio, served: Served, written_s: float, said_s: float, first_s: float | None, whole_s: float
) -> None:
    seen = studio()
    seen.open("talk", user="ann")
    seen.offer_modules()
    call = {"event": "model_called", "role": "talker", "prompt": "talk", "seq": 3, "at": 100 + written_s}
    call |= {"seconds": whole_s, "first_part_s": first_s}
    later = call | {"seq": 4, "at": 109, "seconds": 1, "first_part_s": 0.5}
    rows = [call, {"event": "said", "seq": 2, "at": 100 + said_s}, later]
    spans = seen.page.evaluate(
        "async (rows) => (await import('./source/pages/talk/exchanges.js')).spansOf({heard: {at: 100, seq: 1}, rows})",
        rows,
    )
    talker = next(each for each in spans if each["seq"] == 3)
    end = min(written_s, said_s)
    assert talker["to"] == pytest.approx(end)
    if first_s is not None:
        assert talker["first"] == pytest.approx(end - whole_s + first_s) and talker["first"] <= said_s + 1e-6
    assert next(each for each in spans if each["seq"] == 4)["to"] == pytest.approx(9)


def test_the_input_is_visible_on_a_phone(studio: OpenStudio, told: list[int]) -> None:
    for user in ("nobody-yet", "ann"):
        seen = studio(size=NARROW)
        seen.open("talk", user=user)
        said = seen.page.get_by_label("What you say")
        said.wait_for()
        assert said.evaluate("each => each.getBoundingClientRect().bottom <= window.innerHeight")


def test_a_resent_message_is_processed_once(studio: OpenStudio) -> None:
    seen, tries = studio(), list[str]()

    def lose_the_first(route: Any) -> None:
        tries.append(route.request.headers["idempotency-key"])
        answer = route.fetch()  # it is heard
        route.fulfill(response=answer) if len(tries) != 1 else route.abort()

    seen.page.route("**/send", lose_the_first)
    seen.open("talk", user="again")
    for text, came in ((BADLY, 1), (COFFEE, 2)):
        seen.page.get_by_label("What you say").fill(text)
        seen.page.get_by_role("button", name="Say it").click()
        if came == 1:
            seen.page.get_by_text("The server cannot be reached.").wait_for()
            seen.faults.clear()  # the console reports the lost connection
            seen.page.get_by_role("button", name="Say it").click()
        seen.page.wait_for_function("() => document.querySelector('.composer textarea').value === ''")
    assert tries[0] == tries[1] != tries[2]
    with httpx.Client(base_url=seen.url) as client:
        rows = client.get("/api/v1/users/again/log", params={"kinds": ["heard"]}).json()["rows"]
    assert [row["text"] for row in rows] == [BADLY, COFFEE]


def test_a_link_selects_a_moment_and_keys_move_it(studio: OpenStudio, told: list[int]) -> None:
    seen = studio()
    seen.open("talk", user="ann", talk="first", seq=told[1])
    talk = seen.page.get_by_role("region", name="The conversation")
    inside = seen.page.get_by_role("region", name="What goes on in the mind")
    talk.get_by_text(GOAL).wait_for()
    assert talk.get_by_text("answered in").count() == 1
    assert "version 1" in inside.inner_text() and "falling asleep slowly" not in inside.inner_text()
    seen.page.get_by_role("slider", name="The moment that is shown").focus()
    seen.page.keyboard.press("End")
    talk.get_by_text("answered in").nth(1).wait_for()
    assert "seq=" not in seen.page.url and "falling asleep slowly" in inside.inner_text()
    seen.page.keyboard.press("Home")
    talk.get_by_text(GOAL).wait_for(state="detached")
    assert f"seq={told[0]}" in seen.page.url
    seen.page.reload()
    talk.get_by_text(BADLY).wait_for()
    assert talk.get_by_text(GOAL).count() == 0
    seen.page.get_by_role("button", name="Return to the newest moment").click()
    talk.get_by_text(GOAL).wait_for()


def test_a_moment_selects_its_conversation_and_beliefs_link_to_their_source(
    studio: OpenStudio, told: list[int]
) -> None:
    seen = studio()
    seen.open("talk", user="ann", seq=told[1])
    seen.page.get_by_role("region", name="The conversation").get_by_text(GOAL).wait_for()
    seen.page.get_by_label("Which talk").select_option("second")
    seen.page.get_by_role("region", name="The conversation").get_by_text(COFFEE).wait_for()
    inside = seen.page.get_by_role("region", name="What goes on in the mind")
    inside.get_by_role("button", name="Why: poor sleep").click()
    sheet = seen.page.get_by_role("dialog")
    sheet.get_by_text(BADLY).wait_for()
    sheet.get_by_role("link", name="in memory").click()
    seen.page.get_by_role("complementary", name="The opened memory").get_by_text(BADLY).first.wait_for()


def test_the_reasons_of_an_answer_are_reachable_by_keyboard(studio: OpenStudio, node_tools: None) -> None:
    seen = studio()
    seen.open("talk", user="keys")
    for text in (BADLY, GOAL, COFFEE, "What do you remember about me?"):
        answered = seen.page.get_by_text("answered in").count()
        seen.tab_to("textbox", "What you say")
        seen.page.keyboard.type(text)
        seen.page.keyboard.press("Enter")
        seen.page.get_by_text("answered in").nth(answered).wait_for()
        seen.page.get_by_text("it is your turn").wait_for()
    talk = seen.page.get_by_role("region", name="The conversation")
    waited = talk.get_by_text("for the reasoner’s thought")
    waited.last.wait_for()
    for _ in range(60):
        seen.page.keyboard.press("Shift+Tab")
        if seen.page.evaluate("document.activeElement.closest('.waited') !== null"):
            break
    seen.page.keyboard.press("Enter")
    sheet = seen.page.get_by_role("dialog", name="Why it waited")
    sheet.get_by_text("in which an answer waits until the reasoner has thought").wait_for()
    assert "talker: talk" in sheet.inner_text() and seen.axe() == []
    seen.page.keyboard.press("Escape")
    assert seen.page.evaluate("document.activeElement.textContent") == "why it waited"
    seen.page.keyboard.press("Tab")  # to the moment of the answer
    seen.page.keyboard.press("Tab")
    seen.page.keyboard.press("Enter")
    sheet = seen.page.get_by_role("dialog", name="What this answer is based on")
    sheet.get_by_text("What was believed").wait_for()
    sheet.get_by_text("Memories that a search for these words finds").wait_for()
    assert seen.axe() == []


def test_a_new_conversation_can_use_another_pack(studio: OpenStudio, served: Served, told: list[int]) -> None:
    seen = studio()
    seen.open("talk", user="ann")
    seen.page.get_by_role("button", name="New talk").click()
    seen.page.get_by_label("Who answers").select_option("tutor")
    seen.page.get_by_label("What you say").fill("Teach me fractions.")
    seen.page.keyboard.press("Enter")
    talk = seen.page.get_by_role("region", name="The conversation")
    talk.get_by_text("answered in").wait_for()
    seen.page.get_by_text("answered by the pack “tutor”").wait_for()
    with served.client() as client:
        opened = client.get("/api/v1/users/ann/log", params={"kinds": "opened"}).json()["rows"][-1]
    assert opened["pack"] == "tutor" and opened["session"] in seen.page.get_by_label("Which talk").input_value()
    seen.page.get_by_label("Which talk").select_option("first")
    talk.get_by_text(BADLY).wait_for()
    assert talk.get_by_text("Teach me fractions.").count() == 0


def test_hostile_texts_are_shown_as_text(studio: OpenStudio, served: Served) -> None:
    for text in HOSTILE:
        say(served, "eve", text)
    for size in (WIDE, NARROW):
        seen = studio(size=size)
        seen.open("talk", user="eve")
        talk = seen.page.get_by_role("region", name="The conversation")
        talk.get_by_text("answered in").nth(len(HOSTILE) - 1).wait_for()
        shown = talk.inner_text()
        assert all(text[:40] in shown for text in HOSTILE)
        talk.get_by_role("button", name="Why this answer: ").first.click()
        seen.page.get_by_role("dialog").get_by_text("How long each part took").wait_for()
        assert seen.fits() and seen.page.title().startswith("Talk")
        assert seen.page.locator("main img, main script, aside img").count() == 0


def test_on_a_phone_the_newest_answer_is_above_the_input(studio: OpenStudio, told: list[int]) -> None:
    seen = studio(size=NARROW)
    answers = seen.hold("**/api/v1/answers*")
    seen.open("talk", user="ann", session="first")
    answers.wait()
    seen.page.get_by_role("region", name="The conversation").get_by_text("answered in").last.wait_for()
    seen.draw()
    answers.release()
    seen.page.get_by_text("no model is set, so rules answer").wait_for()  # above the conversation: it moves it
    seen.draw()
    bottom = "[...document.querySelectorAll('.line')].at(-1).getBoundingClientRect().bottom"
    top = "document.querySelector('.composer').getBoundingClientRect().top"
    for _ in range(100):  # not by `wait_for_function`, whose `eval` the page's security policy forbids
        if seen.page.evaluate(f"{bottom} <= {top}"):
            return
        seen.page.wait_for_timeout(100)
    raise AssertionError("the newest answer is below the input")


@pytest.fixture
def door() -> Iterator[FakeEndpoint]:
    with FakeEndpoint() as opened:
        yield opened


@pytest.fixture
def server_with_model(door: FakeEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """A server with the double of an endpoint as its model."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with serve_studio(tmp_path / "data", model=f"{door.url}#any") as server:
        yield server


def test_a_streamed_answer_can_be_stopped_and_requested_again(
    server_with_model: Served, door: FakeEndpoint, studio: OpenStudio
) -> None:
    seen = studio(url=server_with_model.url)
    door.otherwise = Stalls("Warm milk is")
    seen.open("talk", user="ann")
    seen.page.get_by_text("live: ").wait_for()
    seen.page.wait_for_function(
        "async () => (await import('/studio/app.js')).modules['events.js'].connection.value === 'live'"
    )
    seen.page.get_by_label("What you say").fill("What helps?")
    seen.page.keyboard.press("Enter")
    talk = seen.page.get_by_role("region", name="The conversation")
    talk.get_by_text("Warm milk is").wait_for(timeout=60_000)
    talk.get_by_text("speaks").wait_for()
    seen.page.get_by_role("button", name="Stop the answer").click()
    talk.get_by_text("answered in").or_(talk.get_by_text("it was stopped")).first.wait_for()
    door.otherwise = Stalls("")
    seen.page.get_by_label("What you say").fill("And then?")
    seen.page.keyboard.press("Enter")
    talk.get_by_text("And then?").wait_for()
    seen.page.get_by_role("button", name="Stop the answer").click()
    talk.get_by_text("it was stopped").wait_for()
    door.otherwise = Says("Go to bed when you are sleepy.")
    talk.get_by_role("button", name="Answer it after all").click()
    talk.get_by_text("Go to bed when you are sleepy.").wait_for()


def test_streamed_words_are_kept_until_their_message_is_loaded(
    server_with_model: Served, door: FakeEndpoint, studio: OpenStudio
) -> None:
    seen = studio(url=server_with_model.url)
    door.otherwise = Stalls("Warm milk is")
    seen.open("talk", user="ann")
    seen.page.wait_for_function(
        "async () => (await import('/studio/app.js')).modules['events.js'].connection.value === 'live'"
    )
    rows = seen.hold("**/sessions*")
    seen.page.get_by_label("What you say").fill("What helps?")
    seen.page.keyboard.press("Enter")
    seen.page.wait_for_function(
        "async () => [...(await import('/studio/pages/talk.js')).modules['pages/talk/pieces.js'].spoken.value.values()]"
        ".some(({ text }) => text)"
    )
    rows.wait()
    rows.release()
    seen.page.get_by_role("region", name="The conversation").get_by_text("Warm milk is").wait_for()


def test_switching_conversations_while_sending_keeps_the_selection(studio: OpenStudio, told: list[int]) -> None:
    seen = studio()
    seen.open("talk", user="ann", talk="first")
    talk = seen.page.get_by_role("region", name="The conversation")
    talk.get_by_text(BADLY).wait_for()
    sent = seen.hold("**/send")
    seen.page.get_by_label("What you say").fill("Is tea better?")
    seen.page.keyboard.press("Enter")
    sent.wait()
    seen.page.get_by_label("Which talk").select_option("second")
    talk.get_by_text(COFFEE).wait_for()
    with seen.page.expect_response("**/send") as answered:
        sent.release()
    answered.value.finished()
    seen.draw()
    assert "talk=second" in seen.page.url and talk.get_by_text(COFFEE).is_visible()


def test_messages_sent_while_offline_appear_afterwards(studio: OpenStudio, served: Served) -> None:
    say(served, "ida", BADLY)
    seen = studio()
    seen.forgive("ERR_INTERNET_DISCONNECTED")
    seen.open("talk", user="ida")
    talk = seen.page.get_by_role("region", name="The conversation")
    talk.get_by_text("answered in").wait_for()
    seen.page.context.set_offline(True)
    with served.client() as client:
        client.post("/api/v1/users/ida/send", json={"text": COFFEE, "session": "first"}).raise_for_status()
    seen.page.context.set_offline(False)
    talk.get_by_text(COFFEE).wait_for()


def test_a_recorded_conversation_is_read_only(studio: OpenStudio, node_tools: None) -> None:
    seen = studio()
    seen.open("talk", user="nobody")
    seen.page.get_by_text("Or look at a recording:").wait_for()
    seen.page.locator(".empty a").first.click()
    talk = seen.page.get_by_role("region", name="The conversation")
    talk.get_by_role("button", name="Why it waited: ").first.wait_for()
    assert "from=recorded" in seen.page.url and seen.page.get_by_label("What you say").count() == 0
    talk.locator(".waited").get_by_role("button").first.click()
    sheet = seen.page.get_by_role("dialog", name="Why it waited")
    sheet.get_by_text("Because the talk was in the phase “planning”").wait_for()
    sheet.get_by_text("Waiting was useful: the answer already contains a new or changed plan").wait_for()
    assert "The answer waited 28 seconds" in sheet.inner_text() and "(sleep)" not in seen.page.inner_text("body")
    assert seen.axe() == [] and seen.fits()
