"""Recently recalled records are cached once, without vectors, for a limited time and number."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mindstream.identifiers import StreamKey
from mindstream.memory.recall.recall import FOR_S, RECORDS, RecentTexts
from mindstream.memory.store.record import Record

KEY = StreamKey("user-ann")


def record(id_: str, text: str) -> Record:
    vector = np.zeros(256, np.float16)
    return Record(id=id_, stream=KEY, kind="note", text=text, created=0.0, accessed=0.0, vector=vector)


def test_a_record_returned_often_is_cached_once_without_its_vector() -> None:
    lately, tea = RecentTexts(KEY), record("a", "Ann drinks tea.")
    for now in range(300):
        lately.add(float(now), [tea, record("b", "Bob drinks water.")])
    found = lately.same(["ann  drinks TEA", "Carl drinks milk"], 300.0)
    assert len(lately) == 2
    assert found == {"ann drinks tea": replace(tea, vector=None)}
    assert tea.vector is not None


def test_the_least_recently_returned_records_are_evicted_first() -> None:
    lately = RecentTexts(KEY)
    lately.add(0.0, [record(str(n), f"text {n}") for n in range(RECORDS)])
    lately.add(1.0, [record("0", "text 0"), record("new", "a new text")])
    assert len(lately) == RECORDS
    assert set(lately.same(["text 0", "text 1", "a new text"], 1.0)) == {"text 0", "a new text"}
    assert lately.same(["a new text"], 1.0 + FOR_S)
    assert not lately.same(["a new text"], 2.0 + FOR_S)
    assert not len(lately)
