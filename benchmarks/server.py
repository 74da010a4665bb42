"""Measure the latency that the server adds to a model's answer, and whether its event streams are complete.

    python benchmarks/server.py --json                     ten minutes, then three kills -9
    python benchmarks/server.py --json --seconds 120       shorter

`mindstream serve` runs in its own process, and so does the model's server (latency_server.py: the talker's first token
after 50 ms, a reasoner run of 2 s), used through the real provider. 100 users send 15 utterances a second, half of them
to /api/v1/users/…/send, half to /v1/chat/completions (if the server has it), and 200 clients listen to events.
overhead: time from sending an utterance to its first delta, minus the model server's time from the request's arrival to
its first token; turns that wait have none. CPU: the server's process, including reasoning and events. rss_growth:
resident memory at the end divided by that after a fifth of the time. Then three kills -9 while utterances arrive: each
client reconnects with its Last-Event-ID, and its events are compared with the log.
Chat clients send their whole conversation each time, as they usually do. If the server falls behind (BEHIND answers are
due at once), sending stops: the figures so far are printed, `fell_behind` is set, the exit code is 1.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from talker import SAID, latency_server, percentile, served

from mindstream.identifiers import shown_name
from mindstream.log.events import Heard, Said
from mindstream.memory.store.sqlite import SqliteStore
from mindstream.minds.responder import Timeouts

PROFILE: list[str] = []
WARM = 10.0
"""Maximum utterances per second while minds are opened."""
USERS, CLIENTS, PER_SECOND, KILLS = 100, 200, 15.0, 3
ANSWER_S, END_S = 60.0, 60.0
"""Timeouts in seconds: of an answer, and of the server's shutdown."""
QUIET_S, SETTLE_S = 2 * Timeouts().lease_s, 120.0
"""Seconds without new events before clients are compared with the log, and the maximum time to wait for that."""
BEHIND = 2 * USERS
"""Number of pending answers at which the server counts as falling behind: two per user."""
KINDS = (Heard.kind, Said.kind)


@dataclass
class Server:
    """The server's process, restarted on the same port and folder after each kill."""

    folder: Path
    model_port: int
    port: int
    process: subprocess.Popen[str] | None = None

    def start(self) -> float:
        """Start it; return the seconds until it listens."""
        url = f"http://127.0.0.1:{self.model_port}/v1"
        words = [
            sys.executable,
            *PROFILE,
            "-m",
            "mindstream",
            "serve",
            "--port",
            str(self.port),
            "--data",
            str(self.folder),
        ]
        words += ["--model", f"openai:reasoner@{url}", "--role", f"talker=openai:talker@{url}", "--at-once", "1000"]
        begun = time.monotonic()
        self.process = subprocess.Popen(
            words, stderr=subprocess.PIPE, text=True, env=os.environ | {"OPENAI_API_KEY": "none"}
        )
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        if not line.startswith("listening on"):
            raise SystemExit(line)
        took = time.monotonic() - begun
        threading.Thread(target=self.process.stderr.read, daemon=True).start()  # a full pipe would stop the server
        return took

    def end(self, how: signal.Signals) -> None:
        """Stop it."""
        assert self.process is not None and self.process.stderr is not None
        self.process.send_signal(how)
        try:
            self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            print(f"the server did not end within {END_S:g} s of {how.name}; it was killed", file=sys.stderr)
            self.process.kill()
            self.process.wait()

    def cpu_s(self) -> float:
        """Return the CPU seconds that it has used."""
        assert self.process is not None
        parts = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")

    def rss(self) -> int:
        """Return its resident memory, in bytes."""
        assert self.process is not None
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@dataclass
class Taken:
    """The results of the utterances, by their marks; `talks`: the conversation of each chat client."""

    begun: dict[str, float] = field(default_factory=dict)
    first: dict[str, float] = field(default_factory=dict)
    waited: set[str] = field(default_factory=set)
    acknowledged: set[int] = field(default_factory=set)
    said: int = 0
    due: int = 0
    fell_behind: bool = False
    refused: Counter[str] = field(default_factory=Counter)
    talks: dict[str, list[dict[str, str]]] = field(default_factory=dict)


