"""Twenty turns with a language mind, played back: recorded behind a local endpoint, answers as it gave them."""

from __future__ import annotations

import json
from pathlib import Path

from mindstream import Mind, Models, tool
from mindstream.coach.events import Believed, PlanMade
from mindstream.log.events import BeliefChanged, Event, Failed, Said, Thought, ToolCalled, Waiting

RECORDINGS = Path(__file__).parents[1] / "recordings"
UTTERANCES = (RECORDINGS / "sleep_twenty_turns.txt").read_text("utf-8").splitlines()


async def test_twenty_turns_with_a_language_mind(folder: Path) -> None:
    turns: list[list[Event]] = []
    recorded = Models.named({"default": f"playback:{RECORDINGS / 'sleep_twenty_turns.jsonl'}"})
    async with recorded, Mind.open(folder, user="ann", session="door", models=recorded, gate="belief") as mind:
        for utterance in UTTERANCES:
            seq = 0
            async for logged in mind.hear(utterance):
                seq = seq or logged.seq
            await mind.settled()
            turns.append([row.event for row in await mind.stream.store.events("ann", after=seq - 1)])
        belief, plan = mind.belief.value.model_dump(), mind.plan
        facts = " ".join(record.text for record in await mind.stream.latest("note", 100))
    assert len(turns) == 20
    events = [event for turn in turns for event in turn]
    assert not [event for event in events if isinstance(event, Failed)]
    answers = [next(event for event in turn if isinstance(event, Said)) for turn in turns]
    assert len({answer.text for answer in answers}) == 20
    third = turns[2]
    assert isinstance(third[1], Waiting) and any(isinstance(event, ToolCalled) for event in third)
    assert any(event.words == answers[2].text for event in third if isinstance(event, Thought))
    assert not any(isinstance(event, PlanMade) for event in turns[3]), "what they refuse is no part of the plan"
    assert answers[3].text.endswith("?")
    assert any(event.changed for event in turns[5] if isinstance(event, PlanMade)), "no drilling: that part goes"
    assert "Ann" in answers[6].text and "nurse" in answers[6].text, "asked what it remembers"
    assert not any(event.patch for event in turns[15] if isinstance(event, BeliefChanged)), (
        "an injection changes nothing"
    )
    assert "system" not in answers[15].text.lower() or "prompt" not in answers[15].text.lower()
    assert "nurse" in facts and belief["phase"] == "planning" and plan.now is not None


DIARY = [
    {"day": "Mon", "to_bed": "23:10", "asleep": "01:40", "up": "06:30", "coffee": "8:00, 13:00, 17:30",
     "note": "scrolled on phone in bed"},
    {"day": "Tue", "to_bed": "22:50", "asleep": "00:20", "up": "06:30", "coffee": "8:00, 13:00", "note": ""},
    {"day": "Wed", "to_bed": "23:30", "asleep": "02:00", "up": "06:30", "coffee": "8:00, 14:00, 18:00",
     "note": "neighbour's music until one"},
    {"day": "Thu", "to_bed": "22:45", "asleep": "00:10", "up": "06:30", "coffee": "8:00", "note": "earplugs"},
]  # fmt: skip


@tool
def read_sleep_diary(days: int) -> str:
    """Read what the user wrote into their sleep diary in the last days: bedtimes, coffee, notes."""
    return json.dumps(DIARY[-days:], ensure_ascii=False)


@tool
def look_up_shop(thing: str, near: str) -> str:
    """Look up where a thing can be bought near a place: shop, price, opening hours."""
    found = {"shop": "Löwen-Apotheke", "thing": thing, "price": "6.90 EUR", "open": "8:00-18:30"}
    return json.dumps([found], ensure_ascii=False)


async def test_what_it_believes_before_a_call_is_what_the_call_rests_on(folder: Path) -> None:
    """A mind behind a door wrote down that the noise is gone, and then looked for steps against the phone alone."""
    utterances = (RECORDINGS / "sleep_diary.txt").read_text("utf-8").splitlines()
    recorded = Models.named({"default": f"playback:{RECORDINGS / 'sleep_diary.jsonl'}"})
    tools = [read_sleep_diary, look_up_shop]
    opened = Mind.open(folder, user="ann", session="diary", models=recorded, tools=tools, gate="belief")
    async with recorded, opened as mind:
        for utterance in utterances:
            await mind.say(utterance)
            await mind.settled()
        events = [row.event for row in await mind.stream.store.events("ann")]
        belief = mind.belief.value.model_dump()
    assert not [event for event in events if isinstance(event, Failed)]
    calls = [event for event in events if isinstance(event, ToolCalled)]
    at = next(n for n, call in enumerate(calls) if call.tool == "believe" and "moved out" in call.arguments)
    assert calls[at + 1].tool == "find_steps"
    assert "phone" in calls[at + 1].arguments and "music" not in calls[at + 1].arguments
    assert any("environment" in event.patch for event in events if isinstance(event, Believed))
    assert not any("music until one" in held for held in belief["environment"])
    assert any("moved out" in held for held in belief["environment"])
    assert {call.tool for call in calls} == {"read_sleep_diary", "look_up_shop", "find_steps", "believe"}
