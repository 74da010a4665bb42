"""What a model wrote is read whole or not at all, in linear time, and whatever is wrong is a ReplyInvalid."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from asking import Judge, parts_of
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from mindstream.coach.belief.infer_phase import InferPhase
from mindstream.coach.belief.plan import Plan
from mindstream.coach.belief.think_in_phase import ThinkInPhase
from mindstream.coach.packs.load import load
from mindstream.errors import ReplyInvalid
from mindstream.memory.dream import Dream
from mindstream.memory.rate_importance import RateImportance
from mindstream.models.ask import ask, speak
from mindstream.models.model import Call, Part, Piece, Request
from mindstream.models.prompt import Prompt, first_json
from mindstream.models.reply import DEEPEST, legible, legible_parts, whole_json, without_controls, without_thoughts
from mindstream.models.scripted import Scripted
from mindstream.models.wrappers.cache import Cache
from mindstream.models.wrappers.legible import Legible
from mindstream.models.wrappers.repair import Repair
from mindstream.reasoners.facts.extract_facts import ExtractFacts
from mindstream.reasoners.reflect.insights import Insights
from mindstream.reasoners.reflect.salient_questions import SalientQuestions

SLEEP = load("sleep")
PROMPTS: list[Prompt[Any]] = [
    ExtractFacts(utterances=("I drink coffee.",)),
    RateImportance(who="ann", memories=("a", "b")),
    SalientQuestions(who="ann", memories=("a",)),
    Insights(who="ann", question="why?", memories=("a",)),
    InferPhase(pack=SLEEP, phase="understanding", belief={}, conversation=(), utterances=("hi",)),
    ThinkInPhase(
        pack=SLEEP, phase=SLEEP.phases[-1], belief={}, plan=Plan(), notes=(), conversation=(), utterances=("hi",),
        language="en",
    ),
    Dream(fragments=("a",)),
]  # fmt: skip
FACTS = PROMPTS[0]
FACT = '{"facts": [{"text": "The user drinks coffee."}]}'

READ = {
    "alone": FACT,
    "in a code fence": f"```json\n{FACT}\n```",
    "in a bare fence": f"```\n{FACT}\n```",
    "words around it": f"Here you are: {FACT} I hope that helps.",
    "a reference before it": f"As in [1] and [2, 3]: {FACT}",
    "words in braces before it": f"The set {{of facts}} is: {FACT}",
    "thoughts before it": f'<think>perhaps {{"facts": []}}, or [1</think>\n{FACT}',
    "two thoughts": f"<think>a</think><think>b {{</think>{FACT}",
    "the end of thoughts only": f'I could say {{"facts": []}}. </think> {FACT}',
    "twice the same": f"{FACT}\n\n{FACT}",
    "a stranger beside it": f'{{"temperature": 0}} {FACT}',
    "an empty object beside it": f"Not {{}}, but {FACT}",
    "an inch mark before it": f'A 5" disk: {FACT}',
    "brackets in a string": FACT.replace("coffee", "]}[{ coffee"),
    "a quote in a string": FACT.replace("coffee", '\\"coffee\\" }'),
    "a closed thought in a string": FACT.replace("coffee", "</think> {} coffee"),
    "a line break in a string": FACT.replace("coffee", "cof\nfee"),
    "half a character": FACT.replace("coffee", "\\ud83d coffee"),
    "NUL": FACT.replace("coffee", "\\u0000coffee"),
    "byte order mark": f"\ufeff{FACT}",
}
REFUSED = {
    "nothing": "",
    "blanks": " \n\t ",
    "words": "There are no new facts.",
    "a number": "5",
    "a text": '"facts"',
    "a trailing comma": '{"facts": [{"text": "a"},]}',
    "a trailing comma in the object": '{"facts": [{"text": "a"}],}',
    "a missing comma": '{"facts": [{"text": "a"} {"text": "b"}]}',
    "single quotes": "{'facts': [{'text': 'a'}]}",
    "bare names": '{facts: [{"text": "a"}]}',
    "a comment": '{"facts": [] // none\n}',
    "a comment first": '{ // none\n"facts": [{"text": "a"}]}',
    "an ellipsis": '{"facts": [{"text": "a"}, ...]}',
    "Python's None": '{"facts": [{"text": "a", "object": None}]}',
    "cut off": '{"facts": [{"text": "a"}, {"text": "b',
    "cut off after a whole part": '{"facts": [{"text": "a"}, {"text": "b"}',
    "the list alone": '[{"text": "a"}]',
    "a list of the object": f"[{FACT}]",
    "a fact alone": '{"text": "a"}',
    "wrapped": f'{{"answer": {FACT}}}',
    "as a call": f'{{"name": "facts", "arguments": {FACT}}}',
    "as a text": json.dumps(FACT),
    "a broken one and a quoted one": '{"facts": [,]} The user wrote {"facts": []}',
    "a bare one and a quoted one": '{facts: [1]} The user wrote {"facts": []}',
    "two that differ": f'The user wrote {{"facts": []}}. {FACT}',
    "thoughts that do not end": f"<think>So {FACT}",
    "thoughts only": f"<think>{FACT}</think>",
    "a brace too few": '{"facts": [{"text": "a"}]',
    "brackets that do not match": '{"facts": [{"text": "a"}}]',
    "an open brace before it": f"{{ {FACT}",
    "not a number": '{"facts": [], "x": NaN}',
    "infinity": '{"facts": [], "x": -Infinity}',
    "a number without end": '{"facts": [], "x": 1e999}',
    "a number of 5,000 digits": '{"facts": [], "x": ' + "9" * 5000 + "}",
    "too deep": '{"facts": ' + "[" * 60 + "]" * 60 + "}",
    "a kind that does not fit": '{"facts": {"text": "a"}}',
    "null": '{"facts": null}',
    "too long": json.dumps({"facts": [{"text": "a" * 501}]}),
    "too many": json.dumps({"facts": [{"text": "a"}] * 21}),
}
HUGE = {
    "<think>": "<think>" * 5_000,
    "</think>": "</think>" * 5_000,
    "think open and closed": "<think></think>" * 3_000,
    "{": "{" * 32_000,
    "[": "[" * 32_000,
    "{}": "{}" * 16_000,
    '{"': '{"' * 16_000,
    '{"a":': '{"a":' * 8_000,
    '{"a" ': '{"a" }' * 6_000,
    "[{": "[{" * 16_000,
    "}{": "}{" * 16_000,
    '"': '"' * 32_000,
    "{ and quotes": "{" + '\\"' * 16_000,
    "backslashes": '{"' + "\\" * 32_000,
    "{ and blanks": "{" + " " * 32_000,
    "{ blanks }": "{ }" * 10_000 + "{" + " " * 1_000,
    "digits": "{" + "1" * 32_000 + "}",
    "digits in a field": '{"ratings": [' + "1" * 32_000 + "]}",
    "surrogates": "\ud800" * 32_000,
    "surrogates in it": '{"facts": "' + "\\ud800" * 5_000 + '"}',
    "fields": json.dumps({f"f{n}": n for n in range(3_000)}),
    "a patch of many": json.dumps({"thought": "a", "patch": {"goals": [str(n) for n in range(5_000)]}}),
    "patches of many": json.dumps(
        {
            "thought": "a",
            "questions": [
                {"question": "q", "answer": "a", "patch": {"goals": [f"{q} {n}" for n in range(500)]}} for q in range(8)
            ],
        }
    ),
}


@pytest.mark.parametrize("name", READ)
def test_the_json_is_found_with_words_around_it(name: str) -> None:
    (fact,) = FACTS.parse(READ[name]).facts
    assert "coffee" in fact.text.replace("\n", "")
    fact.text.encode()


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_nearly_right_is_not_taken_for_right(name: str) -> None:
    with pytest.raises(ReplyInvalid) as refused:
        FACTS.parse(REFUSED[name])
    assert len(str(refused.value)) < 1_000
    str(refused.value).encode()


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("a trailing comma", r"broken: .* at .*\]\}"),
        ("cut off", "not finished"),
        ("the list alone", "only a list"),
        ("a fact alone", "none of the fields facts, let_go; it has text"),
        ("two that differ", "2 JSON values"),
        ("thoughts that do not end", "does not come out of its <think>"),
        ("single quotes", "double quotes"),
        ("nothing", "was empty"),
        ("a kind that does not fit", "facts: "),
    ],
)
def test_the_model_is_told_what_is_wrong(name: str, told: str) -> None:
    with pytest.raises(ReplyInvalid, match=told):
        FACTS.parse(REFUSED[name])


@pytest.mark.parametrize("prompt", PROMPTS, ids=lambda prompt: prompt.label())
@pytest.mark.parametrize("name", HUGE)
def test_a_huge_reply_is_read_at_once_or_refused(name: str, prompt: Prompt[Any]) -> None:
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
@settings(max_examples=250, deadline=None)
def test_no_text_at_all_raises_anything_else(text: str) -> None:
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


CHANGES = JSON | st.fixed_dictionaries({"add": JSON, "remove": JSON})
PATCHES = st.dictionaries(st.sampled_from([*SLEEP.fields, "phase", "nothing", ""]), CHANGES, max_size=3)


@given(patch=PATCHES, inner=PATCHES)
@settings(max_examples=80, deadline=None)
def test_no_patch_at_all_raises_anything_else(patch: dict[str, Any], inner: dict[str, Any]) -> None:
    question = {"question": "q", "answer": "a", "patch": inner}
    try:
        PROMPTS[6].parse(json.dumps({"thought": "a", "patch": patch, "questions": [question]}))
    except ReplyInvalid as refused:
        str(refused).encode()


@given(
    value=st.dictionaries(st.just("a"), JSON, min_size=1), before=st.text("words .,'\n"), after=st.text("words .,'\n")
)
@settings(max_examples=200, deadline=None)
def test_whatever_is_json_is_read_as_it_is(value: dict[str, Any], before: str, after: str) -> None:
    for dumped in (json.dumps(value), json.dumps(value, ensure_ascii=False, indent=1)):
        assert whole_json(f"{before}{dumped}{after}", dict) == [value]


def test_a_list_is_read_where_a_list_is_asked_for() -> None:
    class Names(Prompt[list[str]]):
        """A question for these tests."""

        @classmethod
        def words(cls) -> str:
            return "# user\nName some."

    assert Names().parse('Here: ["a", "b"]') == ["a", "b"]
    with pytest.raises(ReplyInvalid, match="only an object"):
        Names().parse('{"names": ["a"]}')


def test_the_first_of_any_kind_is_read_for_tools() -> None:
    assert first_json("<result>\n[1, 2]\n</result>") == [1, 2]
    assert first_json('{"a": [1]}') == {"a": [1]}
    with pytest.raises(ReplyInvalid):
        first_json('{"a": [1],}')


def test_what_stands_within_each_other_is_counted() -> None:
    deep = '{"a": ' * DEEPEST + "1" + "}" * DEEPEST
    assert whole_json(deep, dict)
    with pytest.raises(ReplyInvalid, match="nested deeper"):
        whole_json(f'{{"a": {deep}}}', dict)


# Repair.


async def test_a_model_mends_what_is_nearly_right() -> None:
    model = Scripted({"extract_facts": [REFUSED["a trailing comma"], FACT]})
    assert len((await ask(Repair(model), FACTS)).facts) == 1
    assert "broken" in model.asked[-1].turns[-1].text


class Essay(BaseModel):
    words: str = Field(max_length=100)


class Write(Prompt[Essay]):
    """A question for these tests, which lets pass only what is in its turns."""

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
async def test_what_nothing_gave_is_sent_back_once(answers: list[str], kept: str, calls: int) -> None:
    lines = [line if line == "{" else Essay(words=line) for line in answers]
    model = Scripted({"write": lines})
    assert (await ask(Repair(model), Write())).words == kept
    assert len(model.asked) == calls
    for request in model.asked[1:2]:
        assert request.turns[-1].text.endswith("nothing gave that")


async def test_without_a_repair_it_is_left_out() -> None:
    assert (await ask(Scripted({"write": [Essay(words="made up")]}), Write())).words == "kept"


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
def test_a_text_is_cleaned_of_what_no_file_takes(text: str, clean: str) -> None:
    assert legible(text) == clean
    legible(text).encode()


def test_what_is_kept_or_shown_to_a_model_steers_no_terminal() -> None:
    assert without_controls("I am \x1b]0;evil\x07not \x1b[31mred\x1b[0m\x07\r\n.") == "I am not red\n."
    value = {"facts": [{"text": "not \x1b[31mred \ud83d\x00\x9b"}]}
    assert FACTS.parse(json.dumps(value)).facts[0].text == "not red "
    assert FACTS.parse(json.dumps(value, ensure_ascii=False)).facts[0].text.startswith("not red ")


@given(st.text(st.characters(exclude_categories=[])))
def test_every_clean_text_can_be_written(text: str) -> None:
    assert legible(legible(text)) == legible(text)
    legible(text).encode()


class Says:
    """A model that says these parts."""

    name = "says"

    def __init__(self, *parts: Part) -> None:
        self.parts = parts

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        for part in self.parts:
            yield part


async def test_half_a_character_waits_for_the_other_half() -> None:
    says = Says(Piece("a"), Piece("b\ud83d"), Piece("\ude00c"), Piece("\ud83d"), Piece("d"), Piece("\ud83d"))
    assert await parts_of(Legible(says)) == [Piece("a"), Piece("b"), Piece("😀c"), Piece("d")]


async def test_what_comes_through_the_doors_can_be_written(tmp_path: Path) -> None:
    says = Says(Piece('{"score": 4, "\\ud800": "'), Piece("\ud800\x00"), Piece('"}'))
    assert (await ask(says, Judge())).score == 4
    assert (
        "".join([piece async for piece in speak(Says(Piece("a\ud800"), Piece("b")), Dream(fragments=("a",)))]) == "ab"
    )
    assert (await ask(Cache(Legible(says), tmp_path), Judge())).score == 4


async def test_a_calls_arguments_are_clean() -> None:
    parts = [
        part async for part in legible_parts(Says(Call("a\ud800", '{"x": "\ud800"}', "\x00c")).reply(Request(Judge())))
    ]
    assert parts == [Call("a", '{"x": ""}', "c")]


def test_thoughts_are_no_words() -> None:
    assert Dream(fragments=("a",)).parse("<think>hm</think> I dreamt.") == "I dreamt."
    with pytest.raises(ReplyInvalid, match="empty"):
        Dream(fragments=("a",)).parse("<think>hm, I dreamt.")
    assert without_thoughts("I think <think> is a tag") == "I think <think> is a tag"
