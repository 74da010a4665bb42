import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mindstream.text.lexical import K1, B, Lexical

DOCUMENTS = st.lists(st.lists(st.sampled_from("abcdefg"), max_size=12), min_size=1, max_size=12)


def okapi(documents: list[list[str]], asked: list[str]) -> list[float]:
    """BM25 as defined in the textbook."""
    mean = max(1.0, sum(map(len, documents)) / len(documents))
    scores = []
    for document in documents:
        score = 0.0
        for term in set(asked):
            holds = sum(term in other for other in documents)
            times = document.count(term)
            idf = math.log(1 + (len(documents) - holds + 0.5) / (holds + 0.5))
            score += idf * times * (K1 + 1) / (times + K1 * (1 - B + B * len(document) / mean))
        scores.append(score)
    return scores


@given(DOCUMENTS, st.lists(st.sampled_from("abcdefgh"), max_size=5))
def test_scores_equal_textbook_bm25(documents: list[list[str]], asked: list[str]) -> None:
    index = Lexical()
    for document in documents:
        index.add(document)
    assert np.allclose(index.scores(asked), okapi(documents, asked), atol=1e-4)


@given(DOCUMENTS)
def test_a_group_counts_as_one_text(documents: list[list[str]]) -> None:
    index, joined = Lexical(), Lexical()
    for number, document in enumerate(documents):
        index.add(document, number % 3)
    for group in range(min(3, len(documents))):
        joined.add([word for number, document in enumerate(documents) if number % 3 == group for word in document])
    scores = index.group_scores(index.matches_of(["a", "b"]))
    assert set(np.flatnonzero(scores)) == {*joined.matches("a")[0], *joined.matches("b")[0]}
    assert np.allclose(
        scores, index.group_scores(index.matches_of(["a"])) + index.group_scores(index.matches_of(["b"]))
    )
    assert index.groups == len(joined)
    for document in documents:
        index.add(document)
    again = index.group_scores(index.matches_of(["a", "b"]))
    assert np.array_equal(again, scores), "documents without a group count for no group"
