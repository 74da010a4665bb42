"""Facts by rule: a name is a name, and a clause can hold two facts."""

from __future__ import annotations

import pytest

from mindstream.models.ask import ask
from mindstream.models.rules import Rules
from mindstream.reasoners.facts.extract_facts import ExtractFacts


async def facts(text: str, *known: str) -> list[str]:
    return [fact.text for fact in (await ask(Rules(), ExtractFacts(utterances=(text,), known=known))).facts]


@pytest.mark.parametrize(
    ("said", "held"),
    [
        ("My name is Ann", ["name: Ann"]),
        ("Hi, I'm Marta, I teach maths", ["name: Marta", "“I teach maths”"]),
        ("i'm Ann by the way, I have two kids", ["name: Ann", "“I have two kids”"]),
        ("Hi I'm tired", ["“Hi I'm tired”"]),
        ("I'm 34 years old", ["age: 34"]),
        ("我叫小明", ["name: 小明"]),
        ("我叫什么名字？", []),
    ],
)
async def test_what_is_stated_is_held(said: str, held: list[str]) -> None:
    assert await facts(said) == held


async def test_a_new_name_takes_the_place_of_the_old_one() -> None:
    asked = ExtractFacts(utterances=("My name is Anna",), known=("name: Ann",))
    (fact,) = (await ask(Rules(), asked)).facts
    assert fact.replaces == [1]
