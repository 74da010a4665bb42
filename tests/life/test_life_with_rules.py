"""A life without a model: briefs over folders that others give, and plain words where rules cannot."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from simulated_life import live

from mindstream.life.rules.parts import read_question
from mindstream.life.rules.reading import read_task

LIGHTHOUSE = {
    "tower.md": (
        "# The light of Sker\n\nThe tower of Sker was finished in 1874 by the engineer Anna Breck."
        " It is 31 metres high.\n"
    ),
    "keepers.md": (
        "# The keepers\n\nThe last keeper of Sker, Tom Arlow, left in 1983 because the lamp had become electric."
        " He kept two hens.\n\nHis wage was 900 pounds a year.\n"
    ),
    "bread.md": "# Rye bread\n\nThe dough rests for ten hours. Bakers in the north add caraway.\n",
}
CHINESE = {
    "茶馆.md": "# 老茶馆\n\n老茶馆由陈守义在1921年开办。茶馆因为河水改道在1958年关门。\n\n关门是镇上的议事会决定的。\n",
    "船.md": "# 船\n\n镇上有三条船，每条能坐十二个人。\n",
}


def body(root: Path, name: str = "brief.md") -> str:
    return (root / "out" / name).read_text("utf-8")


def quotations(text: str) -> list[str]:
    return re.findall(r"“(.+)” \[\d+\]", text)


async def test_a_brief_quotes_what_answers_with_its_place(tmp_path: Path) -> None:
    goal = "Prepare a short report on the light of Sker: when it was finished, why the last keeper left, how high it is"
    lived = await live(tmp_path, goal, LIGHTHOUSE)
    brief = body(tmp_path)
    assert "1874 by the engineer Anna Breck" in brief
    assert "because the lamp had become electric" in brief
    assert "31 metres" in brief
    assert re.search(r"^1\. tower\.md, lines 1-3$", brief, re.MULTILINE)
    assert "caraway" not in brief
    assert "missing" not in brief
    assert lived.ended == "done"
    assert set(lived.tasks.values()) == {"done"}


async def test_every_quotation_stands_in_a_document_word_for_word(tmp_path: Path) -> None:
    await live(tmp_path, "Write a brief about the keepers of Sker, with sources", LIGHTHOUSE)
    documents = " ".join(" ".join(LIGHTHOUSE.values()).split())
    quoted = quotations(body(tmp_path))
    assert quoted
    assert all(words in documents for words in quoted)


async def test_what_the_folder_does_not_answer_is_said_to_be_missing(tmp_path: Path) -> None:
    goal = "Write a brief on the light of Sker: who paid for the foghorn, and when it was finished"
    lived = await live(tmp_path, goal, LIGHTHOUSE)
    brief = body(tmp_path)
    missing = brief.partition("What is missing")[2]
    assert "Who paid for the foghorn" in missing
    assert "Who paid for the foghorn" not in brief.partition("What is missing")[0]
    assert "who paid for the foghorn" in lived.said[-1]


async def test_a_subject_that_no_document_names_gets_no_quotation(tmp_path: Path) -> None:
    await live(tmp_path, "Write a brief on the tower of Kilvane: when it was finished and how high it is", LIGHTHOUSE)
    assert quotations(body(tmp_path)) == []


@pytest.mark.parametrize("goal", ["Write a brief on bees", "写一份关于蜜蜂的简报", "Who keeps bees?"])
async def test_an_empty_folder_gives_no_invention_and_an_end(tmp_path: Path, goal: str) -> None:
    lived = await live(tmp_path, goal, {})
    assert lived.ended == "done"
    assert lived.calls < 60
    assert not any("“" in words and "—" in words for words in lived.said)


async def test_a_brief_is_written_in_chinese(tmp_path: Path) -> None:
    lived = await live(tmp_path, "写一份关于老茶馆的简报：谁开办的、为什么关门、谁决定关门、有几只猫", CHINESE)
    brief = body(tmp_path, "简报.md")
    assert "老茶馆由陈守义在1921年开办。" in brief
    assert "茶馆因为河水改道在1958年关门。" in brief
    assert "有几只猫：" in brief.partition("还缺什么")[2]
    assert lived.ended == "done"
    assert re.search(r"^1\. 茶馆\.md，第1-5行$", brief, re.MULTILINE)
    assert re.search("引自1份文档", brief)
    english = re.findall("[A-Za-z]+", "".join([brief, *lived.said]).replace(".md", ""))
    assert english == []


async def test_a_question_is_answered_without_a_file(tmp_path: Path) -> None:
    lived = await live(tmp_path, "Who was the last keeper of Sker?", LIGHTHOUSE)
    assert "Tom Arlow" in lived.said[-1]
    assert "keepers.md" in lived.said[-1]
    assert not (tmp_path / "out").exists()


async def test_without_a_tool_for_files_the_brief_is_said(tmp_path: Path) -> None:
    goal = "Write a brief on the light of Sker: when it was finished and how high it is"
    lived = await live(tmp_path, goal, LIGHTHOUSE, writes=False)
    assert "## Sources" in lived.said[-1]
    assert lived.ended == "done"


@pytest.mark.parametrize(
    "goal",
    [
        "Book a table for two in Lisbon", "Compose a symphony", "!!!", "帮我订一张去上海的机票",
        "Keep a diary of my garden", "Count all the stars and then count them again", "be happy", "Ask me", "x" * 5_000,
    ],
)  # fmt: skip
async def test_what_rules_cannot_do_ends_with_a_plain_word(tmp_path: Path, goal: str) -> None:
    lived = await live(tmp_path, goal, LIGHTHOUSE)
    assert lived.ended == "done"
    assert lived.calls < 80
    assert lived.said[-1].strip(" …")


def test_where_a_brief_is_to_be_written_is_no_part_of_it() -> None:
    goal = "Write a brief on the mill: who built it, and who painted the church. Put it into mill.md."
    assert read_question(goal).parts == ("who built it", "who painted the church")


@pytest.mark.parametrize(
    ("goal", "subjects"),
    [
        ("When was the mill built and what is 17.5 * 4", ("", "")),
        ("Find out who runs the ferry and when the tea house was opened", ("", "")),
        ("Find out who runs the ferry and how old it is", ("", "who runs the ferry")),
        ("Write a brief on the mill: who built it and who painted the door", ("the mill", "the mill")),
        ("磨坊什么时候建的，17.5*4等于多少", ("", "")),
        ("谁经营渡口，什么时候开始", ("", "谁经营渡口")),
    ],
)
def test_a_first_part_is_the_subject_only_of_what_names_none(goal: str, subjects: tuple[str, ...]) -> None:
    question = read_question(read_task(goal).about)
    assert tuple(map(question.subject_of, question.parts)) == subjects
