"""No unsupported claim enters a belief or a note: it is sent back once, then dropped and reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from keys import key_of

from mindstream import Coach, FakeModel, Mind, Models
from mindstream.log.events import BeliefChanged, Observed, Thought
from mindstream.models.model import Call
from mindstream.models.rules import Rules
from mindstream.models.wrappers.recovery import Repair
from mindstream.tools.tool import tool


def thought(**more: Any) -> str:
    return json.dumps({"thought": "so it is", **more})


async def talked(folder: Path, said: str, role: str, prompt: str, *replies: Any, **more: Any) -> tuple[Mind, FakeModel]:
    scripted = FakeModel({prompt: replies})
    models = Models(Rules(), {"reasoner": Rules(), "facts": Rules(), role: Repair(scripted)})
    async with Mind.open(folder, user="ann", session="s", model=models, responder=Coach.using(), **more) as mind:
        await mind.send(said)
        await mind.settled()
    return mind, scripted


async def events(mind: Mind, folder: Path) -> list[Any]:
    async with Mind.open(folder, user="ann", responder=None) as again:
        return [row.event for row in await again.memory.store.events(key_of("ann"))]


async def test_an_unsupported_claim_is_returned_once_and_then_dropped(folder: Path) -> None:
    made_up = thought(
        patch={
            "life_situation": ["married, two dogs"],
            "goals": ["fly to the moon"],
            "environment": ["a street full of lorries"],
        },
    )
    said = "I lie awake because of the lorries in our street."
    mind, scripted = await talked(folder, said, "reasoner", "think", made_up, made_up)
    told = await events(mind, folder)
    (changed,) = [event for event in told if isinstance(event, BeliefChanged)]
    assert changed.patch["environment"] == ["a street full of lorries"], "in the user's own words"
    assert not changed.patch.get("life_situation") and not changed.patch.get("goals")
    sent_back = scripted.asked[-1].turns[-1].text
    assert "married, two dogs" in sent_back and "fly to the moon" in sent_back and "lorries" not in sent_back
    assert any("rests on nothing" in event.text for event in told if isinstance(event, Thought))


async def test_facts_without_support_are_not_noted(folder: Path) -> None:
    facts = {
        "facts": [
            {"text": "The user drinks three coffees a day.", "predicate": "caffeine", "object": "three"},
            {"text": "The user has a spouse.", "predicate": "family", "object": "spouse"},
            {"text": "The user is a nurse.", "predicate": "job", "object": "nurse", "rests_on": "I work on a ward"},
        ]
    }
    said = "I drink three coffees a day, I work on a ward."
    _, scripted = await talked(folder, said, "facts", "extract_facts", json.dumps(facts), json.dumps(facts))
    async with Mind.open(folder, user="ann", responder=None) as again:
        notes = [record.text for record in await again.memory.latest("note", 9)]
    assert notes == ["The user drinks three coffees a day.", "The user is a nurse."]
    assert "spouse" in scripted.asked[-1].turns[-1].text


async def test_a_belief_between_two_calls_can_cite_a_tool_result(folder: Path) -> None:
    @tool
    def bedroom_log() -> str:
        """Read the bedroom's sensor."""
        return "61 dB at 03:10"

    def believe(rests_on: str) -> list[Call]:
        return [Call("believe", json.dumps({"patch": {"environment": ["loud at three"]}, "rests_on": rests_on}))]

    mind, _ = await talked(
        folder, "Something wakes me.", "reasoner", "think", believe("61 dB at 03:10"),
        [Call("bedroom_log", "{}")], believe("61 dB at 03:10"), thought(), tools=[bedroom_log],
    )  # fmt: skip
    told = await events(mind, folder)
    observed = [event for event in told if isinstance(event, Observed) and event.tool == "believe"]
    assert [event.failed for event in observed] == [False], "before the tool's result, the tool is not even offered"
    (changed,) = [event for event in told if isinstance(event, BeliefChanged)]
    assert changed.patch["environment"] == ["loud at three"]
