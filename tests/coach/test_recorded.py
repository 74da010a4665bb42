"""Twenty turns with a language mind, played back: recorded behind a local endpoint, answers as it gave them."""

from __future__ import annotations

from pathlib import Path

from mindstream import Mind, Models
from mindstream.coach.events import PlanMade
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
            turns.append([row.event for row in mind.stream.store.events("ann", after=seq - 1)])
        belief, plan = mind.belief.value.model_dump(), mind.plan
        facts = " ".join(record.text for record in mind.stream.latest("note", 100))
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
