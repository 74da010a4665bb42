"""A town's calls are billed on the real day, whatever day it is in the town; older rows keep their row's day."""

from __future__ import annotations

from pathlib import Path

import pytest
from hamlet import hamlet
from mindstream_town.opened import bill_of, counting, look_in
from mindstream_town.town import Town

from mindstream.clock import ManualClock, format_iso
from mindstream.location import Location
from mindstream.log.events import ModelCalled
from mindstream.memory.memory import Memory
from mindstream.memory.store.store import Entry
from mindstream.minds.calls import CallLog
from mindstream.models.embedders.embedder import WordLlama
from mindstream.models.wrappers.meter import Metered
from mindstream.service.cost import bill
from mindstream.settings import Settings


@pytest.mark.parametrize(("now", "day"), [(1.8e9, "2027-01-15"), (0.0, "1970-01-01"), (None, "2023-02-13")])
async def test_a_call_is_billed_on_its_real_day(tmp_path: Path, now: float | None, day: str) -> None:
    async with Town.open(tmp_path, hamlet()) as town:
        stream = bill_of(town.store, town.setting, WordLlama())
        await stream.commit(Entry(ModelCalled(role="talker", prompt="p", model="m", called_at=now), "mindstream"))
        before = [line async for line in town.journal()]
        found = await bill(town.store)
        assert list(found.days) == [day] and found.total.calls == 1
        assert not any(b"called_at" in line or b"model_called" in line for line in before), "the journal is unchanged"


async def test_calls_of_interviews_are_billed_too(tmp_path: Path) -> None:
    async with Town.open(tmp_path, hamlet()):
        pass
    settings = Settings(data=Location(tmp_path))
    async with look_in(settings) as look:
        async with counting(look, settings) as calls:
            calls.take(Metered(role="interview", prompt="p", model="openai:m", at=0.0, first_s=None, seconds=1.0))
        found = await bill(look.store)
    assert found.total.calls == 1 and next(iter(found.days)) > "2025", "the real day, not the town's in 2023"


async def test_calls_outside_towns_are_billed_at_the_time_of_their_row(tmp_path: Path) -> None:
    clock = ManualClock(1.7e9)
    async with Memory.open(tmp_path, "ann", clock=clock) as memory:
        calls = CallLog()
        async with calls.writing(memory):
            calls.take(Metered(role="talker", prompt="p", model="m", at=0.0, first_s=None, seconds=1.0))
        assert list((await bill(memory.store)).days) == [format_iso(1.7e9)[:10]]