async def lines_of(
    port: int, method: str, path: str, body: dict[str, Any] | None, headers: dict[str, str]
) -> AsyncIterator[bytes]:
    """Send a request; yield the status line, then the lines of the streamed answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**20)
    try:
        data = json.dumps(body).encode() if body is not None else b""
        head = {"Host": "localhost", "Accept": "text/event-stream", "Connection": "close", **headers}
        head |= {"Content-Type": "application/json", "Content-Length": str(len(data))} if data else {}
        told = "".join(f"{name}: {value}\r\n" for name, value in head.items())
        writer.write(f"{method} {path} HTTP/1.1\r\n{told}\r\n".encode() + data)
        yield await reader.readline()
        while (head_line := await reader.readline()) != b"\r\n":
            if not head_line:  # at its end a reader returns b"" for ever, without waiting
                raise ConnectionError("the server went away")
        rest = b""
        while (size := int(await reader.readline() or b"0", 16)) > 0:
            rest += (await reader.readexactly(size + 2))[:-2]
            *whole, rest = rest.split(b"\n")
            for line in whole:
                yield line
    finally:
        writer.close()


async def say(port: int, taken: Taken, user: str, text: str, chat: bool) -> None:
    """Send an utterance as a user; record the time of the first word."""
    mark = text[text.rfind("(") :]
    taken.begun[mark] = time.monotonic()
    taken.said += 1
    taken.due += 1
    shown: list[dict[str, str]] = []
    path, body = f"/api/v1/users/{user}/send", dict[str, Any](text=text, session="s")
    if chat:
        shown = taken.talks.setdefault(user, [])
        shown += [{"role": "user", "content": text}]
        path = "/v1/chat/completions"
        body = {"model": "sleep", "user": user, "stream": True, "messages": shown, "metadata": {"chat_id": "page"}}
    answer = ""
    try:
        async with asyncio.timeout(ANSWER_S):
            async for line in lines_of(port, "POST", path, body, {}):
                answer += _note(taken, mark, line, chat)
    except (OSError, ValueError, asyncio.IncompleteReadError) as error:  # among them TimeoutError
        taken.refused[type(error).__name__] += 1
    finally:
        taken.due -= 1
        if answer:
            shown.append({"role": "assistant", "content": answer})


def _note(taken: Taken, mark: str, line: bytes, chat: bool) -> str:
    """Record the content of a line of an answer; return the words that a client shows."""
    if line.startswith(b"HTTP/") and b" 200 " not in line:
        taken.refused[line.decode().strip()] += 1
    if not line.startswith(b"data: ") or line == b"data: [DONE]":
        return ""
    if chat:
        choices = json.loads(line[6:]).get("choices")
        words = str(choices[0]["delta"].get("content") or "") if choices else ""
        if words:
            taken.first.setdefault(mark, time.monotonic())
        return words
    if b'"event": "piece"' in line[:30]:
        taken.first.setdefault(mark, time.monotonic())
    elif b'"event": "heard"' in line[:30]:
        taken.acknowledged.add(json.loads(line[6:])["seq"])
    return ""


@dataclass
class Client:
    """Listen to one user's events; reconnect after the last one."""

    user: str
    last: str = ""
    seqs: list[int] = field(default_factory=list)
    connects: int = 0

    async def run(self, port: int) -> None:
        """Listen until cancelled."""
        path = f"/api/v1/events?user={self.user}&" + "&".join(f"kind={kind}" for kind in KINDS)
        while True:
            with contextlib.suppress(OSError, ValueError, asyncio.IncompleteReadError):
                self.connects += 1
                headers = {"Last-Event-ID": self.last} if self.last else {}
                coming = ""
                async for line in lines_of(port, "GET", path, None, headers):
                    if line.startswith(b"id: "):
                        coming = line[4:].decode()
                    elif line.startswith(b"data: ") and b'"seq"' in line:
                        self.seqs.append(json.loads(line[6:])["seq"])
                    elif not line:
                        self.last = coming or self.last
            await asyncio.sleep(0.1)


