"""Promises of stores (memory/store/store): atomicity, snapshots, tenant isolation, conflicts, leases.

A lease gives a piece of work one owner at a time; a process that has lost the lease cannot write.

A factory opens an empty store. That erased data are no longer in a store's files is checked by the store's own tests.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

import numpy as np

from mindstream.errors import Conflict, ErasedMeanwhile, InputError, LeaseLost
from mindstream.identifiers import StreamKey
from mindstream.log.audit import Deed
from mindstream.log.erasures import digest_of, reading
from mindstream.log.events import Heard, Thought
from mindstream.log.work import Work
from mindstream.memory.forgetting_curve import StrengthState
from mindstream.memory.store.checkpoints import Checkpoint
from mindstream.memory.store.record import KINDS, Kind, Record
from mindstream.memory.store.store import (
    Commit,
    Entry,
    Erasure,
    Fence,
    NewWork,
    Revision,
    Store,
    WorkDone,
    WorkKept,
    WorkReleased,
)
from mindstream_evals.conformance.samples import (
    ANN,
    BOB,
    LATER,
    NOW,
    THEN,
    Promises,
    build_event,
    build_record,
    build_version,
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
async def work_that_is_kept_stays_its_owners_until_its_own_lease_ends(store: Store) -> None:
    first, second = await hear(store, "me", 60.0), await hear(store, "me", 60.0)
    await store.commit(Commit(mind=ANN, at=50.0, kept=WorkKept(SLOT, (first,), "other", 100.0)))
    expect(not any(each.is_kept(51.0) for each in await store.open_work(ANN)), "only its owner can keep work")
    await store.commit(Commit(mind=ANN, at=50.0, kept=WorkKept(SLOT, (first,), "me", 100.0)))
    kept = [each.cause for each in await store.open_work(ANN) if each.is_kept(61.0)]
    expect(kept == [first], f"the work that its owner keeps, not {kept}")
    theirs = [each.cause for each in await store.claim(ANN, SLOT, "other", 61.0, 90.0)]
    expect(theirs == [second], f"only the work whose lease has ended, not {theirs}")
    expect(not any(each.is_kept(101.0) for each in await store.open_work(ANN)), "no kept work after the lease")


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


PROMISES = Promises[Store](LEASE_PROMISES)


@PROMISES.add
async def a_record_comes_back_as_it_was(store: Store) -> None:
    record = build_record("tea, 茶 and “quotes”")
    logged = await store.commit(build_writing(record))
    found = await store.records(ANN, [record.id])
    expect(found == [replace(record, seq=logged[0].seq)], f"the record as it was written, not {found}")
    vectors = [None if each.vector is None else each.vector.tolist() for each in (found[0], record)]
    expect(vectors[0] == vectors[1], f"its vector {vectors[1]}, not {vectors[0]}")


@PROMISES.add
async def another_stream_never_sees_it(store: Store) -> None:
    record = build_record("mine")
    await store.commit(build_writing(record))
    await store.commit(Commit(mind=BOB, at=THEN, revisions=(Revision(id=record.id, forgotten=THEN),)))
    expect(await store.erase(BOB, [record.id]) == 0, "no stream can erase the record of another stream")
    seen = [
        await store.records(BOB, [record.id]),
        await store.latest(BOB, n=9, now=NOW),
        (await store.changes(BOB, 0)).records,
    ]
    expect(not any(seen) and not await store.events(BOB), f"no data of stream ann in stream bob, not {seen}")
    expect(
        (await store.records(ANN, [record.id]))[0].forgotten is None,
        "no stream can revise the record of another stream",
    )
    async with store.walk(BOB) as (count, records):
        expect(count == 0 and not [each async for each in records], "no record in a walk through the empty stream bob")
    alien = Commit(mind=BOB, at=THEN, entries=(Entry(build_event(), BOB, (build_record("alien"),)),))
    await expect_error(InputError, store.commit(alien), "a record of another stream is refused")


@PROMISES.add
async def a_commit_is_all_or_nothing(store: Store) -> None:
    await store.commit(build_writing(build_version(1)))
    beside, again = build_record("beside it"), build_version(1)
    await expect_error(
        Conflict, store.commit(build_writing(beside, again)), "a version that exists already is a conflict"
    )
    expect(await store.records(ANN, [beside.id, again.id]) == [], "no record of a refused commit")
    expect(len(await store.events(ANN)) == 1, "no log row of a refused commit")


@PROMISES.add
async def one_bad_commit_does_not_spoil_its_neighbours(store: Store) -> None:
    await store.commit(build_writing(build_version(1)))
    commits = [build_writing(build_version(1) if n == 5 else build_record(f"note {n}")) for n in range(10)]
    results = await asyncio.gather(*map(store.commit, commits), return_exceptions=True)
    names = [type(result).__name__ for result in results]
    expect(names == ["list"] * 5 + ["Conflict"] + ["list"] * 4, f"one conflict among ten commits, not {names}")
    expect(len(await store.latest(ANN, ["note"], n=20, now=NOW)) == 9, "the nine notes of the accepted commits")


@PROMISES.add
async def what_could_not_be_read_again_is_refused(store: Store) -> None:
    for odd in (
        replace(build_record("x"), importance=11.0),
        replace(build_record("x"), created=float("nan")),
        build_record(""),
    ):
        await expect_error(
            InputError, store.commit(build_writing(odd)), f"the invalid record {odd.text[:20]!r} is refused"
        )
    expect(not await store.events(ANN), "no log row of a refused commit")


@PROMISES.add
async def a_new_version_supersedes_the_one_before(store: Store) -> None:
    first, second = build_version(1), build_version(2)
    await store.commit(build_writing(first))
    await store.commit(build_writing(second, at=LATER))
    newest = [record.id for record in await store.latest(ANN, n=9, now=NOW, slot="plan")]
    expect(newest == [second.id], "only the newest version")
    expect((await store.records(ANN, [first.id]))[0].superseded_by == second.id, "the old version names the new one")


@PROMISES.add
async def two_writers_of_one_version_conflict(store: Store) -> None:
    commits = [store.commit(build_writing(build_version(1))) for _ in range(5)]
    names = sorted(type(each).__name__ for each in await asyncio.gather(*commits, return_exceptions=True))
    expect(names == ["Conflict"] * 4 + ["list"], f"one writer and four conflicts, not {names}")


@PROMISES.add
async def a_checkpoint_follows_the_one_before(store: Store) -> None:

    def keep(version: int) -> Commit:
        kept = Checkpoint("head", version, bytes([version]))
        return replace(build_writing(build_record(f"version {version}")), checkpoint=kept)

    expect(await store.checkpoint(ANN, "head") is None, "no checkpoint before the first one")
    both = await asyncio.gather(*(store.commit(keep(1)) for _ in range(3)), return_exceptions=True)
    names = sorted(type(each).__name__ for each in both)
    expect(names == ["Conflict"] * 2 + ["list"], f"one writer and two conflicts, not {names}")
    await expect_error(Conflict, store.commit(keep(3)), "a version whose predecessor does not exist is a conflict")
    await store.commit(keep(2))
    found = await store.checkpoint(ANN, "head")
    expect(found == Checkpoint("head", 2, b"\2"), f"only the newest checkpoint, as it was written, not {found}")
    expect(await store.checkpoint(BOB, "head") is None, "no checkpoint of stream ann in stream bob")
    expect(len(await store.events(ANN)) == 2, "no log row of a refused commit")
    await store.erase(ANN)
    expect(await store.checkpoint(ANN, "head") is None, "no checkpoint after the stream was erased")


@PROMISES.add
async def what_there_is_one_of_is_taken_once(store: Store) -> None:

    def take(mind: StreamKey = ANN, unique: str = "created") -> Commit:
        record = replace(build_record("mine"), stream=mind)
        return replace(build_writing(record), unique=unique)

    both = await asyncio.gather(*(store.commit(take()) for _ in range(5)), return_exceptions=True)
    names = sorted(type(each).__name__ for each in both)
    expect(names == ["Conflict"] * 4 + ["list"], f"one commit with this unique key and four conflicts, not {names}")
    expect(len(await store.events(ANN)) == 1, "no log row of a refused commit")
    await store.commit(take(BOB))
    await store.commit(take(unique="another"))
    await store.erase(ANN)
    await store.commit(take())


@PROMISES.add
async def distinct_holds_against_a_writer_at_the_same_moment(store: Store) -> None:

    def once(text: str, kind: Kind = "note") -> Commit:
        return Commit(
            mind=ANN, at=THEN, entries=(Entry(build_event(), ANN, (build_record(text, kind),), distinct=True),)
        )

    commits = [store.commit(once(text)) for text in ("Tea", "tea", " TEA ", "tea.", "tea")]
    names = sorted(type(each).__name__ for each in await asyncio.gather(*commits, return_exceptions=True))
    expect(names == ["Conflict"] * 4 + ["list"], f"one commit of the same text and four conflicts, not {names}")
    expect(
        list(await store.find_same(ANN, "note", ["TEA!"], now=NOW)) == ["tea"],
        "`find_same` finds the record by the normal form of its text",
    )
    await store.commit(once("tea", "chat"))
    await store.commit(once("tea", "chat"))  # the same chat message may be sent twice, such as "yes"
    old = (await store.latest(ANN, ["note"], now=NOW))[0]
    ending = Revision(id=old.id, valid_until=LATER, superseded_by="x")
    entry = Entry(build_event(), ANN, (build_record("tea"),), distinct=True)
    await store.commit(Commit(mind=ANN, at=LATER, entries=(entry,), revisions=(ending,)))


@PROMISES.add
async def a_guarded_revision_is_refused_where_somebody_was_first(store: Store) -> None:
    record = build_record("tea")
    await store.commit(build_writing(record))
    first = Revision(id=record.id, level=1, accessed=LATER, was=StrengthState(0, False, THEN))
    await store.commit(Commit(mind=ANN, at=LATER, revisions=(first,)))
    again = Commit(mind=ANN, at=LATER, revisions=(first,))
    await expect_error(Conflict, store.commit(again), "a revision of a level that has changed since is a conflict")
    end = Commit(mind=ANN, at=NOW, revisions=(Revision(id=record.id, valid_until=NOW, holds=True),))
    await store.commit(end)
    await expect_error(Conflict, store.commit(end), "a revision of a record that is no longer valid is a conflict")


@PROMISES.add
async def what_had_ended_can_hold_again(store: Store) -> None:
    one, two = build_record("tea"), build_record("coffee")
    await store.commit(build_writing(one, two))
    ended = Revision(id=one.id, valid_until=LATER, superseded_by=two.id)
    forgotten = Revision(id=two.id, level=-1, forgotten=LATER)
    await store.commit(Commit(mind=ANN, at=LATER, revisions=(ended, forgotten)))
    expect(await store.latest(ANN, ["note"], n=9, now=NOW) == [], "no record that is valid and not archived")
    again = (
        Revision(id=one.id, emptied=("valid_until", "superseded_by")),
        Revision(id=two.id, level=0, emptied=("forgotten",), was=StrengthState(-1, False, THEN)),
    )
    await store.commit(Commit(mind=ANN, at=NOW, revisions=again))
    found = await store.latest(ANN, ["note"], n=9, now=NOW)
    expect([replace(each, seq=0) for each in found] == [one, two], f"both records as before the revisions, not {found}")


@PROMISES.add
async def latest_leaves_out_what_does_not_hold(store: Store) -> None:
    records = [build_record(f"note {n}") for n in range(4)]
    await store.commit(build_writing(*records))
    ended = Revision(id=records[3].id, valid_until=LATER, superseded_by=records[2].id)
    forgotten = Revision(id=records[1].id, forgotten=LATER)
    await store.commit(Commit(mind=ANN, at=LATER, revisions=(ended, forgotten)))
    found = [record.text for record in await store.latest(ANN, ["note"], n=9, now=NOW)]
    expect(found == ["note 0", "note 2"], f"the valid records that are not archived, oldest first, not {found}")


@PROMISES.add
async def candidates_are_the_newest_and_the_best_held_at_least(store: Store) -> None:
    records = [build_record(f"{kind} {n}", kind) for n in range(4) for kind in KINDS[:2]]
    await store.commit(build_writing(*records))
    held = Revision(id=records[1].id, level=3)
    await store.commit(Commit(mind=ANN, at=LATER, revisions=(held,)))
    vector = np.array([0, 0, 0.6, 0.8], np.float16)
    found = [record.id for record in await store.candidates(ANN, vector, ["none", "such"], 2)]
    expect([id_ for id_ in [each.id for each in records] if id_ in found] == found, "each record once, in stored order")
    expect(
        {records[1].id, records[6].id, records[7].id} <= set(found),
        f"the strongest and the newest records, not {found}",
    )
    of_kind = await store.candidates(ANN, None, [], 2, kinds=KINDS[:1])
    expect({each.kind for each in of_kind} == set(KINDS[:1]), f"only records of the requested kind, not {of_kind}")
    expect({records[4].id, records[6].id} <= {each.id for each in of_kind}, f"at least the newest, not {of_kind}")
    expect(not await store.candidates(BOB, vector, ["chat"], 2), "no candidate of another stream")


@PROMISES.add
async def changes_tell_what_is_new_revised_and_gone(store: Store) -> None:
    one, two = build_record("one"), build_record("two")
    await store.commit(build_writing(one, two))
    first = await store.changes(ANN, 0)
    expect([record.text for record in first.records] == ["one", "two"], "new records in the order of writing")
    before = await store.version()
    await store.commit(Commit(mind=ANN, at=LATER, revisions=(Revision(id=one.id, level=3, accessed=LATER),)))
    expect(await store.version() != before, "another version number after a commit")
    second = await store.changes(ANN, first.upto)
    told = [(record.text, record.level) for record in second.records]
    expect(told == [("one", 3)], f"the revised record in its new state, not {told}")
    await store.erase(ANN, [two.id])
    expect((await store.changes(ANN, second.upto)).gone == [two.id], "the id of the erased record")


@PROMISES.add
async def portions_miss_nothing_that_is_written_between_them(store: Store) -> None:
    records = [build_record(f"note {n}") for n in range(7)]
    await store.commit(build_writing(*records))
    texts: dict[str, str] = {}
    first = portion = await store.changes(ANN, 0, most=2)
    while portion.records:
        texts |= {record.id: record.text for record in portion.records}
        expect(len(portion.records) <= 2, "portions of at most two records")
        await store.commit(build_writing(build_record(f"meanwhile {len(texts)}")))
        if not portion.left:
            break
        portion = await store.changes(ANN, 0, portion.left, 2)
    texts |= {record.id: record.text for record in (await store.changes(ANN, first.upto)).records}
    expect(
        set(texts) == {record.id for record in await store.latest(ANN, n=99, now=NOW)},
        "all records, each in one or two portions",
    )


@PROMISES.add
async def a_walk_is_of_one_moment(store: Store) -> None:
    await store.commit(build_writing(*(build_record(f"note {n}") for n in range(5))))
    async with store.walk(ANN) as (count, records):
        first = await anext(records)
        await store.commit(build_writing(build_record("meanwhile")))
        rest = [record.text async for record in records]
    expect(
        count == 5 and [first.text, *rest] == [f"note {n}" for n in range(5)],
        "the records at the start of the walk",
    )


@PROMISES.add
async def rows_of_the_log_grow_and_can_be_read_from_any_point(store: Store) -> None:
    expect(await store.last(ANN, "remembered") is None, "no last row of an empty log")
    for n in range(5):
        await store.commit(build_writing(build_record(str(n))))
    seqs = [row.seq for row in await store.events()]
    expect(len(seqs) == 5 and seqs == sorted(set(seqs)), f"increasing row numbers, not {seqs}")
    expect([row.seq for row in await store.events(ANN, after=seqs[2])] == seqs[3:], "only the rows after a number")
    last = await store.last(ANN, "remembered")
    expect(
        last is not None and last.seq == seqs[-1] and await store.count(ANN, "remembered") == 5,
        "the last of five rows",
    )
    expect(
        not await store.events(kinds=["said"]) and await store.last(BOB, "remembered") is None,
        "no row of another kind",
    )


@PROMISES.add
async def erasing_a_stream_leaves_nothing_of_it(store: Store) -> None:
    record, other = build_record("secret"), replace(build_record("other"), stream=BOB)
    await store.commit(build_writing(record))
    await store.commit(build_writing(other))
    expect(await store.erase(ANN) == 1, "the number of erased records")
    await store.compact()
    expect(
        await store.events(ANN) == [] and await store.streams() == [BOB],
        "no row and no record of the erased stream",
    )
    expect((await store.changes(ANN, 0)).gone == [record.id], "the id of the erased record")
    expect(await store.owners([record.id, other.id]) == {other.id: BOB}, "owners of existing records only")


@PROMISES.add
async def an_erasure_takes_rows_and_rewrites_versions(store: Store) -> None:
    kept = build_version(1)
    await store.commit(build_writing(kept))
    rows = frozenset({await hear(store, "me", 100.0)})
    await store.erase(ANN, Erasure(ids=(), rows=rows, rewritten=(replace(kept, text="without"),)))
    (found,) = await store.records(ANN, [kept.id])
    expect(found.text == "without", f"the rewritten version, not {found}")
    expect("hello" not in str(await store.events(ANN)), "no text of the erased row in the log")


@PROMISES.add
async def what_was_erased_is_told_and_not_written_back(store: Store) -> None:
    before = await store.last_erasure()
    record = build_record("mine")
    await store.commit(build_writing(record))
    await store.erase(ANN, [record.id])
    salt, (some,) = await store.erased_since(before)
    expect(some.digest == digest_of(salt, ANN) and not some.whole, f"an erasure of a part of stream ann, not {some}")
    anew = build_writing(build_record("of before"))
    await store.commit(replace(anew, since=before))
    await store.erase(ANN)
    _, (all_,) = await store.erased_since(some.number)
    expect(all_.digest == some.digest and all_.whole, f"an erasure of the whole stream ann, not {all_}")
    late = replace(build_writing(build_record("of before, again")), since=some.number)
    await expect_error(ErasedMeanwhile, store.commit(late), "a commit based on a stream that was erased since")
    expect(not await store.events(ANN), "no log row of a refused commit")
    await store.commit(replace(late, since=all_.number))
    expect(await store.last_erasure() == all_.number, "the number of the last erasure")


@PROMISES.add
async def words_that_were_forgotten_are_not_written_back(store: Store) -> None:
    read = await store.last_erasure()
    record, other = build_record("mine"), replace(build_record("his"), stream=BOB)
    await store.commit(build_writing(record))
    await store.commit(build_writing(other))
    late = replace(build_writing(build_record("drawn from it")), words_read=read)
    await store.erase(BOB, [other.id])
    expect(await store.lost_since(ANN, read) is None, "`lost_since` reports no erasure in stream ann")
    await store.keep(ANN, "result:1", NOW, lambda _: "mine", read)
    await store.erase(ANN, [record.id])
    expect(not await store.kept(ANN, "result:"), "no stored result that was based on erased records")
    expect(await store.lost_since(ANN, read) is False, "`lost_since` reports an erasure of a part of stream ann")
    await expect_error(ErasedMeanwhile, store.commit(late), "a commit derived from erased text")
    again = store.keep(ANN, "result:1", NOW, lambda _: "mine", read)
    await expect_error(ErasedMeanwhile, again, "a stored result that contains erased text")
    expect(not await store.kept(ANN, "result:"), "no result that was refused")
    async with reading(store) as own:
        again_said = build_record("said again")
        await store.commit(build_writing(again_said))
        await store.erase(ANN, [again_said.id])
        expect(own.upto == await store.last_erasure(), "a task's own erasures count as known to it")
    await store.commit(replace(late, words_read=own.upto))
    await store.erase(ANN)
    expect(await store.lost_since(ANN, own.upto) is True, "`lost_since` reports an erasure of the whole stream ann")
    again = store.keep(ANN, "result:1", NOW, lambda _: "mine", own.upto)
    await expect_error(ErasedMeanwhile, again, "a stored result of a stream that was erased")


@PROMISES.add
async def the_audit_outlives_an_erasure_and_names_nobody(store: Store) -> None:
    await store.commit(build_writing(build_record("mine")))
    await store.erase(ANN)
    await store.note(NOW, Deed("erased", "command", "olga", about=ANN, counts={"records": 1}))
    await store.note(NOW, Deed("exported", "rest", "8r1c", about=BOB, tenant="acme"))
    rows = await store.audit()
    told = [(each.did, each.door, each.who, each.counts) for each in rows]
    wanted: list[object] = [("erased", "command", "olga", {"records": 1}), ("exported", "rest", "8r1c", {})]
    expect(told == wanted, f"both audited actions, oldest first, not {told}")
    expect(await store.audit(about=ANN) == rows[:1], "the actions about a user, found by the user's name")
    expect(await store.audit(tenant="acme") == rows[1:], "the actions of a tenant, found by the tenant's name")
    names = {ANN, BOB, "acme"} & {each for row in rows for each in (row.about, row.tenant)}
    expect(not names, f"no name of a user or tenant in the audit, not {names}")
