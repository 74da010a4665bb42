"""Recall on a real store, with an embedder of words without meaning."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from keys import key_of
from world import Words

from mindstream.clock import ManualClock
from mindstream.errors import InputError
from mindstream.log.events import Remembered
from mindstream.memory.memory import Memory
from mindstream.memory.recall.ranking import Cosine, Filters, Generative, understood
from mindstream.memory.recall.recall import Recaller
from mindstream.memory.store.record import Kind, Record, Triple, new_id
from mindstream.memory.store.sqlite import SqliteStore
from mindstream.memory.store.store import Commit, Entry, Revision

NOW = 1_700_000_000.0
DAY = 86_400.0


class World:
    """A store, a recaller, and short functions to write."""

    def __init__(self, folder: Path) -> None:
        self.store = SqliteStore(folder)
        self.embedder = Words("0")
        self.recaller = Recaller(self.store, self.embedder)

    async def write(self, *records: Record) -> None:
        event = Remembered(count=len(records), kinds={})
        await self.store.commit(Commit(mind=key_of("ann"), at=NOW, entries=(Entry(event, "test", records),)))

    async def record(self, text: str, kind: Kind = "note", at: float = NOW, **more: object) -> Record:
        vector = (await self.embedder.embed([text]))[0].astype(np.float16)
        fixed = Record(id=new_id(at), stream=key_of("ann"), kind=kind, text=text, created=at, accessed=at)
        return replace(fixed, embedder=self.embedder.name, vector=vector, **more)  # type: ignore[arg-type]

    async def tell(self, text: str, kind: Kind = "note", at: float = NOW, **more: object) -> Record:
        record = await self.record(text, kind, at, **more)
        await self.write(record)
        return record

    async def ask(self, query: str, k: int = 3, **more: object) -> list[str]:
        policy = more.pop("policy", None)
        filters = Filters(**more)  # type: ignore[arg-type]
        found = await self.recaller.recall("ann", query, k, now=NOW, filters=filters, policy=policy)  # type: ignore[arg-type]
        return [each.record.text for each in found.returned]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(tmp_path)
    yield world
    await world.store.close()


async def test_the_matching_note_ranks_first(world: World) -> None:
    for text in ("Ann works shifts at a bakery.", "Street noise keeps Ann awake.", "Ann has a dog called Bo."):
        await world.tell(text)
    assert (await world.ask("what noise is there?"))[0] == "Street noise keeps Ann awake."


async def test_recall_works_in_chinese(world: World) -> None:
    for text in ("小明喜欢在河边跑步", "小红每天晚上喝咖啡", "天气很冷"):
        await world.tell(text)
    assert (await world.ask("谁喝咖啡？"))[0] == "小红每天晚上喝咖啡"


async def test_an_answer_is_found_by_the_words_of_its_question(world: World) -> None:
    talk = ["Hi!", "Which instrument do you play?", "The oboe, since I was nine.", "Lovely weather today."]
    for i, text in enumerate(talk):
        await world.tell(text, "chat", by=("kim", "lee")[i % 2], episode="one")
    for i in range(6):
        await world.tell(f"Something else, number {i}.", "chat", by="kim", episode="two")
    assert "The oboe, since I was nine." in (await world.ask("what instrument is played?", 2))


async def test_neighbours_contribute_only_within_an_episode(world: World) -> None:
    await world.tell("The lighthouse was painted red.", "chat", by="kim", episode="one")
    await world.tell("It took all summer.", "chat", by="kim", episode="one")
    await world.tell("Nobody knows.", "chat", by="kim", episode="two")
    found = await world.recaller.recall(key_of("ann"), "painting the lighthouse", 3, now=NOW)
    parts = {each.record.text: each.parts for each in found.returned}
    assert parts["It took all summer."]["neighbours"] > 0
    assert parts["Nobody knows."]["neighbours"] == 0


async def test_records_of_the_named_person_rank_higher(world: World) -> None:
    for by in ("Kim", "Lee Wong"):
        await world.tell("I love old trains.", "chat", by=by, episode=by)
    found = await world.recaller.recall(key_of("ann"), "What does Lee love?", 2, now=NOW)
    assert found.returned[0].record.by == "Lee Wong"
    assert found.returned[0].parts["who"] > 0


@pytest.mark.parametrize(
    ("query", "who", "bare"),
    [
        ("What does Lee's brother do?", "Lee Wong", "What does brother do?"),
        ("what did LEE WONG say about tea", "Lee Wong", "what did say about tea"),
        ("王小明喜欢什么?", "王小明", "喜欢什么?"),
        ("When did Will move?", "Will", "When did move?"),
        ("When will it rain?", None, "When will it rain?"),
        ("What do Lee and Will share?", None, "What do and share?"),
        ("Is Leeds far?", None, "Is Leeds far?"),
        ("Что любит Анна?", "Анна", "Что любит ?"),
    ],
)
async def test_names_are_distinguished_from_other_words(world: World, query: str, who: str | None, bare: str) -> None:
    for name in ("Lee Wong", "王小明", "Will", "Анна"):
        await world.tell("Hello", "chat", by=name)
    columns = await world.recaller.shelf.columns(key_of("ann"))
    question = understood(query, columns, NOW)
    assert question.bare == bare
    assert question.who == (-1 if who is None else columns.names[who])


async def test_a_note_about_a_speaker_is_found_by_the_name(world: World) -> None:
    await world.tell("Hello!", "chat", by="Kim", episode="one")
    await world.tell("Kim is baking bread.", "observation")
    await world.tell("Lee is baking bread.", "observation")
    assert (await world.ask("what is Kim baking?"))[0] == "Kim is baking bread."


async def test_a_time_in_the_question_affects_the_ranking(world: World) -> None:
    for days in (0, 1, 3, 40):
        await world.tell(f"slept badly, {days}", at=NOW - days * DAY)
    assert (await world.ask("how was sleep three days ago?"))[0] == "slept badly, 3"
    assert (await world.ask("昨天 slept 怎么样？"))[0] == "slept badly, 1"


async def test_recall_filters_restrict_the_results(world: World) -> None:
    await world.tell("noise from the street", at=NOW - 9 * DAY, data={"room": "bedroom"})
    await world.tell("noise from the neighbours", "thought", at=NOW - 5 * DAY, by="ann", data={"room": "kitchen"})
    await world.tell("noise from the fridge", at=NOW - DAY, episode="tuesday", data={"room": "kitchen"})
    assert await world.ask("noise", kinds=["thought"]) == ["noise from the neighbours"]
    assert await world.ask("noise", since=NOW - 2 * DAY) == ["noise from the fridge"]
    assert await world.ask("noise", until=NOW - 8 * DAY) == ["noise from the street"]
    assert await world.ask("noise", where={"by": "ann"}) == ["noise from the neighbours"]
    assert await world.ask("noise", where={"episode": "tuesday"}) == ["noise from the fridge"]
    assert await world.ask("noise", where={"by": "nobody"}) == []
    assert set(await world.ask("noise", where={"room": "kitchen"})) == {
        "noise from the neighbours", "noise from the fridge",
    }  # fmt: skip


async def test_as_of_returns_the_record_before_its_correction(world: World) -> None:
    old = await world.tell("Ann lives in Turin.", at=NOW - 9 * DAY)
    new = await world.record("Ann lives in Oslo.", at=NOW - 2 * DAY)
    revision = Revision(id=old.id, valid_until=NOW - 2 * DAY, superseded_by=new.id)
    entry = Entry(Remembered(count=1, kinds={}), "test", (new,))
    await world.store.commit(Commit(mind=key_of("ann"), at=NOW, entries=(entry,), revisions=(revision,)))
    assert await world.ask("where does Ann live") == ["Ann lives in Oslo."]
    assert await world.ask("where does Ann live", as_of=NOW - 5 * DAY) == ["Ann lives in Turin."]


async def test_a_record_that_becomes_valid_later_is_recalled_without_as_of(world: World) -> None:
    await world.tell("Ann moves to Oslo.", valid_from=NOW + 30 * DAY)
    assert await world.ask("where will Ann move?") == ["Ann moves to Oslo."]
    assert await world.ask("where does Ann live?", as_of=NOW) == []


async def test_archived_and_erased_records_are_not_recalled(world: World) -> None:
    faded, erased = await world.tell("a red bicycle"), await world.tell("a red kite")
    assert len(await world.ask("red")) == 2
    await world.store.commit(Commit(mind=key_of("ann"), at=NOW, revisions=(Revision(id=faded.id, forgotten=NOW - 1),)))
    await world.store.erase(key_of("ann"), [erased.id])
    assert await world.ask("red") == []


async def test_recall_reports_records_found_but_not_returned(world: World) -> None:
    for i in range(20):
        await world.tell(f"noise number {i}")
    found = await world.recaller.recall(key_of("ann"), "noise", 3, now=NOW)
    assert len(found.returned) == 3
    assert len(found.passed_over) == 9
    assert not {each.record.id for each in found.returned} & set(found.passed_over)


async def test_a_recall_without_confidences_gives_the_same_records_and_scores(tmp_path: Path) -> None:
    async with Memory(tmp_path, "ann", embed=Words("0"), clock=ManualClock(NOW)) as memory:
        for number in range(12):
            await memory.retain(f"The {'red' * (number % 2)} boat number {number} lies in the harbour.")
        whole = await memory.recall("Which red boat lies here?", 4)
        bare = await memory.recall("Which red boat lies here?", 4, confidence=False)
        assert [(each.id, each.score) for each in bare] == [(each.id, each.score) for each in whole]
        assert whole.touch and bare.touch and bare.touch.passed_over == whole.touch.passed_over
        assert whole.certainty and not bare.certainty and not any(each.confidence or each.parts for each in bare)
        assert not await memory.recall("Which red boat lies here?", 4, confidence=False, floor=0.999)


async def test_the_ranking_policy_can_be_chosen(world: World) -> None:
    await world.tell("noise in the street", at=NOW - 300 * DAY, importance=1.0)
    await world.tell("noise at work", at=NOW, importance=10.0)
    await world.tell("silence", at=NOW)
    assert (await world.ask("noise in the street"))[0] == "noise in the street"
    assert (await world.ask("noise in the street", policy=Generative()))[0] == "noise at work"
    assert (await world.ask("noise in the street", policy=Cosine()))[0] == "noise in the street"


async def test_records_are_found_by_keyword(world: World) -> None:
    await world.tell("Ann bought a cello", keywords=("Cello", "music"))
    newest = await world.tell(
        "The cello was stolen", "thought", keywords=("cello",), about=Triple("cello", "was", "stolen")
    )
    assert [r.text for r in await world.recaller.about(key_of("ann"), ["CELLO"], now=NOW)] == [
        newest.text,
        "Ann bought a cello",
    ]
    assert [r.text for r in await world.recaller.about(key_of("ann"), ["cello"], now=NOW, kinds=["thought"])] == [
        newest.text
    ]
    read = world.store.records
    world.store.records = None  # type: ignore[method-assign, assignment]
    try:  # the index holds the records: no further read
        assert len(await world.recaller.about(key_of("ann"), ["cello"], now=NOW)) == 2
        assert not await world.recaller.about(key_of("ann"), ["violin"], now=NOW)
    finally:
        world.store.records = read  # type: ignore[method-assign]


@pytest.mark.parametrize(("query", "k"), [("", 3), ("  \n", 3), ("noise", 0)])
async def test_an_invalid_query_is_refused(world: World, query: str, k: int) -> None:
    with pytest.raises(InputError):
        await world.ask(query, k)


def talk(**said: str) -> list[dict[str, str]]:
    """Return messages from speakers' words."""
    return [{"role": role, "content": content} for role, content in said.items()]


