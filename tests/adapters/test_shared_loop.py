"""A memory on the adapters' loop is shared by threads and event loops, and reopens after closing."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from foreign_programs import run_python

from mindstream import Memory, Record, SqliteStore
from mindstream.adapters import loop
from mindstream.adapters.loop import Handle, wait
from mindstream.errors import InputError


def note(text: str) -> Callable[[Memory], Coroutine[Any, Any, Record]]:
    return lambda memory: memory.retain(text, "note")


def texts(handle: Handle) -> list[str]:
    return sorted(each.text for each in handle.wait(lambda memory: memory.latest("note", 100)))


def test_threads_and_event_loops_share_one_memory(folder: Path) -> None:
    handle, other = Handle(folder, "ann"), Handle(str(folder), "ann")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: handle.wait(note(f"thread {n}")), range(8)))
    for n in range(3):
        asyncio.run(other.do(note(f"loop {n}")))
    assert texts(handle) == [*(f"loop {n}" for n in range(3)), *(f"thread {n}" for n in range(8))]
    assert texts(Handle(folder, "bob")) == []
    handle.close()
    assert len(texts(other)) == 11
    other.close()


def test_concurrent_first_users_open_the_store_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def open_store(data: str) -> SqliteStore:
        opened.append(data)
        return SqliteStore(data)

    monkeypatch.setattr("mindstream.adapters.loop.open_store", open_store)
    handles = [Handle(folder, user) for user in ("ann", "bob") for _ in range(4)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(texts, handles))
    assert len(opened) == 1
    for handle in handles:
        handle.close()
    assert texts(handles[0]) == [] and len(opened) == 2
    handles[0].close()


def test_the_most_recently_used_memories_stay_open_and_nothing_is_lost(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "MAX_OPEN", 3)
    handles = [Handle(folder, f"user {n}") for n in range(6)]
    begun, go_on = threading.Event(), threading.Event()

    async def long(memory: Memory) -> str:
        begun.set()
        await asyncio.to_thread(go_on.wait)
        return (await memory.retain("said at the end", "note")).text

    with ThreadPoolExecutor(1) as pool:
        busy = pool.submit(handles[0].wait, long)
        begun.wait()
        for handle in (*handles[1:], handles[2]):
            handle.wait(note(f"of {handle.user}"))
            assert len(loop._memories) <= 3
        assert [key[1] for key in loop._memories] == ["user 0", "user 5", "user 2"]
        go_on.set()
        assert busy.result() == "said at the end"
    assert [texts(handle) for handle in handles] == [["said at the end"], *([f"of user {n}"] for n in range(1, 6))]
    for handle in handles:
        handle.close()
    assert not loop._memories and not loop._stores


async def test_a_tenant_store_is_kept_apart(folder: Path) -> None:
    async with SqliteStore(folder, tenant="acme") as acme, SqliteStore(folder, tenant="globex") as globex:
        await Handle(acme, "ann").do(lambda memory: memory.retain("the acme plan", "note"))
        found = await Handle(globex, "ann").do(lambda memory: memory.latest("note", 9))
        assert found == []
        async with Memory.open(acme, "ann") as memory:
            assert [each.text for each in await memory.latest("note", 9)] == ["the acme plan"]
        for store in (acme, globex):
            await asyncio.to_thread(Handle(store, "ann").close)


def test_a_memory_that_cannot_be_opened_raises_each_time(folder: Path) -> None:
    handle = Handle(folder, "ann/\0")
    for _ in range(2):
        with pytest.raises(InputError):
            texts(handle)


def test_a_blocking_wait_inside_the_loop_is_refused(folder: Path) -> None:
    handle = Handle(folder, "ann")

    async def within() -> None:
        handle.wait(lambda memory: memory.settle())

    with pytest.raises(RuntimeError, match="async method"):
        wait(within())
    handle.close()


async def test_a_cancelled_caller_cancels_the_work(folder: Path) -> None:
    begun, ended = threading.Event(), threading.Event()

    async def long(_: Memory) -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    handle = Handle(folder, "ann")
    task = asyncio.ensure_future(handle.do(long))
    await asyncio.to_thread(begun.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(ended.wait, 30)
    await asyncio.to_thread(handle.close)


def test_a_forked_child_opens_its_own_memory(tmp_path: Path) -> None:
    code = """
import os
from mindstream.adapters.loop import Handle
handle = Handle("data", "ann")
handle.wait(lambda memory: memory.retain("from the parent", "note"))
if (child := os.fork()) == 0:
    handle.wait(lambda memory: memory.retain("from the child", "note"))
    os._exit(0)
print(os.waitpid(child, 0)[1], sorted(each.text for each in handle.wait(lambda memory: memory.latest("note", 9))))
"""
    assert run_python(code, tmp_path) == "0 ['from the child', 'from the parent']\n"


def test_recall_counts_are_written_at_exit(tmp_path: Path) -> None:
    code = """
from mindstream.adapters.loop import Handle
handle = Handle("data", "ann")
handle.wait(lambda memory: memory.retain("The key hangs behind the door.", "note"))
print(len(handle.wait(lambda memory: memory.recall("key"))))
"""
    assert run_python(code, tmp_path) == "1\n"
    handle = Handle(tmp_path / "data", "ann")
    assert len(texts(handle)) == 1
    assert handle.wait(lambda memory: memory.store.count(memory.key, "recalled")) == 1
    handle.close()


def test_importing_the_package_imports_no_adapter() -> None:
    code = (
        "import sys, mindstream, mindstream.adapters;"
        "print([name for name in sys.modules if name.startswith('mindstream.adapters.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], env=os.environ, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
