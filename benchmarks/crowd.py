"""Connect 10,000 idle, slow or listening clients, and measure the server's memory and its answers to other clients.

    python benchmarks/crowd.py --json

`mindstream serve` runs in its own process. A third of the clients listen to events, a third connect and send nothing, a
third send a request head that never ends. One more client requests /healthz ten times a second on a kept connection;
after the server has closed the silent connections, a new client requests it on a new connection.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ASK = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
KINDS = {
    "listening": b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "silent": b"",
    "slow": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n",
}
WAVE = 200
"""Number of clients that connect at the same time."""
GONE_S = 25
"""Seconds after which the server has closed connections that sent nothing."""


def rss_mb(pid: int) -> int:
    """Return the resident memory of a process."""
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text("ascii"))
    assert found is not None
    return int(found[1]) // 1024


class Crowd:
    """The clients, and the outcome of each."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.told: Counter[str] = Counter()
        """Number of clients by the first response they received: a status, or nothing."""
        self.open: Counter[str] = Counter()

    async def one(self, kind: str) -> None:
        """Connect, send what this kind of client sends, and stay until the connection is closed."""
        first = b""
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
            self.open[kind] += 1
            writer.write(KINDS[kind])
            with contextlib.closing(writer):
                first = await reader.readline()
                status = first.split()[1].decode() if first else "closed"
                self.told[f"{kind} {status}"] += 1
                while await reader.read(65_536):
                    pass
        except OSError:
            self.told[f"{kind} closed"] += not first
        finally:
            self.open[kind] -= 1


async def asked(port: int) -> int:
    """Request /healthz on a new connection; return the status."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    with contextlib.closing(writer):
        with contextlib.suppress(OSError):
            writer.write(ASK)
        return int((await reader.readline()).split()[1])


async def keep_asking(port: int, took: list[float], statuses: Counter[int]) -> None:
    """Request /healthz ten times a second on one connection; record the duration of each answer in ms."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while True:
        began = time.perf_counter()
        writer.write(ASK)
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = re.search(r"content-length: (\d+)", head)
        await reader.readexactly(int(length[1]) if length else 0)
        took.append((time.perf_counter() - began) * 1_000)
        statuses[int(head.split()[1])] += 1
        await asyncio.sleep(0.1)


async def measure(port: int, pid: int, clients: int) -> dict[str, object]:
    """Connect all clients and measure."""
    crowd, took, statuses = Crowd(port), list[float](), Counter[int]()
    before = rss_mb(pid)
    asking = asyncio.create_task(keep_asking(port, took, statuses))
    await asyncio.sleep(0.5)
    began, kinds, going = time.perf_counter(), list(KINDS), list[asyncio.Task[None]]()
    for first in range(0, clients, WAVE):
        going += [asyncio.create_task(crowd.one(kinds[n % 3])) for n in range(first, min(first + WAVE, clients))]
        await asyncio.sleep(0.02)
    while sum(crowd.told.values()) + sum(crowd.open.values()) < clients:  # noqa: ASYNC110 (nobody tells of it)
        await asyncio.sleep(0.1)
    await asyncio.sleep(1)
    seconds, peak, new = time.perf_counter() - began, rss_mb(pid), await asked(port)
    await asyncio.sleep(GONE_S)
    after, later = rss_mb(pid), await asked(port)
    still = dict(crowd.open)
    for task in [asking, *going]:
        task.cancel()
    await asyncio.gather(asking, *going, return_exceptions=True)
    took.sort()
    return {
        "clients": clients, "came_within_s": round(seconds, 1), "told": dict(sorted(crowd.told.items())),
        "open_at_the_end": still, "rss_mb": {"before": before, "all_there": peak, "silent_gone": after},
        "healthz_kept": dict(statuses), "healthz_new": {"all_there": new, "silent_gone": later},
        "healthz_ms": {"p50": round(took[len(took) // 2], 1), "max": round(took[-1], 1)},
    }  # fmt: skip


def main() -> None:
    """Serve, and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=10_000)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "mindstream", "serve", "--port", "0", "--data", folder, "--model", "rules"]
        server = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=os.environ | {"PYTHONUNBUFFERED": "1"})
        assert server.stderr is not None
        try:
            port = int(server.stderr.readline().rpartition(":")[2])
            found = asyncio.run(measure(port, server.pid, chosen.clients))
        finally:
            server.terminate()
            server.wait(60)
    print(json.dumps(found, indent=None if chosen.json else 1))


if __name__ == "__main__":
    main()
