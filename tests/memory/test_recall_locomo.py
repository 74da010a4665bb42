"""Recall on a long conversation that somebody else made; see benchmarks/talks.py for the whole of it."""

from pathlib import Path

import pytest
import talks

from mindstream.models.embedders.wordllama import WordLlama

DATA = Path(__file__).parents[2] / "../shared/data/locomo/locomo3.json"


@pytest.mark.skipif(not DATA.exists(), reason="the LoCoMo sample is not beside the repository (../shared/data/locomo)")
async def test_most_of_the_evidence_is_among_the_first_ten() -> None:
    talk = talks.read(DATA)[1]
    async with talks.stream_of(talk, WordLlama(), as_it_went=True) as stream:
        found = talks.shares(await talks.ask(stream, talk))
    assert found["questions"] == 105
    assert found["recall_at"]["10"] > 0.8
    assert found["session_hit_at_1"] > 0.75
