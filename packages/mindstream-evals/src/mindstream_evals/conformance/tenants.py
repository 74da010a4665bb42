"""Promises of stores about tenants: a tenant's store can neither read nor write the data of another.

A factory opens three stores in the same place: two of different tenants, and one of data without a tenant.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from mindstream.errors import InputError, LeaseLost, MindstreamError
from mindstream.identifiers import StreamKey, StreamName
from mindstream.memory.store.checkpoints import Checkpoint
from mindstream.memory.store.record import Record
from mindstream.memory.store.store import Commit, Entry, Fence, NewWork, Revision, Store
from mindstream_evals.conformance.samples import NOW, THEN, Promises, build_event, build_record, expect, expect_error

PROMISES = Promises[Sequence[Store]]()


class Theirs(NamedTuple):
    """The data of one tenant that another tenant tries to reach.

    Attributes:
        work: ids of the tenant's open work.
        owner: the name under which the work is claimed.
        cause: the log row that caused the work.
    """

    key: StreamKey
    record: Record
    work: tuple[int, ...]
    owner: str
    cause: int


Call: TypeAlias = Callable[[Store, Theirs], Awaitable[object]]
SLOT = "belief"
USER = StreamName("user", "ann")


async def _write(store: Store, words: str) -> Record:
    """Write one row of each kind of data, and claim the work item; return the record.

    Written are a record with its event, a work item, a checkpoint and a stored value.
    """
    key = store.key(USER)
    record = replace(build_record(words), stream=key)
    wake, kept = NewWork((SLOT,), words, 9e9), Checkpoint("head", 1, words.encode())
    await store.commit(
        Commit(mind=key, at=THEN, entries=(Entry(build_event(), words, (record,)),), wake=wake, checkpoint=kept)
    )
    await store.claim(key, SLOT, words, THEN, 9e9)
    await store.keep(key, "kept", THEN, lambda _: words)
    return record


async def _walk(store: Store, key: StreamKey) -> object:
    async with store.walk(key) as (count, records):
        return count, [each async for each in records]


def _commit(key: StreamKey, record: Record) -> Commit:
    alien = replace(build_record("alien"), stream=key)
    ended = Revision(id=record.id, forgotten=THEN)
    return Commit(mind=key, at=THEN, entries=(Entry(build_event(), "alien", (alien,)),), revisions=(ended,))


TRIED: dict[str, Call] = {
    "commit": lambda store, its: store.commit(_commit(its.key, its.record)),
    "events": lambda store, its: store.events(its.key),
    "last": lambda store, its: store.last(its.key, "remembered"),
    "count": lambda store, its: store.count(its.key, "remembered"),
    "checkpoint": lambda store, its: store.checkpoint(its.key, "head"),
    "taken_by": lambda store, its: store.taken_by(its.key, "created"),
    "recorded_embedder": lambda store, its: store.recorded_embedder(its.key),
    "records": lambda store, its: store.records(its.key, [its.record.id]),
    "latest": lambda store, its: store.latest(its.key, n=9, now=NOW),
    "find_same": lambda store, its: store.find_same(its.key, "note", [its.record.text], now=NOW),
    "changes": lambda store, its: store.changes(its.key, 0),
    "candidates": lambda store, its: store.candidates(its.key, None, [its.record.text], 9),
    "walk": lambda store, its: _walk(store, its.key),
    "open_work": lambda store, its: store.open_work(its.key),
    "claim": lambda store, its: store.claim(its.key, SLOT, its.owner, NOW, 9e9),
    "release_work": lambda store, its: store.release_work(its.key, its.cause, its.owner),
    "kept": lambda store, its: store.kept(its.key),
    "keep": lambda store, its: store.keep(its.key, "kept", NOW, lambda _: "alien"),
    "drop_kept": lambda store, its: store.drop_kept(its.key, "", NOW),
    "lost_since": lambda store, its: store.lost_since(its.key, 0),
    "closure": lambda store, its: store.closure(its.key, [its.record.id]),
    "answers": lambda store, its: store.answers(its.key, 0),
    "unembedded": lambda store, its: store.unembedded(its.key),
    "erase": lambda store, its: store.erase(its.key),
}
"""Calls of the methods that take the key of a stream, with the key of another tenant's stream."""
AT_LARGE: dict[str, Call] = {
    "events": lambda store, _: store.events(),
    "streams": lambda store, _: store.streams(),
    "kept": lambda store, _: store.kept(),
    "owners": lambda store, its: store.owners([its.record.id]),
    "records": lambda store, its: store.records(store.key(USER), [its.record.id]),
    "erase": lambda store, its: store.erase(store.key(USER), [its.record.id]),
    "renew": lambda store, its: store.renew(its.work, its.owner, 1.0),
    "give_up": lambda store, its: store.give_up(its.owner),
    "compact": lambda store, _: store.compact(),
    "erased_since": lambda store, _: store.erased_since(0),
    "audit": lambda store, _: store.audit(),
}
"""Calls without a stream, or with the caller's own stream and ids of another tenant's data."""
WITHOUT_STREAM = {"key", "version", "subscribe", "close", "last_erasure", "note"}
"""Attributes that return no data of a stream, and methods that other tests check."""


@PROMISES.add
async def every_method_sees_one_tenant_alone(stores: Sequence[Store]) -> None:
    tried = {*TRIED, *AT_LARGE, *WITHOUT_STREAM}
    methods = {name for each in Store.__mro__ for name in vars(each) if not name.startswith("_")}
    expect(methods <= tried, f"a test of each store method for tenant isolation; missing: {sorted(methods - tried)}")
    records = [await _write(store, f"the secret of {number}") for number, store in enumerate(stores)]
    for number, theirs in enumerate(stores):
        before, key = await _all_of(theirs), theirs.key(USER)
        work = tuple(each.id for each in await theirs.open_work(key))
        cause = (await theirs.events(key))[0].seq
        its = Theirs(key, records[number], work, f"the secret of {number}", cause)
        for mine in (each for each in stores if each is not theirs):
            await _try_all(mine, its)
        expect(await _all_of(theirs) == before, "no change of another tenant's data")


async def _try_all(mine: Store, its: Theirs) -> None:
    """Call each method of a tenant's store with the ids of another tenant's data, and require that no result shows the
    data."""
    for calls, hidden, refusals in (
        (TRIED, (its.owner, its.record.id), (MindstreamError,)),
        (AT_LARGE, (its.owner, its.record.id, repr(its.key)), ()),
    ):
        for name, call in calls.items():
            with contextlib.suppress(*refusals):
                told = repr(await call(mine, its))
                expect(not any(each in told for each in hidden), f"no data of another tenant from {name}, not {told}")
    fence = Commit(mind=mine.key(USER), at=THEN, fence=Fence(its.work, its.owner))
    await expect_error(LeaseLost, mine.commit(fence), "a fence cannot name the work of another tenant")


@PROMISES.add
async def a_name_is_a_tenants_own(stores: Sequence[Store]) -> None:
    keys = {store.key(USER) for store in stores}
    expect(len(keys) == len(stores), f"different stream keys for the same user of each tenant, not {keys}")
    for store in stores:
        other = replace(USER, tenant="somebody-else")
        try:
            store.key(other)
        except InputError:
            continue
        raise AssertionError("expected `key` to refuse a user of another tenant with InputError")


async def _all_of(store: Store) -> object:
    key = store.key(USER)
    return (
        await store.events(),
        await store.streams(),
        await store.open_work(key),
        await store.checkpoint(key, "head"),
        await store.kept(),
        [(each, each.forgotten) for each in (await store.changes(key, 0)).records],
    )
