"""The policy `keep` archives nothing unless the user asks; `decay` does, if chosen or inherited from an earlier
version.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import postgres_server
import pytest
from earlier_file import undo_migrations
from pydantic import JsonValue

from mindstream import FakeModel, ManualClock, Memory, Mind, RecordDraft, SqliteStore
from mindstream.clock import DAY_S
from mindstream.errors import InputError
from mindstream.life.life import Life, LifeConfig
from mindstream.log.events import PolicySet, Slept
from mindstream.memory.forgetting_curve import KEEP
from mindstream.memory.opening import open_store
from mindstream.memory.store.postgres import postgres
from mindstream.memory.store.postgres import tables as postgres_tables
from mindstream.memory.store.registry import FIRST_MARKED
from mindstream.memory.store.tables import MIGRATIONS
from mindstream.models.embedders.embedder import WordLlama
from mindstream.models.rules import Rules
from mindstream.reasoners.night import SleepReasoner
from mindstream.reasoners.reasoner import RunContext
from mindstream.service.doctor.repair import mend

ROSES = "Otto's greenhouse key is under the third flower pot."


@contextlib.asynccontextmanager
async def opened(how: str, folder: Path, clock: ManualClock) -> AsyncIterator[Memory]:
    if how == "Memory.open":
        async with Memory.open(folder, "otto", clock=clock) as memory:
            yield memory
    elif how == "Mind.open":
        async with Mind.open(folder, user="otto", clock=clock) as mind:
            yield mind.memory
    else:
        async with SqliteStore(folder) as store, Memory(store, "otto", WordLlama(), clock) as memory:
            yield memory


async def leave_unused(memory: Memory, clock: ManualClock, days: int = 40) -> None:
    """Recall other records on a number of days."""
    await memory.retain(ROSES, "note")
    await memory.retain_all([RecordDraft(text=f"Otto waters tomato bed {n}.", kind="observation") for n in range(30)])
    for _ in range(days):
        clock.advance(DAY_S)
        await memory.recall("which tomato beds does Otto water?", k=4)
    await memory.settle()


async def policies(memory: Memory) -> list[dict[str, object]]:
    rows = [row async for row in memory.log(kinds=["policy_set"])]
    return [dict(row.event.policy) for row in rows if isinstance(row.event, PolicySet)]


@pytest.mark.parametrize("how", ["Memory.open", "Mind.open", "Memory"])
async def test_by_default_neither_recall_nor_sleep_archives_or_merges(how: str, folder: Path) -> None:
    clock = ManualClock()
    async with opened(how, folder, clock) as memory:
        twins = [await memory.retain(text, "note") for text in ("Otto has a red bike.", "Otto has really a red bike.")]
        passing = await memory.retain("Otto is on leave.", "note", valid_until=clock.now() + DAY_S)
        await leave_unused(memory, clock)
        model = FakeModel({"dream": ["a dream"], "rate_importance": []})
        assert (await memory.propose_sleep(model, 1_000)).ids == ()
        assert await memory.sleep(model, 1_000) == ""
        assert await memory.archive() == []
        held = {record.id for record in await memory.find()}
        assert {each.id for each in twins} <= held and passing.id not in held
        [found] = await memory.recall("where is the greenhouse key?", k=1)
        assert found.record.text == ROSES
        returned = [each for each in await memory.find() if "tomato" in each.text and each.level > 0]
        assert returned, "returned records are strengthened"
        assert await policies(memory) == []


async def test_a_sleep_draws_the_number_of_records_in_the_policy(folder: Path) -> None:
    clock = ManualClock()
    policy: dict[str, JsonValue] = {"retention": "decay", "drawn": 3}
    async with Memory.open(folder, "otto", clock=clock, policy=policy) as memory:
        await leave_unused(memory, clock, days=1)
        assert [(await memory.propose_sleep(n=n)).looked_at for n in (None, 5)] == [3, 5]
        await memory.sleep()
        rows = await memory.store.events(memory.key, kinds=["slept"])
    async with Mind.open(folder, user="otto", clock=clock, policy={**policy, "drawn": 2}) as mind:
        await SleepReasoner(Rules()).think(RunContext("night", mind.memory, (), ()))
        rows += await mind.memory.store.events(mind.memory.key, rows[-1].seq, ["slept"])
    slept = [row.event for row in rows if isinstance(row.event, Slept) and row.event.step == "fading"]
    assert [each.looked_at for each in slept] == [3, 2]


async def test_the_decay_policy_is_stored_when_requested(folder: Path) -> None:
    clock = ManualClock()
    async with Memory.open(folder, "otto", clock=clock, policy="decay") as memory:
        await memory.retain(ROSES, "note")
    async with Memory.open(folder, "otto", clock=clock) as memory:
        await leave_unused(memory, clock)
        assert ROSES in {each.text for each in await memory.archive()}
        assert await policies(memory) == [{"retention": "decay"}]
    async with Mind.open(folder, user="otto", clock=clock, policy={"base": 3}) as mind:
        assert mind.memory.decays and mind.memory.strength is not None and mind.memory.strength.base == 3
    async with Mind.open(folder, user="otto", clock=clock, policy="keep") as mind:
        assert mind.memory.keeps_all and await policies(mind.memory) == [{"retention": "decay"}, {"retention": "keep"}]
    with pytest.raises(InputError, match="retention"):
        async with Memory.open(folder, "otto", policy="never"):  # type: ignore[arg-type]
            pass


def make_earlier_version(folder: Path) -> None:
    """Change a file to the state that versions before the policies left."""
    undo_migrations(folder / "mindstream.db", FIRST_MARKED - 1)


async def test_a_memory_of_an_earlier_version_still_decays_and_reports_it_once(folder: Path) -> None:
    assert len(MIGRATIONS) >= FIRST_MARKED
    clock = ManualClock()
    async with Memory.open(folder, "otto", clock=clock) as memory:
        await leave_unused(memory, clock, 0)
    async with Memory.open(folder, "ida", clock=clock, policy={}) as memory:
        await memory.retain("Ida paints.", "note")
        await memory.commit(PolicySet(policy={"base": 3}))
    make_earlier_version(folder)
    for expected in ([{"retention": "decay"}], [{"retention": "decay"}]):
        async with Memory.open(folder, "otto", clock=clock) as memory:
            assert memory.decays and await policies(memory) == expected
    async with Memory.open(folder, "ida", clock=clock) as memory:
        assert memory.decays and await policies(memory) == [{"base": 3}, {"base": 3, "retention": "decay"}]
    async with Memory.open(folder, "new", clock=clock) as memory:
        assert memory.keeps_all and await policies(memory) == []


@pytest.mark.parametrize("mended_before_it_is_opened", [True, False])
async def test_a_repaired_file_keeps_the_retention_policies(folder: Path, mended_before_it_is_opened: bool) -> None:
    async with Memory.open(folder, "otto") as memory:
        await memory.retain(ROSES, "note")
    make_earlier_version(folder)
    if not mended_before_it_is_opened:
        await SqliteStore(folder).close()
        async with Memory.open(folder, "new") as memory:
            await memory.retain("News.", "note")
    mend(folder)
    async with Memory.open(folder, "otto") as memory:
        assert memory.decays
    async with Memory.open(folder, "new") as memory:
        assert memory.keeps_all


async def test_memories_of_all_tenants_in_an_earlier_database_decay(monkeypatch: pytest.MonkeyPatch) -> None:
    psycopg = pytest.importorskip("psycopg")
    url = postgres_server.fresh_url()
    monkeypatch.setattr(postgres, "MIGRATIONS", postgres_tables.MIGRATIONS[:11])
    for tenant in ("", "acme"):
        async with open_store(url, tenant) as store, Memory.open(store, "otto") as memory:
            await memory.retain(ROSES, "note")
    with psycopg.connect(url) as connection:
        connection.execute("DELETE FROM mindstream_migrations WHERE seen >= 11")
    monkeypatch.undo()
    for tenant in ("", "acme"):
        async with open_store(url, tenant) as store:
            async with Memory.open(store, "otto") as memory:
                assert memory.decays and await policies(memory) == [{"retention": "decay"}]
            async with Memory.open(store, "new") as memory:
                assert memory.keeps_all


async def test_the_memory_of_a_life_decays_unless_another_policy_is_recorded(folder: Path) -> None:
    async with Memory.open(folder, "ann") as memory, Life.open(memory, "rules", goal="grow beans"):
        assert memory.decays and await policies(memory) == [{"retention": "decay"}]
    async with Memory.open(folder, "ann") as memory, Life.open(memory, "rules"):
        assert memory.decays and len(await policies(memory)) == 1
    async with Memory.open(folder, "ben", policy="keep") as memory, Life.open(memory, "rules", goal="grow beans"):
        assert memory.keeps_all and await policies(memory) == [{"retention": "keep"}]
    config = LifeConfig(retention="keep")
    async with Memory.open(folder, "cid") as memory, Life.open(memory, "rules", goal="grow beans", config=config):
        assert memory.strength == KEEP
