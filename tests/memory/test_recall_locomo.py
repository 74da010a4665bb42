"""Recall on a long published conversation; benchmarks/locomo.py covers the whole data."""

import sys
from pathlib import Path

import pytest

from mindstream.memory.recall.recall import Recaller
from mindstream.memory.store.sqlite import SqliteStore
from mindstream.models.embedders.embedder import WordLlama

ROOT = Path(__file__).parents[2]
DATA = ROOT / "../shared/data/locomo/locomo3.json"
sys.path.insert(0, str(ROOT / "benchmarks"))

import locomo  # noqa: E402
from locomo_data import conversations  # noqa: E402


@pytest.mark.skipif(not DATA.exists(), reason="the LoCoMo sample is not available")
async def test_most_of_the_evidence_is_among_the_first_ten(tmp_path: Path) -> None:
    conversation, store, embedder = conversations(DATA)[1], SqliteStore(tmp_path), WordLlama()
    await locomo.remember(store, conversation, embedder)
    found = locomo.shares(await locomo.ask(Recaller(store, embedder), conversation))
    await store.close()
    assert found["questions"] == 105
    assert found["recall_at"]["10"] > 0.8
    assert found["session_hit_at_1"] > 0.75
