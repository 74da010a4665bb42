"""A connection to an MCP server: opened when needed, reopened after it ended, closed within a time limit.

Each opening starts a child process, which speaks the protocol and reads the server's messages (`child.py`). The time
from its start to its end is called a *life* of the connection.
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
from typing import Any, NamedTuple

from mindstream.clock import SystemClock
from mindstream.errors import ToolError
from mindstream.models.clean_text import without_controls
from mindstream.models.providers.address import mask
from mindstream.tools.child import child_environment
from mindstream.tools.mcp.pins import Definition, difference
from mindstream.tools.mcp.server import MEGABYTES, OUT_OF_MEMORY, SECONDS, McpServer

CHILD = "mindstream.tools.mcp.child"
MAX_LINE = 16_000_000
"""Maximum length of a line that the child sends, in bytes."""
LOADING_S = 30.0
"""Seconds for the child to load its modules, in addition to the server's `start_s`."""
REST_S = 5.0
"""Seconds for which a server that could not be opened is not tried again; until then, its last error is raised."""
CLOSE_S = 8.0
"""Seconds for closing, before the remaining processes are killed."""
MAX_FAULT = 500


class Listing(NamedTuple):
    """The tools that a server offers, by name, and the reasons why other tools are refused."""

    tools: dict[str, Definition]
    refused: dict[str, str]


class Connection:
    """The connection to a server, as a series of child processes; calls run at the same time."""

    def __init__(self, server: McpServer, allow: Collection[str]) -> None:
        self.server, self._allow = server, allow
        self._life: _Life | None = None
        self._lives: set[_Life] = set()
        self._clock = SystemClock()
        self._rests_until, self._fault = 0.0, ""

    async def list_tools(self) -> Listing:
        """Return the tools that the server offered when the connection was opened; open it if needed.

        Raises:
            ToolError: the server is not available.
        """
        return await (await self._ready()).listing

    async def call(self, accepted: Definition, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        """Call a tool unless it has changed since it was accepted; return its text, and whether it reports a failure.

        Raises:
            ToolError: the tool has changed or failed, the server asked for input, or the server is not available.
        """
        server = self.server
        try:
            for _ in range(2):
                life = await self._ready()
                async with asyncio.timeout(server.timeout_s):
                    answer = await life.ask(tool=accepted.name, accepted=accepted.fingerprint, arguments=arguments)
                if not answer.get("unheard"):  # otherwise the server had ended the session: open a new one, once
                    break
        except TimeoutError:
            raise ToolError(f"{server.name} did not answer within {server.timeout_s:g} seconds") from None
        if "fault" in answer:
            raise ToolError(life.describe(answer["fault"]))
        if "changed" not in answer:
            return answer["text"], answer["failed"]
        if answer["changed"] is None:
            raise ToolError(f"{server.name} does not offer {accepted.name} any more")
        lines = "\n".join(difference(accepted, Definition(*answer["changed"])))[:2_000]
        raise ToolError(
            f"{server.name} has changed {accepted.name} since it was accepted, so it is not called:\n{lines}"
        )

    async def _ready(self) -> _Life:
        """Return a child process that accepts calls, after starting it if needed; a cancelled caller does not stop the
        start."""
        life = self._life
        if life is None or life.is_retired or life.task.done():
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
            raise ToolError(
                f"{self.server.name} was not ready within {self.server.start_s + LOADING_S:g} seconds"
            ) from None
        except ToolError as error:
            self._fault, self._rests_until = str(error), self._clock.elapsed() + REST_S
            life.retire()
            raise
        return life

    async def close(self) -> None:
        """End all child processes. They are killed if they do not end in time."""
        for life in self._lives:
            life.stop()
        tasks = {life.task for life in self._lives}
        for patience_s in (CLOSE_S, 2.0):
            if tasks:
                _, tasks = await asyncio.wait(tasks, timeout=patience_s)
            for task in tasks:
                task.cancel()


class _Life:
    """One life of a connection: a child process, from its start to its end."""

    def __init__(self, server: McpServer, allow: Collection[str]) -> None:
        self.listing: asyncio.Future[Listing] = asyncio.get_running_loop().create_future()
        self._server, self._opening = server, server.opening(allow)
        self._process: Process | None = None
        self._asked: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._numbers = itertools.count()
        self.is_retired = False
        self.task = asyncio.ensure_future(self._live())

    def retire(self) -> None:
        """Accept no more calls, and end after the last running call."""
        self.is_retired = True
        if not self._asked:
            self.stop()

    def stop(self) -> None:
        """Ask the child to end; a child that is not ready yet is ended at once."""
        self.is_retired = True
        if self._process is None:
            self.task.cancel()
        elif not self.listing.done():
            self._signal(signal.SIGTERM)
        elif self._process.stdin:
            self._process.stdin.close()

    async def ask(self, **wish: object) -> dict[str, Any]:
        """Have a tool called, and return the child's report."""
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
            if self.is_retired:
                self.retire()
        return answer

    async def _live(self) -> None:
        fault = "it was stopped"
        command = (sys.executable, "-P", "-m", CHILD)
        try:
            self._process = process = await asyncio.create_subprocess_exec(
                *command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=child_environment(), limit=MAX_LINE
            )
            self._send(self._opening)
            assert process.stdout is not None
            while line := await process.stdout.readline():
                self._hear(json.loads(line))
            self.is_retired = True
            fault = _describe_exit(await process.wait())
        except (OSError, ValueError) as error:
            fault = f"its process fails: {error}"
        finally:
            self.is_retired = True
            self._fail(fault)
            if self._process is not None:  # when the child process ends, it ends the MCP server that it runs
                self._signal(signal.SIGTERM)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._process.wait(), 1.0)
                self._signal(signal.SIGKILL)

    def _send(self, message: Mapping[str, object]) -> None:
        stdin = self._process and self._process.stdin
        if stdin and not stdin.is_closing():
            stdin.write(json.dumps(message).encode() + b"\n")

    def _hear(self, said: Mapping[str, Any]) -> None:
        if "id" in said:
            self.is_retired = self.is_retired or said.get("over", False)
            answered = self._asked.get(said["id"])
            if answered and not answered.done():
                answered.set_result(dict(said))
        elif "fault" in said:
            self._fail(said["fault"])
        else:
            self.listing.set_result(Listing({tool[0]: Definition(*tool) for tool in said["tools"]}, said["refused"]))

    def _fail(self, fault: str) -> None:
        """Report a fault to callers that wait for the opening, and to all running calls."""
        if not self.listing.done():
            where = self._server.misplaced()
            self.listing.set_exception(ToolError(self.describe(fault) + (where and f" ({where})")))
            self.listing.exception()  # marks the exception as retrieved, because no task may be waiting for it
        for answered in self._asked.values():
            if not answered.done():
                answered.set_result({"fault": fault})

    def _signal(self, which: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            if self._process and self._process.returncode is None:
                self._process.send_signal(which)

    def describe(self, fault: str) -> str:
        """Return a fault in one line, with the server's name and without keys."""
        words = without_controls(mask(fault))[:MAX_FAULT]
        return f"{self._server.name}: {words or 'the server failed without an error message'}"


def _describe_exit(code: int) -> str:
    """Describe the exit code of a child; a code over 128 is 128 plus the number of a signal."""
    if code == 128 + signal.SIGXCPU:
        return f"the server sent a message that takes more than {SECONDS} seconds to read"
    if code in (OUT_OF_MEMORY, 128 + signal.SIGABRT, 128 + signal.SIGSEGV):
        return f"the server sent a message that takes more than {MEGABYTES} MB to read"
    return f"its process ended with {code}" if code else "its process ended"
