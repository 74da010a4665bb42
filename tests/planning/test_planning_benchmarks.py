"""Small versions of the planning benchmarks: their results hold, and their controls fail."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import planning
import planning_failing
import pytest
import tokens
from planning_graphs import make_graphs

from mindstream.planning.executor import Limits

T = TypeVar("T")


def test_prompt_headers_are_no_longer_than_the_authors() -> None:
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
def test_a_plan_takes_its_critical_path_and_other_strategies_take_longer(graph: Any) -> None:
    least = graph.critical_path_s()
    assert run_jumping(planning.run_graph(graph, "rewoo", 1.0)) == pytest.approx(least)
    one_by_one = planning.run_graph(graph, "rewoo", 1.0, streams=False, limits=Limits(at_once=1))
    assert run_jumping(one_by_one) == pytest.approx(graph.sequential_s())
    assert run_jumping(planning.run_graph(graph, "react", 1.0)) == pytest.approx(graph.sequential_s())
    assert least < graph.sequential_s()


async def test_runs_with_failing_tools_end_and_name_the_missing_parts() -> None:
    found = await planning_failing.measure_failing(runs=3, seed="test")
    assert found["holds"], found["rows"]
    assert found["control_fails"] == ["exception", "hang", "large", "not_utf8"]
    assert all(kept["rewoo"] >= kept["rewoo_unmended"] for kept in found["kept"].values())
    assert max(found["budget"]["exceeded_by"].values()) <= 1 and not found["budget"]["ended_without_a_word"]
    assert found["budget"]["control_exceeds_by"] > 1
