"""A pool learns from what is admitted: in one line of versions, which every process ranks by."""

from __future__ import annotations

import asyncio
import sqlite3
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
from mindstream.sharing.learning import LEAST, PoolLearner
from mindstream.sharing.pool import Pool
from mindstream.sharing.ranking import Retriever

THINGS = ("tea", "rain", "snow", "moss", "salt", "wool", "iron", "clay", "corn", "milk")
FORMS = ("a couplet on", "a plan for", "a riddle about", "a letter to", "a pun on", "a walk near", "a toast to")


def pairs(n: int, start: int = 0) -> list[Pair]:
    """Make pairs whose answers are alike where their forms are."""
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
    """An embedder of another name."""

    in_process, name, width = True, "other", 8

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = [np.random.default_rng(sum(text.encode())).standard_normal(8) for text in texts]
        return unit(np.array(rows, np.float32).reshape(len(texts), 8))


async def test_a_pool_of_sixty_learns_and_a_smaller_one_does_not(folder: Path) -> None:
    async with city_pool(folder) as pool:
        await lay_in(pool, pairs(LEAST - 1), "olga")
        await learner(pool).settle()
        assert (await pool.state()).versions == [] and pool.retriever.version == 0
        with pytest.raises(InputError, match="59 exemplars to learn from, and 60"):
            await learner(pool).train()
        await lay_in(pool, pairs(1, LEAST), "olga")
        await learner(pool).settle()
        (first,) = (await pool.state()).versions
        assert (first.number, first.parent, first.basis) == (1, 0, "stand-in") and first.learned_from > 40
        assert len(await pool.recall("Write a couplet on tea", 64, reader="ann")) == LEAST == first.upto // 2 - 1


async def test_another_process_ranks_by_the_same_version_and_goes_on_from_it(folder: Path) -> None:
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


async def test_of_two_that_learn_at_once_one_writes_and_the_other_learns_again(folder: Path) -> None:
    async with city_pool(folder) as pool, Pool.open(folder, "cities", retriever=Retriever()) as writer:
        await lay_in(writer, pairs(LEAST), "olga")
        async with Pool.open(folder, "cities") as other:
            both = await asyncio.gather(learner(pool).train(), learner(other).train())
        assert sorted(each.number for each in both) == [1, 2]
        check_line((await pool.state()).versions)


async def test_recall_goes_on_while_it_learns(folder: Path) -> None:
    async with city_pool(folder) as pool:
        await lay_in(pool, pairs(2 * LEAST), "olga")
        task = asyncio.create_task(learner(pool).train())
        between = 0
        while not task.done():
            await pool.recall("Write a toast to sand", 3, reader="ann")
            between += 1
            await asyncio.sleep(0.001)
        assert between > 5 and (await task).number == pool.retriever.version


async def test_what_is_broken_off_leaves_the_last_version_or_a_better_one(folder: Path) -> None:
    async with city_pool(folder) as pool:
        await lay_in(pool, pairs(2 * LEAST), "olga")
        await learner(pool).settle()
        before = (await pool.state()).version
        told = asyncio.Event()
        loop = asyncio.get_running_loop()
        task = asyncio.create_task(learner(pool).train(lambda _: _set(loop, told)))
        await told.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        check_line((await pool.state()).versions)
        assert (await pool.state()).version - before in (0, 1)
        assert len(await pool.recall("Write a toast to sand", 3, reader="ann")) == 3


def _set(loop: asyncio.AbstractEventLoop, told: asyncio.Event) -> None:
    loop.call_soon_threadsafe(told.set)


async def test_what_is_withdrawn_or_kept_private_teaches_no_more(folder: Path) -> None:
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
        own = trainer._own
        taught = {each.id for at, each in enumerate(own._corpus.pairs) if own._corpus.teaches(at)}
        assert len(taught) > 40 and not {laid[0].id, ann.id} & taught
        assert laid[0].id not in [each.id for each in await pool.recall(laid[0].query, 64, reader="ann")]


async def test_damaged_weights_are_said_and_learned_anew(folder: Path) -> None:
    async with city_pool(folder) as pool:
        await lay_in(pool, pairs(LEAST), "olga")
        await learner(pool).settle()
    for damage in ("UPDATE checkpoints SET data = substr(data, 9)", "DELETE FROM checkpoints"):
        with sqlite3.connect(folder / FILE) as connection:
            connection.execute(damage)
        connection.close()
        async with Pool.open(folder, "cities") as pool:
            assert len(await pool.recall("Write a toast to sand", 3, reader="ann")) == 3
            assert pool.retriever.version == 0 and "lost or damaged" in learner(pool).fault
            row = await learner(pool).train()
            assert row.anew and row.number == row.parent + 1 == pool.retriever.version
            assert learner(pool).fault == ""
            check_line((await pool.state()).versions)


async def test_a_damaged_row_of_the_log_is_passed_over(folder: Path) -> None:
    async with city_pool(folder) as pool:
        await lay_in(pool, pairs(LEAST), "olga")
        await learner(pool).settle()
        await learner(pool).train()
    with sqlite3.connect(folder / FILE) as connection:
        connection.execute("UPDATE log SET payload = '{' WHERE kind = 'retriever_trained' AND payload LIKE '%:2,%'")
    connection.close()
    async with Pool.open(folder, "cities") as pool:
        await pool.recall("Write a toast to sand", 3, reader="ann")
        row = await learner(pool).train()
        assert (row.number, row.parent, pool.retriever.version) == (3, 2, 3)


async def test_another_embedder_ranks_untrained_and_learns_only_when_told_to(folder: Path) -> None:
    async with city_pool(folder) as pool:
        await lay_in(pool, pairs(LEAST), "olga")
        await learner(pool).settle()
    async with Pool.open(folder, "cities", embed=Other()) as pool:
        assert len(await pool.recall("Write a toast to sand", 3, reader="ann")) == 3
        assert pool.retriever.version == 0 and "embedder wordllama, and this is other" in learner(pool).fault
        await lay_in(pool, pairs(1, 200), "olga")
        await learner(pool).settle()
        assert (await pool.state()).version == 1
        row = await learner(pool).train()
        assert row.anew and (row.number, row.embedder) == (2, "other") and pool.retriever.version == 2


async def test_what_fails_while_it_learns_is_logged_and_the_pair_stands(folder: Path) -> None:
    class Broken:
        basis = "stated"

        async def p_not(self, *_: object) -> NDArray[np.float64]:
            raise RuntimeError("out of order")

    async with city_pool(folder) as pool:
        pool.retriever = PoolLearner(pool, Broken())  # type: ignore[arg-type]
        await lay_in(pool, pairs(LEAST), "olga")
        await learner(pool).settle()
        failed = await pool.stream.store.last(pool.stream.name, "error")
        assert failed and "out of order" in failed.event.text  # type: ignore[attr-defined]
        assert len(await pool.recall("Write a toast to sand", 3, reader="ann")) == 3
        await pool.close()