async def load(
    port: int, taken: Taken, seconds: float, chat: bool, first: int = 0, per_second: float = PER_SECOND
) -> None:
    """Send utterances at a steady mean rate, to each user in turn, until the server falls behind."""
    chance, begun = random.Random(7 + first), time.monotonic()
    async with asyncio.TaskGroup() as group:
        for n in range(first, first + int(seconds * per_second)):
            due = begun + (n - first + chance.random()) / per_second
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            if taken.due >= BEHIND:
                taken.fell_behind = True
                return
            user, nth = n % USERS, n // USERS
            text = f"{SAID[(nth * 5 + user) % len(SAID)]} ({user}.{nth})"
            group.create_task(say(port, taken, f"user{user}", text, chat and nth % 2 == 1))


def has_chat(port: int) -> bool:
    """Return whether the server has /v1."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models") as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


async def watch_rss(server: Server, seconds: float, found: list[int]) -> None:
    """Record the resident memory at intervals."""
    while True:
        found.append(server.rss())
        await asyncio.sleep(seconds / 50)


@contextlib.asynccontextmanager
async def listening(port: int) -> AsyncIterator[list[Client]]:
    """Run the listening clients."""
    clients = [Client(f"user{n % USERS}") for n in range(CLIENTS)]
    tasks = [asyncio.ensure_future(each.run(port)) for each in clients]
    await asyncio.sleep(3)
    try:
        yield clients
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def settled(folder: Path, clients: list[Client]) -> int:
    """Wait until the log has been quiet for QUIET_S and all clients have its events; return its last seq.

    Answers that a killed server owed are given when its lease has ended. Events written later are not compared.
    """
    async with SqliteStore(folder) as store:
        begun, changed, last = time.monotonic(), time.monotonic(), -1
        while time.monotonic() - changed < QUIET_S and time.monotonic() - begun < SETTLE_S:
            if (now := await store.last_seq()) != last:
                last, changed = now, time.monotonic()
            await asyncio.sleep(0.5)
    kept, _ = await logged(folder, last)
    for _ in range(int(SETTLE_S)):
        if not _compare(clients, kept)[0]:
            break
        await asyncio.sleep(1.0)
    return last


async def logged(folder: Path, upto: int) -> tuple[dict[str, list[int]], set[str]]:
    """Return each user's seqs up to `upto`, and the marks of the utterances whose answer waited for a reasoner."""
    found: dict[str, list[int]] = {}
    marks, waited = dict[int, str](), set[str]()
    async with SqliteStore(folder) as store:
        after = 0
        while rows := await store.events(None, after, KINDS, 10_000):
            after = rows[-1].seq
            for row in (row for row in rows if row.seq <= upto):
                found.setdefault(shown_name(row.mind), []).append(row.seq)
                if isinstance(row.event, Heard):
                    marks[row.seq] = row.event.text[row.event.text.rfind("(") :]
                elif isinstance(row.event, Said) and row.event.waited:
                    waited.add(marks.get(row.event.answers, ""))
    return found, waited


