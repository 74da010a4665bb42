"""What the Reasoner would like to know: asked when it fits, let go when it was answered; never in small talk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mindstream import Mind, Models, Scripted
from mindstream.coach.belief.plan import Plan
from mindstream.coach.gates.gate import Situation
from mindstream.coach.open_question import AGAIN, Timing, open_question
from mindstream.coach.packs.load import load
from mindstream.coach.talk import Talk
from mindstream.log.events import Thought
from mindstream.memory.store import Entry
from mindstream.models.rules import Rules
from mindstream.reasoners.conversation import Line

SLEEP = load("sleep")
QUESTION = "Who else sleeps in the room with you?"
ASKED = f"I see. {QUESTION}"
TIMING = Timing(SLEEP)


def may_ask(*turns: str | tuple[str, str], now: str = "I turn over for hours.") -> tuple[str, bool]:
    """Return what may be asked after turns: what the mind said, and what the user answered to it."""
    pairs = [(turn, "hm") if isinstance(turn, str) else turn for turn in turns]
    history = [Line(by_user=by_user, text=text) for pair in pairs for by_user, text in enumerate(pair)]
    return TIMING.may_ask(QUESTION, history, Situation(now, SLEEP.phases[0]))


def test_a_question_that_was_passed_over_is_asked_once_more_and_then_never() -> None:
    others = ["Mm.", "Tell me more?", "All right.", "Good.", "Fine.", "Yes.", "So.", "Oh."]
    assert may_ask(*others) == (QUESTION, False)
    chances = [back for back in range(len(others)) if may_ask(ASKED, *others[:back]) == (QUESTION, True)]
    assert chances == list(AGAIN), "not at once, and not for ever"
    assert all(may_ask(ASKED, *others[:5], ASKED, *others[:back]) == ("", True) for back in range(len(others)))
    assert may_ask(QUESTION.replace("?", ".")) == (QUESTION, False), "that was no question"


LATER = ["Mm.", "All right.", "Good.", "Fine.", "Yes."]


@pytest.mark.parametrize(
    "reply",
    ["My husband, and he's a heavy sleeper", "nobody", "Well, the baby, most nights", "not sure", "只有我一个人"],
)
def test_anything_that_answers_it_lets_it_go(reply: str) -> None:
    assert may_ask((ASKED, reply), *LATER) == ("", True)
    assert may_ask(ASKED, now=reply) == ("", True), "nor is it asked in answer to that"


@pytest.mark.parametrize("reply", ["haha", "why do you want to know?", "can you make me a plan?", "ok"])
def test_what_passes_it_over_does_not(reply: str) -> None:
    assert may_ask((ASKED, reply), *LATER) == (QUESTION, True)


def test_what_speaks_of_it_later_or_before_it_is_asked_answers_it_too() -> None:
    assert may_ask(ASKED, ("Good.", "My sister sleeps in the other room."), *LATER) == ("", True)
    assert may_ask("Mm.", now="Nobody sleeps in my room, only me.") == ("", False)


def test_it_is_known_again_in_other_words() -> None:
    assert may_ask("And does anyone sleep in the room with you?")[1], "asked just now"


@pytest.mark.parametrize("small", ["haha", "thanks!", "nice weather today", "你喜欢听歌吗", "see you tomorrow"])
def test_it_is_never_put_in_small_talk(small: str) -> None:
    assert may_ask("Good.", now=small) == ("", False)


async def test_it_is_over_with_its_phase(folder: Path) -> None:
    async def thinks(phase: str, asks: str) -> None:
        thought = Thought(slot="sleep", about=(), text=f"{phase}: so it is", model="m", ask_next=asks)
        await mind.stream.commit(Entry(thought, "sleep"))

    async with Mind.open(folder, user="ann") as mind:
        await thinks("understanding", QUESTION)
        assert await open_question(mind.stream, "sleep", "understanding") == QUESTION
        assert await open_question(mind.stream, "sleep", "planning") == ""
        await thinks("planning", "Who else sleeps in the same room with you?")
        assert await open_question(mind.stream, "sleep", "planning") == "", "kept from a phase that is over"
        await thinks("planning", "When will you try it?")
        assert await open_question(mind.stream, "sleep", "planning") == "When will you try it?"
        await thinks("planning", "")
        assert await open_question(mind.stream, "sleep", "planning") == ""


async def test_the_talker_is_shown_it_only_where_it_fits(folder: Path) -> None:
    lines = ["Mm.", f"All right. {QUESTION}", "Good.", "Good.", "Right."]
    talker, wanted = Scripted({"talk": lines}), json.dumps({"thought": "who?", "ask_next": QUESTION})
    phase = '{"phase": "understanding"}'
    reasoner = Scripted({"infer_phase": [phase] * 5, "think_in_phase": [wanted] * 5})
    models = Models(Rules(), {"talker": talker, "reasoner": reasoner})
    shown = []
    async with Mind.open(folder, user="ann", models=models) as mind:
        for text in ("I turn over for hours.", "The street is loud.", "my husband", "haha", "The street is loud."):
            await mind.say(text)
            await mind.settled()
            shown.append(QUESTION in talker.asked[-1].messages[-1].text)
    assert shown == [False, True, False, False, False]


def test_the_talker_is_told_to_ask_it_in_other_words() -> None:
    empty = {"belief": {}, "plan": Plan(), "notes": (), "recalled": (), "history": (), "utterance": "hm"}
    prompts = [
        Talk(pack=SLEEP, phase=SLEEP.phases[0], ask_next=QUESTION, asked_before=before, **empty).messages()[-1].text
        for before in (False, True)
    ]
    assert ["in other words" in prompt for prompt in prompts] == [False, True]
    assert all(QUESTION in prompt for prompt in prompts)
