"""Graphs of several searches and one sum, a model that writes at a given speed, and tools with given durations."""

from __future__ import annotations

import asyncio
import json
import math
import random
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mindstream.models.model import Call, Part, Piece, Request, Usage
from mindstream.tools.tool import FunctionTool, tool

PLANNING_S, SIGMA = 2.0, 0.5
"""Seconds to write a whole plan; sigma of the durations of tools, whose mean is one second."""
BRANCHES = (2,) * 21 + (3,) * 31 + (4,) * 31 + (5,) * 30
"""The widths of ParallelQA's questions (Kim 2024), used if no file is given."""


@dataclass(frozen=True)
class Graph:
    """A question: `seconds` of its searches, and of the sum at the end."""

    name: str
    seconds: tuple[float, ...]

    @property
    def steps(self) -> int:
        return len(self.seconds)

    def lines(self) -> list[str]:
        """Return the plan, one line per step."""
        searches = range(1, self.steps)
        total = " + ".join(f"#E{n}" for n in searches)
        return [
            *(f"Plan: Find thing {n}.\n#E{n} = search[thing {n} of {self.name}]\n" for n in searches),
            f"Plan: Add them up.\n#E{self.steps} = add[{total}]\n",
        ]

    def step_s(self) -> float:
        """Return the seconds to write one step: of a plan, of ReAct's rounds, and also the answer."""
        return PLANNING_S / self.steps

    def critical_path_s(self) -> float:
        """Return the minimum duration: a step can start as soon as it is written and its inputs exist."""
        *searches, add = self.seconds
        found = max((n + 1) * self.step_s() + seconds for n, seconds in enumerate(searches))
        return max(found, PLANNING_S) + add + self.step_s()

    def sequential_s(self) -> float:
        """Return the duration of sequential execution."""
        return PLANNING_S + sum(self.seconds) + self.step_s()


def read_branches(path: Path | None) -> tuple[int, ...]:
    """Return the widths in ParallelQA's file."""
    return tuple(each["branch"] for each in json.loads(path.read_text("utf-8"))) if path else BRANCHES


def make_graphs(branches: Sequence[int], seed: str) -> list[Graph]:
    """Draw the durations of each question's tools."""
    graphs = []
    for n, branch in enumerate(branches):
        drawn = random.Random(f"{seed}/{n}")
        seconds = (math.exp(drawn.gauss(-(SIGMA**2) / 2, SIGMA)) for _ in range(branch + 1))
        graphs.append(Graph(f"question {n}", tuple(seconds)))
    return graphs


@dataclass
class Writer:
    """A model that writes a graph's plan step by step, calls its tools one by one or all at once, and answers.

    `scale`: seconds per simulated second; `streams`: the plan arrives line by line, otherwise all at once.
    """

    graph: Graph
    scale: float = 1.0
    streams: bool = True
    at_once: bool = False
    name: str = "writer"

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        label = request.prompt.label()
        if label == "make_plan":
            async for part in self._plan():
                yield part
        elif label == "act_on_task" and (calls := self._calls(request)):
            await self._sleep(len(calls) * self.graph.step_s())
            for call in calls:
                yield call
        else:
            await self._sleep(self.graph.step_s())
            yield Piece("42")
        yield Usage(100, 10)

    async def _plan(self) -> AsyncGenerator[Part]:
        began = asyncio.get_running_loop().time()
        pieces = self.graph.lines() if self.streams else ["".join(self.graph.lines())]
        for n, piece in enumerate(pieces, 1):
            due = began + n / len(pieces) * PLANNING_S * self.scale
            await self._sleep((due - asyncio.get_running_loop().time()) / (self.scale or 1.0))
            yield Piece(piece)

    def _calls(self, request: Request) -> list[Call]:
        made = sum(len(message.calls) for message in request.turns)
        searches = self.graph.steps - 1
        if made == self.graph.steps:
            return []
        if made < searches:
            numbers = range(1, searches + 1) if self.at_once else (made + 1,)
            return [Call("search", json.dumps({"query": f"thing {n} of {self.graph.name}"})) for n in numbers]
        return [Call("add", json.dumps({"numbers": "what was found"}))]

    async def _sleep(self, seconds: float) -> None:
        if self.scale:
            await asyncio.sleep(max(0.0, seconds) * self.scale)


def tools_of(graph: Graph, scale: float = 1.0) -> list[FunctionTool]:
    """Return the tools: each call takes the duration of its step, or none if the scale is 0."""

    async def search(query: str) -> str:
        """Search for a thing."""
        if scale:
            await asyncio.sleep(graph.seconds[int(query.split()[1]) - 1] * scale)
        return "21"

    async def add(numbers: str) -> str:  # noqa: ARG001
        """Add numbers up."""
        if scale:
            await asyncio.sleep(graph.seconds[-1] * scale)
        return "42"

    return [tool(search), tool(add)]
