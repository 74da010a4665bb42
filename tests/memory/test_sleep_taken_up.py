"""A sleep that was interrupted after any step, or at any commit, is resumed there."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from keys import key_of
from sleeping import Mortal, live
from world import LAWS, Words

from mindstream import FakeModel, ManualClock
from mindstream.errors import LeaseLost, StorageError
from mindstream.log.events import Remembered, Slept
from mindstream.memory.lifecycle.importance import Importance
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import RecordDraft
from mindstream.memory.store.store import Commit, Entry, Fence, NewWork

STEPS = ["fading", "dream", "importance", "duplicates", "expiry", "compaction"]
SLEEPING = Path(__file__).with_name("sleeping.py")


class Breaking(Mortal):
    """Fail at its n-th commit, and work again afterwards."""

    def end(self) -> None:
        raise StorageError("the disk is full")


async def journal(stream: Memory) -> Sequence[object]:
    """Return the rows of the log and the records."""
    rows = [each.row() for each in await stream.store.events(key_of("ann"))]
    records = (await stream.store.changes(key_of("ann"), 0)).records
    return [*rows, *sorted(map(repr, records))]


def reopened(stream: Memory) -> Memory:
    """Return the stream as the next process opens it."""
    return Memory(stream.store, "ann", Words(), stream.clock, strength=LAWS, seed=7)


@pytest.fixture
async def undisturbed(folder: Path) -> Sequence[object]:
    store = Mortal(folder / "undisturbed")
    stream, cause = await live(store)
    dream = await stream.sleep(n=5, cause=cause)
    told = [each.event for each in await store.events(key_of("ann"), cause)]
    assert [each.step for each in told if isinstance(each, Slept)] == STEPS == [each.step for each in told]  # type: ignore[attr-defined]
    assert dream and all(each.changed for each in told if isinstance(each, Slept) and each.step != STEPS[-1])
    assert await stream.sleep(n=5, cause=cause) == dream  # another call finds nothing to do
    found = await journal(stream)
    await stream.close()
    await store.close()
    return found


async def test_a_sleep_resumes_after_a_failed_commit(folder: Path, undisturbed: Sequence[object]) -> None:
    for before in (True, False):
        for at in range(1, len(STEPS) + 1):
            store = Breaking(folder / f"{at}{before}")
            stream, cause = await live(store)
            store.left, store.before = at, before
            with pytest.raises(StorageError, match="full"):
                await stream.sleep(n=5, cause=cause)
            store.left, store.before = 1, True  # once more, at the next commit
            if before or at < len(STEPS):
                with pytest.raises(StorageError, match="full"):
                    await reopened(stream).sleep(n=5, cause=cause)
            store.left = -1
            await reopened(stream).sleep(n=5, cause=cause)
            assert await journal(stream) == undisturbed
            await stream.close()
            await store.close()


@pytest.mark.parametrize("at", [1, 4])
async def test_a_killed_sleep_resumes_in_another_process(folder: Path, undisturbed: Sequence[object], at: int) -> None:
    command = [sys.executable, str(SLEEPING), str(folder / "killed"), str(at)]
    killed = await asyncio.to_thread(lambda: subprocess.run(command, check=False))
    assert killed.returncode == -signal.SIGKILL
    store, clock = Mortal(folder / "killed"), ManualClock()
    steps = await store.events(key_of("ann"), kinds=["slept"])
    assert len(steps) == at
    clock.advance(steps[-1].at - clock.now())
    stream = Memory(store, "ann", Words(), clock, strength=LAWS, seed=7)
    dream = await stream.sleep(n=5, cause=steps[0].event.cause)  # type: ignore[attr-defined]
    assert dream.startswith("I dreamt: a boat")
    assert await journal(stream) == undisturbed
    await stream.close()
    await store.close()


async def test_a_process_without_the_lease_writes_no_step(folder: Path) -> None:
    store = Mortal(folder)
    stream, cause = await live(store)
    now, event = stream.clock.now(), Remembered(count=0, kinds={})
    wake = NewWork(("life",), "me", now + 10)
    await store.commit(Commit(mind=key_of("ann"), at=now, entries=(Entry(event, "ann"),), wake=wake))
    [mine] = await store.claim(key_of("ann"), "life", "me", now, now + 10)

    class Thief(FakeModel):
        async def reply(self, request):  # type: ignore[no-untyped-def]
            await store.claim(key_of("ann"), "life", "other", now + 11, now + 20)
            async for part in super().reply(request):
                yield part

    model = Thief({"dream": ["mine"], "rate_importance": [Importance(ratings=[1])]})
    with pytest.raises(LeaseLost):
        await stream.sleep(model, 5, cause=cause, fence=Fence((mine.id,), "me"))
    assert await stream.latest("dream") == []
    fence = Fence((mine.id,), "other")
    assert await stream.sleep(FakeModel({"dream": ["theirs"]}), 5, cause=cause, fence=fence) == "theirs"
    assert [each.text for each in await stream.latest("dream", 9)] == ["theirs"]
    await stream.retain_all([RecordDraft(text="after")])
    await stream.close()
    await store.close()
