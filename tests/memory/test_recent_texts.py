"""Recently recalled texts are remembered once, for a limited time and number."""

from __future__ import annotations

import tracemalloc

from mindstream.identifiers import StreamKey
from mindstream.memory.recall.recall import FOR_S, RECORDS, RecentTexts
from mindstream.memory.store.record import Record

KEY = StreamKey("user-ann")


def record(id_: str, text: str) -> Record:
    return Record(id=id_, stream=KEY, kind="note", text=text, created=0.0, accessed=0.0)


def test_a_record_returned_often_is_remembered_once() -> None:
    lately = RecentTexts(KEY)
    for now in range(300):
        lately.add(float(now), [record("a", "Ann drinks tea."), record("b", "Bob drinks water.")])
    found = lately.same(["ann  drinks TEA", "Carl drinks milk"], 300.0)
    assert len(lately) == 2
    assert found == {"ann drinks tea": "a"}


def test_the_least_recently_returned_records_are_evicted_first() -> None:
    lately = RecentTexts(KEY)
    lately.add(0.0, [record(str(n), f"text {n}") for n in range(RECORDS)])
    lately.add(1.0, [record("0", "text 0"), record("new", "a new text")])
    assert len(lately) == RECORDS
    assert set(lately.same(["text 0", "text 1", "a new text"], 1.0)) == {"text 0", "a new text"}
    assert lately.same(["a new text"], 1.0 + FOR_S)
    assert not lately.same(["a new text"], 2.0 + FOR_S)
    assert not len(lately)


def test_a_remembered_record_takes_little_memory() -> None:
    lately, records = RecentTexts(KEY), [record(f"{n:018}", f"text {n}") for n in range(RECORDS)]
    tracemalloc.start()
    try:
        lately.add(1.9e9, records)
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert taken < 110 * RECORDS
    assert lately.same(["text 7"], 1.9e9) == {"text 7": records[7].id}
