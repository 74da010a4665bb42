"""Times are numbers, datetimes, dates or ISO text; anything else is named in the error."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mindstream import ManualClock, Memory, RecordDraft
from mindstream.clock import Time, moment
from mindstream.errors import InputError

NOON = datetime(2025, 3, 2, 12, tzinfo=UTC)
SAME: list[Time] = [
    NOON.timestamp(), int(NOON.timestamp()), NOON, NOON.replace(tzinfo=None),
    NOON.astimezone(timezone(timedelta(hours=5))),
    "2025-03-02T12:00", "2025-03-02 12:00:00Z", "2025-03-02T14:00:00+02:00", " 20250302T120000 ",
    "2025\u201103\u201102 12:00", "2025\u201303\u201302T10:00\u221202:00", "\ufeff２０２５-3-2 12:00", "2025.3.2 12:00",
    "2025-03-02T12:00:00z", "2025-03-02 12:00 UTC", "2025/3/2 12:00", "2025-03-02T13:00[Europe/Berlin]",
]  # fmt: skip


@pytest.mark.parametrize("given", SAME, ids=repr)
async def test_all_time_formats_give_the_same_moment(given: Time, folder: Path) -> None:
    assert moment(given) == NOON.timestamp()
    clock = ManualClock(NOON.timestamp() + 1e6)
    async with Memory.open(folder, "ann", clock=clock) as memory:
        note = await memory.retain("Ann sowed beans.", "note", created=given, valid_from=given)
        [other] = await memory.retain_all([RecordDraft(text="Beans sprout.", kind="note", created=given)])
        assert note.created == other.created == note.valid_from == NOON.timestamp()
        later = await memory.retain("Beans are ripe.", "note")
        for hits in (
            [each.record for each in await memory.recall("beans", until=given)],
            [each.record for each in await memory.recall("beans", as_of=given)],
            await memory.find(since="2025-03-02", until=given),
            [*(await memory.find_removal(since=date(2025, 3, 1), until=given)).asked],
        ):
            assert {each.id for each in hits} == {note.id, other.id}
        assert [each.id for each in await memory.find(since=clock.now())] == [later.id]
        await memory.retain("Ann is away.", "note", valid_until=given)
        assert "Ann is away." not in {each.text for each in await memory.find()}
        assert await memory.purge(before=given) == 0
        assert (await memory.forget(since="2025-03-02", until="2025-03-02")).records == 2, "a date is a whole day"


@pytest.mark.parametrize("given", ["", "soon", "2025", "2025-13-01", "1e9", True, float("inf"), b"2025-01-01", [2025]])
async def test_an_invalid_time_is_refused_with_the_argument_name(given: object, folder: Path) -> None:
    async with Memory.open(folder, "ann") as memory:
        await memory.retain("Ann sowed beans.", "note")
        for name in ("since", "until", "as_of"):
            with pytest.raises(InputError, match=f"^{name}: seconds since 1970, a datetime"):
                await memory.recall("beans", **{name: given})  # type: ignore[arg-type]
        for name in ("created", "valid_from", "valid_until"):
            with pytest.raises(InputError, match=rf"^{name}: "):
                await memory.retain("Ann sowed peas.", "note", **{name: given})  # type: ignore[arg-type]
        with pytest.raises(InputError, match=r"^until: "):
            await memory.forget(until=given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "never", ["9999-12-31T23:59:59.999999Z", "9999-12-31T23:59", datetime.max, datetime.max.replace(tzinfo=UTC)]
)
@pytest.mark.parametrize("always", ["0001-01-01T00:00:00Z", "0001-01-01", datetime.min])
async def test_the_first_and_the_last_year_mean_always_and_never(folder: Path, never: Time, always: Time) -> None:
    async with Memory.open(folder, "ann", clock=ManualClock(NOON.timestamp())) as memory:
        await memory.retain("Ann sowed beans.", "note", valid_from=always, valid_until=never)
        assert [each.record.text for each in await memory.recall("beans", as_of="2300-01-01")] == ["Ann sowed beans."]


@pytest.mark.parametrize("n", [-1, 1.5, "5", True])
async def test_an_invalid_number_of_records_is_refused(n: Any, folder: Path) -> None:
    """A negative number counted from the end: all records but the oldest."""
    async with Memory.open(folder, "ann") as memory:
        await memory.retain("Ann sowed beans.")
        for read in (memory.list, memory.find):
            with pytest.raises(InputError, match="the number of records: expected a whole number"):
                await read(n)
        assert await memory.list(0) == [] and len(await memory.list(5)) == 1


@pytest.mark.parametrize(
    ("since", "until"),
    [("2025-03-02", "2025-03-01"), (NOON, NOON.timestamp() - 1), ("2025-03-02T12:00Z", "2025-03-02T13:00+02:00")],
)
async def test_a_time_span_that_ends_before_it_begins_is_refused(since: Time, until: Time, folder: Path) -> None:
    says = r"ends before it begins: since=2025-03-02T\d\d:00:00Z is after until=2025-03-0"
    async with Memory.open(folder, "ann") as memory:
        await memory.retain("Ann sowed beans.", "note", created=NOON)
        for read in (memory.list, memory.find, memory.find_removal, memory.forget, partial(memory.recall, "beans")):
            with pytest.raises(InputError, match=says):
                await read(since=since, until=until)
        assert len(await memory.list(since="2025-03-02", until="2025-03-02")) == 1, "a date is a whole day"


@pytest.mark.parametrize("given", [0, -1, 1.5, True, "3"])
async def test_an_invalid_number_of_hits_is_refused(given: object, folder: Path) -> None:
    async with Memory.open(folder, "ann") as memory:
        await memory.retain("Ann sowed beans.", "note")
        for name in ("k", "limit"):
            with pytest.raises(InputError, match=f"^{name}, the number of records to return: expected"):
                await memory.recall("beans", **{name: given})  # type: ignore[arg-type]
