"""Compare four processes on one PostgreSQL with one SQLite server: added latency, and the effects of kills.

    python benchmarks/scale_processes.py --json                    2,000 minds, 15 utterances a second, 100 kills
    python benchmarks/scale_processes.py --minds 100 --seconds 30 --kills 9

Two `mindstream serve --no-thinking` answer, two `mindstream work` run the reasoners, on a PostgreSQL server started
from the wheel; the models are those of latency_server.py, through the real provider. First, one `mindstream serve` on
a folder does everything. overhead: time from sending an utterance to its first delta, minus the model server's
time to its first token; turns that wait for the reasoner have none. cpu: of our processes, for the counted utterances
and the reasoning about them, from one idle state to the next. rss_growth: of the process that grew most, from a fifth
of the time on.

Then servers, workers and PostgreSQL are killed in turn (kill -9; pg_ctl stop -m immediate) and restarted while
utterances arrive. A client without an answer sends again, with the same key, to the other server. lost: acknowledged
utterances that are not in the log, not answered or not processed at the end; doubled: utterances that were logged,
answered, followed up or processed twice.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from own_postgres import OwnPostgres
from scale_cluster import Cluster, Process
from server import lines_of
from talker import SAID, latency_server, percentile, served

from mindstream.log.events import FollowUp, Heard, Said, SetAside, Thought
from mindstream.log.work import ANSWER
from mindstream.memory.opening import open_store

MINDS, PER_SECOND, SECONDS, KILLS = 2_000, 15.0, 120.0, 100
WARM = 20.0
"""Maximum utterances per second while minds are opened."""
IDLE = 0.04
"""Share of a core below which a process counts as idle."""
ANSWER_S, SETTLE_S = 60.0, 120.0
KILLED_LOAD, KILLED_MINDS = 5.0, 100
"""Utterances per second, and number of minds, while processes are killed."""
BAR = 2.0


@dataclass
class Taken:
    """The results of the utterances, by their marks."""

    begun: dict[str, float] = field(default_factory=dict)
    first: dict[str, float] = field(default_factory=dict)
    acknowledged: dict[str, int] = field(default_factory=dict)
    refused: Counter[str] = field(default_factory=Counter)


async def say(port: int, taken: Taken, user: str, text: str, mark: str) -> None:
    """Send an utterance; record the time of the first word."""
    taken.begun[mark] = time.monotonic()
    body = {"text": f"{text} {mark}", "session": "s"}
    try:
        async with asyncio.timeout(ANSWER_S):
            async for line in lines_of(port, "POST", f"/api/v1/users/{user}/send", body, {}):
                if line.startswith(b"HTTP/") and b" 200 " not in line:
                    taken.refused[line.decode().strip()] += 1
                elif line.startswith(b"data: ") and b'"event": "piece"' in line[:30]:
                    taken.first.setdefault(mark, time.monotonic())
    except (OSError, ValueError, asyncio.IncompleteReadError) as error:
        taken.refused[type(error).__name__] += 1


async def send_until_acknowledged(ports: Sequence[int], taken: Taken, user: str, text: str, mark: str) -> None:
    """Send an utterance until it is acknowledged, with one key, to the servers in turn."""
    body = {"text": f"{text} {mark}", "session": "s"}
    headers = {"Idempotency-Key": f"key {mark}", "Accept": "application/json"}
    for attempt in range(40):
        status = b""
        with contextlib.suppress(OSError, ValueError, asyncio.IncompleteReadError):
            async with asyncio.timeout(30):
                port = ports[(hash(user) + attempt) % len(ports)]
                async for line in plain_lines(port, f"/api/v1/users/{user}/send", body, headers):
                    status = status or line
                    if line.startswith(b"{") and b" 202 " in status:
                        taken.acknowledged[mark] = json.loads(line)["seq"]
                        return
        taken.refused[status.decode().strip() or "no answer"] += 1
        await asyncio.sleep(0.25)


async def plain_lines(port: int, path: str, body: dict[str, Any], headers: dict[str, str]) -> Any:
    """Send a request; yield the status line and the body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        data = json.dumps(body).encode()
        head = {"Host": "localhost", "Connection": "close", "Content-Type": "application/json", **headers}
        told = "".join(f"{name}: {value}\r\n" for name, value in head.items())
        writer.write(f"POST {path} HTTP/1.1\r\n{told}Content-Length: {len(data)}\r\n\r\n".encode() + data)
        yield await reader.readline()
        whole = await reader.read()
        yield whole.partition(b"\r\n\r\n")[2].strip()
    finally:
        writer.close()


