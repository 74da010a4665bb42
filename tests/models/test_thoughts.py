"""Thoughts and answer are told apart however a reply is cut into pieces."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindstream.models.providers.thoughts import Thinking
from mindstream.models.reply import without_thoughts

REPLIES = [
    ("<think>Let me see.</think>Yes.", "Let me see.", "Yes."),
    ("  \n<think>a < b </thin</think>\n\nYes <b>.", "a < b </thin", "\n\nYes <b>."),
    ("<think>one</think><think>two</think>three", "onetwo", "three"),
    ("<think>never closed", "never closed", ""),
    ("<thinking> is a word", "", "<thinking> is a word"),
    ("Yes. <think>no mark here</think>", "", "Yes. <think>no mark here</think>"),
    ("<thi", "", "<thi"),
    ("", "", ""),
]


def parted(pieces: list[str]) -> tuple[str, str]:
    thinking = Thinking()
    both = [thinking.part(piece) for piece in pieces]
    return "".join(thought for thought, _ in both), "".join(answer for _, answer in both) + thinking.rest()


@pytest.mark.parametrize(("reply", "thought", "answer"), REPLIES)
@given(cuts=st.sets(st.integers(0, 40)))
def test_thoughts_are_told_wherever_a_reply_is_cut(reply: str, thought: str, answer: str, cuts: set[int]) -> None:
    edges = [0, *sorted(cut for cut in cuts if cut < len(reply)), len(reply)]
    pieces = [reply[start:end] for start, end in pairwise(edges)]
    assert parted(pieces) == (thought, answer)


MARKS = ["<", ">", "/", "think", "<think>", "</think>", " ", "\n", "a", "{"]


@given(st.lists(st.sampled_from(MARKS), max_size=12))
def test_piece_by_piece_is_as_a_whole(marks: list[str]) -> None:
    reply = "".join(marks)
    assert parted(list(reply))[1].strip() == without_thoughts(reply)
