"""A diary by standing order: what is asked for again and again lasts, the rest fades, and stands under a dream."""

from __future__ import annotations

from pathlib import Path

import pytest
from simulated_life import simulation

from mindstream.clock import parse_iso
from mindstream.life.life import Life
from mindstream.life.rules.answering import answer_from_memory
from mindstream.life.simulation import ScriptLine
from mindstream.memory.record import Record

PLANTS = ("kale", "beet", "leek", "fennel", "chard", "radish", "pea", "bean", "squash", "onion", "garlic", "thyme")
DID = ("sowed", "watered", "thinned", "weeded", "mulched", "picked", "staked", "pruned")


def garden(days: int) -> list[ScriptLine]:
    """Answers that are all different, a fact that is asked for every third day, and one that is never named again."""
    lines = [
        ScriptLine(
            day=day, asked="garden", answers=f"{DID[day % 8]} the {PLANTS[day % 12]} in bed {day}, {day + 3} of them."
        )
        for day in range(1, days + 1)
    ]
    lines += [
        ScriptLine(day=1, at="10:00", says="The seeds are in the drawer below the barometer."),
        ScriptLine(day=1, at="10:30", says="A trumpeter practised Verdi on the roof of the bakery."),
        *(ScriptLine(day=day, at="12:00", says="Where are the seeds?") for day in range(2, days, 3)),
        ScriptLine(day=days, at="21:00", says="Where are the seeds?"),
        ScriptLine(day=days, at="21:30", says="What did I tell you about the trumpeter?"),
    ]
    return lines


async def notes(life: Life, word: str) -> list[Record]:
    ids = list((await life.stream.columns()).ids)
    return [
        each
        for each in await life.stream.store.records(life.stream.name, ids)
        if word in each.text and each.kind == "note"
    ]


async def dreams(life: Life) -> list[Record]:
    ids = list((await life.stream.columns()).ids)
    return [each for each in await life.stream.store.records(life.stream.name, ids) if each.kind == "dream"]


async def test_sixty_days_of_a_diary(tmp_path: Path) -> None:
    said: list[str] = []
    orders = ("every day at 19: ask me what I did in the garden", "every Sunday at 20: sum up my week")
    async with simulation(tmp_path / "data", "Keep a diary of my garden", orders, garden(60)) as found:
        async for day in found.days(60):
            said += [words for _, words in day.said]
        (seeds,) = await notes(found.life, "barometer")
        (music,) = await notes(found.life, "Verdi")
        under_dreams = {id_ for each in await dreams(found.life) for id_ in each.evidence}
    assert seeds.lasting
    assert sum("below the barometer" in words for words in said) >= 18
    assert "below the barometer" in said[-2]
    assert music.forgotten is not None
    assert music.id in under_dreams
    assert not said[-1].startswith("You told me")  # at most a dream of it is left
    assert said[0].startswith("The standing orders")


async def test_a_week_is_summed_up_by_its_days_alone(tmp_path: Path) -> None:
    orders = ("every day at 19: ask me what I did in the garden", "every Sunday at 20: sum up my week")
    reviews = []
    async with simulation(tmp_path / "data", "Keep a diary of my garden", orders, garden(14)) as found:
        async for day in found.days(14):
            reviews += [words for _, words in day.said if words.startswith("What I hold")]
    first, second = reviews
    assert "2026-05-05" in first
    assert "2026-05-05" not in second
    assert second.count("2026-05-1") >= 4


async def test_a_diary_in_chinese(tmp_path: Path) -> None:
    lines = [
        ScriptLine(day=1, asked="睡得怎么样", answers="六个小时，半夜被猫吵醒。"),
        ScriptLine(day=1, at="12:00", says="钥匙放在蓝色的罐子后面。"),
        ScriptLine(day=2, at="12:00", says="钥匙放在哪里？"),
        ScriptLine(day=2, at="12:30", says="我的牙医叫什么？"),
    ]
    said: list[str] = []
    async with simulation(tmp_path / "data", "坚持写睡眠日记", ("每天早上9点问我睡得怎么样",), lines) as found:
        async for day in found.days(2):
            said += [words for _, words in day.said]
    assert any("六个小时" in words for words in said)
    assert any("蓝色的罐子" in words and words.startswith("你在2026-05-04") for words in said)
    assert said[-1] == "我不记得有这件事。" or said[-2] == "我不记得有这件事。"


@pytest.mark.parametrize(
    ("question", "line"),
    [
        ("我昨天喝了什么茶？", "- 2026-11-22: 我昨天喝了白茶"),
        ("我昨天喝了什么茶？", "- 2026-11-21: 我今天喝了白茶。"),
        ("What tea did I drink yesterday?", "- 2026-11-22: Yesterday I drank white tea, a whole pot"),
    ],
)
def test_what_was_told_of_a_day_answers_a_question_about_that_day(question: str, line: str) -> None:
    noon = parse_iso("2026-11-22T12:00:00")
    assert line[14:] in answer_from_memory(question, line, noon, "en")
    assert answer_from_memory(question, line.replace("2026-11-2", "2026-10-2"), noon, "en") == ""


async def test_who_does_not_answer_is_asked_again_another_day_and_nothing_is_written(tmp_path: Path) -> None:
    said: list[str] = []
    orders = ("every day at 9: ask me how the bees are",)
    async with simulation(tmp_path / "data", "Keep a journal of the bees", orders) as found:
        async for day in found.days(3):
            said += [words for _, words in day.said]
        assert await notes(found.life, "bees") == []
    assert said.count("There was no answer.") == 3


async def test_what_is_said_is_heard_as_what_it_is(tmp_path: Path) -> None:
    lines = [
        ScriptLine(day=1, at="10:00", says="My sister Ada moved to Turin."),
        ScriptLine(day=1, at="10:10", says="Where did Ada move?"),
        ScriptLine(day=1, at="10:20", says="Remind me to water the lemon tree"),
        ScriptLine(day=1, at="10:30", says="every day at 8: ask me how I slept"),
    ]
    said: list[str] = []
    async with simulation(tmp_path / "data", "Be of help", (), lines) as found:
        async for day in found.days(1):
            said += [words for _, words in day.said]
    assert "Noted." in said
    assert "You told me on 2026-05-04: “My sister Ada moved to Turin.”" in said
    assert "That is in the ledger now." in said
    assert "You wanted to be reminded: water the lemon tree." in said
    assert any(words.startswith("A standing order is given from outside") for words in said)
