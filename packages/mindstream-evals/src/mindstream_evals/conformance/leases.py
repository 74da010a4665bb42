"""Promises of stores about work: a lease gives a piece of work one owner at a time; a process that has lost the lease
cannot write."""

from __future__ import annotations

from dataclasses import replace

from mindstream.errors import InputError, LeaseLost
from mindstream.log.events import Heard, Thought
from mindstream.log.work import Work
from mindstream.memory.store.record import Record
from mindstream.memory.store.store import Commit, Entry, Fence, NewWork, Store, WorkDone, WorkReleased
from mindstream_evals.conformance.samples import (
    ANN,
    BOB,
    NOW,
    THEN,
    Promises,
    build_record,
    build_writing,
    expect,
    expect_error,
)

LEASE_PROMISES = Promises[Store]()

SLOT = "belief"


@LEASE_PROMISES.add
async def work_belongs_to_its_owner_until_the_lease_runs_out(store: Store) -> None:
    first = await hear(store, "me", 100.0)
    expect(await store.claim(ANN, SLOT, "other", 50.0, 200.0) == [], "no work for another owner while the lease runs")
    second = await hear(store, "me", 100.0)
    mine = await store.claim(ANN, SLOT, "me", 50.0, 100.0)
    expect([work.cause for work in mine] == [first, second], "all waiting work, oldest first")
    await hear(store, "other", 100.0)
    expect(await store.claim(ANN, SLOT, "other", 60.0, 200.0) == [], "at most one run of a slot at a time")
    await store.renew(ids(mine), "me", 150.0)
    expect(await store.claim(ANN, SLOT, "other", 120.0, 200.0) == [], "no work for another owner after a renewal")
    theirs = await store.claim(ANN, SLOT, "other", 151.0, 250.0)
    expect(
        [work.cause for work in theirs][:2] == [first, second],
        "the unfinished work of an owner with an expired lease",
    )


@LEASE_PROMISES.add
async def a_run_that_lost_its_lease_writes_nothing(store: Store) -> None:
    await hear(store, "me", 100.0)
    mine = ids(await store.claim(ANN, SLOT, "me", 50.0, 60.0))
    theirs = ids(await store.claim(ANN, SLOT, "other", 61.0, 200.0))
    expect(mine == theirs != (), "the new owner claims the same work")
    record = build_record("too late")
    await expect_error(LeaseLost, store.commit(build_end(mine, "me", record)), "only its owner can end work")
    expect(await store.records(ANN, [record.id]) == [], "no record of the run that lost its lease")
    await store.commit(build_end(theirs, "other"))
    expect(await store.open_work(ANN) == [], "no open work after the work ended")
    await expect_error(LeaseLost, store.commit(build_end(theirs, "other")), "work can end only once")


@LEASE_PROMISES.add
async def work_that_nobody_began_can_be_ended_by_its_owner(store: Store) -> None:
    await hear(store, "me", 100.0)
    mine = ids(await store.open_work(ANN))
    unbegun = replace(build_end(mine, "me"), finish=WorkDone(mine, "me", begun=False))
    theirs = replace(unbegun, finish=WorkDone(mine, "other", begun=False))
    await expect_error(LeaseLost, store.commit(theirs), "only its owner can end work")
    await store.claim(ANN, SLOT, "me", 50.0, 60.0)
    await expect_error(LeaseLost, store.commit(unbegun), "work that a run has claimed cannot end as unbegun")
    await store.give_up("me")
    await store.commit(unbegun)
    expect(await store.open_work(ANN) == [], "no open work after the work ended")


