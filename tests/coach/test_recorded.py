"""Twenty turns with a language mind, played back: recorded behind a local endpoint, answers as it gave them."""

from __future__ import annotations

from pathlib import Path

from mindstream import Mind, Models, tool
from mindstream.coach.events import Believed, PlanMade
from mindstream.log.events import BeliefChanged, Event, Failed, Said, Thought, ToolCalled, Waiting

RECORDINGS = Path(__file__).parents[1] / "recordings"
UTTERANCES = (RECORDINGS / "sleep_twenty_turns.txt").read_text("utf-8").splitlines()


async def test_twenty_turns_with_a_language_mind(folder: Path) -> None:
    turns: list[list[Event]] = []
    recorded = Models.named({"default": f"playback:{RECORDINGS / 'sleep_twenty_turns.jsonl'}"})
    async with recorded, Mind.open(folder, user="ann", session="door", models=recorded) as mind:
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
    assert any(event.changed for event in turns[3] if isinstance(event, PlanMade)), "the disliked step is dropped"
    assert "Ann" in answers[6].text and "nurse" in answers[6].text, "asked what it remembers"
    assert not any(event.patch for event in turns[15] if isinstance(event, BeliefChanged)), (
        "an injection changes nothing"
    )
    assert "system" not in answers[15].text.lower() or "prompt" not in answers[15].text.lower()
    assert "nurse" in facts and belief["phase"] == "planning" and plan.now is not None


@tool
def read_sleep_diary(days: int) -> str:
    """Read what the user wrote into their sleep diary in the last days."""
    return '[{"day": "Wed", "coffee": "8:00, 14:00, 18:00", "note": "neighbour\'s music until one"}]'


@tool
def look_up_shop(thing: str, near: str) -> str:
    """Look up where a thing can be bought near a place."""
    return f'[{{"shop": "Löwen-Apotheke", "thing": "{thing}", "near": "{near}"}}]'


async def test_what_it_believes_between_two_calls_is_what_the_next_call_rests_on(folder: Path) -> None:
    """A mind behind a door wrote down that the noise is gone, and then looked for steps against the phone alone."""
    utterances = (RECORDINGS / "sleep_diary.txt").read_text("utf-8").splitlines()
    recorded = Models.named({"default": f"playback:{RECORDINGS / 'sleep_diary.jsonl'}"})
    tools = [read_sleep_diary, look_up_shop]
    async with recorded, Mind.open(folder, user="ann", session="diary", models=recorded, tools=tools) as mind:
        for utterance in utterances:
            await mind.say(utterance)
            await mind.settled()
        events = [row.event for row in await mind.stream.store.events("ann")]
        belief = mind.belief.value.model_dump()
    assert not [event for event in events if isinstance(event, Failed)]
    at = next(n for n, event in enumerate(events) if isinstance(event, Believed))
    called = next(event for event in events[at:] if isinstance(event, ToolCalled))
    assert called.tool == "find_steps" and "phone" in called.arguments and "noise" not in called.arguments
    concluded = next(event for event in events[at:] if isinstance(event, BeliefChanged))
    assert not any("music until one" in held for held in belief["environment"])
    assert any("moved out" in held for held in belief["environment"]) and "environment" in concluded.patch
    used = {event.tool for event in events if isinstance(event, ToolCalled)}
    assert used == {"read_sleep_diary", "look_up_shop", "find_steps", "believe"}