@pytest.mark.parametrize("query", ["What am I allergic to?", "what is Ann allergic to", "what I am allergic to"])
async def test_a_fact_comes_before_an_earlier_question_about_it(tmp_path: Path, query: str) -> None:
    async with Memory.open(tmp_path, "ann") as memory:
        await memory.retain_messages(talk(user="What am I allergic to?", assistant="I do not know that yet."), "first")
        fact = await memory.retain("Ann is allergic to peanuts.")
        found = await memory.recall(query, k=3)
        asked = next(hit for hit in found if hit.text == "What am I allergic to?")
        assert found[0].id == fact.id and found[0].confidence > 0.5
        assert asked.confidence < found[0].confidence


async def test_a_question_with_a_fact_of_its_own_is_found(tmp_path: Path) -> None:
    async with Memory.open(tmp_path, "ann") as memory:
        await memory.retain_messages(talk(user="My brother Leo moved to Lima in May, can I visit him?"), "s")
        await memory.retain("Ann likes trains.")
        found = await memory.recall("Where does my brother live?", k=1)
        assert found[0].text.startswith("My brother Leo")


async def test_the_words_of_the_current_message_are_no_answer_to_it(tmp_path: Path) -> None:
    async with Memory.open(tmp_path, "ann") as memory:
        said = talk(user="wheres my bike", assistant="In the cellar.") + talk(user="Wheres my bike")
        *_, current = await memory.retain_messages(said, "s")
        found = await memory.recall("Wheres my bike", k=3, asked_in=current.id)
        assert [hit.text for hit in found] == ["In the cellar."]


@pytest.mark.parametrize(
    ("fact", "question", "other"),
    [
        ("Carl lives in Bern.", "Where does Carl live?", "Which colour is the cat?"),
        ("The cat is grey.", "Which colour is the cat?", "How old is Ann?"),
        ("My dog is called Rex.", "What is my dog's name?", "Where is the bank?"),
    ],
)
async def test_the_confidence_in_the_only_record_of_a_memory(
    fact: str, question: str, other: str, tmp_path: Path
) -> None:
    async with Memory.open(tmp_path, name="ann") as memory:
        await memory.retain(fact)
        (right,) = await memory.recall(question)
        (wrong,) = await memory.recall(other)
    assert right.confidence > 0.5
    assert wrong.confidence < 0.3