@LEASE_PROMISES.add
async def a_fence_lets_nothing_by_once_the_lease_is_lost(store: Store) -> None:
    await hear(store, "me", 100.0)
    waiting = ids(await store.open_work(ANN))
    early = build_fenced(waiting, "me", build_record("too early"))
    await expect_error(LeaseLost, store.commit(early), "a fence cannot name work that was not claimed")
    mine = ids(await store.claim(ANN, SLOT, "me", 50.0, 60.0))
    await store.commit(build_fenced(mine, "me", build_record("a step")))
    await store.commit(build_fenced(mine, "me", build_record("a step more")))
    left = [(each.running, each.owner) for each in await store.open_work(ANN)]
    expect(left == [(True, "me")], f"the work of the fence stays open and running, not {left}")
    none = build_fenced((), "me", build_record("no fence"))
    await expect_error(InputError, store.commit(none), "a fence without work is refused")
    stranger = replace(build_fenced(mine, "me", replace(build_record("bob's"), stream=BOB)), mind=BOB)
    await expect_error(LeaseLost, store.commit(stranger), "a fence cannot name the work of another stream")
    theirs = ids(await store.claim(ANN, SLOT, "other", 61.0, 200.0))
    late = build_record("too late")
    await expect_error(
        LeaseLost, store.commit(build_fenced(mine, "me", late)), "a fence cannot name another owner's work"
    )
    await store.commit(build_end(theirs, "other"))
    await expect_error(LeaseLost, store.commit(build_fenced(theirs, "other", late)), "a fence cannot name ended work")
    texts = [record.text for record in await store.latest(ANN, ["note"], n=9, now=NOW)]
    expect(texts == ["a step", "a step more"], f"no record of a commit that the fence refused, not {texts}")
    expect(await store.count(ANN, "remembered") == 2, "no log row of a commit that the fence refused")


@LEASE_PROMISES.add
async def work_that_is_put_back_is_tried_again(store: Store) -> None:
    first = await hear(store, "me", 100.0)
    work = ids(await store.claim(ANN, SLOT, "me", 50.0, 100.0))
    await store.commit(Commit(mind=ANN, at=51.0, put_back=WorkReleased(work, "me", "no answer")))
    left = [(each.error, each.failures, each.running) for each in await store.open_work(ANN)]
    expect(left == [("no answer", 1, False)], f"open work with its failure, not {left}")
    second = await hear(store, "me", 100.0)
    again = [each.cause for each in await store.claim(ANN, SLOT, "me", 60.0, 100.0)]
    expect(again == [first, second], "the released work, and the work that was added since")
    await store.give_up("me")
    expect(len(await store.claim(ANN, SLOT, "other", 61.0, 100.0)) == 2, "the work that its owner gave up")


@LEASE_PROMISES.add
async def work_that_is_let_go_of_is_anybodys(store: Store) -> None:
    first, second = await hear(store, "me", 100.0), await hear(store, "me", 100.0)
    await store.release_work(ANN, first, "other")
    expect(await store.claim(ANN, SLOT, "other", 50.0, 60.0) == [], "only its owner can release work")
    await store.release_work(ANN, first, "me")
    theirs = [each.cause for each in await store.claim(ANN, SLOT, "other", 50.0, 100.0)]
    expect(theirs == [first], f"only the released work, not {theirs}")
    await store.release_work(ANN, first, "other")
    going = [each.running for each in await store.open_work(ANN) if each.cause == first]
    expect(going == [True], "releasing by its cause does not end a run that has begun")
    await store.release_work(ANN, second, "me", [SLOT])
    left = [each.cause for each in await store.open_work(ANN)]
    expect(left == [first], f"no work of an ended slot, not {left}")


async def hear(store: Store, owner: str, lease: float) -> int:
    heard, wake = Heard(text="hello", session="s", record="r"), NewWork((SLOT,), owner, lease)
    return (await store.commit(Commit(mind=ANN, at=THEN, entries=(Entry(heard, ANN),), wake=wake)))[0].seq


def build_end(work: tuple[int, ...], owner: str, *records: Record) -> Commit:
    thought = Entry(Thought(slot=SLOT, about=(1,), text="", model="rules"), SLOT, records)
    return Commit(mind=ANN, at=THEN, entries=(thought,), finish=WorkDone(work, owner))


def build_fenced(work: tuple[int, ...], owner: str, *records: Record) -> Commit:
    return replace(build_writing(*records), fence=Fence(work, owner))


def ids(work: list[Work]) -> tuple[int, ...]:
    return tuple(each.id for each in work)
