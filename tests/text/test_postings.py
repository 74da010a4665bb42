"""Postings (numbers by key) may grow while they are copied in steps."""

from __future__ import annotations

from typing import Any

from mindstream.text.lexical import Postings


def test_postings_can_be_added_while_a_copy_is_made() -> None:
    postings, found = Postings(), dict[str, Any]()
    for number in range(5):
        postings.add("word", number)
    steps = postings.copying(5, found)
    next(steps)()
    postings.add("word", 5)
    for step in steps:
        step()
    copy = Postings()
    copy.adopt(found)
    assert postings.of("word").tolist() == [0, 1, 2, 3, 4, 5]
    assert copy.of("word").tolist() == [0, 1, 2, 3, 4]
