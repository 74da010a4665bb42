"""With rules, a question that the user has answered before is answered in their own words."""

from __future__ import annotations

from pathlib import Path

import pytest

from mindstream import Mind
from mindstream.clock import ManualClock
from mindstream.coach.answer_from_memory import find_answer
from mindstream.coach.memory_question import read_question

TOLD = (
    "My daughter is called Iris, she is nine.", "Our cat Lupo sleeps on my pillow.",
    "I drink two espressos after lunch.",
    "My dentist says I grind my teeth.", "In August we go to the Azores.",
    "My husband Rui works nights at the harbour.",
)  # fmt: skip
ASKED = [
    ("what's my daughter's name?", "Iris"),
    ("who sleeps on my pillow?", "Lupo"),
    ("hey, what did my dentist say?", "grind"),
    ("can you remind me what does Rui do?", "harbour"),
    ("how many espressos do I drink?", "two"),
]


async def told(folder: Path, clock: ManualClock) -> None:
    async with Mind.open(folder, user="marta", session="one", clock=clock) as mind:
        for line in TOLD:
            clock.advance(60)
            await mind.say(line)
        await mind.settled()
    clock.advance(86_400)


async def test_it_is_quoted_with_its_day(folder: Path) -> None:
    clock = ManualClock()
    await told(folder, clock)
    async with Mind.open(folder, user="marta", session="two", clock=clock, gate="quick") as mind:
        answers = [await mind.say(question) for question, _ in ASKED]
    for answer, (question, wanted) in zip(answers, ASKED, strict=True):
        assert wanted in answer and "“" in answer and "2023-11-14" in answer, (question, answer)
    assert len(set(answers)) == len(answers)


@pytest.mark.parametrize(
    ("said", "asked", "name"),
    [("Hi, I'm Tom.", "what's my name?", "Tom"), ("My name is Ann", "do you remember what my name is?", "Ann"),
     ("我叫小明", "我叫什么名字？", "小明")],
)  # fmt: skip
async def test_a_name_is_known(folder: Path, said: str, asked: str, name: str) -> None:
    async with Mind.open(folder, user="marta", session="one", gate="quick") as mind:
        await mind.say(said)
        await mind.settled()
        first, again = await mind.say(asked), await mind.say(asked)
    assert name in first and name in again and first != again


async def test_what_was_corrected_is_quoted_as_corrected(folder: Path) -> None:
    clock = ManualClock()
    async with Mind.open(folder, user="marta", session="one", clock=clock, gate="quick") as mind:
        line = await mind.stream.remember("My sister is called Paula.", "chat", by="marta", data={"by_user": True})
        await mind.stream.supersede(line.id, "My sister is called Pauline.")
        clock.advance(60)
        answer = await mind.say("what is my sister called?")
    assert "Pauline" in answer


async def test_what_was_never_told_is_said_to_be_missing(folder: Path) -> None:
    clock = ManualClock()
    await told(folder, clock)
    async with Mind.open(folder, user="marta", session="two", clock=clock, gate="quick") as mind:
        answer = await mind.say("what is my brother's blood group?")
    assert "“" not in answer and ("nothing" in answer or "not told" in answer)


@pytest.mark.parametrize(
    "question",
    [
        "what should I do?", "why can't I sleep?", "how do I fall asleep faster?", "what can help?",
        "what is my next step?",
        "when will it get better?", "what's wrong with me?", "are you a real person?", "what do you think?",
        "who are you?",
        "\u6211\u5e94\u8be5\u600e\u4e48\u529e\uff1f",
    ],
)  # fmt: skip
async def test_who_asks_for_advice_gets_no_quotation(folder: Path, question: str) -> None:
    clock = ManualClock()
    await told(folder, clock)
    async with Mind.open(folder, user="marta", session="two", clock=clock, gate="quick") as mind:
        answer = await mind.say(question)
    assert not any(f"“{line}" in answer for line in TOLD)


SAID = ["Me sister Orla keeps bees.", "The wedding is on the 3rd of May.", "I owe the bank 900 pounds.",
        "No, the 5th of May, I mixed it up.",
        "我闺女叫圆圆，上初一。", "她下周三考试。", "我对芒果过敏。"]  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "place"),
    [("what does my sister keep?", 0), ("when is the wedding?", 3), ("how much do I owe the bank?", 2),
     ("我女儿叫什么名字？", 4),
     ("我对啥过敏？", 6), ("我女儿星期几考试？", 5), ("我儿子叫什么？", None), ("what is my brother's name?", None),
     ("how old is my sister?", None)],
)  # fmt: skip
def test_the_line_is_found_that_holds_what_is_asked_for(asked: str, place: int | None) -> None:
    question = read_question(asked)
    assert question is not None
    assert find_answer(question, SAID, [0.0] * len(SAID)) == place


@pytest.mark.parametrize(
    "text",
    [
        "When my daughter cries I wake up.",
        "我什么都吃不下。",
        "what should I do?",
        "我该几点睡？",
        "what is melatonin?",
    ],
)
def test_what_asks_for_nothing_that_was_told_is_no_such_question(text: str) -> None:
    assert read_question(text) is None


OF_FAMILY = ["my husband snores", "I drink two coffees", "our daughter is afraid of the dark", "奶奶半夜喜欢听广播"]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("what's my husband's problem again?", 0), ("what was the matter with my husband?", 0),
        ("what's the trouble with our daughter?", 2), ("奶奶有什么毛病来着？", 3), ("我老公的问题是什么？", 0),
        ("what's my brother's problem?", None), ("what's my husband's favourite colour?", None),
        ("which instrument does my daughter play?", None), ("我奶奶的电话号码是什么？", None),
    ],
)  # fmt: skip
def test_what_is_the_matter_with_somebody_is_found_by_whom_it_is_about(question: str, answer: int | None) -> None:
    asked = read_question(question)
    assert asked is not None
    assert find_answer(asked, OF_FAMILY, [0.0] * len(OF_FAMILY)) == answer
