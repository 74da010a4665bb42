"""Generated plans, tools and texts."""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st
from pydantic import JsonValue

from mindstream.models.model import ToolSpec
from mindstream.planning.plan import Plan, PlannedStep, Reference, Text

SCRAPS = (
    "Oslo", " ", "\n", "#E1", "#E12", "＃E3", "#", "E1", "[", "]", "［", "{", "}", "(", ")", '"', "'", "\\", ",", "=",
    ":", "Plan:", "Plan: x", "Question:", "#E2 = LLM[", "]\n#E3 = A[b]", "$1", "${2}", "$1 billion", "**", "`", "1. ",
    "- ", "计划：", "北京", "\t", "\r", "\x00", "\u2028", "é", "😀", "null", "3", "a=1", "query=", "join()",
    "<END_OF_PLAN>", '{"$ref": "E1"}', '{"$text": []}', "Thought:", "1. search(", '2. math("', "第一步：",
)  # fmt: skip
"""Fragments for texts that look like plans and are not."""

NAMES = ("Search", "LLM", "Google-Search.v2", "搜索", "server/tool", "_x")
KEYS = ("input", "query", "n", "$ref", "#E1", "a b", "")
CONSTANTS = (None, True, False, 0, -1, 2**63 - 1, -(2**63), 0.1, -0.0, 1e300, 5e-324)


def some_words(chance: Random, most: int = 5) -> str:
    return "".join(
        chance.choice(SCRAPS)
        if chance.random() < 0.9
        else chr(chance.choice((chance.randrange(300), chance.randrange(65_536))))
        for _ in range(chance.randint(0, most))
    )


def some_reference(chance: Random) -> Reference:
    path = tuple(chance.choice(("price", "#E1", 0, -1)) for _ in range(chance.choice((0, 0, 0, 1, 2))))
    return Reference(f"E{chance.randint(1, 12)}", path)


def some_text(chance: Random) -> JsonValue:
    pieces = [
        some_reference(chance) if chance.random() < 0.4 else some_words(chance) for _ in range(chance.randint(0, 3))
    ]
    return Text(tuple(pieces)).as_json()


def some_value(chance: Random, depth: int = 2) -> JsonValue:
    kind = chance.randrange(7 if depth else 5)
    if kind < 2:
        return some_text(chance)
    if kind == 2:
        return some_reference(chance).as_json()
    if kind == 3:
        return chance.choice(CONSTANTS)
    if kind == 4:
        return chance.choice((chance.random(), chance.randint(-(2**63), 2**63 - 1)))
    if kind == 5:
        return [some_value(chance, depth - 1) for _ in range(chance.randint(0, 2))]
    return {chance.choice(KEYS): some_value(chance, depth - 1) for _ in range(chance.randint(0, 2))}


def some_plan(chance: Random) -> Plan:
    """Any plan: references may be missing, forward or circular, and ids may repeat if the steps differ."""
    steps: list[PlannedStep] = []
    for number in range(1, chance.randint(1, 4)):
        name = chance.choice(("input", "query"))
        given = {name: some_text(chance)} if chance.random() < 0.4 else {
            key: some_value(chance) for key in chance.sample(("query", "n", "input", "$ref "), chance.randint(0, 2))
        }  # fmt: skip
        after = tuple(f"E{chance.randint(1, 12)}" for _ in range(chance.choice((0, 0, 1, 2))))
        id = f"E{chance.choice((number, number + 8, 999 + number))}"
        step = PlannedStep(id=id, tool=chance.choice(NAMES), arguments=given, why=some_words(chance), after=after)
        steps += [step] if step not in steps else []
    return Plan(task=some_words(chance), steps=tuple(steps))


plans = st.randoms(use_true_random=True).map(some_plan)


def spec(name: str, **properties: JsonValue) -> ToolSpec:
    """A tool that needs all its arguments."""
    required: list[JsonValue] = list(properties)
    return ToolSpec(name, "", {"type": "object", "properties": properties, "required": required})


TOOLS = (
    spec("Search", query={"type": "string"}, n={"type": "integer"}),
    spec("LLM", input={"type": "string"}),
    spec("搜索", query={}),
    spec("server/tool", n={"type": "number"}),
)
