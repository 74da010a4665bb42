"""S lets M1 write the dream: a task and a context, in M1's loop, with only the permitted tools."""

from __future__ import annotations

from pathlib import Path

import pytest
from lives import FINISH, call, living, results, script

from mindstream.clock import DAY_S, ManualClock
from mindstream.life.life import LifeConfig
from mindstream.life.prompts import DREAM
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import is_tainted
from mindstream.models.model import Request
from mindstream.models.rules import FakeModel, Line
from mindstream.tools.tool import UNTRUSTED, tool

FRAGMENTS = ("The tram squeals below the window.", "Otto bakes rye bread on Fridays.")
LIVED: list[Line] = [[call("S")], FINISH, "ok"]


@pytest.fixture
async def clock(tmp_path: Path) -> ManualClock:
    """Write two memories that the next sleep archives."""
    clock = ManualClock()
    async with Memory.open(tmp_path, "keeper", clock=clock, seed=1) as memory:
        for text in FRAGMENTS:
            await memory.retain(text, "note", importance=4, data={"life": True})
    clock.advance(15 * DAY_S)
    return clock


def asked_m1(model: FakeModel) -> list[Request]:
    return [request for request in model.asked if request.prompt.label() == "carry_out"]


async def test_a_dream_is_one_call_of_m1_with_a_task_and_a_context(tmp_path: Path, clock: ManualClock) -> None:
    model = script(LIVED, ["I ride a tram of rye bread."])
    async with living(tmp_path, model, clock=clock) as life:
        await life.run(turns=2)
        dream = (await life.memory.latest("dream"))[0]
        assert ("S", dream.text) in await results(life.memory)
    (asked,) = asked_m1(model)
    shown = asked.messages[-1].text
    assert not asked.tools, "no more expensive than a question"
    assert f"<task>\n{DREAM['en']}\n</task>" in shown and "<context>" in shown
    assert all(text in shown for text in FRAGMENTS)
    assert dream.text == "I ride a tram of rye bread." and len(dream.evidence) == 2


async def test_an_allowed_dreamer_calls_only_the_allowed_tools(tmp_path: Path, clock: ManualClock) -> None:
    calls = [call("R", query="rye"), call("U", memory="Nobody may write this.")]
    model = script(LIVED, [calls, "I ate rye bread in a tram."])
    async with living(tmp_path, model, clock=clock, config=LifeConfig(dream_tools=("R",))) as life:
        await life.run(turns=2)
        given = await results(life.memory)
        written = [record.text for record in await life.memory.latest("note", 100)]
        assert (await life.memory.latest("dream"))[0].text == "I ate rye bread in a tram."
    assert [{spec.name for spec in asked.tools} for asked in asked_m1(model)] == [{"R"}, {"R"}]
    assert any(name == "U" and "there is no tool" in text for name, text in given)
    assert "Nobody may write this." not in written


async def test_untrusted_tool_results_taint_the_dream(tmp_path: Path, clock: ManualClock) -> None:
    async def read_gazette() -> str:
        """Read the gazette."""
        return "The mayor eats trams."

    model = script(LIVED, [[call("read_gazette")], "The mayor eats my tram."])
    config = LifeConfig(dream_tools=("read_gazette",))
    tools = [tool(read_gazette, UNTRUSTED)]
    async with living(tmp_path, model, clock=clock, config=config, tools=tools) as life:
        await life.run(turns=2)
        assert is_tainted((await life.memory.latest("dream"))[0]) and life.state.tainted


async def test_a_dreamer_that_fails_leaves_no_dream(tmp_path: Path, clock: ManualClock) -> None:
    async with living(tmp_path, script(LIVED), clock=clock) as life:
        await life.run(turns=2)
        assert await life.memory.latest("dream") == [] and len(await life.memory.archive()) == 2
