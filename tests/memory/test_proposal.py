"""Proposed dreams are inspected, accepted in whole or in part, refused, undone."""

from __future__ import annotations

from pathlib import Path

import pytest
from keys import key_of
from world import LAWS, World

from mindstream import FakeModel
from mindstream.clock import DAY_S
from mindstream.errors import InputError
from mindstream.memory.lifecycle.proposal import Proposal, Weakening
from mindstream.memory.store.record import Record, RecordDraft
from mindstream.memory.store.store import Revision

OLD = LAWS.asleep_s + 1
COFFEE = ("She drinks coffee at night", "She drinks the coffee at night")


async def written(world: World) -> dict[str, Record]:
    """Write two boats that decay, a song at a higher level, and two equal notes; return them by text."""
    texts = ("a red boat", "a blue boat", "a song")
    records = await world.stream.retain_all([RecordDraft(text=text, importance=3) for text in texts])
    await world.stream.commit(revisions=[Revision(id=records[2].id, level=2)])
    world.clock.advance(OLD)
    records += await world.stream.retain_all([RecordDraft(text=text, kind="note", importance=3) for text in COFFEE])
    return {record.text: record for record in records}


async def state(world: World) -> dict[str, tuple[object, ...]]:
    records = (await world.store.changes(key_of("ann"), 0)).records
    return {
        each.id: (each.level, each.accessed, each.forgotten, each.valid_until, each.superseded_by) for each in records
    }


def bytes_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".db-shm"}


async def test_a_proposed_sleep_writes_nothing_and_is_applied_as_shown(world: World, folder: Path) -> None:
    there = await written(world)
    before = bytes_in(folder)
    proposed = await world.stream.propose_sleep(FakeModel({"dream": ["boats"]}, "M1"), 99)
    assert bytes_in(folder) == before
    boats = {there["a red boat"].id, there["a blue boat"].id}
    assert set(proposed.forgotten) == boats
    assert {each.id for each in proposed.weakened} == boats | {there["a song"].id}
    assert [set(group) for group in proposed.merging] == [{there[text].id for text in COFFEE}]
    again = Proposal.model_validate_json(proposed.model_dump_json())
    assert again == proposed
    world.clock.advance(DAY_S)
    assert await world.stream.accept(again) == "boats"
    assert {each.id for each in await world.stream.archive()} == boats
    [dream] = await world.stream.latest("dream", 9)
    assert set(dream.evidence) == boats
    [merged] = await world.stream.latest("note", 9)
    assert set(merged.evidence) == {there[text].id for text in COFFEE}
    told = await world.told()
    assert list(told) == ["fading", "dream", "importance", "duplicates", "expiry", "compaction"]
    assert told["dream"].model == "M1" and told["fading"].weakened == (there["a song"].id,)


async def test_accepting_a_part_keeps_the_chosen_records(world: World) -> None:
    there = await written(world)
    proposed = await world.stream.propose_sleep(n=99)
    assert "red" in proposed.dream and "blue" in proposed.dream
    keep = [there["a red boat"].id, there[COFFEE[1]].id]
    assert await world.stream.accept(proposed, keep) == "I dreamt: a blue boat."
    held = {record.id for record in await world.stream.latest("observation", 9)}
    assert held == {there["a red boat"].id, there["a song"].id}
    assert len(await world.stream.latest("note", 9)) == 2
    now = {record.text: record for record in (await world.store.changes(key_of("ann"), 0)).records}
    assert (now["a red boat"].level, now["a red boat"].accessed) == (1, world.clock.now())
    again = await world.stream.propose_sleep(n=99)
    assert there["a red boat"].id not in {each.id for each in again.weakened} and again.merging == ()


