"""Read rights are checked at each read: in every process, immediately, and for derived pairs too."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pools import CITIES, city_pair, city_pool

from mindstream import InputError
from mindstream.memory.store.record import is_tainted
from mindstream.models.rules import Rules
from mindstream.sharing.admission import Pair, offer
from mindstream.sharing.events import EVERYONE
from mindstream.sharing.pool import Pool

ANOTHER = Path(__file__).with_name("pool_process.py")
QUERY = "Which river flows through it?"


class Process:
    """Another process on the pool."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(ANOTHER), str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def begin(self, **wish: Any) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(wish) + "\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        assert self.process.stdout
        return json.loads(self.process.stdout.readline())

    def wait_ready(self) -> None:
        assert self.process.stdout and self.process.stdout.readline() == "ready\n"

    def close(self) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        assert self.process.wait(30) == 0
        self.process.stdout.close()


async def write(pool: Pool, writer: str, at: int, *examples: str, asked_by: str = "") -> str:
    given = city_pair(CITIES[at])
    pair = Pair(given.query, given.answer, asked_by=asked_by, examples=examples)
    judged = await offer(pool, pair, writer, Rules())
    assert judged.verdict == "admitted", judged
    return judged.id


def bytes_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir() if path.is_file())


async def ids(pool: Pool, reader: str) -> set[str]:
    return {each.id for each in await pool.recall(QUERY, 64, reader=reader)}


async def test_pairs_are_private_shared_by_name_or_public(folder: Path) -> None:
    async with city_pool(folder, shared=False) as pool:
        own = await write(pool, "ann", 0)
        assert await ids(pool, "ann") == {own} and await ids(pool, "ben") == set() == await ids(pool, "olga")
        await pool.share("ann", ["ben"])
        assert await ids(pool, "ben") == {own} and await ids(pool, "cy") == set()
        await pool.share("ann", [EVERYONE])
        assert await ids(pool, "cy") == {own}


async def test_revoking_a_grant_hides_derived_pairs_too(folder: Path) -> None:
    async with city_pool(folder) as pool:
        root = await write(pool, "ann", 0)
        child = await write(pool, "ben", 1, root)
        grandchild = await write(pool, "cy", 2, child)
        apart = await write(pool, "cy", 3)
        assert await ids(pool, "dan") == {root, child, grandchild, apart}
        await pool.share("ann", ["ben"])
        assert await ids(pool, "dan") == {apart} == await ids(pool, "cy")
        assert await ids(pool, "ben") == {root, child, grandchild, apart}
        await pool.share("ann", [EVERYONE])
        assert await ids(pool, "dan") == {root, child, grandchild, apart}


async def test_revocation_and_withdrawal_take_effect_in_every_process(folder: Path) -> None:
    async with city_pool(folder) as pool:
        root = await write(pool, "ann", 0)
        child = await write(pool, "ben", 1, root)
        apart = await write(pool, "cy", 2)
        others = [Process(folder) for _ in range(2)]
        for each in others:
            each.wait_ready()

        def seen(reader: str) -> list[set[str]]:
            for each in others:
                each.begin(query=QUERY, reader=reader)
            return [set(each.answer()) for each in others]

        assert seen("dan") == [{root, child, apart}] * 2
        await pool.share("ann", [])
        assert seen("dan") == [{apart}] * 2
        await pool.share("ann", [EVERYONE])
        assert seen("dan") == [{root, child, apart}] * 2
        assert set(await pool.withdraw(writer="ann", by="olga", because="planted")) == {root}
        assert seen("dan") == [{apart}] * 2 == seen("ann") and await ids(pool, "ann") == {apart}
        for each in others:
            each.close()


async def test_equal_concurrent_offers_get_one_verdict(folder: Path) -> None:
    async with city_pool(folder) as pool, Pool.open(folder, "cities") as other:
        both = await asyncio.gather(
            offer(pool, city_pair(CITIES[0]), "ann", Rules()), offer(other, city_pair(CITIES[0]), "ann", Rules())
        )
        assert both[0] == both[1] and both[0].verdict == "admitted"
        assert len(await pool.recall(QUERY, 9, reader="ben")) == 1


async def test_a_writer_can_withdraw_only_its_own_pairs(folder: Path) -> None:
    async with city_pool(folder) as pool:
        own, other = await write(pool, "ann", 0), await write(pool, "ben", 1)
        with pytest.raises(InputError, match="'ann' may withdraw only exemplars by 'ann'"):
            await pool.withdraw(other, by="ann")
        assert await pool.withdraw(own, by="ann") == [own]
        assert await ids(pool, "ann") == {other}
        with pytest.raises(InputError, match="no exemplar 'x'"):
            await pool.withdraw("x", by="olga")
        with pytest.raises(InputError, match="has no exemplar by 'zed'"):
            await pool.withdraw(writer="zed", by="olga")


async def test_erased_pairs_are_in_no_file(folder: Path) -> None:
    async with city_pool(folder) as pool:
        judged = await offer(pool, Pair("Who owns the xylophone?", "Zaphod owns the marimba."), "ann", Rules())
        await write(pool, "ben", 1, judged.id)
        await pool.withdraw(writer="ann", by="ann", erase=True)
        await pool.memory.store.compact()
        assert await ids(pool, "ben") == set()
    written = bytes_of(folder)
    assert b"xylophone" not in written and b"Zaphod" not in written


async def test_derived_pairs_inherit_the_taint(folder: Path) -> None:
    async with city_pool(folder) as pool:
        asked = await write(pool, "ann", 0, asked_by="a guest")
        await pool.trust("asked by a guest", True, by="olga")
        drawn, clean = await write(pool, "ben", 1, asked), await write(pool, "ben", 2)
        records = await pool.memory.store.records(pool.memory.key, [asked, drawn, clean])
        assert list(map(is_tainted, records)) == [True, True, False]


async def test_only_the_owner_changes_members(folder: Path) -> None:
    async with city_pool(folder) as pool:
        await write(pool, "ann", 0)
        with pytest.raises(InputError, match="only the owner"):
            await pool.set_members(["ann"], by="ann")
        await pool.set_members(["ann"], by="olga")
        with pytest.raises(InputError, match="not a member"):
            await pool.recall(QUERY, reader="ben")
