"""A reply is parsed completely or raises ReplyInvalid, in linear time."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from asking import Talk
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from mindstream.coach.belief.plan import CoachingPlan
from mindstream.coach.belief.think import Think
from mindstream.coach.packs.load import load
from mindstream.errors import ReplyInvalid
from mindstream.memory.facts import ExtractFacts
from mindstream.memory.lifecycle.importance import RateImportance
from mindstream.memory.lifecycle.sleep import Dream
from mindstream.models.model import Part, Piece, Request
from mindstream.models.prompt import Prompt, ask, speak
from mindstream.models.reply import whole_json
from mindstream.models.rules import FakeModel
from mindstream.models.untrusted import legible, without_controls
from mindstream.models.wrappers.recovery import Repair
from mindstream.reasoners.reflect.reflect import Insights, SalientQuestions

SLEEP = load("sleep")
PROMPTS: list[Prompt[Any]] = [
    ExtractFacts(utterances=("I drink coffee.",)),
    RateImportance(who="ann", memories=("a", "b")),
    SalientQuestions(who="ann", memories=("a",)),
    Insights(who="ann", question="why?", memories=("a",)),
    Think(pack=SLEEP, phase=SLEEP.phases[-1], belief={}, plan=CoachingPlan(), conversation=(), utterances=("hi",)),
    Dream(fragments=("a",)),
]  # fmt: skip
FACTS = PROMPTS[0]
FACT = '{"facts": [{"text": "The user drinks coffee."}]}'

READ = {
    "alone": FACT,
    "in a code fence": f"```json\n{FACT}\n```",
    "words around it": f"Here you are: {FACT} I hope that helps.",
    "a reference before it": f"As in [1] and [2, 3]: {FACT}",
    "words in braces before it": f"The set {{of facts}} is: {FACT}",
    "thoughts before it": f'<think>perhaps {{"facts": []}}, or [1</think>\n{FACT}',
    "twice the same": f"{FACT}\n\n{FACT}",
    "a stranger beside it": f'{{"temperature": 0}} {FACT}',
    "brackets in a string": FACT.replace("coffee", "]}[{ coffee"),
    "a line break in a string": FACT.replace("coffee", "cof\nfee"),
    "half a character": FACT.replace("coffee", "\\ud83d coffee"),
    "NUL": FACT.replace("coffee", "\\u0000coffee"),
}
REFUSED = {
    "nothing": "",
    "words": "There are no new facts.",
    "a trailing comma": '{"facts": [{"text": "a"},]}',
    "a missing comma": '{"facts": [{"text": "a"} {"text": "b"}]}',
    "single quotes": "{'facts': [{'text': 'a'}]}",
    "a comment": '{"facts": [] // none\n}',
    "cut off": '{"facts": [{"text": "a"}, {"text": "b',
    "the list alone": '[{"text": "a"}]',
    "a fact alone": '{"text": "a"}',
    "as a call": f'{{"name": "facts", "arguments": {FACT}}}',
    "a broken one and a quoted one": '{"facts": [,]} The user wrote {"facts": []}',
    "two that differ": f'The user wrote {{"facts": []}}. {FACT}',
    "thoughts that do not end": f"<think>So {FACT}",
    "brackets that do not match": '{"facts": [{"text": "a"}}]',
    "not a number": '{"facts": [], "x": NaN}',
    "a number of 5,000 digits": '{"facts": [], "x": ' + "9" * 5000 + "}",
    "too deep": '{"facts": ' + "[" * 60 + "]" * 60 + "}",
    "a kind that does not fit": '{"facts": {"text": "a"}}',
    "too long": json.dumps({"facts": [{"text": "a" * 501}]}),
}
HUGE = {
    "<think>": "<think>" * 5_000,
    "{": "{" * 32_000,
    '{"a":': '{"a":' * 8_000,
    "[{": "[{" * 16_000,
    "backslashes": '{"' + "\\" * 32_000,
    "digits in a field": '{"ratings": [' + "1" * 32_000 + "]}",
    "surrogates in it": '{"facts": "' + "\\ud800" * 5_000 + '"}',
    "fields": json.dumps({f"f{n}": n for n in range(3_000)}),
    "a patch of many": json.dumps({"thought": "a", "patch": {"goals": [str(n) for n in range(5_000)]}}),
}


@pytest.mark.parametrize("name", READ)
def test_json_is_found_inside_other_text(name: str) -> None:
    (fact,) = FACTS.parse(READ[name]).facts
    assert "coffee" in fact.text.replace("\n", "")
    fact.text.encode()


@pytest.mark.parametrize("name", REFUSED)
def test_nearly_valid_json_is_refused(name: str) -> None:
    with pytest.raises(ReplyInvalid) as refused:
        FACTS.parse(REFUSED[name])
    assert len(str(refused.value)) < 1_000
    str(refused.value).encode()


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("cut off", "not finished"),
        ("the list alone", "only a list"),
        ("a fact alone", "none of the fields facts, let_go; it has text"),
        ("two that differ", "2 JSON values"),
        ("thoughts that do not end", "does not come out of its <think>"),
        ("a kind that does not fit", "facts: "),
    ],
)
def test_the_model_is_shown_the_faults(name: str, told: str) -> None:
    with pytest.raises(ReplyInvalid, match=told):
        FACTS.parse(REFUSED[name])


@pytest.mark.parametrize("prompt", PROMPTS, ids=lambda prompt: prompt.label())
@pytest.mark.parametrize("name", HUGE)
def test_a_huge_reply_is_parsed_quickly_or_refused(name: str, prompt: Prompt[Any]) -> None:
    try:
        prompt.parse(HUGE[name])
    except ReplyInvalid as refused:
        assert len(str(refused)) < 1_500


NASTY = st.sampled_from(
    [
        *READ.values(), *REFUSED.values(), "{", "}", "[", "]", '"', "\\", ",", ":", "<think>", "</think>", "```json\n",
        "\ud800", "\x00", "\u2028", '{"', '"}', "[1]",
        '{"facts":', '{"thought":', '{"phase":', '{"ratings":', "[1,2]", "1e999",
        "9" * 30, "null", "true", '"patch": {"phase": 1}', '{"thought": "a", "patch": {"goals": {"add": 1}}}',
        '{"thought": "a", "patch": {"nothing": [[[]]]}}', '{"phase": "\\ud800"}', '{"waits": "yes"}', "{}", "[]", " ",
    ]
)  # fmt: skip


@given(text=st.lists(st.one_of(NASTY, st.text(max_size=8)), max_size=8).map("".join))
@settings(max_examples=2 * settings().max_examples, deadline=None)
def test_any_text_is_parsed_or_raises_reply_invalid(text: str) -> None:
    for prompt in PROMPTS:
        try:
            found = prompt.parse(text)
        except ReplyInvalid as refused:
            str(refused).encode()
        else:
            (found if isinstance(found, str) else found.model_dump_json()).encode()


JSON = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False),
        st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"])),
    ),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab {}[]\"\\:,"), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(
    value=st.dictionaries(st.just("a"), JSON, min_size=1), before=st.text("words .,'\n"), after=st.text("words .,'\n")
)
@settings(max_examples=2 * settings().max_examples, deadline=None)
def test_any_valid_json_is_read_unchanged(value: dict[str, Any], before: str, after: str) -> None:
    for dumped in (json.dumps(value), json.dumps(value, ensure_ascii=False, indent=1)):
        assert whole_json(f"{before}{dumped}{after}", dict) == [value]


# Repair.


class Essay(BaseModel):
    words: str = Field(max_length=100)


class Write(Prompt[Essay]):
    """A question for these tests that accepts only text of its turns."""

    @classmethod
    def words(cls) -> str:
        return "# user\nWrite."

    def ground(self, reply: Essay, turns: Any) -> tuple[Essay, str]:
        return (Essay(words="kept"), "nothing gave that") if "made up" in reply.words else (reply, "")


@pytest.mark.parametrize(
    ("answers", "kept", "calls"),
    [
        (["made up", "better"], "better", 2),
        (["made up", "made up"], "kept", 2),
        (["made up", "{", "{"], "kept", 3),
        (["better"], "better", 1),
    ],
)
async def test_unsupported_text_is_sent_back_once(answers: list[str], kept: str, calls: int) -> None:
    lines = [line if line == "{" else Essay(words=line) for line in answers]
    model = FakeModel({"write": lines})
    assert (await ask(Repair(model), Write())).words == kept
    assert len(model.asked) == calls
    for request in model.asked[1:2]:
        assert request.turns[-1].text.endswith("nothing gave that")


# Text.


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("plain", "plain"),
        ("two\nlines\tand more", "two\nlines\tand more"),
        ("\ud83d\ude00", "😀"),
        ("\ud83d", ""),
        ("\ude00\ud83d!", "!"),
        ("a\x00b\x1b[31mc\x07", "ab\x1b[31mc\x07"),
        ("睡眠", "睡眠"),
    ],
)
def test_a_text_is_cleaned_of_unencodable_characters(text: str, clean: str) -> None:
    assert legible(text) == clean
    legible(text).encode()


def test_terminal_control_sequences_are_removed() -> None:
    assert without_controls("I am \x1b]0;evil\x07not \x1b[31mred\x1b[0m\x07\r\n.") == "I am not red\n."
    value = {"facts": [{"text": "not \x1b[31mred \ud83d\x00\x9b"}]}
    assert FACTS.parse(json.dumps(value)).facts[0].text == "not red "
    assert FACTS.parse(json.dumps(value, ensure_ascii=False)).facts[0].text.startswith("not red ")


class Says:
    """A model that sends these parts."""

    name = "says"

    def __init__(self, *parts: Part) -> None:
        self.parts = parts

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        for part in self.parts:
            yield part


async def test_a_split_surrogate_pair_is_joined() -> None:
    says = Says(Piece("a"), Piece("b\ud83d"), Piece("\ude00c"), Piece("\ud83d"), Piece("d"), Piece("\ud83d"))
    assert [piece async for piece in speak(says, Talk())] == ["a", "b", "😀c", "d"]
