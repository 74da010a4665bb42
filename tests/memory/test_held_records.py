"""Records are held in a compact form, and are returned as they were stored."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest
from keys import key_of

from mindstream.memory.memory import Memory
from mindstream.memory.store.columns import Columns
from mindstream.memory.store.held_records import MAX_COMMON
from mindstream.memory.store.record import Record, Triple, new_id
from mindstream.memory.store.store import Changes, Revision

ANN = key_of("ann")


def message(n: int, **fields: object) -> Record:
    usual = Record(
        id=new_id(1e9 + n), stream=ANN, kind="chat", text=f"It is the light. ({n})", created=1e9 + n, accessed=2e9 + n,
        by="user", episode="s", data={"by_user": True}, seq=1_000 + n, embedder="plain",
    )  # fmt: skip
    return replace(usual, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"level": 3, "lasting": True, "depth": 2, "by": "", "episode": ""},
        {"valid_from": 5.5, "valid_until": 7.5, "forgotten": 3e9},
        {"importance": 7.3},
        {"superseded_by": "another"},
        {"keywords": ("tea",), "evidence": ("another",), "about": Triple("a", "b", "c")},
        {"kind": "belief", "slot": "sleep", "version": 2},
        {"data": {"one": 1, "yes": True, "no": None, "word": "a"}},
        {"data": {"half": 0.5, "zero": -0.0}},
        {"data": {"some": ["list"], "nested": {"x": [1]}}},
    ],
)
def test_a_held_record_is_returned_as_it_was_stored(fields: dict[str, object]) -> None:
    columns, record = Columns(ANN), message(0, **fields)
    others = [message(1), message(2, data={"by_user": 1}), message(3, data={"by_user": False}), record]
    columns.take(Changes([replace(each) for each in others]))
    assert [repr(each) for each in columns.held(columns.whole).values() if each.id == record.id] == [repr(record)]
    assert columns.held([each.id for each in others]) == {each.id: each for each in others}
    assert type(columns.held([others[1].id])[others[1].id].data["by_user"]) is int


def test_changes_by_a_caller_do_not_affect_a_held_record() -> None:
    columns, record = Columns(ANN), message(0)
    columns.take(Changes([record]))
    columns.held([record.id])[record.id].data["leak"] = "a word"  # type: ignore[index]
    assert columns.held([record.id])[record.id].data == {"by_user": True}


def test_a_record_that_was_read_before_is_returned_with_its_later_changes() -> None:
    columns, record, other = Columns(ANN), message(0), message(1)
    columns.take(Changes([record, other]))
    first = columns.held([record.id, other.id])
    assert columns.held([other.id])[other.id] is first[other.id]
    columns.ahead = 10**9  # changed records are not held again while this number of others is unread
    columns.take(Changes([changed := replace(record, accessed=4e9, level=3)]))
    assert columns.held([record.id, other.id]) == {record.id: changed, other.id: other}
    columns.take(Changes([], gone=[record.id]))
    assert columns.held([record.id, other.id]) == {other.id: other}


async def test_a_recall_on_replaced_columns_leaves_no_outdated_record(tmp_path: Path) -> None:
    async with Memory.open(tmp_path, "ann") as memory:
        lamp, chair = [await memory.retain(f"There is a {each} in the garden.") for each in ("lamp", "chair")]
        recaller = memory._recaller
        old = await recaller.shelf.columns(memory.key)  # those of a recall that still runs
        await memory.forget(lamp.id)
        await memory.commit(revisions=[Revision(id=chair.id, forgotten=memory.clock.now())])
        fresh = await recaller.shelf.columns(memory.key)
        assert fresh is not old
        await recaller.records_at(old, [1])
        (record,) = await recaller.records_at(fresh, [0])
        assert record.id == chair.id and record.forgotten is not None


def test_records_with_different_data_are_held_while_combinations_are_forgotten() -> None:
    columns, count = Columns(ANN), 3 * MAX_COMMON
    columns.take(Changes([message(n, data={"n": n}) for n in range(count)]))
    assert [each.data["n"] for each in columns.held(columns.whole).values()] == list(range(count))


def test_a_held_message_takes_less_than_half_of_the_memory_of_the_record() -> None:
    columns, messages = Columns(ANN), [message(n) for n in range(1_000)]
    columns.take(Changes(messages))
    columns.whole.clear()
    tracemalloc.start()
    try:
        for n in range(1_000):
            columns.hold(message(n, id=columns.ids[n], text=f"It is the light. ({n})"))
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert taken < 350 * 1_000
