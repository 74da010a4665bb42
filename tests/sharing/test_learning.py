"""A pool learns from admissions, in one linear series of versions that every process uses."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from pools import city_pool

from mindstream import InputError
from mindstream.log.database import FILE
from mindstream.models.embedders.embedder import unit
from mindstream.models.rules import Rules
from mindstream.sharing.admission import Pair, lay_in, offer
from mindstream.sharing.events import RetrieverTrained
from mindstream.sharing.growth import growth_curve, size_curve
from mindstream.sharing.learning import LEAST, PoolLearner
from mindstream.sharing.pool import Pool

THINGS = ("tea", "rain", "snow", "moss", "salt", "wool", "iron", "clay", "corn", "milk")
FORMS = ("a couplet on", "a plan for", "a riddle about", "a letter to", "a pun on", "a walk near", "a toast to")


def pairs(n: int, start: int = 0) -> list[Pair]:
    """Make pairs with similar answers for similar forms."""
    made = []
    for at in range(start, start + n):
        form, thing = FORMS[at % len(FORMS)], THINGS[at // len(FORMS) % len(THINGS)]
        made.append(Pair(f"Write {form} {thing}, number {at}", f"Here is {form} {at}: {form.split()[1]} and {thing}."))
    return made


def learner(pool: Pool) -> PoolLearner:
    assert isinstance(pool.retriever, PoolLearner)
    return pool.retriever


def check_line(rows: Sequence[RetrieverTrained]) -> None:
    assert [each.number for each in rows] == list(range(1, len(rows) + 1))
    assert [each.parent for each in rows] == list(range(len(rows)))
    assert [each.after for each in rows] == [0, *(each.upto for each in rows[:-1])]


class Other:
    """An embedder with another name."""

    in_process, name, width = True, "other", 8

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = [np.random.default_rng(sum(text.encode())).standard_normal(8) for text in texts]
        return unit(np.array(rows, np.float32).reshape(len(texts), 8))


async def test_a_pool_learns_from_the_minimum_size_on(folder: Path) -> None:
    async with city_pool(folder) as pool:
        await lay_in(pool, pairs(LEAST - 1), "olga")
        await learner(pool).settle()
        assert (await pool.state()).versions == [] and pool.retriever.version == 0
        with pytest.raises(InputError, match=f"{LEAST - 1} exemplars to learn from; training needs at least {LEAST}"):
            await learner(pool).train("olga")
        await lay_in(pool, pairs(1, LEAST), "olga")
        await learner(pool).settle()
        (first,) = (await pool.state()).versions
        assert (first.number, first.parent, first.basis) == (1, 0, "stand-in") and first.learned_from > 15
        assert len(await pool.recall("Write a couplet on tea", 64, reader="ann")) == LEAST == first.upto // 2 - 1


async def test_another_process_uses_and_continues_the_same_version(folder: Path) -> None:
    async with city_pool(folder) as pool, Pool.open(folder, "cities") as other:
        await lay_in(pool, pairs(LEAST), "olga")
        await learner(pool).settle()
        asked = [f"Write {form} sand" for form in FORMS]
        mine = [[each.id for each in await pool.recall(query, 5, reader="ann")] for query in asked]
        assert mine == [[each.id for each in await other.recall(query, 5, reader="ann")] for query in asked]
        assert pool.retriever.version == other.retriever.version == 1
        await learner(pool).close()
        for each in pairs(4, LEAST):
            assert (await offer(other, each, "ben", Rules())).verdict == "admitted"
        await learner(other).settle()
        rows = (await other.state()).versions
        check_line(rows)
        assert len(rows) > 1 and rows[-1].upto == (await other.state()).admitted


async def test_withdrawn_and_private_pairs_are_not_used_for_training(folder: Path) -> None:
    async with city_pool(folder) as pool:
        laid = await lay_in(pool, pairs(LEAST + 5), "olga")
        ann = await offer(pool, Pair("Write a hymn to sand", "O sand of the shore."), "ann", Rules())
        await learner(pool).settle()
        await pool.withdraw(laid[0].id, by="olga")
        await pool.share("ann", ["ben"])
        teaching = (await pool.state()).teaching()
        assert laid[0].id not in teaching and ann.id not in teaching and len(teaching) == LEAST + 4
        await lay_in(pool, pairs(1, 200), "olga")
        await learner(pool).settle()
        trainer = learner(pool)._trainer
        assert trainer is not None
        own = trainer
        taught = {each.id for at, each in enumerate(own._corpus.pairs) if own._corpus.teaches(at)}
        assert len(taught) > LEAST and not {laid[0].id, ann.id} & taught
        assert laid[0].id not in [each.id for each in await pool.recall(laid[0].query, 64, reader="ann")]


async def test_damaged_weights_are_reported_and_trained_again(folder: Path) -> None:
    async with city_pool(folder) as pool:
        await lay_in(pool, pairs(LEAST), "olga")
        await learner(pool).settle()
    nested = b"[" * 100_000
    again = "UPDATE checkpoints SET data = ?, version = 1, sum = ?", (nested, zlib.crc32(nested, 1))
    damages = (again, ("UPDATE checkpoints SET data = substr(data, 9)", ()), ("DELETE FROM checkpoints", ()))
    for damage in damages:
        with sqlite3.connect(folder / FILE) as connection:
            connection.execute(*damage)
        connection.close()
        async with Pool.open(folder, "cities") as pool:
            assert len(await pool.recall("Write a toast to sand", 3, reader="ann")) == 3
            assert pool.retriever.version == 0 and "training starts over" in learner(pool).fault
            row = await learner(pool).train("olga")
            assert row.anew and row.number == row.parent + 1 == pool.retriever.version
            assert learner(pool).fault == ""
            check_line((await pool.state()).versions)


async def test_non_members_cannot_train_or_measure(folder: Path) -> None:
    async with city_pool(folder) as pool:
        await lay_in(pool, pairs(LEAST), "olga")
        await pool.set_members(["ann"], by="olga")
        with pytest.raises(InputError, match="'mallory' is not a member"):
            await learner(pool).train("mallory")
        for curve in (size_curve, growth_curve):
            with pytest.raises(InputError, match="'mallory' is not a member"):
                await curve(pool, "mallory")


async def test_with_another_embedder_the_pool_ranks_untrained_until_trained_explicitly(folder: Path) -> None:
    async with city_pool(folder) as pool:
        await lay_in(pool, pairs(LEAST), "olga")
        await learner(pool).settle()
    async with Pool.open(folder, "cities", embed=Other()) as pool:
        with pytest.raises(InputError, match="were made by wordllama"):
            await pool.recall("Write a toast to sand", 3, reader="ann")
        await pool.memory.reembed()
        assert len(await pool.recall("Write a toast to sand", 3, reader="ann")) == 3
        assert (
            pool.retriever.version == 0 and "embedder wordllama, but the pool is open with other" in learner(pool).fault
        )
        await lay_in(pool, pairs(1, 200), "olga")
        await learner(pool).settle()
        assert (await pool.state()).version == 1
        row = await learner(pool).train("olga")
        assert row.anew and (row.number, row.embedder) == (2, "other") and pool.retriever.version == 2
