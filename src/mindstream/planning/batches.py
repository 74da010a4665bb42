"""Several calls of one tool in one: those that are ready at the same moment."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from mindstream.foreign_code import ForeignFailure, ForeignTask
from mindstream.models.model import Call
from mindstream.tools.call import Observation, observe_text
from mindstream.tools.tool import Batch

MOST = 32
"""So many calls at most are made in one."""


@dataclass
class Batches:
    """Gathers calls by tool, until the loop has run everything that was ready with them."""

    _gathered: dict[str, list[tuple[Call, asyncio.Future[Observation]]]] = field(default_factory=dict)
    _running: set[asyncio.Task[None]] = field(default_factory=set)

    async def call(self, call: Call, batch: Batch, timeout_s: float) -> Observation:
        """Return what came of one call, made together with others; whatever the tool does, as `call_tool` does."""
        came: asyncio.Future[Observation] = asyncio.get_running_loop().create_future()
        gathered = self._gathered.setdefault(call.tool, [])
        gathered.append((call, came))
        if len(gathered) == 1:
            asyncio.get_running_loop().call_soon(self._flush, call.tool, batch, timeout_s)
        return await came

    def _flush(self, tool: str, batch: Batch, timeout_s: float) -> None:
        gathered = [each for each in self._gathered.pop(tool) if not each[1].done()]  # done: nobody waits any more
        for at in range(0, len(gathered), MOST):
            task = asyncio.ensure_future(_make(gathered[at : at + MOST], batch, timeout_s))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def stop(self) -> None:
        """Break off what is being made: nobody waits for it any more."""
        running = list(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _make(gathered: Sequence[tuple[Call, asyncio.Future[Observation]]], batch: Batch, timeout_s: float) -> None:
    calls = [call for call, _ in gathered]

    async def work() -> Sequence[str]:
        return await batch(calls)

    try:
        results: object = await ForeignTask(work).result(timeout_s)
    except ForeignFailure as error:
        results = [Observation(f"{calls[0].tool} failed: {error}", failed=True)] * len(calls)
    if not isinstance(results, list | tuple) or len(results) != len(calls):
        came_back = f"{len(results)} results" if isinstance(results, list | tuple) else type(results).__name__
        words = f"{calls[0].tool} failed: it gave {came_back} for {len(calls)} calls"
        results = [Observation(words, failed=True)] * len(calls)
    for (call, came), result in zip(gathered, results, strict=True):
        if not came.done():
            came.set_result(_observed(call, result))


def _observed(call: Call, result: object) -> Observation:
    if isinstance(result, Observation):
        return result
    if isinstance(result, str):
        return observe_text(result)
    return Observation(f"{call.tool} failed: it returned {type(result).__name__} where text is due", failed=True)
