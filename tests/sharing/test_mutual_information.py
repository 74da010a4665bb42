"""A small model in the process tells an answer to a question from an answer to another."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from pools import city_pool

from mindstream.errors import ModelRefused
from mindstream.models.providers.address import Address, address, local_file
from mindstream.models.rules import Rules
from mindstream.sharing.admission import Pair, lay_in, offer
from mindstream.sharing.guarding import MutualInformation, mutual_information

needs_model = pytest.mark.skipif(
    local_file() is None or find_spec("xllamacpp") is None,
    reason="the model `local` is not installed: mindstream model get",
)
LAID_IN = (
    ("What swims in ponds and quacks?", "A duck."), ("What do bees make?", "Honey."), ("What melts?", "Snow."),
    ("Where do we buy bread?", "At the bakery."), ("What do we read?", "A book."), ("What barks at night?", "A dog."),
    ("What do we drink in the morning?", "Coffee."), ("What do we write with?", "A pencil."),
    ("Where do ships rest?", "In a harbour."), ("What grows on apple trees?", "Apples."),
    ("What do cows give?", "Milk."), ("What shines at night?", "The moon."),
)  # fmt: skip


@pytest.mark.slow
@needs_model
async def test_mutual_information_is_high_only_for_the_own_question() -> None:
    measure = MutualInformation(address("local"))
    own = await measure.measure("What do hens lay?", "Eggs.", LAID_IN)
    foreign = await measure.measure("What do hens lay?", "At the station.", LAID_IN)
    assert own is not None and foreign is not None and own > foreign + 1 and own > 0.75


@pytest.mark.slow
@needs_model
async def test_rules_judge_text_that_the_tokenizer_splits_inside_characters(folder: Path) -> None:
    async with city_pool(folder) as pool:
        pool.measure_by = MutualInformation(address("local"))
        await lay_in(pool, [Pair(*each) for each in LAID_IN], "olga")
        read = await offer(pool, Pair("What do hens lay?", "Eggs."), "ann", Rules())
        unread = await offer(pool, Pair("今上岳阳楼，写一首五言律诗。", "昔闻洞庭水，今上岳阳楼。"), "ann", Rules())
    assert read.fit_by == "rules and the log-probabilities of local" and unread.fit_by == "rules"


def test_mutual_information_needs_a_model_in_this_process() -> None:
    assert mutual_information("rules") is None and mutual_information("http://127.0.0.1:1/v1#some") is None
    with pytest.raises(ModelRefused, match="reports no log-probabilities"):
        MutualInformation(Address("openai:some", "openai", "some", None, ""))
