"""Reasoning and answer are separated however a reply is chunked."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindstream.models.reply import Thinking, without_thoughts

REPLIES = [
    ("<think>Let me see.</think>Yes.", "Let me see.", "Yes."),
    ("  \n<think>a < b </thin</think>\n\nYes <b>.", "a < b </thin", "\n\nYes <b>."),
    ("<think>one</think><think>two</think>three", "onetwo", "three"),
    ("<think>never closed", "never closed", ""),
    ("<thinking>a</thinking>b", "a", "b"),
    ("Yes. <think>hm</think>No.", "hm", "Yes. No."),
    ("<thi", "", "<thi"),
    ("[THINK]a[/THINK]b", "a", "b"),
    ("◁think▷a◁/think▷b", "a", "b"),
    ("<seed:think>a</seed:think>b", "a", "b"),
    ("<|START_THINKING|>a<|END_THINKING|><|START_RESPONSE|>b<|END_RESPONSE|>", "a", "b"),
    ("<|channel>thought\na<channel|>b", "\na", "b"),
    ("<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b<|return|>", "a", "b"),
    ("analysisThe user waits.assistantfinalHello", "The user waits.", "Hello"),
    ("Here is my thought process: a Here is my response: b", " a ", " b"),
    ("<think>\n\n</think>\n\n<answer", "\n\n", "\n\n<answer"),
    ("<think>a <think>b</think> c</think>d", "a b c", "d"),
    ("<think>the <think> tag</think>d", "the  tagd", "d"),
    ("<think>a\n<think>b</think> c", "a\nb c", ""),
    ("<think>a `<think>` is a mark</think>d", "a `` is a mark", "d"),
    ("```xml\n<think>a</think>\n```\nDone.", "", "```xml\n<think>a</think>\n```\nDone."),
    ('Write `<thinking>` or "</think>".', "", 'Write `<thinking>` or "</think>".'),
    ("analysis of a < b, [THIS] and Here is", "", "analysis of a < b, [THIS] and Here is"),
    ("search[thing 1], a[i], a[/t], [think] and [/ins", "", "search[thing 1], a[i], a[/t], [think] and [/ins"),
    ("", "", ""),
]


def parted(pieces: list[str], *, holds: bool = False) -> tuple[str, str]:
    thinking = Thinking(holds=holds)
    both = [thinking.part(piece) for piece in pieces]
    return "".join(thought for thought, _ in both), "".join(answer for _, answer in both) + thinking.rest()


@pytest.mark.parametrize(("reply", "thought", "answer"), REPLIES)
@given(cuts=st.sets(st.integers(0, 40)))
def test_thoughts_are_recognised_at_any_piece_boundary(reply: str, thought: str, answer: str, cuts: set[int]) -> None:
    edges = [0, *sorted(cut for cut in cuts if cut < len(reply)), len(reply)]
    pieces = [reply[start:end] for start, end in pairwise(edges)]
    assert parted(pieces) == (thought, answer)


UNOPENED = ["Tired.\n</think>\n\nHi.", "a</thinking>b", "a [x] <b> ◁/think▷c", "a[/THINK]b", "a{}</seed:think>{b}"]


@pytest.mark.parametrize("reply", UNOPENED)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_text_before_a_lone_closing_tag_is_a_thought(reply: str, size: int) -> None:
    pieces = [reply[start : start + size] for start in range(0, len(reply), size)]
    thinking = Thinking(holds=True)
    parts = [thinking.part(piece) for piece in pieces]
    thought, answer = "".join(one for one, _ in parts), "".join(one for _, one in parts) + thinking.rest()
    assert (thinking.unopened, thinking.leaked) == (True, False)
    assert (thought.strip(), answer.strip()) == (reply[: reply.index(thought) + len(thought)].strip(), answer.strip())
    assert answer.strip() == without_thoughts(reply) != ""
    assert thought[:1] == reply[:1]
    passing = Thinking()
    passed = "".join(passing.part(piece)[1] for piece in pieces) + passing.rest()
    assert passing.leaked == (size < 100)
    assert without_thoughts(passed) == without_thoughts(reply), (
        "the complete reply is read without thoughts in any case"
    )


def test_held_text_of_a_truncated_reply_is_an_unfinished_thought() -> None:
    for truncated, answer in ((True, ""), (False, "I wonder")):
        thinking = Thinking(holds=True)
        assert thinking.part("I wonder") == ("", "")
        assert thinking.rest(truncated=truncated) == answer


MARKS = ["<", ">", "/", "think", "<think>", "</think>", " ", "\n", "a", "{"]


@given(st.lists(st.sampled_from(MARKS), max_size=12))
def test_reading_in_pieces_equals_reading_the_whole(marks: list[str]) -> None:
    reply = "".join(marks)
    assert without_thoughts(parted(list(reply), holds=True)[1]) == without_thoughts(reply)
