"""mindstream processes on shared data, to be killed and restarted; see scale_processes.py."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from own_postgres import OwnPostgres

START_S, END_S = 60.0, 30.0


@dataclass
class Process:
    """A command that prints on standard output or error when it is ready."""

    words: list[str]
    ready: str
    last: list[str] = field(default_factory=list)
    process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it, and return when it is ready."""
        self.begin()()

    def begin(self) -> Callable[[], None]:
        """Start it; return an awaitable that completes when it is ready."""
        self.process = process = subprocess.Popen(
            [sys.executable, "-m", "mindstream", *self.words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, env=os.environ | {"OPENAI_API_KEY": "none"},
        )  # fmt: skip
        is_ready = threading.Event()
        threading.Thread(target=self._read, args=(process, is_ready), daemon=True).start()

        def wait() -> None:
            if not is_ready.wait(START_S) or process.poll() is not None:
                raise SystemExit(f"{self.words[0]} did not start: {' '.join(self.last[-5:])}")

        return wait

    def _read(self, process: subprocess.Popen[str], is_ready: threading.Event) -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                self.last = [*self.last[-50:], line]
                if self.ready in line:
                    is_ready.set()
        is_ready.set()

    def end(self, how: signal.Signals) -> None:
        """Stop it."""
        assert self.process is not None
        self.process.send_signal(how)
        try:
            self.process.wait(END_S)
        except subprocess.TimeoutExpired:
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


class Cluster:
    """Several servers and workers on shared data; if there are workers, servers do not run reasoners."""

    def __init__(self, data: str, model: int, *, serves: int, works: int, postgres: OwnPostgres | None = None) -> None:
        self.data, self._postgres = data, postgres
        self.ports = [free_port() for _ in range(serves)]
        url = f"http://127.0.0.1:{model}/v1"
        common = ["--data", data, "--model", f"openai:reasoner@{url}", "--role", f"talker=openai:talker@{url}"]
        common += ["--at-once", "1000"]
        more = ["--no-thinking"] if works else []
        self.processes = [
            Process(["serve", "--port", str(port), *common, *more], "listening on") for port in self.ports
        ] + [Process(["work", *common, "--minds", "500", "--json"], '"ready"') for _ in range(works)]
        for wait in [each.begin() for each in self.processes]:
            wait()

    def kill(self, number: int) -> None:
        """Kill and restart the next process in turn: a server, a worker, PostgreSQL, the other server, …"""
        places: list[Process | None] = list(self.processes)
        if self._postgres is not None:
            half = len(places) // 2
            places = [places[0], places[half], None, *places[1:half], *places[half + 1 :], None]
        victim = places[number % len(places)]
        if victim is not None:
            victim.end(signal.SIGKILL)
            victim.start()
        elif self._postgres is not None:
            self._postgres.stop()
            self._postgres.start()

    def close(self) -> None:
        """Stop all processes."""
        with ThreadPoolExecutor() as threads:
            list(threads.map(lambda each: each.end(signal.SIGTERM), self.processes))


def free_port() -> int:
    """Return an unused port."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
