"""kill -9 at any moment: acknowledged messages are stored, and processed exactly once."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest
from keys import key_of

from mindstream import Coach, Mind, SqliteStore, Timeouts
from mindstream.coach.packs.load import load
from mindstream.log.events import BeliefChanged, FollowUp, Heard, Logged, Thought
from mindstream.log.work import ANSWER, Work
from mindstream.memory.stream import read_belief

TALKING = Path(__file__).with_name("talking.py")


def talk_and_kill(folder: Path, name: str, utterances: int, chance: random.Random) -> list[int]:
    """Talk from one process after another, each killed after some acknowledgements; return the acknowledged seqs."""
    acknowledged: list[int] = []
    while len(acknowledged) < utterances:
        process = subprocess.Popen(
            [sys.executable, str(TALKING), str(folder), f"{name}-{len(acknowledged)}", str(utterances)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout
        life = chance.randint(1, 12)
        timer: threading.Timer | None = None
        for line in process.stdout:
            if line.startswith("ack "):
                acknowledged.append(int(line.split()[1]))
                life -= 1
                if life == 0 and timer is None:
                    timer = threading.Timer(chance.random() * 0.05, process.kill)
                    timer.start()
        process.wait()
        process.stdout.close()
        if timer:
            timer.cancel()
        assert process.returncode in (0, -9), f"the talking process failed by itself: {process.returncode}"
    return acknowledged


def is_answer(work: Work) -> bool:
    return work.slot.startswith(ANSWER)  # the killed process did not send it


async def check(folder: Path, acknowledged: list[int]) -> None:
    async with Mind.open(
        folder, user="ann", session="after", timeouts=Timeouts(lease_s=1.0), responder=Coach.using()
    ) as mind:
        while not all(is_answer(each) for each in await mind.memory.store.open_work(key_of("ann"))):
            await mind.settled()  # work of a dead process is resumed when its lease ends
            await asyncio.sleep(0.05)
    store = SqliteStore(folder)
    rows: list[Logged] = await store.events(key_of("ann"), limit=1_000_000)
    heard = {row.seq for row in rows if isinstance(row.event, Heard)}
    assert set(acknowledged) <= heard, "an acknowledged utterance is lost"
    for slot in ("sleep",):
        thought = Counter(
            seq for row in rows if isinstance(row.event, Thought) and row.event.slot == slot for seq in row.event.about
        )
        assert thought == Counter(heard), f"{slot}: not every utterance was processed exactly once"
    versions = [row.event.version for row in rows if isinstance(row.event, BeliefChanged)]
    assert versions == list(range(1, len(versions) + 1)), "a belief version is missing or duplicated"
    shape = load("sleep").belief
    beliefs = [record for record in (await store.changes(key_of("ann"), 0)).records if record.kind == "belief"]
    assert [read_belief("sleep", record, shape).version for record in beliefs] == [record.version for record in beliefs]
    assert sorted(record.version or 0 for record in beliefs) == versions
    followed = Counter(row.event.answers for row in rows if isinstance(row.event, FollowUp))
    assert all(times == 1 for times in followed.values()), "a duplicate follow-up"
    await store.close()


def two_processes(folder: Path, utterances: int, seed: int) -> list[int]:
    """Run two series of processes on one folder and one user, each killed repeatedly."""
    acknowledged: list[int] = []

    def one(name: str) -> None:
        acknowledged.extend(talk_and_kill(folder, name, utterances // 2, random.Random(f"{seed}{name}")))

    threads = [threading.Thread(target=one, args=(name,)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return acknowledged


async def test_acknowledged_messages_survive_kill_9(folder: Path) -> None:
    await check(folder, two_processes(folder, 16, seed=1))


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
async def test_two_hundred_utterances_survive_many_kills(folder: Path, seed: int) -> None:
    await check(folder, two_processes(folder, 200, seed))
