"""The second stage of recall: a model or a cross-encoder orders the hits."""

from __future__ import annotations

import importlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from fake_endpoint import Fails, FakeEndpoint, Says

from mindstream.clock import DAY_S, ManualClock
from mindstream.errors import SettingsError
from mindstream.log.events import RecallMade
from mindstream.memory.memory import Memory
from mindstream.memory.recall.rerank import second_stage
from mindstream.models.roles import Models

FACTS = (
    "Ann's sister bakes bread on Fridays.",
    "Bread is what Ann buys at the market.",
    "The bread knife lies in the drawer.",
    "Ann's brother repairs clocks.",
    "Otto eats bread with butter.",
)
QUESTION = "Who bakes bread?"
CROSS = """
class CrossEncoder:
    def __init__(self, name):
        if name == "none/here":
            raise OSError("no such model")
    def predict(self, pairs):
        return [len(set(question.lower().split()) & set(text.lower().split())) for question, text in pairs]
"""


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def memory(folder: Path, clock: ManualClock) -> AsyncIterator[Memory]:
    async with Memory.open(folder, "ann", clock=clock, seed=1, policy="decay") as opened:
        for fact in FACTS:
            await opened.retain(fact, "note")
        yield opened


async def test_a_model_reranks_the_first_stage_in_one_call(door: FakeEndpoint, memory: Memory) -> None:
    first = [each.record.text for each in await memory.recall(QUESTION, 4, touch=False)]
    door.will(Says('{"best": [4, 2, 9]}'))
    async with Models.named({"default": f"{door.url}#m"}) as models:
        memory.second = second_stage("model", 20, models)
        found = await memory.recall(QUESTION, 2, touch=False)
    texts = [each.record.text for each in found]
    assert len(door.chats) == 1, "one call, however many memories"
    shown = door.chats[0].body["messages"][-1]["content"]
    assert f"<looked_for>\n{QUESTION}\n</looked_for>" in shown and "<memories>\n1. 2023-11-14" in shown
    assert texts == [first[3], first[1]] and [each.parts["first_stage"] for each in found] == [4, 2]
    assert found.touch is not None and set(found.touch.returned).isdisjoint(found.touch.passed_over)
    assert len(found.touch.returned) + len(found.touch.passed_over) == len(FACTS), "the others count as not returned"


async def test_records_omitted_by_the_model_keep_the_first_order(door: FakeEndpoint, memory: Memory) -> None:
    first = [each.record.text for each in await memory.recall(QUESTION, 4, touch=False)]
    door.will(Says('{"best": [3, 3]}'))
    async with Models.named({"default": f"{door.url}#m"}) as models:
        memory.second = second_stage("model", 20, models)
        found = await memory.recall(QUESTION, 3, touch=False)
    assert [each.record.text for each in found] == [first[2], first[0], first[1]]


async def test_a_failing_reranker_keeps_the_order_and_is_reported(door: FakeEndpoint, memory: Memory) -> None:
    plain = await memory.recall(QUESTION, 3, touch=False)
    door.otherwise = Fails(400, "no such thing")
    async with Models.named({"default": f"{door.url}#m"}, retry=1, repair=0) as models:
        memory.second = second_stage("model", 20, models)
        found = await memory.recall(QUESTION, 3, touch=False)
    assert list(found) == list(plain) and "no such thing" in found.not_reranked


async def test_a_cross_encoder_is_loaded_by_name(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sentence_transformers.py").write_text(CROSS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "sentence_transformers", raising=False)
    importlib.invalidate_caches()
    memory.second = second_stage("cross:some/encoder", 20, None)
    best = (await memory.recall("the bread knife lies where", 1, touch=False))[0]
    assert best.record.text == "The bread knife lies in the drawer." and "first_stage" in best.parts
    memory.second = second_stage("cross:none/here", 20, None)
    assert "no such model" in (await memory.recall(QUESTION, 1, touch=False)).not_reranked
    monkeypatch.delitem(sys.modules, "sentence_transformers")


def test_invalid_reranker_settings_are_refused() -> None:
    assert second_stage("", 20, None) is None and second_stage("none", 20, None) is None
    with pytest.raises(SettingsError, match="cross:NAME"):
        second_stage("best", 20, None)
    with pytest.raises(SettingsError, match="--model"):
        second_stage("model", 20, Models.named({}))


async def test_the_recall_event_reports_archived_records(memory: Memory, clock: ManualClock) -> None:
    clock.advance(31 * DAY_S)
    found = await memory.recall(QUESTION, 1)  # one of the four that are found
    await memory.settle()
    row = await memory.store.last(memory.key, "recalled")
    assert row is not None and isinstance(row.event, RecallMade) and found.touch is not None
    assert row.event.returned == tuple(found.touch.returned) and len(row.event.forgotten) == 3
    assert row.event.forgotten == row.event.passed_over
    left = [each.record.text for each in await memory.recall("bread, clocks, Ann and Otto", touch=False)]
    assert len(left) == 2 and found[0].record.text in left, "not recalled"
    assert len(await memory.archive()) == 3, "but in the archive until it is purged"