async def run(given: argparse.Namespace) -> dict[str, Any]:
    """Measure, then kill."""
    with latency_server(given.reasoner_s, 0.05) as model_port, tempfile.TemporaryDirectory() as made:
        server = Server(Path(made) / "data", model_port, _free_port())
        starts = [server.start()]
        chat = has_chat(server.port)
        taken, rss = Taken(), list[int]()
        async with listening(server.port) as clients:
            warm_s = 2 * USERS / min(given.per_second, WARM)
            await load(server.port, taken, warm_s, chat, first=10**6, per_second=min(given.per_second, WARM))
            taken = Taken(talks=taken.talks)  # each mind was opened once
            served(model_port)
            watching = asyncio.ensure_future(watch_rss(server, given.seconds, rss))
            cpu = server.cpu_s()
            await load(server.port, taken, given.seconds, chat, per_second=given.per_second)
            cpu = server.cpu_s() - cpu
            watching.cancel()
            own = served(model_port)
            measured = taken.said
            for round_ in range(0 if taken.fell_behind else given.kills):
                coming = asyncio.ensure_future(
                    load(server.port, taken, 10, chat, first=(2 + round_) * 10**6, per_second=given.per_second)
                )
                await asyncio.sleep(5)
                server.end(signal.SIGKILL)
                starts.append(await asyncio.to_thread(server.start))
                await coming
            upto = await settled(server.folder, clients)
        begun = time.monotonic()
        server.end(signal.SIGTERM)
        ended = time.monotonic() - begun
        kept, taken.waited = await logged(server.folder, upto)
    times = [
        taken.first[mark] - taken.begun[mark] - (first - came)
        for mark, (came, first) in own.items() if mark in taken.first and mark not in taken.waited
    ]  # fmt: skip
    lost, doubled = _compare(clients, kept)
    everything = {seq for seqs in kept.values() for seq in seqs}
    fifth = max(1, len(rss) // 5)
    return {
        "overhead_p50_ms": percentile(times, 50) if times else None,
        "overhead_p99_ms": percentile(times, 99) if times else None,
        "cpu_ms_per_utterance": round(cpu / measured * 1000, 2), "clients": CLIENTS,
        "events_lost": lost, "events_doubled": doubled, "rss_growth": round(rss[-1] / rss[fifth], 3),
        "rss_mb": round(rss[-1] / 2**20), "utterances": taken.said, "turns_measured": len(times),
        "acknowledged_lost": len(taken.acknowledged - everything), "reconnects": sum(c.connects - 1 for c in clients),
        "through_chat": chat, "start_s": round(max(starts), 2), "drain_s": round(ended, 2),
        "fell_behind": taken.fell_behind, "refused": dict(taken.refused),
    }  # fmt: skip


def _compare(clients: list[Client], kept: dict[str, list[int]]) -> tuple[int, int]:
    """Return the number of events that clients missed, and received twice, counted from their first event."""
    lost = doubled = 0
    for each in clients:
        counts = Counter(each.seqs)
        doubled += sum(n - 1 for n in counts.values())
        since = min(each.seqs, default=0)
        lost += sum(seq not in counts for seq in kept.get(each.user, ()) if seq >= since)
    return lost, doubled


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def broken(row: dict[str, Any]) -> Iterator[str]:
    """Yield the thresholds that were not met."""
    most = {
        "overhead_p50_ms": 15, "overhead_p99_ms": 60, "cpu_ms_per_utterance": 15, "events_lost": 0,
        "events_doubled": 0, "acknowledged_lost": 0, "rss_growth": 1.1, "start_s": 1.5,
    }  # fmt: skip
    for name, bar in most.items():
        if row[name] is None or row[name] > bar:
            yield f"{name} is {row[name]}, not at most {bar}"
    if row["fell_behind"]:
        yield f"the server fell behind: {BEHIND} answers were due at once"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--reasoner-s", type=float, default=2.0)
    parser.add_argument("--per-second", type=float, default=PER_SECOND)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    row = asyncio.run(run(given))
    print(json.dumps(row) if given.json else "\n".join(f"{name}: {value}" for name, value in row.items()))
    if bars := list(broken(row)):
        print("\n".join(bars), file=sys.stderr)
        raise SystemExit(1)


if __name__ == "__main__":
    main()
