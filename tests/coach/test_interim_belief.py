"""Belief changes between two tool calls are visible to the second call (paper 3.2.2)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from keys import key_of

from mindstream import Coach, FakeModel, Mind, Models, Timeouts, tool
from mindstream.coach.events import Believed
from mindstream.log.events import BeliefChanged, Failed, Observed, ToolCalled
from mindstream.models.model import Call, Request
from mindstream.models.rules import Rules


@tool
def bedroom_log(night: str) -> str:
    """Read what the bedroom's sensor noted in a night."""
    return f"{night}: 61 dB at 03:10, a lorry; no light."


@tool
def shops(thing: str) -> str:
    """Look up where something is sold nearby."""
    return f"{thing}: at the chemist's"


def believe(patch: dict[str, Any], rests_on: str = "Something wakes me.") -> list[Call]:
    return [Call("believe", json.dumps({"patch": patch, "rests_on": rests_on}))]


def looked_up(request: Request) -> list[Call]:
    """Call a tool with the belief in the last observation; without it there is nothing to look up."""
    held = json.loads(
        request.turns[-1].text.split("Believed now, in place of what stands above: ")[1].rsplit("\n", 1)[0]
    )
    return [Call("shops", json.dumps({"thing": f"something against {held['sleep_concern'][0]}"}))]


async def run(folder: Path, *thinking: Any) -> tuple[Mind, list[Any], FakeModel]:
    scripted = FakeModel({"think": thinking})
    models = Models(Rules(), {"reasoner": scripted, "facts": Rules()})
    async with Mind.open(folder, user="ann", model=models, tools=[bedroom_log, shops], responder=Coach.using()) as mind:
        await mind.send("Something wakes me. Make me a plan.")
        await mind.settled()
        return mind, [row.event for row in await mind.memory.store.events(key_of("ann"))], scripted


async def test_a_belief_change_between_two_calls_is_visible_in_the_second(folder: Path) -> None:
    final = json.dumps(
        {"thought": "the lorry wakes them", "patch": {"barriers": ["a lorry at three"]}, "rests_on": "03:10, a lorry"}
    )
    _, events, scripted = await run(
        folder,
        [Call("bedroom_log", '{"night": "Monday"}')],
        believe({"sleep_concern": ["noise"]}, "61 dB at 03:10"),
        looked_up,
        final,
    )
    kinds = (ToolCalled, Observed, Believed, BeliefChanged)
    told = [event for event in events if isinstance(event, kinds)]
    assert [
        event.tool if isinstance(event, ToolCalled) else type(event).__name__
        for event in told
        if not isinstance(event, Observed)
    ] == ["bedroom_log", "believe", "Believed", "shops", "BeliefChanged"]
    (call,) = [event for event in told if isinstance(event, ToolCalled) and event.tool == "shops"]
    assert json.loads(call.arguments) == {"thing": "something against noise"}
    (changed,) = [event for event in told if isinstance(event, BeliefChanged)]
    assert changed.version == 1
    assert changed.patch["sleep_concern"] == ["noise"]
    assert changed.patch["barriers"] == ["a lorry at three"]
    assert not [event for event in events if isinstance(event, Failed)]
    assert [spec.name for spec in scripted.asked[1].tools] == [
        "find_steps", "find_resources", "recall", "bedroom_log", "shops", "believe",
    ]  # fmt: skip


async def test_an_invalid_patch_is_answered_with_the_error(folder: Path) -> None:
    wrong: list[dict[str, Any]] = [{"shoe_size": 43}, {"sleep_concern": ["x" * 20_000]}, {"phase": "planning"}]
    first = [Call("bedroom_log", '{"night": "Monday"}')]
    _, events, _ = await run(folder, first, *map(believe, wrong), json.dumps({"thought": "nothing"}))
    told = [event for event in events if isinstance(event, Observed) and event.tool == "believe"]
    assert [event.failed for event in told] == [True, True, False]
    assert "has no field 'shoe_size'" in told[0].text
    assert "16,000 characters" in told[1].text
    (changed,) = [event for event in events if isinstance(event, BeliefChanged)]
    assert "shoe_size" not in changed.patch


async def test_a_resumed_run_repeats_no_call(folder: Path) -> None:
    calls = 0

    @tool
    def order(what: str) -> str:
        """Order something: it must not be ordered twice."""
        nonlocal calls
        calls += 1
        return f"{what} is on its way" + "." * 3_000

    def broken(_: Request) -> str:
        raise KeyError("not a model error: no rule replaces it and the run fails")

    think = [[Call("order", '{"what": "earplugs"}')], believe({"sleep_concern": ["noise"]})]
    final = json.dumps({"thought": "ordered"})
    scripted = FakeModel({"think": [*think, broken, *think, final]})
    models = Models(Rules(), {"reasoner": scripted, "facts": Rules()})
    async with Mind.open(
        folder, user="ann", model=models, tools=[order], timeouts=Timeouts(retry_s=0.01), responder=Coach.using()
    ) as mind:
        await mind.send("Something wakes me. Make me a plan.")
        await mind.settled()
        events = [row.event for row in await mind.memory.store.events(key_of("ann"))]
    assert calls == 1
    assert [event.tool for event in events if isinstance(event, ToolCalled)] == ["order", "believe", "believe"]
    assert any(len(event.text) > 3_000 for event in events if isinstance(event, Observed)), "the whole result is stored"
    (changed,) = [event for event in events if isinstance(event, BeliefChanged)]
    assert changed.patch["sleep_concern"] == ["noise"]
    assert "is on its way" in scripted.asked[-1].turns[1].text
