"""Postings (numbers by key) may grow while they are copied in steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mindstream.text.lexical import Lexical, Postings


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


@pytest.mark.parametrize("removed", [[], [7], [0, 3, 29], list(range(0, 30, 2))])
def test_removed_documents_leave_the_postings_of_an_index_that_never_had_them(removed: list[int]) -> None:
    texts = [[f"w{number % 3}", f"w{number % 7}", *(["all"] * (1 + number % 4))] for number in range(30)]
    index, found = Lexical(), dict[str, Any]()
    for text in texts:
        index.add(text)
    for step in index.postings.copying(30 << 4, found):
        step()
    index.postings = Postings()
    index.postings.adopt(found)
    below = np.array([sum(each < number for each in removed) for number in range(31)], np.uint32)
    fewer = index.without({number: texts[number] for number in removed}, {}, np.array(removed, np.int64), below)
    expected = Lexical()
    for number, text in enumerate(texts):
        if number not in removed:
            expected.add(text)
    assert fewer is not None
    assert fewer.sizes.values.tolist() == expected.sizes.values.tolist()
    for word in ("all", *(f"w{number}" for number in range(7))):
        assert sorted(fewer.postings.of(word)) == sorted(expected.postings.of(word))
