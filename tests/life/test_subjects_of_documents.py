"""A document is about what its title, headings and file name say; a part of it, about what stands above that."""

from __future__ import annotations

from pathlib import Path

import pytest
from simulated_life import live

from mindstream.life.rules.quoting import Passage, find_quotes
from mindstream.text.headings import find_headings
from mindstream.tools.folder import Document, passages

FILLER = "\nThe floor was laid anew, and the windows were made larger, so that there was more light in winter.\n"
OBSERVATORY = {
    "about.md": "Marlow Observatory\n\nMarlow Observatory was founded by the amateur Ruth Calder, upon a chalk hill.\n",
    "telescope.md": "# The main telescope\n\nThe mirror is 62 centimetres wide. It was ground in Leeds.\n",
    "dome.txt": "The dome\n\nA storm tore off the old roof. It was rebuilt in 1954 with copper plates.\n",
    "tours.md": "# Night tours\n\nThey ended because of the lamps.\n\n## Visitors\n\nAbout 4,000 visitors come.\n",
    "rival.md": "# The dome of Castor\n\nThe dome of Castor was rebuilt in 1971. Its cat is fed by Anna Stone.\n",
    "cheese.md": "# Marl cheese\n\nThe cheese was first sold in 1954. Its rind is washed with beer.\n",
}
PRESS = {
    "history.md": (
        "# The Brandt printing press\n\nThe press was bought in 1931 from a newspaper in Riga.\n" + FILLER * 14
        + "\n## Price\n\nIt cost 900 marks, paid in three parts.\n" + FILLER * 10
        + "\n## People\n\nToday Ilse Brandt runs it with two apprentices.\n"
    ),
    "rival.md": "# The Koller press\n\nThe Koller press was bought in 1950. It cost 200 marks. Otto Koller runs it.\n",
}  # fmt: skip
BRIDGE = {
    "概况.md": "青石桥概况\n青石桥由石匠林守成修建，横跨柳河。全长九十六米。\n",
    "重修.md": "# 重修\n\n一九八七年洪水冲坏了两个桥墩，当年冬天重修完工。\n",
    "石狮子.txt": "石狮子\n\n两边栏杆上共有一百二十只，没有两只是一样的。\n",
    "集市.md": "# 集市\n\n每月初五有集市，摊位有六十个。\n",
}
PARTS = [
    (OBSERVATORY, "how wide the main telescope is", "Marlow Observatory", "62 centimetres"),
    (OBSERVATORY, "when the dome was rebuilt", "Marlow Observatory", "1954 with copper"),
    (OBSERVATORY, "why the night tours ended", "Marlow Observatory", "of the lamps"),
    (OBSERVATORY, "how many visitors come", "Marlow Observatory", "4,000"),
    (OBSERVATORY, "who feeds the cat", "Marlow Observatory", ""),
    (OBSERVATORY, "when the dome was rebuilt", "Kilvane Observatory of Sor", ""),
    (PRESS, "what it cost", "the Brandt printing press", "900 marks"),
    (PRESS, "who runs it", "the Brandt printing press", "Ilse Brandt"),
    (BRIDGE, "谁修建的", "青石桥", "林守成"),
    (BRIDGE, "什么时候重修", "青石桥", "一九八七年"),
    (BRIDGE, "石狮子有多少只", "青石桥", "一百二十只"),
    ({"茶馆.md": "# 茶馆\n\n周三和周六下午有评书。\n"}, "评书什么时候有", "茶馆", "周三"),
    (BRIDGE, "桥上有几盏灯", "青石桥", ""),
]


def read_folder(texts: dict[str, str]) -> list[Passage]:
    documents = (Document(name, tuple(lines := text.splitlines()), (0,) * len(lines)) for name, text in texts.items())
    return [Passage(each.headed, document.name, each.place) for document in documents for each in passages(document)]


@pytest.mark.parametrize(("texts", "part", "subject", "answer"), PARTS)
def test_a_part_is_answered_where_its_document_does_not_name_the_subject(
    texts: dict[str, str], part: str, subject: str, answer: str
) -> None:
    found = [quote.words for quote in find_quotes(part, subject, read_folder(texts))]
    assert all(answer in words for words in found) and bool(found) is bool(answer)


async def test_a_late_part_of_a_long_document_is_searched_and_quoted_under_its_title(tmp_path: Path) -> None:
    lived = await live(tmp_path, "Find out about the Brandt printing press: who runs it, and what it cost", PRESS)
    said = "\n".join(lived.said)
    assert "Ilse Brandt runs it" in said and "900 marks" in said and "Koller" not in said


def test_short_lines_that_stand_alone_are_headings() -> None:
    text = (
        "渡口概况\n渡口在东门外。\n\n渡船\n\n每天六点开始。\n\nYours truly,\n\nThe ferry leaves\nat nine.\n\nno heading"
    )
    assert [words for _, _, words in find_headings(text.splitlines())] == ["渡口概况", "渡船"]
