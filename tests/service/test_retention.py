"""Data older than a tenant's limit is erased once, by one process, with records derived only from it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from both_stores import STORES, opener
from world import Words

from mindstream import Coach, ManualClock, Memory, Mind
from mindstream.clock import DAY_S
from mindstream.errors import InputError
from mindstream.identifiers import StreamName
from mindstream.log import retention
from mindstream.log.files import history
from mindstream.log.retention import Rule
from mindstream.memory.store.sql_store import SqlStore
from mindstream.service.operations.runtime import Runtime
from mindstream.service.privacy.retention import (
    EVERY_S,
    KeepRules,
    TenantData,
    describe,
    erase_expired,
    find_expired,
    rules_of,
    set_rule,
)
from mindstream.settings import Settings

RULE = Rule("", 90 * DAY_S)


def bytes_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.glob("mindstream.db*"))


@pytest.mark.parametrize("kind", STORES)
async def test_old_records_are_erased_with_their_derived_records(kind: str, folder: Path) -> None:
    clock, open_one = ManualClock(1e9), opener(kind, folder)
    store = open_one()
    async with Memory(store, "ann", Words(), clock) as ann:
        old = await ann.retain("The parrot Zibeth sings.", "note")
        await ann.retain("Birds please her.", "thought", evidence=[old.id])
        clock.advance(80 * DAY_S)
        await ann.retain("It rains in Ulm.", "note")
        clock.advance(11 * DAY_S)
        place = TenantData(store, Words(), clock)
        found = await find_expired(place, RULE)
        assert (found.users, found.records, found.drawn) == (1, 2, 0)  # the thought is as old itself
        assert len((await store.changes(ann.key, 0)).records) == 3, "to look changes nothing"
        assert await erase_expired(place, RULE) == found
        assert [each.text for each in (await store.changes(ann.key, 0)).records] == ["It rains in Ulm."]
        assert (await find_expired(place, RULE)).users == 0
    await store.close()


@pytest.mark.parametrize("kind", STORES)
async def test_old_log_rows_without_a_record_lose_their_text(kind: str, folder: Path) -> None:
    clock, open_one = ManualClock(1e9), opener(kind, folder)
    store = open_one()
    async with Mind.open(store, user="ann", embed=Words(), clock=clock, responder=Coach.using()) as mind:
        await mind.send("The parrot Zibeth sings at noon, and I cannot sleep.")
        await mind.settled()
    clock.advance(91 * DAY_S)
    await erase_expired(TenantData(store, Words(), clock), RULE)
    key = store.key(StreamName("user", "ann"))
    rows = await store.events(key)
    assert rows and "Zibeth" not in "".join(row.event.model_dump_json() for row in rows)
    assert (await find_expired(TenantData(store, Words(), clock), RULE)).users == 0, (
        "a second time there is nothing to do"
    )
    await store.close()


async def test_only_the_named_kinds_are_erased(folder: Path) -> None:
    clock, store = ManualClock(1e9), opener("sqlite", folder)()
    async with Memory(store, "ann", Words(), clock) as ann:
        await ann.retain("seen", "observation")
        await ann.retain("noted", "note")
        clock.advance(91 * DAY_S)
        await erase_expired(TenantData(store, Words(), clock), replace(RULE, kinds=("observation",)))
        assert [each.text for each in (await store.changes(ann.key, 0)).records] == ["noted"]
    await store.close()


async def test_old_lines_are_removed_from_the_input_history(folder: Path) -> None:
    clock, store = ManualClock(1.7e9), opener("sqlite", folder)()
    async with Memory(store, "ann", Words(), clock) as ann:
        await ann.retain("noted", "note")
        typed = history(folder, ann.key)
    typed.parent.mkdir()
    typed.write_text("\n# 2020-01-02 03:04:05.6\n+old words\n\n# 2030-01-02 03:04:05\n+new words\n")
    past = await erase_expired(TenantData(store, Words(), clock, folder), RULE)
    assert past.typed == 1 and "old words" not in typed.read_text() and "new words" in typed.read_text()
    await store.close()


@pytest.mark.parametrize("kind", STORES)
async def test_a_rule_belongs_to_a_tenant_and_one_process_applies_it(kind: str, folder: Path) -> None:
    open_one = opener(kind, folder)
    ours, acme, other = open_one(), open_one("acme"), open_one("other")
    await set_rule(ours, Rule("acme", 30 * DAY_S, ("note",)))
    await set_rule(ours, Rule("other", 60 * DAY_S))
    assert [each.tenant for each in await rules_of(ours)] == ["acme", "other"]
    assert (
        [each.tenant for each in await rules_of(acme)]
        == ["acme"]
        == [each.tenant for each in await rules_of(acme, "other")]
    )

    async def claim(store: SqlStore, owner: str, now: float) -> bool:
        return await store.write(lambda rows: retention.claim(rows, "acme", owner, now, now + 1e8, EVERY_S))

    taken = await asyncio.gather(claim(ours, "first", 5e8), claim(acme, "second", 5e8))
    assert sorted(taken) == [False, True]
    assert await claim(acme, "third", 6e8)
    await acme.write(lambda rows: retention.done(rows, "acme", "third", 6e8))
    assert not await claim(acme, "third", 6e8)
    for store in (ours, acme, other):
        await store.close()


@pytest.mark.parametrize("kind", STORES)
async def test_a_rule_stays_claimed_while_a_process_applies_it(
    kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, open_one = ManualClock(1e9), opener(kind, folder)
    ours, theirs = open_one(), open_one()
    async with Memory(ours, "ann", Words(), clock) as ann:
        await ann.retain("The parrot Zibeth sings.", "note")
    clock.advance(91 * DAY_S)
    await set_rule(ours, RULE)
    begun, going_on, minds = asyncio.Event(), asyncio.Event(), ours.minds

    async def slow() -> list[str]:
        begun.set()
        await going_on.wait()
        return list(await minds())

    async def lease() -> float:
        rows = await theirs.read(lambda rows: rows.execute("SELECT lease FROM retention").fetchall())
        return float(rows[0][0])

    monkeypatch.setattr(ours, "minds", slow)
    first = asyncio.ensure_future(KeepRules(lambda _: ours, Words, clock, None, lease_s=0.2).apply_due())
    await begun.wait()
    for _ in range(3):
        clock.advance(0.2)
        while await lease() <= clock.now():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await KeepRules(lambda _: theirs, Words, clock, None).apply_due()
    assert await theirs.audit() == [] and (await rules_of(theirs))[0].applied == 0
    going_on.set()
    await first
    assert len(await theirs.audit()) == 1 and (await rules_of(theirs))[0].applied > 0
    for store in (ours, theirs):
        await store.close()


async def test_an_invalid_rule_is_refused(folder: Path) -> None:
    store = opener("sqlite", folder)()
    with pytest.raises(InputError, match="the shortest retention period is a day"):
        await set_rule(store, Rule("", 3600.0))
    with pytest.raises(InputError, match="there is no kind of record 'chats'"):
        await set_rule(store, Rule("", 9 * DAY_S, ("chats",)))
    await store.close()


async def test_a_server_applies_due_rules_and_audits_them(folder: Path) -> None:
    clock = ManualClock(1e9)
    async with Runtime(Settings(data=folder), clock=clock) as runtime:
        store = runtime.store_of("acme")
        async with Memory(store, "ann", runtime.embedder, clock) as ann:
            await ann.retain("The parrot Zibeth sings.", "note")
            clock.advance(91 * DAY_S)
            await set_rule(runtime.store_of(""), Rule("acme", 90 * DAY_S))
            await KeepRules(runtime.store_of, lambda: runtime.embedder, clock, folder).apply_due()
            assert (await store.changes(ann.key, 0)).records == []
            (row,) = await runtime.store_of("").audit(tenant="acme")
            assert (row.did, row.door, row.counts["records"]) == ("retention_applied", "upkeep", 1)
            await KeepRules(runtime.store_of, lambda: runtime.embedder, clock, folder).apply_due()
            assert len(await runtime.store_of("").audit()) == 1, "it was applied today"
    assert b"Zibeth" not in bytes_of(folder)


def test_the_sentence_about_a_rule_agrees_in_number() -> None:
    assert describe(Rule("", DAY_S)) == "everything of this machine's own users is erased after 1 day"
    told = describe(Rule("acme", 30 * DAY_S, ("note",)))
    assert told == "records of the kind note of users of acme are erased after 30 days"
