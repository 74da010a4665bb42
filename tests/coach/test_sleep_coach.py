"""The coach without a model: the paper's dialogue, and memory per user."""

from __future__ import annotations

from pathlib import Path

from mindstream import Coach, Mind
from mindstream.log.events import BeliefChanged, Event, PlanChanged, Said, Waiting

PAPER = (
    "Hey, I need your help planning how to create a relaxing bedtime environment.",
    "I think noise and light might be distracting me. Can you make me a plan to get rid of them?",
    "Sure, that's useful. But I would rather go step by step. Also look for resources on how to create a quiet,"
    " relaxing atmosphere in the bedroom.",
    "I don't like that step, painting walls is not for me.",
    "What do you remember about me?",
)


async def played(folder: Path, *utterances: str, user: str = "ann", gate: str = "") -> list[list[Event]]:
    """Talk, waiting for the reasoners after each utterance; return each turn's events in the order of the log."""
    turns: list[list[Event]] = []
    async with Mind.open(folder, user=user, responder=Coach.using(gate=gate)) as mind:
        for utterance in utterances:
            seq = 0
            async for logged in mind.hear(utterance):
                seq = seq or logged.seq
            await mind.settled()
            turns.append([logged.event for logged in await mind.memory.store.events(mind.memory.key, after=seq - 1)])
    return turns


def of(kind: type[Event], events: list[Event]) -> list[Event]:
    return [event for event in events if isinstance(event, kind)]


def said(events: list[Event]) -> Said:
    (event,) = (event for event in events if isinstance(event, Said))
    return event


async def test_the_papers_dialogue_without_a_model(folder: Path) -> None:
    """Rules read a pack's words: topics fill fields, fields end phases, a step is given when the plan exists."""
    first, second, third, fourth, fifth = await played(folder, *PAPER, gate="belief")

    assert "No language model is set up" in said(first).text and "?" in said(first).text
    version = next(event.version for event in first if isinstance(event, BeliefChanged))
    patch = next(event.patch for event in first if isinstance(event, BeliefChanged))
    assert patch["phase"] == "understanding"

    assert said(second).belief_version == version, "the quick answer uses the belief of turn 1"
    assert second.index(said(second)) < second.index(of(BeliefChanged, second)[0])
    caught_up = next(event.patch for event in second if isinstance(event, BeliefChanged))
    assert caught_up["phase"] == "planning"
    assert isinstance(caught_up["sleep_concern"], list) and set(caught_up["sleep_concern"]) == {"noise", "light"}

    assert isinstance(third[1], Waiting), "the waiting event is immediate"
    plan = next(event for event in third if isinstance(event, PlanChanged))
    assert "(now)" in plan.text and said(third).waited and "Why:" in said(third).text

    assert not of(PlanChanged, fourth) and "next" in said(fourth).text, "a dislike is not parsed; only its word is"
    assert "noise and light" in said(fifth).text


async def test_a_new_process_remembers_and_another_user_does_not(folder: Path) -> None:
    await played(folder, "My name is Mira.", "I work nights at the harbour and my flat is hot.")
    (mine,) = await played(folder, "What do you remember about me?")
    assert "Mira" in said(mine).text and "harbour" in said(mine).text
    (other,) = await played(folder, "What do you remember about me?", user="bob")
    assert "Mira" not in said(other).text and "harbour" not in said(other).text
