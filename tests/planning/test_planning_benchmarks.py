"""Small versions of the benchmarks of planning: what they measure holds, and their controls fail."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import planning
import planning_failing
import pytest
import tokens
from planning_graphs import BRANCHES, make_graphs
from tokens_data import ANSWER, EVIDENCE, OBSERVED, PLANS, REACT, read_questions

from mindstream.planning.executor import Limits

T = TypeVar("T")


def record(path: Path) -> Path:
    """Write six questions of our own in the form of the authors' file."""
    traces, plans = ["Act like this."], []
    for n, mapping in enumerate(EVIDENCE):
        question = f"Question: Which of the lighthouses of coast {n} was lit first?"
        rounds = 1 + max(at for _, ats in mapping.values() for at in ats)
        seen = [
            f"The light {n}.{k} was lit in 18{n}{k}, and is kept by the harbour of the town." for k in range(rounds)
        ]
        acted = [
            f"Thought: I have to look at number {k}.\nAction: Search[light {n}.{k}]\nObservation: {text}"
            for k, text in enumerate(seen)
        ]
        traces.append("\n".join([question, *acted, f"Thought: It is clear.\nAction: Finish[light {n}.0]"]))
        steps = [
            f"Plan: Look.\n#{id} = {'Wikipedia' if kind == OBSERVED else 'LLM'}[lights, given #{before}]"
            for (id, (kind, _)), before in zip(mapping.items(), ["E9", *mapping], strict=False)
        ]
        plans.append("\n".join([question, *steps]).replace(", given #E9", ""))
        assert mapping[[*mapping][-1]][0] == ANSWER
    traces.append("Question: {input}\n")
    path.write_text(json.dumps({REACT: "\n\n".join(traces), PLANS: "\n\n".join(plans)}), "utf-8")
    return path


async def test_rewoo_takes_fewer_tokens_than_react_and_the_prefix_is_why(tmp_path: Path) -> None:
    found = await tokens.measure(read_questions(record(tmp_path / "exemplars.json")))
    assert found["ratio_mean"] > found["ratio_mean_zero_shot"] and found["ratio_mean"] > 1.5
    assert all(found["controls"][name] < found["ratio_mean"] for name in tokens.CONTROLS)
    assert all(row["react_calls"] > 2 and row["rewoo_calls"] >= 3 for row in found["questions"])


def test_our_headers_are_no_longer_than_the_authors() -> None:
    ours = tokens.static_tokens()
    assert ours["planner"] <= tokens.AUTHORS["planner"] and ours["solver"] <= tokens.AUTHORS["solver"]


class JumpingLoop(asyncio.SelectorEventLoop):
    """A loop in which waiting takes no time."""

    def __init__(self) -> None:
        super().__init__()
        self._now, select = 0.0, self._selector.select  # type: ignore[attr-defined]

        def jump(timeout: float | None = None) -> Any:
            ready = select(0 if timeout is not None else 0.01)
            self._now += 0 if ready else timeout or 0
            return ready

        self._selector.select = jump  # type: ignore[attr-defined]

    def time(self) -> float:
        return self._now


def run_jumping(work: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(work)


@pytest.mark.parametrize("graph", make_graphs((2, 3, 4, 5), "test"), ids=lambda graph: f"{graph.steps - 1} searches")
def test_a_plan_takes_as_long_as_its_critical_path_and_other_ways_longer(graph: Any) -> None:
    least = graph.critical_path_s()
    assert run_jumping(planning.run_graph(graph, "rewoo", 1.0)) == pytest.approx(least)
    one_by_one = planning.run_graph(graph, "rewoo", 1.0, streams=False, limits=Limits(at_once=1))
    assert run_jumping(one_by_one) == pytest.approx(graph.sequential_s())
    assert run_jumping(planning.run_graph(graph, "react", 1.0)) == pytest.approx(graph.sequential_s())
    assert least < graph.sequential_s()


async def test_the_overhead_is_counted_and_who_is_not_installed_is_named() -> None:
    found = await planning.measure_overhead(make_graphs(BRANCHES[:2], "test"), rounds=1)
    assert found["overhead_ms_per_step"] > 0 and {"ours_react", "langgraph", "pydantic_ai"} == found["peers"].keys()
    assert all(isinstance(each, float) or "not installed" in each for each in found["peers"].values())


async def test_whatever_tools_do_a_run_ends_and_says_what_is_missing() -> None:
    found = await planning_failing.measure_failing(runs=3, seed="test")
    assert found["holds"], found["rows"]
    assert found["control_fails"] == ["exception", "hang", "large", "not_utf8"]
    assert all(kept["rewoo"] >= kept["rewoo_unmended"] for kept in found["kept"].values())
    assert max(found["budget"]["exceeded_by"].values()) <= 1 and not found["budget"]["ended_without_a_word"]
    assert found["budget"]["control_exceeds_by"] > 1
