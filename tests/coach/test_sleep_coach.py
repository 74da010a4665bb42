"""The main job with rules: the paper's dialogue, and other words than the paper's."""

from __future__ import annotations

import itertools
import random
import re
from pathlib import Path

import pytest

from mindstream import Mind
from mindstream.coach.events import PlanMade
from mindstream.coach.packs.load import load
from mindstream.log.events import BeliefChanged, Event, Observed, Said, ToolCalled, Waiting

PAPER = load("sleep").demo


async def played(folder: Path, *utterances: str, user: str = "ann", **more: str) -> list[list[Event]]:
    """Talk, waiting for the reasoners after each utterance; return each turn's events in the order of the log."""
    turns: list[list[Event]] = []
    async with Mind.open(folder, user=user, **more) as mind:  # type: ignore[arg-type]
        for utterance in utterances:
            seq = 0
            async for logged in mind.hear(utterance):
                seq = seq or logged.seq
            await mind.settled()
            turns.append([logged.event for logged in await mind.stream.store.events(user, after=seq - 1)])
    return turns


def of(kind: type[Event], events: list[Event]) -> list[Event]:
    return [event for event in events if isinstance(event, kind)]


def said(events: list[Event]) -> Said:
    (event,) = (event for event in events if isinstance(event, Said))
    return event


async def test_the_papers_dialogue(folder: Path) -> None:
    first, second, third, fourth, fifth = await played(folder, *PAPER, gate="belief")

    assert "?" in said(first).text and not said(first).waited
    version = next(event.version for event in first if isinstance(event, BeliefChanged))
    patch = next(event.patch for event in first if isinstance(event, BeliefChanged))
    assert patch["phase"] == "understanding"

    assert said(second).belief_version == version, "the snap judgement speaks from the belief of turn 1"
    assert second.index(said(second)) < second.index(of(BeliefChanged, second)[0])
    caught_up = next(event.patch for event in second if isinstance(event, BeliefChanged))
    assert caught_up["phase"] == "planning"
    assert isinstance(caught_up["sleep_concern"], list) and set(caught_up["sleep_concern"]) == {"noise", "light"}

    assert isinstance(third[1], Waiting), "waiting comes at once"
    plan = next(event for event in third if isinstance(event, PlanMade))
    assert of(ToolCalled, third) and of(Observed, third)
    assert said(third).text == plan.text and said(third).waited
    assert re.findall(r"^\d\. “.+” \(.+\): .+", said(third).text, re.MULTILINE)[1], "two resources, each with why"
    assert "Why:" in said(third).text

    changed = next(event for event in fourth if isinstance(event, PlanMade))
    assert "dropped" in changed.changed and changed.text != plan.text
    assert said(fourth).text == changed.text

    assert "noise and light" in said(fifth).text


async def test_a_new_process_remembers_and_another_user_does_not(folder: Path) -> None:
    await played(folder, "My name is Mira.", "I work nights at the harbour and my flat is hot.")
    (mine,) = await played(folder, "What do you remember about me?")
    assert "Mira" in said(mine).text and "harbour" in said(mine).text
    (other,) = await played(folder, "What do you remember about me?", user="bob")
    assert "Mira" not in said(other).text and "harbour" not in said(other).text


ODD = [
    "I wake at three with racing thoughts", "we have a newborn and I drink much coffee", "ok", "no", "?", "k", "hm",
    "u suck", "this is stupid", "i cant slep becuase of nosie", "我睡不着", "没有", "嗯", "why", "blue", "12", "🙂",
    "thanks", "what helps?", "I don't know", "tell me more", "and then?", "my dog snores", "SLEEP!!!", "nothing works",
]  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
async def test_nothing_is_ever_answered_with_the_same_words_twice_running(folder: Path, seed: int) -> None:
    chance = random.Random(seed)
    utterances = [chance.choice(ODD) for _ in range(14)] + ["ok"] * 4 + ["no", "no", "no", "thanks", "thanks"]
    answers = [said(turn).text for turn in await played(folder, *utterances)]
    assert all(answers)
    assert all(one != two for one, two in itertools.pairwise(answers))


async def test_nothing_is_claimed_that_was_not_said(folder: Path) -> None:
    turns = await played(
        folder, "I can't sleep.", "blue", "no", "I don't drink coffee", "What do you remember about me?"
    )
    for turn in turns:
        for event in turn:
            if isinstance(event, BeliefChanged):
                assert "caffeine" not in str(event.patch.get("habits", ""))
    assert "noise" not in said(turns[-1]).text and "stress" not in said(turns[-1]).text


async def test_the_language_of_the_user_is_answered(folder: Path) -> None:
    for turn in await played(folder, "你好", "我凌晨三点总是醒", "给我一个计划吧", "一步一步来", "你记得我什么"):
        chinese = len(re.findall(r"[\u4e00-\u9fff]", said(turn).text))
        assert chinese > 0.5 * len(re.sub(r"[\W\d]|[A-Za-z]{3,}", "", said(turn).text))


async def test_a_wish_for_a_plan_waits_in_any_phase_and_thanks_in_none(folder: Path) -> None:
    first, second, third = await played(
        folder, "The noise from the street keeps me up.", "Can you make me a plan?", "thanks"
    )
    assert not said(first).waited and said(second).waited and not said(third).waited
    assert next(event for event in second if isinstance(event, PlanMade)).text == said(second).text
