"""Lives for tests: a stream with a manual clock, a scripted M2, M1 and M0."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mindstream.clock import Clock, ManualClock
from mindstream.life.life import Life, LifeConfig
from mindstream.memory.memory import Memory
from mindstream.models.model import Call
from mindstream.models.roles import Models
from mindstream.models.rules import FakeModel, Line


def call(tool: str, **arguments: object) -> Call:
    """Make a tool call."""
    return Call(tool, json.dumps(arguments, ensure_ascii=False))


def script(
    m2: Sequence[Line] = (), m1: Sequence[Line] = (), m0: Sequence[Line] = (), **others: Sequence[Line]
) -> FakeModel:
    """Make a model with these replies."""
    return FakeModel({"live": m2, "carry_out": m1, "think_deeply": m0, **others})


@asynccontextmanager
async def living(
    folder: Path, model: FakeModel, *, clock: Clock | None = None, config: LifeConfig | None = None, **more: Any
) -> AsyncIterator[Life]:
    """Open a life, by default with the goal "Keep the lighthouse"."""
    async with Memory.open(folder, "keeper", clock=clock or ManualClock(), seed=1) as stream:
        goal = more.pop("goal", "Keep the lighthouse.")
        async with Life.open(stream, Models(model), goal=goal, config=config or LifeConfig(), **more) as life:
            yield life


async def rows(stream: Memory, *kinds: str) -> list[Any]:
    """Return the events of these kinds, in order."""
    return [row.event for row in await stream.store.events(stream.key, kinds=kinds or None, limit=100_000)]


async def results(stream: Memory) -> list[tuple[str, str]]:
    """Return the results of calls: tool and text, in order."""
    return [(event.tool, event.text) for event in await rows(stream, "observed")]


FINISH = [call("finish_task", task=1, result="done")]
