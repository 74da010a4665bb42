"""What residents answer without a model to ordinary questions: by first names, after greetings, about now and then."""

from __future__ import annotations

import asyncio
from datetime import date
from pathlib import Path

import pytest
from hamlet import hamlet

from mindstream.town.events import Talked
from mindstream.town.history import read_history
from mindstream.town.interview import day_lines, interview, open_interview
from mindstream.town.rules.question import find_named, read_question, read_span
from mindstream.town.town import Town
from mindstream.town.visiting import visit

TWO = 8_640 + 14 * 360
"""Two o'clock on the second day."""
UNKNOWN = "I do not know."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("asked")

    async def live() -> None:
        async with Town.open(folder, hamlet(3)) as town:
            await town.run(until=TWO)

    asyncio.run(live())
    return folder


async def ask(folder: Path, question: str, who: str = "Ben Hale") -> str:
    return (await interview(folder, who, question)).answer


async def test_a_greeting_and_a_first_name_change_nothing(folder: Path) -> None:
    plain = await ask(folder, "Who is Ada Brook?")
    assert "wife" in plain
    for question in ("who is ada", "Hi! Who is Ada?", "Good morning Ben, do you know ada?", "Hey ben, who's Ada"):
        assert await ask(folder, question) == plain
    for question in ("Hello, is there a reading evening?", "Do you know if there is a reading evening?"):
        assert (await ask(folder, question)).startswith("Yes. ")
    assert "Ada Brook" in await ask(folder, "who is your wife?")


async def test_small_talk_is_answered_as_such(folder: Path) -> None:
    assert await ask(folder, "Thanks a lot!") == "You are welcome."
    assert await ask(folder, "Goodbye, Ben!") == "Goodbye."
    assert (await ask(folder, "hello")).startswith("Hello.")
    state = (await read_history(folder)).state("Ben Hale", TWO)
    assert state.act is not None and state.act.what in await ask(folder, "hi, how are you?")


async def test_what_one_is_and_does_now_is_known(folder: Path) -> None:
    state = (await read_history(folder)).state("Ada Brook", TWO)
    assert state.act is not None and state.act.what in await ask(folder, "what are you doing right now?", "Ada Brook")
    for question, words in (
        ("where are you", "Oak Cafe"), ("what's your name?", "Ada Brook"), ("How old are you?", "34"),
        ("where do you live?", "Mill House"), ("are you married?", "Ben Hale is my husband"),
        ("what do you do?", "baker"), ("What are you working on?", "reading evening"),
        ("what time do you go to bed?", "10pm"),
    ):  # fmt: skip
        assert words in await ask(folder, question, "Ada Brook"), question


async def test_what_was_is_told_by_its_day(folder: Path) -> None:
    history = await read_history(folder)
    today = {talk.partner for at, talk in history.events("Ada Brook", Talked) if at >= 8_640}
    said = await ask(folder, "who did you talk to today?", "Ada Brook")
    assert today and all(name in said for name in today)
    breakfast = await ask(folder, "Did you have breakfast this morning?", "Ada Brook")
    assert breakfast.startswith("Yes. ") and "having breakfast" in breakfast
    yesterday = await ask(folder, "what did you do yesterday?", "Ada Brook")
    assert yesterday.startswith("My plan for yesterday was: ") and "working" in yesterday
    assert "reading evening" not in yesterday
    assert "reading evening" in await ask(folder, "What will you do tonight?", "Ada Brook")
    assert " today at " in await ask(folder, "When did you last see ada?")


async def test_who_when_and_where_are_answered_by_what_says_so(folder: Path) -> None:
    assert "5pm" in await ask(folder, "when is the reading evening?", "Cleo Marsh")
    assert "Oak Cafe" in await ask(folder, "Where's the reading evening?", "Cleo Marsh")
    assert (await ask(folder, "who told you about the reading evening?", "Cleo Marsh")).startswith("Ada Brook said: ")
    async with open_interview(folder) as interviewer:
        first, second, third = await interviewer.converse(
            "Cleo Marsh", ["Is there a reading evening?", "When is it?", "And do you know Ada?"]
        )
    assert first.answer.startswith("Yes. ") and "5pm" in second.answer and "Ada Brook" in third.answer


async def test_what_nothing_says_is_not_known(folder: Path) -> None:
    for question in ("What is the weather like?", "Who is running for mayor?", "Is there a flower show?"):
        assert await ask(folder, question) == UNKNOWN
    assert await ask(folder, "Do you know someone called Zebedee Quill?") == "I do not know who Zebedee Quill is."
    assert await ask(folder, "who is Zebedee?") == "I do not know who Zebedee is."
    assert (await ask(folder, "Where does Ada study?")).startswith("I do not know that of Ada Brook.")
    assert await ask(folder, "Who is Cleo?", "Ada Brook") != await ask(folder, "Who is Zoe?", "Ada Brook")
    assert await ask(folder, "The bridge is closed.") == "I have not heard of that."
    assert not (await ask(folder, "Will you read at the reading evening of Ada?", "Cleo Marsh")).startswith("Yes. Ben")


async def test_a_visitor_is_answered_in_the_same_words(tmp_path: Path) -> None:
    async with Town.open(tmp_path, hamlet()) as town:
        await town.run(12 * 360)
        async with visit(town, "Ada Brook", by="Maya") as mind:
            said = await mind.say("Hello, is there a reading evening?")
            assert said.startswith("Hello Maya. Yes. I am planning")
            assert "5pm" in await mind.say("When is it?")
            assert "husband" in await mind.say("who is ben?")
            assert await mind.say("Thank you!") == "You are welcome."


async def test_a_day_is_shown_whole_only_around_what_is_asked(folder: Path) -> None:
    history = await read_history(folder)
    state, setting = history.state("Ada Brook", TWO), history.setting
    whole, shown = day_lines(setting, state, TWO), day_lines(setting, state, TWO, 9 * 60)
    assert set(shown) < set(whole) | {each.partition(" (")[0] for each in whole} | set(shown)
    assert len("".join(shown)) < len("".join(whole))
    assert [each for each in whole if each.startswith("09:")] == [each for each in shown if each.startswith("09:")]
    assert {each[6:].split(" (")[0] for each in shown} == {each[6:].split(" (")[0] for each in whole}


def test_a_question_is_read_by_its_words() -> None:
    people = ("Ada Brook", "Ben Hale", "Ann Lee", "Will Lee")
    assert find_named("do you know ben and Ann Lee?", "Ada Brook", people) == ("Ann Lee", "Ben Hale")
    assert find_named("what will ben do?", "Ada Brook", people) == ("Ben Hale",), "an auxiliary is nobody"
    asked = read_question("Hi Ada! Could you tell me who runs the shop?", "Ada Brook")
    assert asked.focus == "who" and asked.about == {"run", "shop"} and not asked.past
    span = read_span(read_question("What did you do yesterday evening?", "Ada Brook"), date(2023, 2, 14), 600)
    assert (span.days, span.start) == (-1, 17 * 60)
