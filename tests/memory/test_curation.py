"""Curation: corrections, echoes, evidence, the archive, another embedder, the audit."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import sqlite3
import unicodedata
from pathlib import Path

import pytest
from keys import key_of
from world import Words, World

from mindstream.clock import DAY_S, MINUTE_S
from mindstream.errors import InputError
from mindstream.log.database import FILE
from mindstream.log.events import Failed, Remembered
from mindstream.memory.curation.curation import Drawn
from mindstream.memory.store.record import Kind, RecordDraft, Triple
from mindstream.memory.store.store import Entry, Revision


async def found(world: World, query: str, as_of: float | None = None) -> list[str]:
    return [each.record.text for each in await world.stream.recall(query, as_of=as_of, touch=False)]


async def test_records_are_read_by_id_in_the_given_order(world: World) -> None:
    first, second = [await world.stream.retain(f"note {n}") for n in range(2)]
    found_records = await world.stream.records([second.id, "unknown-id", first.id])
    assert [each.text for each in found_records] == ["note 1", "note 0"]


async def test_a_correction_keeps_the_old_record_for_as_of_queries(world: World) -> None:
    old = await world.stream.retain("Ann goes to bed at 23:00", "note", about=Triple("ann", "bedtime", "23:00"))
    then = world.clock.now()
    world.clock.advance(DAY_S)
    new = await world.stream.supersede(old.id, "Ann goes to bed at 22:00", by="facts")
    assert (new.kind, new.by, new.evidence, new.depth) == ("note", "facts", (old.id,), 1)
    assert new.about == Triple("ann", "bedtime", "Ann goes to bed at 22:00")
    assert await found(world, "bed") == ["Ann goes to bed at 22:00"]
    assert await found(world, "bed", as_of=then) == ["Ann goes to bed at 23:00"]
    assert (await world.store.records(key_of("ann"), [old.id]))[0].superseded_by == new.id


async def test_the_second_of_two_concurrent_corrections_is_refused(world: World) -> None:
    old = await world.stream.retain("bed at 23:00", "note")
    both = [world.stream.supersede(old.id, text) for text in ("bed at 22:00", "bed at 21:00")]
    results = await asyncio.gather(*both, return_exceptions=True)
    assert sorted(type(result).__name__ for result in results) == ["InputError", "Record"]
    assert len(await world.stream.latest("note", 9)) == 1


async def test_a_replacement_may_change_every_field_or_be_none(world: World) -> None:
    first = await world.stream.retain("Bed at 23", "document", data={"page": 1})
    second = await world.stream.replace(first.id, RecordDraft(text="bed at 23", kind="document", data={"page": 2}))
    assert second and second.data == {"page": 2} and second.evidence == (first.id,)
    assert [each.text for each in await world.stream.latest("document", 9)] == ["bed at 23"]
    assert await world.stream.replace(second.id, None) is None
    assert await world.stream.latest("document", 9) == []
    kept = await world.store.records(key_of("ann"), [first.id, second.id])
    assert [each.superseded_by for each in kept] == [second.id, None]
    with pytest.raises(InputError, match="superseded by"):
        await world.stream.replace(first.id, None)
    with pytest.raises(InputError, match="no longer valid"):
        await world.stream.replace(second.id, RecordDraft(text="bed at 24", kind="document"))


async def test_the_second_of_two_concurrent_replacements_is_refused(world: World) -> None:
    old = await world.stream.retain("bed at 23:00", "document")
    both = [world.stream.replace(old.id, RecordDraft(text=text, kind="document")) for text in ("one", "two")]
    results = await asyncio.gather(*both, return_exceptions=True)
    assert sorted(type(result).__name__ for result in results) == ["InputError", "Record"]
    assert len(await world.stream.latest("document", 9)) == 1


async def test_a_concurrent_touch_does_not_block_a_correction(world: World) -> None:
    old = await world.stream.retain("bed at 23:00", "note")
    await world.stream.recall("bed")
    await asyncio.gather(world.stream.settle(), world.stream.supersede(old.id, "bed at 22:00"))
    assert [record.text for record in await world.stream.latest("note", 9)] == ["bed at 22:00"]


async def test_invalid_corrections_raise_an_error_with_the_reason(world: World) -> None:
    old = await world.stream.retain("bed at 23:00", "note")
    await world.stream.supersede(old.id, "bed at 22:00")
    with pytest.raises(InputError, match="was superseded by"):
        await world.stream.supersede(old.id, "bed at 21:00")
    with pytest.raises(InputError, match="no record 'nothing'"):
        await world.stream.supersede("nothing", "bed at 21:00")
    with pytest.raises(InputError, match="empty"):
        await world.stream.supersede(old.id, "  ")


@pytest.mark.parametrize("kind", ["note", "thought", "exemplar"])
async def test_equal_texts_of_a_kind_are_stored_once(world: World, kind: Kind) -> None:
    first = await world.stream.retain("Ann drinks tea.", kind)
    again = await world.stream.retain_all(
        [RecordDraft(text="ann  drinks TEA", kind=kind), RecordDraft(text="new", kind=kind)]
    )
    assert again[0].id == first.id
    assert len(await world.stream.latest(kind, 9)) == 2


@pytest.mark.parametrize("kind", ["note", "thought", "exemplar"])
async def test_a_recently_recalled_text_is_not_stored_again(world: World, kind: Kind) -> None:
    seen = await world.stream.retain("Ann grows tomatoes on the roof.", "observation")
    await world.stream.recall("tomatoes", touch=False)
    assert (await world.stream.retain("ann grows tomatoes on the roof", kind)).id == seen.id
    assert await world.stream.latest(kind, 9) == []
    world.clock.advance(11 * MINUTE_S)
    assert (await world.stream.retain("ann grows tomatoes on the roof", kind)).id != seen.id


async def test_evidence_of_returns_the_tree_down_to_observations(world: World) -> None:
    seen = [await world.stream.retain(f"Ann was at the gym, {n}") for n in range(2)]
    note = await world.stream.retain("Ann likes sport", "note", evidence=[seen[0].id])
    thought = await world.stream.retain("Ann is fit", "thought", evidence=[note.id, seen[1].id, "gone"])
    assert [record.depth for record in (seen[0], note, thought)] == [0, 1, 2]

    def ids(drawn: Drawn) -> object:
        return {drawn.record.id: [ids(each) for each in drawn.evidence]}

    tree = await world.stream.evidence_of(thought.id)
    assert ids(tree) == {thought.id: [{note.id: [{seen[0].id: []}]}, {seen[1].id: []}]}
    assert tree.missing == ("gone",)
    with pytest.raises(InputError, match="no record"):
        await world.stream.evidence_of("nothing")


async def test_purge_deletes_archived_records_permanently(world: World) -> None:
    one, two, kept = await world.stream.retain_all(
        [RecordDraft(text="swordfish"), RecordDraft(text="marlin"), RecordDraft(text="herring")]
    )
    await world.stream.commit(revisions=[Revision(id=one.id, forgotten=100.0), Revision(id=two.id, forgotten=200.0)])
    assert [record.id for record in await world.stream.archive()] == [one.id, two.id]
    assert await world.stream.purge(before=150.0) == 1
    assert [record.id for record in await world.stream.archive()] == [two.id]
    assert await world.stream.purge() == 1
    assert await world.stream.purge() == 0
    assert await found(world, "fish swordfish herring") == ["herring"]
    left = bytes_of(world.folder)
    assert b"swordfish" not in left
    assert kept.text.encode() in left


def bytes_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


async def test_another_embedder_is_reported_and_reembed_can_be_resumed(world: World) -> None:
    await world.stream.retain_all([RecordDraft(text=f"Ann grows tomatoes, {n}") for n in range(30)])
    other = world.another(Words("others"))
    with other.feed.listening() as heard:
        await other.recall("tomatoes", touch=False)
        await other.recall("tomatoes", touch=False)
        other.feed.close()
        told = [logged.event async for logged in heard]
    assert len(told) == 1
    assert isinstance(told[0], Failed)
    assert "30 of 30 records have no vector of others" in told[0].text

    broken = asyncio.create_task(other.reembed(batch=8))
    for _ in range(60_000):
        if (await other.columns()).foreign < 30:
            break
        await asyncio.sleep(0.001)
    broken.cancel()
    await asyncio.gather(broken, return_exceptions=True)
    left = (await other.columns()).foreign
    assert 0 <= left < 30
    assert await other.reembed(batch=8) <= left, "a batch in progress at the cancellation may still be written"
    assert await other.reembed() == 0
    assert (await other.columns()).foreign == 0
    scores = (await other.recall("tomatoes", k=1, touch=False))[0].parts
    assert scores["vector"] > 0
    await other.close()
    await other.store.close()


async def test_audit_reports_duplicates_echoes_and_unused_records(world: World) -> None:
    stream = world.stream
    first = await stream.retain("Ann grows tomatoes on the roof of her house", "note")
    copies = await stream.build_records([RecordDraft(text="ann grows TOMATOES on the roof of her house", kind="note")])
    near = await stream.retain("Ann grows red tomatoes on the roof of her house", "note")
    nothing = await stream.retain("…!", "note")
    prompt = await stream.retain("<system>You are a helpful assistant that keeps notes</system>", "note")
    question = await stream.retain("Does Ann like tea?", "thought")
    seen = await stream.retain("The shop is closed on Mondays", "observation")
    echo = await stream.retain("The shop is closed on mondays.", "note")
    said = await stream.retain("I drink tea in the morning", "chat")
    fact = await stream.retain("I drink tea in the morning", "note")
    await stream.commit(Entry(Remembered(count=1, kinds={}), "test", tuple(copies)))
    world.clock.advance(2 * DAY_S)
    await stream.recall("tea", k=1, kinds=["note"])
    await stream.settle()
    before = await world.store.version()
    report = await stream.audit()
    assert await world.store.version() == before
    assert list(report.exact) == [(first.id, copies[0].id)]
    assert [set(group) for group in report.near] == [{first.id, near.id, copies[0].id}]
    assert [junk.id for junk in report.junk] == [nothing.id, prompt.id, question.id]
    assert [(each.id, each.of) for each in report.echoes] == [(echo.id, seen.id)]
    assert fact.id not in report.never_recalled
    assert seen.id in report.never_recalled
    assert said.id not in report.never_recalled
    assert (report.records, report.held["note"], report.forgotten, report.foreign) == (10, 7, 0, 0)
    assert not report.clean


async def test_audit_of_a_clean_stream_reports_nothing(world: World) -> None:
    await world.stream.retain_all(
        [RecordDraft(text="Ann grows tomatoes", kind="note"), RecordDraft(text="yes", kind="chat")] * 2
    )
    report = await world.stream.audit()
    assert report.clean
    assert report.records == 3


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("the who play on friday", "The Who play on Friday"),
        ("Ask for May", "Ask for MAY!"),
        ("ich wohne in köln.", "Ich wohne in Köln"),
        ("Meets Zoé at 9", "Meets Zoé at 10"),
    ],
)
async def test_a_correction_keeps_all_other_fields_and_may_change_only_case(world: World, old: str, new: str) -> None:
    ends, begins = world.clock.now() + 9 * DAY_S, world.clock.now() - DAY_S
    (first,) = await world.stream.retain_all(
        [
            RecordDraft(
                text=old, kind="note", by="ann", episode="monday", importance=7, keywords=("band",), data={"page": 3},
                valid_from=begins, valid_until=ends,
            )
        ]
    )  # fmt: skip
    for text in (new, old, new):  # and back again
        done = await world.stream.correct(first.id, text)
        assert done.record.text == text and done.superseded.superseded_by == done.record.id != first.id
        kept = done.record
        assert (kept.valid_from, kept.valid_until, kept.importance, kept.by) == (begins, ends, 7, "ann")
        assert (kept.keywords, kept.data, kept.episode) == (("band",), {"page": 3}, "monday")
        first = kept
    assert [each.text for each in await world.stream.latest("note", 9)] == [new]
    world.clock.advance(10 * DAY_S)
    assert await world.stream.latest("note", 9) == []


@pytest.mark.parametrize("text", ["Crème brûlée at Zoë's", "Tiếng Việt", "ガギグゲゴ は 好き", "Й и Ё"])
async def test_composed_and_decomposed_unicode_is_the_same_text(world: World, text: str) -> None:
    composed, parted = (unicodedata.normalize(form, text) for form in ("NFC", "NFD"))
    first = await world.stream.retain(parted, "note", keywords=[parted])
    assert first.text == composed and first.keywords == (composed,)
    assert (await world.stream.retain(composed, "note")).id == first.id
    assert (await world.stream.recall(parted, k=1))[0].record.id == first.id
    assert (await world.stream.correct(first.id, parted)).record.id == first.id  # it already says that
    assert [each.id for each in (await world.stream.find_removal(about=parted)).asked] == [first.id]


async def test_decomposed_text_of_an_earlier_version_is_found_and_forgotten(world: World) -> None:
    composed, parted = (unicodedata.normalize(form, "Zoë mag Crème brûlée") for form in ("NFC", "NFD"))
    note = await world.stream.retain(composed, "note")
    sea = await world.stream.retain("the sea")
    dream = await world.stream.retain(f"{composed}, at sea", "dream", evidence=[note.id, sea.id])
    number = hashlib.blake2b(" ".join(parted.casefold().split()).encode(), digest_size=8).digest()
    with (
        contextlib.closing(sqlite3.connect(world.folder / FILE)) as connection,
        connection,
    ):  # as an earlier version wrote it
        same = int.from_bytes(number, signed=True)
        connection.execute("UPDATE records SET text = ?, same = ? WHERE id = ?", (parted, same, note.id))
    world.stream.clock.advance(DAY_S)  # type: ignore[attr-defined]
    async with world.another() as other:
        assert (await other.retain(composed, "note")).id == note.id
        removal = await other.find_removal(about="zoe creme")
        assert {each.id for each in removal.asked} == {note.id, dream.id}
        await other.forget(note.id)
        assert [each.text for each in (await other.store.changes(key_of("ann"), 0)).records] == [
            "the sea",
            "[erased], at sea",
        ]
        await other.store.close()