async def load(
    ports: Sequence[int], taken: Taken, numbers: range, minds: int, per_second: float, *, keyed: bool = False
) -> None:
    """Send utterances at a steady mean rate, to each mind in turn, always to the same server."""
    chance, begun = random.Random(numbers.start), time.monotonic()
    async with asyncio.TaskGroup() as group:
        for place, n in enumerate(numbers):
            await asyncio.sleep(max(0.0, begun + (place + chance.random()) / per_second - time.monotonic()))
            user, nth = n % minds, n // minds
            text, mark = SAID[(nth * 5 + user) % len(SAID)], f"({user}.{nth})"
            if keyed:
                group.create_task(send_until_acknowledged(ports, taken, f"user{user}", text, mark))
            else:
                group.create_task(say(ports[user % len(ports)], taken, f"user{user}", text, mark))


async def measured(
    processes: Sequence[Process], ports: list[int], model: int, given: argparse.Namespace
) -> dict[str, Any]:
    """Open all minds, then measure."""
    await load(ports, Taken(), range(given.minds), given.minds, given.warm)
    await wait_until_idle(processes, given.reasoner_s)
    served(model)
    taken, rss = Taken(), [list[int]() for _ in processes]

    async def watch() -> None:
        while True:
            for found, each in zip(rss, processes, strict=True):
                found.append(each.rss())
            await asyncio.sleep(given.seconds / 50)

    cpu = sum(each.cpu_s() for each in processes)
    watching = asyncio.ensure_future(watch())
    said = int(given.seconds * given.per_second)
    await load(ports, taken, range(given.minds, given.minds + said), given.minds, given.per_second)
    watching.cancel()
    await wait_until_idle(processes, given.reasoner_s)
    own = served(model)
    times = [
        taken.first[mark] - taken.begun[mark] - (first - came)
        for mark, (came, first) in own.items() if mark in taken.first and came - taken.begun[mark] < 1.0
    ]  # fmt: skip
    return {
        "overhead_p50_ms": percentile(times, 50), "overhead_p99_ms": percentile(times, 99), "turns": len(times),
        "utterances": said, "refused": dict(taken.refused),
        "cpu_ms_per_utterance": round((sum(each.cpu_s() for each in processes) - cpu) / said * 1000, 1),
        "rss_mb": [round(each[-1] / 2**20) for each in rss],
        "rss_growth": round(max(each[-1] / each[len(each) // 5] for each in rss), 3),
    }  # fmt: skip


async def wait_until_idle(processes: Sequence[Process], reasoner_s: float) -> None:
    """Wait until all reasoning is done: until the processes stay idle for longer than one reasoning run takes."""
    idle_s = reasoner_s + 1
    for _ in range(round(SETTLE_S / idle_s)):
        cpu_s = sum(each.cpu_s() for each in processes)
        await asyncio.sleep(idle_s)
        if sum(each.cpu_s() for each in processes) - cpu_s < IDLE * idle_s * len(processes):
            return


async def killed(cluster: Cluster, given: argparse.Namespace) -> dict[str, Any]:
    """Kill processes one after the other while utterances arrive; compare the acknowledgements with the log."""
    taken, begun = Taken(), time.monotonic()
    minds = min(KILLED_MINDS, given.minds)
    first = 10**6 * minds
    rounds, over = 0, asyncio.Event()

    async def keep_loading() -> None:
        start = first
        while not over.is_set():
            await load(cluster.ports, taken, range(start, start + 25), minds, KILLED_LOAD, keyed=True)
            start += 25

    loading = asyncio.ensure_future(keep_loading())
    await asyncio.sleep(2)
    for rounds in range(1, given.kills + 1):
        await asyncio.to_thread(cluster.kill, rounds)
        await asyncio.sleep(0.5 + random.Random(rounds).random())
    over.set()
    await loading
    took = time.monotonic() - begun
    found = await compare(cluster.data, taken)
    return {"kills": rounds, "seconds": round(took), "retries": dict(taken.refused), **found}


async def compare(data: str, taken: Taken) -> dict[str, Any]:
    """Wait until no work is open; compare the acknowledgements with the log."""
    async with open_store(data) as store:
        until = time.monotonic() + SETTLE_S
        while time.monotonic() < until and await store.streams_with_work():  # noqa: ASYNC110 (another process works)
            await asyncio.sleep(1)
        heard, said, followed = dict[int, str](), Counter[int](), Counter[int]()
        thought, aside, after = Counter[tuple[str, int]](), set[int](), 0
        while rows := await store.events(
            None, after, [each.kind for each in (Heard, Said, FollowUp, Thought, SetAside)]
        ):
            after = rows[-1].seq
            for row in rows:
                event = row.event
                if isinstance(event, Heard):
                    heard[row.seq] = (re.findall(r"\(\d+\.\d+\)", event.text) or [""])[-1]
                elif isinstance(event, Said):
                    said[event.answers] += 1
                elif isinstance(event, FollowUp):
                    followed[event.answers] += 1
                elif isinstance(event, Thought):
                    thought.update((event.slot, seq) for seq in event.about)
                elif isinstance(event, SetAside):
                    aside.update(event.about)
        left = [work for stream in await store.streams_with_work() for work in await store.open_work(stream)]
    marks = Counter(mark for mark in heard.values() if mark in taken.acknowledged)
    silent = {seq for seq in taken.acknowledged.values() if seq not in said and seq not in followed}
    waiting = sum(work.cause in silent and work.slot.startswith(ANSWER) for work in left)
    missing = sum(seq not in heard for seq in taken.acknowledged.values())
    unthought = sum(not work.slot.startswith(ANSWER) for work in left) + len(aside)
    twice = {
        "heard": sum(n - 1 for n in marks.values()), "answered": sum(n - 1 for n in said.values()),
        "followed_up": sum(n - 1 for n in followed.values()), "thought": sum(n - 1 for n in thought.values()),
    }  # fmt: skip
    return {
        "acknowledged": len(taken.acknowledged), "lost": missing + len(silent) + unthought,
        "doubled": sum(twice.values()), "twice": twice, "missing": missing, "unanswered": len(silent),
        "unanswered_yet_open": waiting, "unthought": unthought,
    }  # fmt: skip


async def run(given: argparse.Namespace) -> dict[str, Any]:
    """Measure one server alone, then four processes, then kill them."""
    row: dict[str, Any] = {"processes": 4, "minds": given.minds}
    with latency_server(given.reasoner_s, 0.05) as model, tempfile.TemporaryDirectory() as made:
        if given.seconds:
            with contextlib.closing(Cluster(f"{made}/data", model, serves=1, works=0)) as alone:
                row["alone"] = await measured(alone.processes, alone.ports, model, given)
        postgres = OwnPostgres()
        try:
            with contextlib.closing(Cluster(postgres.url, model, serves=2, works=2, postgres=postgres)) as four:
                if given.seconds:
                    row["four"] = await measured(four.processes, four.ports, model, given)
                    row |= {name: row["four"][name] for name in ("overhead_p50_ms", "overhead_p99_ms", "rss_growth")}
                    row["times_alone"] = round(row["overhead_p99_ms"] / row["alone"]["overhead_p99_ms"], 2)
                if given.kills:
                    row |= await killed(four, given)
        finally:
            postgres.close()
    return row


def broken(row: dict[str, Any]) -> Iterator[str]:
    """Yield the thresholds that were not met."""
    bars = {"times_alone": BAR, "rss_growth": 1.1, "lost": 0, "doubled": 0}
    for name, most in bars.items():
        if name in row and row[name] > most:
            yield f"{name} is {row[name]}, not at most {most}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--minds", type=int, default=MINDS)
    parser.add_argument("--per-second", type=float, default=PER_SECOND)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--warm", type=float, default=WARM, help="utterances per second while minds are opened")
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--reasoner-s", type=float, default=2.0)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # killed servers are expected
    row = asyncio.run(run(given))
    print(json.dumps(row) if given.json else "\n".join(f"{name}: {value}" for name, value in row.items()))
    if bars := list(broken(row)):
        print("\n".join(bars), file=sys.stderr)
        raise SystemExit(1)


if __name__ == "__main__":
    main()
