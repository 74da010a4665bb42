"""What the Reasoner would like to know: asked when it fits, once more later if it is passed over, then left alone."""

from __future__ import annotations

from mindstream.coach.belief.plan import Plan
from mindstream.coach.packs.load import load
from mindstream.coach.talk import Talk
from mindstream.coach.talker import AGAIN, unless_asked
from mindstream.reasoners.conversation import Line

QUESTION = "Who else sleeps in the room with you?"


def after(*said: str) -> tuple[str, bool]:
    turns = ((Line(by_user=False, text=text), Line(by_user=True, text="hm")) for text in said)
    return unless_asked(QUESTION, [line for turn in turns for line in turn])


def test_a_question_that_was_passed_over_is_asked_once_more_and_then_never() -> None:
    asked, others = f"I see. {QUESTION}", ["Mm.", "Tell me more?", "All right.", "Good.", "Fine.", "Yes.", "So.", "Oh."]
    assert after(*others) == (QUESTION, False)
    chances = [back for back in range(len(others)) if after(asked, *others[:back]) == (QUESTION, True)]
    assert chances == list(AGAIN), "not at once, and not for ever"
    assert all(after(asked, *others[:5], asked, *others[:back]) == ("", True) for back in range(len(others)))
    assert after(QUESTION.replace("?", ".")) == (QUESTION, False), "that was no question"


def test_the_talker_is_told_to_ask_it_in_other_words() -> None:
    pack = load("sleep")
    empty = {"belief": {}, "plan": Plan(), "notes": (), "recalled": (), "history": (), "utterance": "hm"}
    prompts = [
        Talk(pack=pack, phase=pack.phases[0], ask_next=QUESTION, asked_before=before, **empty).messages()[-1].text
        for before in (False, True)
    ]
    assert ["in other words" in prompt for prompt in prompts] == [False, True]
    assert all(QUESTION in prompt for prompt in prompts)
