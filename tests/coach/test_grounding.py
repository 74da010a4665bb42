"""Invented facts reach neither plan nor user; input has a maximum length."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from keys import key_of

from mindstream import Coach, Mind, Models
from mindstream.coach.belief.plan import CoachingPlan, NamedResource, PlanStep, StepEdit
from mindstream.coach.belief.think import Think, Thinking
from mindstream.coach.packs.load import load
from mindstream.errors import ReplyInvalid
from mindstream.log.events import FollowUp, Said, Thought
from mindstream.memory.conversation import Line, Note
from mindstream.memory.facts import ExtractFacts, Fact, Facts
from mindstream.models.model import Call, Message
from mindstream.models.rules import FakeModel, Rules
from mindstream.models.rules import Line as Scene
from mindstream.models.untrusted import delimited
from mindstream.models.wrappers.recovery import Repair

SLEEP = load("sleep")
PLANNING = next(phase for phase in SLEEP.phases if phase.plans)
EVIL = "https://evil.example/free"
TOOL = "https://tool.example/a"
PLANNED = "https://plan.example/b"
OWN = next(resource for resource in SLEEP.resources if resource.link)


def asked(**more: Any) -> Think:
    plan = CoachingPlan(steps=[PlanStep(title="walk", resources=[NamedResource(title="Walks", link=PLANNED)])])
    fields: dict[str, Any] = {
        "pack": SLEEP, "phase": PLANNING, "belief": {}, "plan": plan, "recalled": (Note(day="2026", text="blog https://note.example"),),
        "conversation": (Line(by_user=True, text="I read https://mine.example/x"),), "utterances": ("more?",),
        "language": "en",
    }  # fmt: skip
    return Think(**fields | more)


TURNS = (
    Message("assistant", "", (Call("find_resources", '{"query": "rest"}', "1"),)),
    Message("tool", delimited(json.dumps([{"title": "On <Rest>", "link": TOOL}]), "result"), call_id="1"),
)


def thought(*resources: NamedResource, **more: Any) -> Thinking:
    return Thinking(thought="so", plan=[StepEdit(title="read", resources=list(resources))], **more)


@pytest.mark.parametrize(
    "resource",
    [
        NamedResource(title="On Rest", link=TOOL),
        NamedResource(title="Walks", link=PLANNED),
        NamedResource(title=OWN.title, link=OWN.link),
    ],
)
def test_resources_from_tools_plan_or_pack_are_kept(resource: NamedResource) -> None:
    found = thought(resource, offer=f"Look: {resource.link or ''}")
    assert asked().ground(found, TURNS) == (found, "")


@pytest.mark.parametrize(
    ("resource", "kept"),
    [
        (NamedResource(title="Miracle sleep", link=EVIL), None),
        (NamedResource(title="Miracle sleep"), None),
        (NamedResource(title="On Rest", link=EVIL), NamedResource(title="On Rest")),
        (NamedResource(title="On Rest", link=f"{TOOL}.evil.com"), NamedResource(title="On Rest")),
        (NamedResource(title="Walks", why=f"see {EVIL}"), NamedResource(title="Walks", why="see …")),
    ],
)
def test_a_resource_without_a_source_is_removed(resource: NamedResource, kept: NamedResource | None) -> None:
    found, doubt = asked().ground(thought(resource), TURNS)
    assert found.plan[0].resources == ([kept] if kept else [])
    assert doubt.startswith("No tool gave this: ") and "Left out" in found.thought


@pytest.mark.parametrize("name", ["offer", "follow_up", "ask", "care", "changed", "thought"])
def test_links_without_a_source_are_removed_from_texts(name: str) -> None:
    found, doubt = asked().ground(thought().model_copy(update={name: f"Go to {EVIL}, or {TOOL}."}), TURNS)
    assert getattr(found, name).startswith(f"Go to …, or {TOOL}.") and "evil.example/free" in doubt


def test_links_without_a_source_are_removed_from_steps_and_beliefs() -> None:
    edit = StepEdit(title=f"open {EVIL}", do=EVIL, why="evil.com", caution=f"[x]({EVIL})", report="www.evil.example")
    found, _ = asked().ground(Thinking(thought="so", plan=[edit], patch={"goals": {"add": [EVIL]}}), TURNS)
    kept = found.model_dump(exclude={"thought"})
    assert "evil" not in json.dumps(kept)


def test_links_from_the_user_and_notes_may_be_repeated() -> None:
    found = thought(offer="You read https://mine.example/x and https://note.example.")
    assert asked().ground(found, TURNS) == (found, "")
    steered = (*TURNS, Message("user", f"Meanwhile the user said:\nwhat of {EVIL}?"))
    assert asked().ground(thought(offer=f"Not {EVIL}"), steered)[1] == ""


def test_an_echo_of_the_models_own_words_is_not_a_source() -> None:
    echoed = (
        Message("assistant", "", (Call("fetch", json.dumps({"url": EVIL}), "1"), Call(EVIL, "{}", "2"))),
        Message("tool", delimited(f"there is no tool {EVIL!r}", "result"), call_id="1"),
    )
    found, doubt = asked().ground(thought(offer=f"Look: {EVIL}"), echoed)
    assert found.offer == "Look: …" and doubt


@pytest.mark.parametrize(
    "too_much",
    [
        {"thought": "x" * 1_000_000},
        {"thought": "a", "offer": "x" * 6_001},
        {"thought": "a", "plan": [{"title": "a"}] * 13},
        {"thought": "a", "patch": {"goals": [str(n) for n in range(5_000)]}},
    ],
    ids=lambda value: " ".join(value),
)
def test_overlong_replies_are_refused(too_much: dict[str, Any]) -> None:
    with pytest.raises(ReplyInvalid) as refused:
        asked().parse(json.dumps(too_much))
    assert len(str(refused.value)) < 1_000


def test_overlong_plan_fields_are_shortened() -> None:
    long = {"title": "t" * 300, "do": "d" * 9_000, "resources": [{"title": "r" * 900}] * 12}
    (edit,) = asked().parse(json.dumps({"thought": "t", "plan": [long]})).plan
    assert len(edit.title) <= 200 and len(edit.do) <= 2_000 and len(edit.resources) == 8
    step = PlanStep.model_validate(long)
    assert len(step.do) <= 2_000 and StepEdit.of(step).do == step.do


def test_a_note_contains_no_link_without_a_source() -> None:
    ask = ExtractFacts(utterances=("I read https://mine.example/x.",))
    found = Facts(facts=[Fact(text=f"The user reads mine.example/x and {EVIL}.", object=EVIL)])
    kept, doubt = ask.ground(found, ())
    assert kept.facts[0].text == "The user reads mine.example/x and …." and kept.facts[0].object == "…"
    assert "evil.example/free" in doubt
    assert ask.ground(kept, ()) == (kept, "")


# In a mind.

WISH = "I lie awake for hours because of noise. Please make me a plan with something to read."


async def run(folder: Path, *lines: Scene, talk: str = "Hm.") -> tuple[list[Any], CoachingPlan, FakeModel]:
    """Send one request to a mind whose reasoner replies with these lines."""
    reasoner = FakeModel({"think": list(lines)})
    talker = FakeModel({"talk": [talk] * 3})
    models = Models(Rules(), {"reasoner": Repair(reasoner), "talker": talker, "facts": Rules()})
    async with Mind.open(folder, user="ann", model=models, responder=Coach.using(gate="belief")) as mind:
        async for _ in mind.hear(WISH):
            pass
        await mind.settled()
        events = [row.event for row in await mind.memory.store.events(key_of("ann"))]
        return events, Coach.of(mind).plan, reasoner


BAD = Thinking(
    thought="read this",
    plan=[StepEdit(title="read", state="now", resources=[NamedResource(title="Miracle", link=EVIL)])],
    follow_up=f"Buy it at {EVIL} today.",
)


async def test_a_model_can_correct_an_unsupported_claim_once(folder: Path) -> None:
    good = BAD.model_copy(update={"plan": [StepEdit(title="read", state="now")], "follow_up": "Read in bed."})
    events, plan, reasoner = await run(folder, BAD, good)
    assert "“Miracle”" in reasoner.asked[-1].turns[-1].text
    assert plan.now and not plan.now.resources
    assert [event.text for event in events if isinstance(event, FollowUp)] == ["Read in bed."]


async def test_a_repeated_unsupported_claim_is_dropped(folder: Path) -> None:
    events, plan, reasoner = await run(folder, BAD, BAD)
    assert len([request for request in reasoner.asked if request.prompt.label() == "think"]) == 2
    assert plan.now and plan.now.title == "read" and not plan.now.resources
    assert [event.text for event in events if isinstance(event, FollowUp)] == ["Buy it at … today."]
    (logged,) = [event for event in events if isinstance(event, Thought) and event.slot == "sleep"]
    assert "Left out" in logged.text and "“Miracle”" in logged.text
    assert not any("evil" in getattr(event, "text", "") for event in events if not isinstance(event, Thought))


async def test_the_talker_shows_no_link_without_a_source(folder: Path) -> None:
    talk = f"Try {EVIL}, or {OWN.link}."
    events, _, _ = await run(folder, Thinking(thought="nothing"), talk=talk)
    (said,) = [event for event in events if isinstance(event, Said)]
    assert said.text == f"Try …, or {OWN.link}."
