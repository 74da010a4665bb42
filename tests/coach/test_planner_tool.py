"""A reasoner gets a planner by one argument: the coach knows nothing of it, and its answer needs one."""

from __future__ import annotations

import json
from pathlib import Path

from mindstream import Mind, Models, Scripted
from mindstream.log.events import Observed, Said, ToolCalled
from mindstream.models.model import Call, Request
from mindstream.models.rules import Rules
from mindstream.planning.as_tool import planner_tool
from mindstream.tools.named import named_tools

PHASE = json.dumps({"reason": "they ask for something to be looked up", "phase": "planning"})
ASKED = "What do the leaflets on my shelf say of coffee?"
PLAN = """Plan: find the passage on coffee.
#E1 = search_documents[coffee before bed]
"""


def answer_with_found(request: Request) -> str:
    """Say what the tool gave: without it there is nothing to say."""
    found = request.turns[-1].text
    hours = "nine hours" if "nine hours" in found else "nothing"
    return json.dumps({"thought": "looked up", "words": f"The leaflets say {hours} before bed."})


async def test_a_question_that_needs_documents_is_answered_by_a_planner(folder: Path, tmp_path: Path) -> None:
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    (shelf / "coffee.txt").write_text("Coffee: the last cup before bed is nine hours away, says the clinic.\n")
    (shelf / "light.txt").write_text("Light: dim it when the sun goes down.\n")
    planner = Scripted({"make_plan": [PLAN], "answer_from_evidence": ["Nine hours: nine hours before bed."]})
    reasoner = Scripted(
        {
            "infer_phase": [PHASE, PHASE],
            "think_in_phase": [
                json.dumps({"thought": "a plan is wanted"}),
                [Call("solve_task", json.dumps({"task": "What do the leaflets say of coffee before bed?"}))],
                answer_with_found,
            ],
        }
    )
    models = Models(Rules(), {"reasoner": reasoner, "facts": Rules()})
    async with named_tools([f"documents:{shelf}"]) as tools:
        solver = planner_tool(tools, planner)
        async with Mind.open(folder, user="ann", models=models, tools=[solver], gate="belief") as mind:
            for said in ("Coffee keeps me awake. Make me a plan.", ASKED):
                await mind.say(said)
                await mind.settled()
            events = [row.event for row in await mind.stream.store.events("ann")]
    assert [event.tool for event in events if isinstance(event, ToolCalled)] == ["solve_task"]
    (observed,) = [event for event in events if isinstance(event, Observed)]
    assert "the last cup before bed is nine hours away" in observed.text
    answer = [event for event in events if isinstance(event, Said)][-1]
    assert answer.waited and "The leaflets say nine hours before bed." in answer.text
