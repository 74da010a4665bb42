"""A pool stores pairs unchanged, serves the best, and reports its limits clearly."""

from __future__ import annotations

from pathlib import Path

import pytest
from pools import CITIES, city_pair, city_pool, grades

from mindstream import InputError, ModelError
from mindstream.models.rules import FakeModel, Rules
from mindstream.sharing.admission import Pair, judge_open, lay_in, offer
from mindstream.sharing.events import ExemplarEvicted
from mindstream.sharing.exemplar import kshot_text, shots
from mindstream.sharing.growth import trim
from mindstream.sharing.learning import PoolLearner, Trainer, training_pair
from mindstream.sharing.member import Member
from mindstream.sharing.pool import Pool


async def test_exemplars_are_ordered_nearest_last_before_the_query(folder: Path) -> None:
    async with city_pool(folder, seeds=5) as pool:
        found = await pool.recall("Which river flows through Vienna?", 2, reader="ann")
        assert len(found) == 2 and found[0].answer.startswith("The Danube")
        text = kshot_text(found, "and Linz?")
        assert text.endswith("Question: and Linz?\nAnswer:") and text.index(found[1].query) < text.index(found[0].query)


async def test_recall_returns_at_most_the_requested_and_existing_pairs(folder: Path) -> None:
    async with city_pool(folder) as pool:
        assert await pool.recall("Which river?", 3, reader="ann") == []
        await lay_in(pool, [city_pair(CITIES[0])], "olga")
        assert len(await pool.recall("Which river?", 9, reader="ann")) == 1
        assert await pool.recall("Which river?", 0, reader="ann") == []
        with pytest.raises(InputError, match="0 to 64"):
            await pool.recall("Which river?", -1, reader="ann")
        with pytest.raises(InputError, match="empty"):
            await pool.recall("  ", 1, reader="ann")


async def test_exemplars_above_the_token_limit_are_left_out_as_a_whole(folder: Path) -> None:
    async with city_pool(folder) as pool:
        await lay_in(pool, [Pair("Tell me of the Nile", "The Nile is long. " * 300), city_pair(CITIES[0])], "olga")
        found = await pool.recall("Tell me of the Nile", 2, reader="ann")
        (kept,) = shots(found, tokens=100)
        assert kept.query != "Tell me of the Nile"
        assert len(await Member(pool, "ann", tokens=100).examples("Tell me of the Nile", 2)) == 1
        assert await Member(pool, "ann", tokens=3).examples("Tell me of the Nile", 2) == []


async def test_an_exemplar_is_not_admitted_twice(folder: Path) -> None:
    async with city_pool(folder) as pool:
        first = await offer(pool, city_pair(CITIES[0]), "ann", Rules())
        assert await offer(pool, city_pair(CITIES[0]), "ann", Rules()) == first
        again = await offer(pool, city_pair(CITIES[0]), "ben", Rules())
        assert again.verdict == "rejected" and again.reasons == (
            "the pool already has an exemplar with the same query and answer",
        )


async def test_chinese_exemplars_are_found(folder: Path) -> None:
    """The published code splits at spaces: every Chinese query scored 0 and got the last of the pool."""
    async with city_pool(folder, seeds=3) as pool:
        await lay_in(pool, [Pair("写一首关于秋天的五言诗", "空山新雨后，天气晚来秋。")], "olga")
        found = await pool.recall("请写一首关于秋夜的五言诗", 1, reader="ann")
        assert found[0].answer.startswith("空山")


async def test_an_offer_is_graded_later_if_the_scorer_is_unavailable(folder: Path) -> None:
    async with city_pool(folder) as pool:
        down = FakeModel({"grade_pair": [ModelError("down")]})
        with pytest.raises(ModelError):
            await offer(pool, city_pair(CITIES[0]), "ann", down)
        assert await pool.recall("Which river?", 1, reader="ann") == []
        assert [each.verdict for each in await judge_open(pool, Rules())] == ["admitted"]
        assert len(await pool.recall("Which river?", 1, reader="ann")) == 1 and await judge_open(pool, Rules()) == []


@pytest.mark.parametrize(
    "pair", [Pair("Which river?", "which river"), Pair("?!", "The Rhine."), Pair("Why?", "la " * 40)]
)
async def test_a_malformed_pair_is_rejected_without_grading(folder: Path, pair: Pair) -> None:
    async with city_pool(folder) as pool:
        judged = await offer(pool, pair, "ann", FakeModel({}))  # who is asked nothing
        assert judged.verdict == "rejected" and judged.reasons


