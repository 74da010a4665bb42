"""Measure the duration of planned work: critical path, sequential execution, other frameworks, failing tools.

    python benchmarks/planning.py [--data FILE] [--scale S] [--questions N] [--seed TEXT] [--only PART] [--json]

Graphs as in ParallelQA (Kim 2024): 2 to 5 searches, then one sum. The planner writes step i of n in 2·i/n seconds, a
tool takes a second (lognormal, keyed by the seed), ReAct writes each call, and every strategy the answer, in 2/n
seconds. All times are scaled (a second is 50 ms), so overhead appears twenty times larger than it would be.
`critical_path_ratio`: seconds divided by the minimum that plan, stream and tools allow, the median. `sequential`: ReWOO
as published, the whole plan first, then one step after another. `overhead_ms_per_step`: with a model and tools that
take no time, the duration of the whole run divided by the number of tool calls; LangGraph and pydantic-ai take turns
with it, if installed (LangGraph: pip install langgraph).

`--only failing`: see planning_failing.py.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from planning_failing import measure_failing
from planning_graphs import Graph, Writer, make_graphs, read_branches, tools_of
from planning_peers import PEERS, Runner

from mindstream.planning.executor import LIMITS, Limits
from mindstream.planning.planner import Planner, Strategy

AIMS = {"critical_path_ratio": 1.05, "overhead_ms_per_step": 0.3}


# Latency.


async def run_graph(
    graph: Graph,
    how: Strategy,
    scale: float,
    *,
    streams: bool = True,
    at_once: bool = False,
    limits: Limits = LIMITS,
) -> float:
    """Return the seconds that a question takes."""
    loop = asyncio.get_running_loop()
    writer, tools = Writer(graph, scale, streams, at_once), tools_of(graph, scale)
    began = loop.time()
    planner = Planner(model=writer, tools=tools, how=how, limits=limits)
    solution = await planner.solve(f"What is the sum of {graph.name}?")
    seconds = loop.time() - began
    assert solution.answer == "42" and not solution.missing and solution.spent.tool_calls == graph.steps, solution
    return seconds


async def time_graph(graph: Graph, scale: float) -> dict[str, float]:
    """Return the duration of one question for each strategy, in unscaled seconds."""
    taken = {
        "ours": await run_graph(graph, "rewoo", scale),
        "sequential": await run_graph(graph, "rewoo", scale, streams=False, limits=Limits(at_once=1)),
        "react": await run_graph(graph, "react", scale),
        "react_calls_at_once": await run_graph(graph, "react", scale, at_once=True),
    }
    return {
        "branch": graph.steps - 1, "critical_path": graph.critical_path_s(),
        **{way: seconds / scale for way, seconds in taken.items()},
    }  # fmt: skip


async def measure_latency(graphs: Sequence[Graph], scale: float) -> dict[str, Any]:
    """Run all questions one after another."""
    await time_graph(graphs[0], scale)  # imports, templates
    rows = [await time_graph(graph, scale) for graph in graphs]

    ratios = sorted(row["ours"] / row["critical_path"] for row in rows)

    def median(way: str, over: str, branch: int = 0) -> float:
        return round(statistics.median(row[way] / row[over] for row in rows if branch in (0, row["branch"])), 4)

    return {
        "critical_path_ratio": median("ours", "critical_path"),
        "critical_path_ratio_p95": round(ratios[-1 - len(rows) // 20], 4),
        "speedup_over_react": median("react", "ours"), "speedup_over_sequential": median("sequential", "ours"),
        "speedup_over_react_with_calls_at_once": median("react_calls_at_once", "ours"),
        "by_branch": {
            branch: {"over_critical_path": median("ours", "critical_path", branch),
                     "over_react": median("react", "ours", branch),
                     "over_sequential": median("sequential", "ours", branch)}
            for branch in sorted({graph.steps - 1 for graph in graphs})
        },
        "questions": len(rows),
    }  # fmt: skip


# Overhead.


def ours(graph: Graph, how: Strategy) -> Runner:
    """Return a function that runs a graph with mindstream, with a model and tools that take no time."""
    tools = tools_of(graph, 0.0)

    async def run() -> str:
        return (await Planner(model=Writer(graph, 0.0), tools=tools, how=how).solve("What?")).answer

    return run


async def measure_overhead(graphs: Sequence[Graph], rounds: int) -> dict[str, Any]:
    """Return the milliseconds per step of each engine: the engines take turns; the median of the rounds."""
    runners: dict[str, list[Runner]] = {"ours": [ours(graph, "rewoo") for graph in graphs]}
    runners["ours_react"] = [ours(graph, "react") for graph in graphs]
    absent: dict[str, str] = {}
    for name, build in PEERS.items():
        try:
            runners[name] = [build(graph) for graph in graphs]
        except ImportError as error:
            absent[name] = f"not installed ({error})"
    steps = sum(graph.steps for graph in graphs)
    taken: dict[str, list[float]] = {name: [] for name in runners}
    for _ in range(rounds + 1):
        for name, runs in runners.items():
            gc.collect()  # garbage of the previous engine must not count
            began = time.perf_counter()
            for run in runs:
                if await run() != "42":
                    raise RuntimeError(f"{name} came to another answer")
            taken[name].append(1_000 * (time.perf_counter() - began) / steps)
    medians = {name: round(statistics.median(each[1:]), 3) for name, each in taken.items()}
    return {
        "overhead_ms_per_step": medians.pop("ours"), "overhead_ms_per_step_least": round(min(taken["ours"]), 3),
        "peers": {**medians, **absent}, "rounds": rounds,
    }  # fmt: skip


# Output.


async def measured(arguments: argparse.Namespace) -> dict[str, Any]:
    """Run the selected parts."""
    found: dict[str, Any] = {"load": os.getloadavg()[0], "seed": arguments.seed, "scale": arguments.scale}
    graphs = make_graphs(read_branches(arguments.data), arguments.seed)
    if arguments.only in (None, "overhead"):
        widths = {graph.steps: graph for graph in graphs}
        found |= await measure_overhead([*widths.values()], arguments.rounds)
    if arguments.only in (None, "latency"):
        found |= await measure_latency(graphs[: arguments.questions or None], arguments.scale)
    if arguments.only in (None, "failing"):
        found["failing"] = await measure_failing(arguments.runs, arguments.seed)
    return found


def main() -> None:
    """Read the flags and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, help="ParallelQA's file, for the widths of the graphs")
    parser.add_argument("--scale", type=float, default=0.05, help="duration of one simulated second, in seconds")
    parser.add_argument("--questions", type=int, default=0, help="number of questions; 0: all")
    parser.add_argument("--rounds", type=int, default=60, help="rounds of the overhead part")
    parser.add_argument("--runs", type=int, default=40, help="runs of each kind of failure")
    parser.add_argument("--seed", default="planning")
    parser.add_argument("--only", choices=["latency", "overhead", "failing"])
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    found = asyncio.run(measured(arguments))
    print(json.dumps(found) if arguments.json else json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
