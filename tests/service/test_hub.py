"""Event streams: a client's resume position never passes a row that it was not sent."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from mindstream import ManualClock, Memory, chance
from mindstream.clock import SystemClock
from mindstream.errors import StorageError
from mindstream.log.events import Logged
from mindstream.memory.store.sqlite import SqliteStore
from mindstream.server.events import follow
from mindstream.service.operations import hub as hubs
from mindstream.service.operations.hub import Hub

IDS = re.compile(rb"^id: (\d+)$", re.M)


def everything(_: Logged) -> bool:
    return True


async def write(data: Path | SqliteStore, n: int) -> int:
    """Write rows as another process does; return the seq of the last one."""
    async with Memory.open(data, "ann") as memory:
        for number in range(n):
            await memory.retain(f"row {number} of {n}, {chance.token()}")
        return [row.seq async for row in memory.log()][-1]


async def handed_on(hub: Hub, seq: int) -> None:
    """Wait until the hub has queued the rows up to a seq for all listeners."""
    client = Client(hub, seq - 1)
    async with aclosing(client.chunks):
        while client.last < seq:
            await client.read()


class Client:
    """Reads a stream of events chunk by chunk and records its resume position."""

    def __init__(self, hub: Hub, after: int | None) -> None:
        self.chunks: AsyncGenerator[bytes] = follow(hub, everything, after)
        self.last, self.seqs, self.ended = 0, list[int](), ""

    async def read(self) -> bool:
        """Read one chunk; return whether there was one."""
        chunk = await anext(self.chunks, None)
        if chunk is None:
            return False
        for event in chunk.decode().split("\n\n"):
            if event.startswith("event: cut") or event.startswith("event: end"):
                self.ended = event.split("\n")[0][7:]
            elif "data: " in event:
                self.seqs += [int(found) for found in re.findall(r"^id: (\d+)$", event, re.M)]
            self.last = int(([str(self.last), *re.findall(r"^id: (\d+)$", event, re.M)])[-1])
        return True

    async def read_to_the_end(self) -> None:
        while await self.read():
            pass


async def all_seqs(store: SqliteStore, after: int = 0) -> list[int]:
    return [row.seq for row in await store.events(None, after, limit=10_000)]


@pytest.mark.parametrize("ending", ["full queue", "server closes"])
async def test_queued_rows_are_sent_before_the_stream_ends(
    tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hubs, "ROOM", 10 if ending == "full queue" else 2_000)
    await write(tmp_path, 1)
    async with SqliteStore(tmp_path) as store:
        hub = Hub(store, ManualClock())
        client = Client(hub, 0)
        async with aclosing(client.chunks):
            await client.read()  # the client is connected but does not read for a while
            await client.read()
            begun = client.last
            last = await write(store, 30)
            await handed_on(hub, last)
            if ending == "server closes":
                await hub.close()
            await client.read_to_the_end()
        assert client.ended == ("cut" if ending == "full queue" else "end")
        wanted = await all_seqs(store)
        assert client.seqs == [seq for seq in wanted if seq <= client.last], "all rows up to the resume position came"
        assert client.last > begun
        if ending == "server closes":
            assert client.last == last
        await hub.close()


async def test_a_keep_alive_does_not_pass_over_queued_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The position in a keep-alive is that of the last sent row, also if rows are queued while it is written."""
    await write(tmp_path, 1)
    async with SqliteStore(tmp_path) as store:
        hub = Hub(store, ManualClock())
        late = asyncio.Event()
        looks = 0

        async def left_s() -> float:
            nonlocal looks
            looks += 1
            if looks == 2:  # between the end of the wait and the keep-alive, other processes write
                await handed_on(hub, await write(store, 3))
                late.set()
            return 0.01 if looks == 1 else 100.0

        chunks = follow(hub, everything, None, left_s=left_s)
        async with aclosing(chunks):
            await anext(chunks)
            ping = await anext(chunks)
            assert late.is_set() and ping.startswith(b": ping")
            resumed = int(IDS.findall(ping)[-1])
            rows = await anext(chunks)
        assert [int(found) for found in IDS.findall(rows)] == await all_seqs(store, resumed)
        await hub.close()


async def test_own_commits_are_delivered_without_reading_the_log(tmp_path: Path) -> None:
    """Rows that this process commits are delivered in order; the log is read only for those of other processes."""
    reads = 0

    class Counting(SqliteStore):
        async def events(self, *given: Any, **named: Any) -> list[Logged]:
            nonlocal reads
            reads += 1
            return await super().events(*given, **named)

    await write(tmp_path, 1)
    async with Counting(tmp_path) as store, Memory.open(store, "ann") as memory:
        hub = Hub(store, ManualClock())
        first, second = Client(hub, None), Client(hub, None)
        async with aclosing(first.chunks), aclosing(second.chunks):
            await first.read()
            await second.read()
            begun = first.last
            await memory.retain("the first of them")  # after this one the hub has looked at the log once
            while first.last == begun:
                await first.read()
            before = reads
            for number in range(20):
                await memory.retain(f"own row {number}")
            last = await store.last_seq()
            while first.last < last or second.last < last:
                await (first if first.last < last else second).read()
            assert reads == before
            newest = await write(tmp_path, 3)  # another process
            await memory.retain("after those of another process")
            while first.last <= newest or second.last < first.last:
                await (first if first.last <= newest else second).read()
            assert first.seqs == second.seqs == await all_seqs(store, begun), "each row once, in order"
        await hub.close()


async def test_rows_that_another_server_sent_are_not_sent_again(tmp_path: Path) -> None:
    await write(tmp_path, 1)
    async with SqliteStore(tmp_path) as store:
        hub = Hub(store, ManualClock())
        lagging = Client(hub, None)
        async with aclosing(lagging.chunks):
            await lagging.read()
            last = await write(tmp_path, 5)  # this hub has not looked yet; another one has sent all of it
            resumed = Client(hub, last)
            async with aclosing(resumed.chunks):
                await resumed.read()
                assert resumed.last == last
                newest = await write(store, 1)
                while resumed.last < newest:
                    await resumed.read()
                assert resumed.seqs == await all_seqs(store, last)
            beyond = Client(hub, last + 10**6)  # the id of another log
            async with aclosing(beyond.chunks):
                await beyond.read()
                await write(store, 1)
                await beyond.read()
                assert beyond.seqs
        await hub.close()


async def test_failed_reads_of_rows_are_retried_without_another_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await write(tmp_path, 1)
    async with SqliteStore(tmp_path) as store:
        events, version, broken = store.events, store.version, False
        looked = asyncio.Event()

        async def read_events(*args: object, **more: object) -> list[Logged]:
            nonlocal broken
            if looked.is_set() and not broken:
                broken = True
                raise StorageError("the disk does not answer")
            return await events(*args, **more)  # type: ignore[arg-type]

        async def look() -> int:
            looked.set()
            return await version()

        monkeypatch.setattr(store, "events", read_events)
        monkeypatch.setattr(store, "version", look)
        hub = Hub(store, SystemClock())
        client = Client(hub, None)
        async with aclosing(client.chunks):
            await client.read()
            await looked.wait()
            last = await write(tmp_path, 1)
            while client.last < last:
                await client.read()
        assert client.seqs and broken
        await hub.close()
