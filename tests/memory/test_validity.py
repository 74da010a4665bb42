"""The validity of a record: from `valid_from` (included) until `valid_until` (not included), through every
interface.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from pydantic import ValidationError

from mindstream import ManualClock, Memory, RecordDraft
from mindstream.clock import DAY_S, SystemClock, Time, moment
from mindstream.errors import InputError
from mindstream.service.operations.memory import RecallRequest, RetainRequest

NOW = moment("2026-03-01")
BERLIN = ZoneInfo("Europe/Berlin")


async def found(memory: Memory, as_of: Time | None = None) -> set[str]:
    return {each.record.text for each in await memory.recall("where does Ann live", as_of=as_of, touch=False)}


async def test_valid_from_is_inclusive_and_valid_until_exclusive(folder: Path) -> None:
    async with Memory.open(folder, "ann", clock=ManualClock(NOW)) as memory:
        ends = moment("2024-05-01")
        for text, begins, until in (("Ann lives in Turin.", "1999-01-01", ends), ("Ann lives in Oslo.", ends, None)):
            await memory.retain(text, "note", created=0, valid_from=begins, valid_until=until)
        await memory.retain("Ann lives in Rome.", "note", created=0, valid_from=NOW + DAY_S)
        assert await found(memory, ends - 1e-3) == {"Ann lives in Turin."}
        assert await found(memory, "2024-05-01T00:00Z") == {"Ann lives in Oslo."} == await found(memory, NOW)
        assert await found(memory, NOW + DAY_S) == {"Ann lives in Oslo.", "Ann lives in Rome."}
        assert await found(memory) == {"Ann lives in Oslo.", "Ann lives in Rome."}, (
            "records that become valid later are recalled"
        )
        assert "Ann lives in Turin." not in {each.text for each in await memory.latest("note", 9)}
        assert (await memory.forget(about="Turin")).records == 1, "expired records can be forgotten"


@pytest.mark.parametrize(
    ("begins", "ends"),
    [
        (NOW, NOW - 1),
        (NOW, NOW),
        ("2026-05-31", "2026-05-31"),
        ("2026-06-01", "2026-05-31T23:59:59Z"),
        (datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN, fold=1), datetime(2026, 10, 25, 2, 40, tzinfo=BERLIN)),
    ],
    ids=str,
)
async def test_valid_until_must_be_after_valid_from(begins: Time, ends: Time, folder: Path) -> None:
    async with Memory.open(folder, "ann", clock=ManualClock(NOW)) as memory:
        draft = RecordDraft(text="Ann lives in Oslo.", kind="note", valid_from=begins, valid_until=ends)
        with pytest.raises(InputError, match="valid_until: expected a time after valid_from"):
            await memory.retain(draft.text, "note", valid_from=begins, valid_until=ends)
        with pytest.raises(InputError, match="valid_until: expected a time after valid_from"):
            await memory.retain_all([draft])
        assert not await memory.find()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (1_700_000_000_000, "looks like milliseconds"),
        ("1700000000000", "looks like milliseconds"),
        (1_700_000_000_000_000, "looks like microseconds"),
        (-1_700_000_000_000, "looks like milliseconds"),
        (1.7e18, "looks like nanoseconds"),
        ("0000-01-01", "is expected"),
        ("2025", "is expected"),
    ],
)
async def test_times_in_other_units_are_refused_everywhere(given: Time, told: str, folder: Path) -> None:
    async with Memory.open(folder, "ann", clock=ManualClock(NOW)) as memory:
        for name in ("valid_from", "valid_until", "created"):
            with pytest.raises(InputError, match=told):
                await memory.retain("Ann lives in Oslo.", "note", **{name: given})  # type: ignore[arg-type]
            with pytest.raises(ValidationError, match=told):
                RetainRequest.model_validate({"text": "Ann", name: given})
        for name in ("as_of", "since", "until"):
            with pytest.raises(InputError, match=told):
                await memory.recall("Ann", **{name: given})  # type: ignore[arg-type]
            with pytest.raises(ValidationError, match=told):
                RecallRequest.model_validate({"query": "Ann", name: given})


@pytest.mark.parametrize("given", ["1950-06-01", -617_587_200, "1700000000", "2024-03-31T02:30+01:00", 0])
async def test_the_api_and_the_library_parse_times_alike(given: Time, folder: Path) -> None:
    async with Memory.open(folder, "ann", clock=ManualClock(NOW)) as memory:
        record = await memory.retain("Ann lives in Oslo.", "note", valid_from=given)
        asked = RetainRequest.model_validate({"text": "Ann", "valid_from": given})
        assert record.valid_from == asked.valid_from == moment(given)


@pytest.mark.parametrize("correct", ["supersede", "replace", "correct"])
async def test_a_correction_begins_where_the_old_record_ends(correct: str, folder: Path) -> None:
    async with Memory.open(folder, "ann", clock=SystemClock()) as memory:
        old = await memory.retain("Ann lives in Turin.", "note", created="2020-01-01")
        if correct == "replace":
            new = await memory.replace(old.id, RecordDraft(text="Ann lives in Oslo.", kind="note"))
        elif correct == "correct":
            new = (await memory.correct(old.id, "Ann lives in Oslo.")).record
        else:
            new = await memory.supersede(old.id, "Ann lives in Oslo.")
        ended = await memory.get(old.id)
        assert ended and new and ended.valid_until == new.created == (new.valid_from or new.created)
        assert await found(memory, new.created) == {"Ann lives in Oslo."}
        assert await found(memory, new.created - 1e-6) == {"Ann lives in Turin."}


async def test_equal_text_with_another_validity_is_a_new_record(folder: Path) -> None:
    clock = ManualClock(NOW)
    async with Memory.open(folder, "ann", clock=clock) as memory:
        permit = "The parking permit is A1."
        first = await memory.retain(permit, "note", valid_until=NOW + DAY_S)
        again = await memory.retain(permit, "note", valid_until=NOW + DAY_S)
        later = await memory.retain(permit, "note", valid_from=NOW + 5 * DAY_S, valid_until=NOW + 9 * DAY_S)
        assert first.id == again.id != later.id
        lasting = await memory.retain(permit, "note")
        assert lasting.id not in (first.id, later.id)
        assert (await memory.retain(permit, "note")).id == lasting.id
        clock.advance(20 * DAY_S)
        assert [each.id for each in await memory.latest("note", 9)] == [lasting.id]


async def test_an_echo_of_a_recalled_record_expires_with_it(folder: Path) -> None:
    clock = ManualClock(NOW)
    async with Memory.open(folder, "ann", clock=clock) as memory:
        await memory.retain("Ann is in Rome until Friday.", "note", valid_until=NOW + DAY_S)
        await memory.recall("where is Ann")
        await memory.retain("Ann is in Rome until Friday.", "note")
        clock.advance(2 * DAY_S)
        assert await memory.latest("note", 9) == []
