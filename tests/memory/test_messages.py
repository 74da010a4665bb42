"""Messages of a conversation: stored as they are, and their facts as notes if a model extracts them; hits and lists."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import confidence
import pytest

from mindstream import FakeModel, Memory
from mindstream.errors import InputError, ModelError, SettingsError
from mindstream.memory.facts import AT_ONCE, Fact, Facts
from mindstream.memory.store.record import RecordDraft
from mindstream.models.embedders.embedder import embedder

TALK = [
    {"role": "user", "content": "I live in Lyon.", "created": "2026-03-01T10:00+01:00"},
    {"role": "assistant", "content": "Do you like it?"},
    {"role": "user", "content": "Yes. I moved there from Paris."},
]
LYON = Fact(text="The user lives in Lyon.", predicate="home", rests_on="I live in Lyon")


async def test_facts_are_extracted_and_replace_what_they_make_untrue(folder: Path) -> None:
    moved = Fact(text="The user lives in Ghent.", rests_on="I live in Ghent", replaces=[1])
    model = FakeModel({"extract_facts": [Facts(facts=[LYON]), Facts(facts=[moved])]})
    async with Memory.open(folder, "ann", model=model) as memory:
        first, *_, note = await memory.retain_messages(TALK, "monday", extract=True)
        assert note.text == "The user lives in Lyon." and note.kind == "note" and first.id in note.evidence
        assert first.created == datetime(2026, 3, 1, 9, tzinfo=UTC).timestamp()
        assert "Do you like it?" in model.asked[0].messages[-1].text
        await memory.retain_messages([{"role": "user", "content": "Now I live in Ghent."}], "tuesday", extract=True)
        assert [each.text for each in await memory.list(kinds=["note"])] == ["The user lives in Ghent."]
        assert [each.text for each in await memory.list(1, session="tuesday")] == ["Now I live in Ghent."]


async def test_a_long_conversation_is_extracted_in_parts(folder: Path) -> None:
    model = FakeModel({"extract_facts": [Facts(), Facts(facts=[LYON])]})
    talk = [{"role": "user", "content": f"I say {number}."} for number in range(AT_ONCE)]
    async with Memory.open(folder, "ann", model=model) as memory:
        written = await memory.retain_messages([*talk, TALK[0]], extract=True)
        assert len(written) == AT_ONCE + 2 and written[-1].evidence == (written[-2].id,)


async def test_without_a_model_nothing_is_written(folder: Path) -> None:
    async with Memory.open(folder, "ann") as memory:
        with pytest.raises(SettingsError, match="needs a model"):
            await memory.retain_messages(TALK, extract=True)
        assert await memory.list() == []


async def test_messages_are_kept_if_the_model_fails(folder: Path) -> None:
    async with Memory.open(folder, "ann", model=FakeModel({})) as memory:
        with pytest.raises(ModelError):
            await memory.retain_messages(TALK, extract=True)
        assert len(await memory.list()) == len(TALK)


async def test_a_hit_says_what_a_reader_wants_to_know(folder: Path) -> None:
    async with Memory.open(folder, "ann") as memory:
        note = await memory.retain("Anna is allergic to peanuts.", created=datetime(2026, 3, 1, tzinfo=UTC))
        await memory.retain("Anna likes films.", created="2026-03-02")
        (hit,) = await memory.recall("what is Anna allergic to?", limit=1)
        assert (hit.id, hit.text, note.kind) == (note.id, "Anna is allergic to peanuts.", "note")
        assert hit.created == datetime(2026, 3, 1, tzinfo=UTC) and 0.5 < hit.confidence <= 1 < hit.score
        best, other = await memory.recall("what is Anna allergic to?", since="2026-03-01", until="2026-03-02")
        assert best.confidence > 0.5 > other.confidence
        with pytest.raises(InputError, match="from 1 to"):
            await memory.recall("what?", limit=0)


@pytest.mark.parametrize("name", ["small", "person"])
async def test_confidence_in_small_memories_is_calibrated(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(confidence, "SEEDS", 2)
    hits = await confidence.ask_small(embedder("wordllama"), held_out=True, name=name)
    measured = confidence.summary({"small": hits})
    assert measured["share_small_above_.3"] >= (0.9 if name == "small" else 0.75)
    assert measured["ece"]["small"] <= (0.08 if name == "small" else 0.15)
    assert measured["unanswered_above_.3"]["small"]["certainty_near_0"] == 0
    assert measured["unanswered_above_.3"]["small"]["share"] <= 0.25


FACTS = ["Ann works as a teacher.", "Ann is allergic to peanuts.", "The spare key hangs behind the door."]


async def test_an_unrelated_question_gets_no_confidence(folder: Path) -> None:
    async with Memory.open(folder, "ann") as memory:
        await memory.retain_all([RecordDraft(text=text) for text in FACTS])
        found = await memory.recall("What is the capital of Mongolia?")
        assert found.low_confidence and found.certainty < 0.01 and max(hit.confidence for hit in found) < 0.3
        assert (await memory.recall("Where is the spare key?"))[0].confidence > 0.9


async def test_a_correction_keeps_the_confidence_in_its_successor(folder: Path) -> None:
    question, confidences = "What does Ann do for a living?", []
    for user, first in (("stated", FACTS[0]), ("corrected", "Ann works as a nurse.")):
        async with Memory.open(folder, user) as memory:
            note = await memory.retain(first)
            await memory.retain_all([RecordDraft(text=text) for text in (*FACTS[1:], "Ann plays the oboe.")])
            if first != FACTS[0]:
                await memory.correct(note.id, FACTS[0])
            best = (await memory.recall(question))[0]
            assert best.text == FACTS[0]
            confidences.append(best.confidence)
    stated, corrected = confidences
    assert stated > 0.5 and corrected == pytest.approx(stated, abs=0.05)


async def test_the_current_wording_is_the_last_of_the_history(folder: Path) -> None:
    async with Memory.open(folder, "ann") as memory:
        lyon, paris = "Ann lives in Lyon.", "Ann lives in Paris."
        for _ in range(2):  # a program that is started twice
            note = await memory.retain(lyon)
            await memory.correct(note.id, paris)
        history = await memory.history(note.id)
        assert [each.text for each in await memory.list()] == [paris]
        assert history[-1].text == paris and not history[-1].superseded_by and history[0].text == lyon


PICTURE = {"type": "image_url", "image_url": {"url": "data:"}}


@pytest.mark.parametrize(
    ("message", "texts"),
    [
        ({"role": "user", "content": [{"type": "text", "text": "Look:"}, PICTURE, {"text": "Rex."}]}, ["Look:\nRex."]),
        ({"role": "assistant", "content": [{"type": "output_text", "text": "A dog."}]}, ["A dog."]),
        ({"role": "user", "content": ["One.", "Two."]}, ["One.\nTwo."]),
        ({"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}, []),
        ({"role": "assistant", "tool_calls": [{"id": "1"}]}, []),
        ({"role": "assistant", "content": ""}, []),
        ({"role": "user", "content": [PICTURE]}, []),
    ],
)  # fmt: skip
async def test_messages_of_chat_apis_are_written_as_far_as_they_have_text(
    tmp_path: Path, message: dict[str, Any], texts: list[str]
) -> None:
    async with Memory(tmp_path, "ann", model=FakeModel([])) as memory:
        records = await memory.retain_messages([message, {"role": "user", "content": "Good."}], "s")
        assert [record.text for record in records] == [*texts, "Good."]
        assert texts or await memory.retain_messages([message], extract=True) == []


@pytest.mark.parametrize("message", [{"content": "x"}, {"role": "user"}, {"role": "user", "content": 5}, "hi", None])
async def test_what_is_no_message_is_refused(tmp_path: Path, message: Any) -> None:
    async with Memory(tmp_path, "ann") as memory:
        with pytest.raises(InputError, match="a message needs the form"):
            await memory.retain_messages([{"role": "user", "content": "Good."}, message])
        assert await memory.list() == []