async def test_only_members_can_write_and_read(folder: Path) -> None:
    async with city_pool(folder, seeds=1, members=("ann",)) as pool:
        with pytest.raises(InputError, match="'ben' is not a member"):
            await pool.recall("Which river?", 1, reader="ben")
        with pytest.raises(InputError, match="'ben' is not a member"):
            await offer(pool, city_pair(CITIES[2]), "ben", Rules())
        with pytest.raises(InputError, match="only the owner"):
            await lay_in(pool, [city_pair(CITIES[2])], "ann")


async def test_a_missing_pool_is_named_in_the_error(folder: Path) -> None:
    async with Pool.open(folder, "nowhere") as pool:
        with pytest.raises(InputError, match="mindstream pool create nowhere"):
            await pool.recall("x", 1, reader="ann")
    async with Pool.open(folder, "other") as pool:
        await pool.create("d", "olga")
        with pytest.raises(InputError, match="already"):
            await pool.create("d", "olga")
        with pytest.raises(InputError, match="no frozen rubric"):
            await offer(pool, city_pair(CITIES[0]), "olga", Rules())


async def test_a_pool_as_published_grades_labels_and_serves_the_examples_with_the_query(folder: Path) -> None:
    async with city_pool(folder, as_published=True) as pool:
        first = await offer(pool, city_pair(CITIES[0]), "ann", Rules())
        told = FakeModel({"grade_pair": [grades((await pool.state()).rubrics[0], 1)]})
        second = await offer(pool, Pair("And through Linz?", "The Danube.", examples=(first.id,)), "ann", told)
        state, (found, *_) = await pool.state(), await pool.recall("And through Linz?", 2, reader="ben")
        taught = training_pair(state, second.id, state.teaching())
        shown = told.asked[-1].prompt.model_dump()["query"]
    whole = "Which river flows through Paris?\nThe Seine flows through Paris.\n\nAnd through Linz?"
    assert (found.id, found.query, taught.query, shown) == (second.id, whole, whole, whole)


@pytest.mark.parametrize("fault", ["distrusted", "withdrawn", "evicted"])
async def test_a_pool_as_published_leaves_out_examples_that_are_not_served(folder: Path, fault: str) -> None:
    async with city_pool(folder, as_published=True, seeds=1) as pool:
        first = await offer(pool, city_pair(CITIES[2]), "mallory", Rules())
        second = await offer(pool, Pair("And through Linz?", "The Danube.", examples=(first.id,)), "ann", Rules())
        down = FakeModel({"grade_pair": [ModelError("down"), grades((await pool.state()).rubrics[0], 1)]})
        with pytest.raises(ModelError):
            await offer(pool, Pair("And through Ulm?", "The Danube, too.", examples=(first.id,)), "ann", down)
        if fault == "distrusted":
            await pool.trust("mallory", False, "olga")
        elif fault == "withdrawn":
            await pool.withdraw(first.id, by="olga")
        else:
            await pool.write(ExemplarEvicted(ids=(first.id,)), "olga")
        found = {each.id: each.query for each in await pool.recall("And through Linz?", 9, reader="ben")}
        await judge_open(pool, down)
        state = await pool.state()
        taught = training_pair(state, second.id, state.teaching())
        trainer = Trainer(pool.memory.embedder, 256)
        trainer.taken[second.id] = "Which river?\nThe Danube flows through Vienna.\n\nAnd through Linz?"
        assert PoolLearner(pool)._lessons(trainer).gone == [second.id]
    assert found.get(second.id) == (None if fault == "withdrawn" else "And through Linz?")
    assert (down.asked[-1].prompt.model_dump()["query"], taught.query) == ("And through Ulm?", "And through Linz?")


async def test_trimming_keeps_seeds_good_grades_and_distinct_pairs(folder: Path) -> None:
    async with city_pool(folder, seeds=1) as pool:
        like = await offer(
            pool, Pair("Which river flows through Paris town?", "The Seine flows through it."), "ann", Rules()
        )
        unlike = await offer(pool, Pair("How do I fry an egg?", "In butter, with a lid."), "ann", Rules())
        drawn = await offer(pool, Pair("How do I fry two?", "Just so, twice.", examples=(like.id,)), "ann", Rules())
        assert await trim(pool, 3, "olga") == [like.id] and await trim(pool, 3, "olga") == []
        left = {each.id for each in await pool.recall("Which river?", 9, reader="ben")}
        assert left >= {unlike.id, drawn.id} and len(left) == 3
        with pytest.raises(InputError, match="owner"):
            await trim(pool, 1, "ann")
