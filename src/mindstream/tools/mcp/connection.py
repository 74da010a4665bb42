"""A connection to an MCP server: opened, asked, opened again after it ended, closed without waiting for anybody.

Each life of it is a process beside us, which speaks the protocol and reads what the server sends (`child.py`).
"""

from __future__ import annotations

import asyncio
import itertools
import json
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from mindstream.clock import SystemClock
from mindstream.errors import ToolError
from mindstream.models.legible import without_controls
from mindstream.models.providers.secrets import mask
from mindstream.tools.child import child_environment
from mindstream.tools.mcp.pins import Definition, difference
from mindstream.tools.mcp.server import MEGABYTES, OUT_OF_MEMORY, SECONDS, McpServer

CHILD = "mindstream.tools.mcp.child"
LONGEST_LINE = 16_000_000
"""What the child tells in one line is shorter."""
LOADING_S = 30.0
"""How long the child may take besides, to load what it needs."""
REST_S = 5.0
"""How long a server that could not be opened is left alone."""
CLOSE_S = 8.0
"""How long closing may take, before what is left is killed."""
LONGEST_FAULT = 500


@dataclass
class Listing:
    """What a server offers, by name, and why some of it is not taken."""

    tools: dict[str, Definition] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


class Connection:
    """A server, in one life after another; its calls go side by side."""

    def __init__(self, server: McpServer, allow: Collection[str]) -> None:
        self.server = server
        self._allow = allow
        self._life: _Life | None = None
        self._lives: set[_Life] = set()
        self._clock = SystemClock()
        self._rests_until = 0.0
        self._fault = ""

    async def list_tools(self) -> Listing:
        """Return what the server offers; start it where it does not run.

        Raises:
            ToolError: it cannot be had.
        """
        return await (await self._ready()).listing

    async def call(self, accepted: Definition, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        """Call a tool that is still what was accepted; return its text, and whether it says that it failed.

        Raises:
            ToolError: it has changed, it failed, it wants something of us, or the server cannot be had.
        """
        name = self.server.name
        try:
            for _ in range(2):
                life = await self._ready()
                async with asyncio.timeout(self.server.timeout_s):
                    answer = await life.ask(tool=accepted.name, accepted=accepted.fingerprint, arguments=arguments)
                if not answer.get("unheard"):  # else the server has ended the session: a new one is opened, once
                    break
        except TimeoutError:
            raise ToolError(f"{name} did not answer within {self.server.timeout_s:g} seconds") from None
        if "fault" in answer:
            raise ToolError(life.say(answer["fault"]))
        if "changed" in answer:
            raise ToolError(_changed(name, accepted, answer["changed"] and Definition(*answer["changed"])))
        return answer["text"], answer["failed"]

    async def _ready(self) -> _Life:
        """Return a life that takes calls; whoever stops waiting does not stop it."""
        life = self._life
        if life is None or life.is_over():
            if self._clock.elapsed() < self._rests_until:
                raise ToolError(self._fault)
            if life is not None:
                life.retire()
            self._life = life = _Life(self.server, self._allow)
            self._lives = {each for each in self._lives if not each.task.done()} | {life}
        try:
            async with asyncio.timeout(self.server.start_s + LOADING_S):
                await asyncio.shield(life.listing)
        except TimeoutError:
            life.stop()
            raise ToolError(f"{self.server.name}: its process was not ready in time") from None
        except ToolError as error:
            self._fault, self._rests_until = str(error), self._clock.elapsed() + REST_S
            life.retire()
            raise
        return life

    async def close(self) -> None:
        """End it; what does not end is left behind."""
        for life in self._lives:
            life.stop()
        tasks = {life.task for life in self._lives}
        for patience_s in (CLOSE_S, 2.0):
            if tasks:
                _, tasks = await asyncio.wait(tasks, timeout=patience_s)
            for task in tasks:
                task.cancel()


class _Life:
    """One life of a connection: a process, from its start to its end."""

    def __init__(self, server: McpServer, allow: Collection[str]) -> None:
        self.listing: asyncio.Future[Listing] = asyncio.get_running_loop().create_future()
        self._server, self._opening = server, server.opening(allow)
        self._process: Process | None = None
        self._asked: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._numbers = itertools.count()
        self._is_retired = False
        self.task = asyncio.ensure_future(self._live())

    def is_over(self) -> bool:
        """Tell whether the next call needs another life."""
        return self._is_retired or self.task.done()

    def retire(self) -> None:
        """Take no more calls, and end with the last of those that are going on."""
        self._is_retired = True
        if not self._asked:
            self.stop()

    def stop(self) -> None:
        """Ask it to end; what is not open yet is ended at once."""
        self._is_retired = True
        if self._process is None:
            self.task.cancel()
        elif not self.listing.done():
            self._signal(signal.SIGTERM)
        elif self._process.stdin:
            self._process.stdin.close()

    async def ask(self, **wish: object) -> dict[str, Any]:
        """Have a tool called, and return what the child says of it."""
        number = next(self._numbers)
        self._asked[number] = answered = asyncio.get_running_loop().create_future()
        try:
            self._send({"id": number, **wish})
            answer: dict[str, Any] = await answered
        except asyncio.CancelledError:
            self._send({"cancel": number})
            raise
        finally:
            del self._asked[number]
            if self._is_retired:
                self.retire()
        return answer

    async def _live(self) -> None:
        fault = "it was stopped"
        try:
            self._process = process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", CHILD),
                stdin=PIPE,
                stdout=PIPE,
                stderr=DEVNULL,
                env=child_environment(),
                limit=LONGEST_LINE,
            )
            self._send(self._opening)
            assert process.stdout is not None
            while line := await process.stdout.readline():
                self._hear(json.loads(line))
            self._is_retired = True
            fault = _ended(await process.wait())
        except (OSError, ValueError) as error:
            fault = f"its process fails: {error}"
        finally:
            self._is_retired = True
            self._tell_all(fault)
            await self._end()

    def _send(self, message: Mapping[str, object]) -> None:
        stdin = self._process and self._process.stdin
        if stdin and not stdin.is_closing():
            stdin.write(json.dumps(message).encode() + b"\n")

    def _hear(self, said: Mapping[str, Any]) -> None:
        if "id" in said:
            self._is_retired = self._is_retired or said.get("over", False)
            answered = self._asked.get(said["id"])
            if answered and not answered.done():
                answered.set_result(dict(said))
        elif "fault" in said:
            self._tell_all(said["fault"])
        else:
            self.listing.set_result(Listing({tool[0]: Definition(*tool) for tool in said["tools"]}, said["refused"]))

    def _tell_all(self, fault: str) -> None:
        """Tell whoever still waits that nothing will come."""
        if not self.listing.done():
            where = self._server.misplaced()
            self.listing.set_exception(ToolError(self.say(fault) + (where and f" ({where})")))
            self.listing.exception()  # nobody may be waiting any more
        for answered in self._asked.values():
            if not answered.done():
                answered.set_result({"fault": fault})

    async def _end(self) -> None:
        """Make the child end, which ends what it has started."""
        if self._process is None:
            return
        with suppress(TimeoutError):
            self._signal(signal.SIGTERM)
            await asyncio.wait_for(self._process.wait(), 1.0)
        self._signal(signal.SIGKILL)

    def _signal(self, which: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            if self._process and self._process.returncode is None:
                self._process.send_signal(which)

    def say(self, fault: str) -> str:
        """Return a fault in one line, with the server's name and without keys."""
        words = without_controls(mask(fault))[:LONGEST_FAULT]
        return f"{self._server.name}: {words or 'it failed, and does not say why'}"


def _ended(code: int) -> str:
    """Say why a child ended, by the code that it ended with: over 128 a signal's."""
    if code == 128 + signal.SIGXCPU:
        return f"it sent what takes more than {SECONDS} seconds to read"
    if code in (OUT_OF_MEMORY, 128 + signal.SIGABRT, 128 + signal.SIGSEGV):
        return f"it sent what takes more than {MEGABYTES} MB to read"
    return f"its process ended with {code}" if code else "its process ended"


def _changed(name: str, accepted: Definition, now: Definition | None) -> str:
    if now is None:
        return f"{name} does not offer {accepted.name} any more"
    lines = "\n".join(difference(accepted, now))[:2_000]
    return f"{name} has changed {accepted.name} since it was accepted, so it is not called:\n{lines}"
