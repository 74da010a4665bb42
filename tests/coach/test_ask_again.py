"""What the Reasoner would like to know: asked when it fits, once more a while later, let go when it was spoken of."""

from __future__ import annotations

import json
from pathlib import Path

from mindstream import Mind, Models, Scripted
from mindstream.coach.belief.plan import Plan
from mindstream.coach.open_question import AGAIN, may_ask, open_question
from mindstream.coach.packs.load import load
from mindstream.coach.talk import Talk
from mindstream.log.events import Thought
from mindstream.memory.store import Entry
from mindstream.models.rules import Rules
from mindstream.reasoners.conversation import Line

SLEEP = load("sleep")
QUESTION = "Who else sleeps in the room with you?"
ASKED = f"I see. {QUESTION}"


def asking(*turns: str | tuple[str, str], now: str = "I turn over for hours.") -> tuple[str, bool]:
    """Return what may be asked after turns: what the mind said, and what the user answered to it."""
    pairs = [(turn, "hm") if isinstance(turn, str) else turn for turn in turns]
    history = [Line(by_user=by_user, text=text) for pair in pairs for by_user, text in enumerate(pair)]
    return may_ask(QUESTION, history, now)


def test_a_question_that_was_passed_over_is_asked_once_more_and_then_never() -> None:
    others = ["Mm.", "Tell me more?", "All right.", "Good.", "Fine.", "Yes.", "So.", "Oh."]
    assert asking(*others) == (QUESTION, False)
    chances = [back for back in range(len(others)) if asking(ASKED, *others[:back]) == (QUESTION, True)]
    assert chances == list(AGAIN), "not at once, and not for ever"
    assert all(asking(ASKED, *others[:5], ASKED, *others[:back]) == ("", True) for back in range(len(others)))
    assert asking(QUESTION.replace("?", ".")) == (QUESTION, False), "that was no question"


LATER = ["Mm.", "All right.", "Good.", "Fine.", "Yes."]


def test_whether_it_was_answered_is_for_the_reasoner_to_say_which_then_wants_to_know_it_no_more() -> None:
    assert asking((ASKED, "why do you want to know?"), *LATER) == (QUESTION, True)


def test_what_speaks_of_it_later_or_before_it_is_asked_answers_it_too() -> None:
    assert asking(ASKED, ("Good.", "My sister sleeps in the other room."), *LATER) == ("", True)
    assert asking("Mm.", now="Nobody sleeps in my room, only me.") == ("", False)


def test_it_is_known_again_in_other_words() -> None:
    assert asking("And does anyone sleep in the room with you?")[1], "asked just now"


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


async def test_the_talker_is_shown_it_where_it_was_not_asked_lately(folder: Path) -> None:
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