async def test_a_proposal_does_not_overwrite_later_changes(world: World) -> None:
    there = await written(world)
    proposed = await world.stream.propose_sleep(n=99)
    await world.stream.recall("red boat", k=1)
    await world.stream.supersede(there["a song"].id, "a song about the sea")
    await world.stream.supersede(there[COFFEE[0]].id, "She drinks tea")
    assert await world.stream.accept(proposed) == "I dreamt: a blue boat."
    assert [record.text for record in await world.stream.archive()] == ["a blue boat"]
    assert (await world.now(there["a red boat"])).level == 1
    assert {note.text for note in await world.stream.latest("note", 9)} == {"She drinks tea", COFFEE[1]}
    assert (await world.told())["duplicates"].changed == 0
    levels = await state(world)
    assert await world.stream.accept(proposed) == ""  # accepting it twice has no further effect
    assert {id_: each[0] for id_, each in (await state(world)).items()} == {
        id_: each[0] for id_, each in levels.items()
    }


async def test_a_handmade_proposal_must_follow_the_decay_rules(world: World) -> None:
    fresh, other = await world.stream.retain_all(
        [RecordDraft(text="fresh", kind="note"), RecordDraft(text="other", kind="note")]
    )
    weakened = (Weakening(id=fresh.id, level=0, time=fresh.accessed),)
    assert await world.stream.accept(Proposal(at=0.0, weakened=weakened, merging=((fresh.id, other.id),))) == ""
    assert await world.stream.archive() == [] and len(await world.stream.latest("note", 9)) == 2


@pytest.mark.parametrize("by_proposal", [True, False])
async def test_undoing_a_sleep_restores_the_state(world: World, by_proposal: bool) -> None:
    await written(world)
    before = await state(world)
    if by_proposal:
        await world.stream.accept(await world.stream.propose_sleep(n=99))
    else:
        await world.stream.sleep(n=99)
    world.clock.advance(DAY_S)
    undone = await world.stream.undo_sleep()
    after = await state(world)
    assert {id_: after[id_] for id_ in before} == before
    assert set(undone.held_again) == set(before) and undone.left == ()
    assert set(undone.archived) == set(after) - set(before) == {each.id for each in await world.stream.archive()}
    assert len(await world.stream.recall("boat", touch=False)) == len(before)
    with pytest.raises(InputError, match="no sleep to undo"):
        await world.stream.undo_sleep()
    with pytest.raises(InputError, match="undone already"):
        await world.stream.undo_sleep(undone.sleep)
    with pytest.raises(InputError, match="no sleep of 'ann' began with row 1"):
        await world.stream.undo_sleep(1)


async def test_undoing_a_sleep_keeps_later_touches(world: World) -> None:
    there = await written(world)
    await world.stream.sleep(n=99)
    await world.stream.recall("a song", k=1)
    undone = await world.stream.undo_sleep()
    assert undone.left == (there["a song"].id,)
    assert (await world.now(there["a song"])).level == 2  # 1 after the sleep, returned a fortnight after it was seen


async def test_a_sleep_cannot_be_undone_after_purge(world: World) -> None:
    await written(world)
    await world.stream.sleep(n=99)
    await world.stream.purge()
    before = await state(world)
    with pytest.raises(InputError, match="2 of the records that this sleep archived were deleted"):
        await world.stream.undo_sleep()
    assert await state(world) == before


async def test_a_sleep_cannot_be_undone_after_a_correction_of_its_dream(world: World) -> None:
    await written(world)
    await world.stream.sleep(n=99)
    [made] = await world.stream.latest("dream", 9)
    new = await world.stream.supersede(made.id, "Something else")
    before = await state(world)
    with pytest.raises(InputError, match=f"superseded since by {new.id}"):
        await world.stream.undo_sleep()
    assert await state(world) == before


async def test_undo_sleep_takes_the_last_sleep_first(world: World) -> None:
    await written(world)
    await world.stream.sleep(n=99)
    world.clock.advance(OLD)
    await world.stream.sleep(n=99)
    archived = {each.id for each in await world.stream.archive()}
    last = await world.stream.undo_sleep()
    world.clock.advance(1)
    first = await world.stream.undo_sleep()
    assert first.sleep < last.sleep and archived
    observations = {record.text for record in await world.stream.latest("observation", 9)}
    assert observations == {"a red boat", "a blue boat", "a song"}
