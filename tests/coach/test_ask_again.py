"""What the Reasoner would like to know: asked when it fits, once more a while later, let go when it was spoken of."""

from __future__ import annotations

import json
from pathlib import Path

from mindstream import Coach, FakeModel, Mind, Models
from mindstream.coach.open_question import AGAIN, may_ask
from mindstream.models.rules import Rules
from mindstream.reasoners.conversation import Line

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


def test_what_speaks_of_it_later_or_before_it_is_asked_answers_it_too() -> None:
    others = ["Mm.", "All right.", "Good.", "Fine.", "Yes."]
    assert asking(ASKED, ("Good.", "My sister sleeps in the other room."), *others) == ("", True)
    assert asking("Mm.", now="Nobody sleeps in my room, only me.") == ("", False)


async def test_the_talker_is_shown_it_where_it_was_not_asked_lately(folder: Path) -> None:
    lines = ["Mm.", f"All right. {QUESTION}", "Good.", "Good.", "Right."]
    talker, wanted = FakeModel({"talk": lines}), json.dumps({"thought": "who?", "ask_next": QUESTION})
    phase = '{"phase": "understanding"}'
    reasoner = FakeModel({"infer_phase": [phase] * 5, "think_in_phase": [wanted] * 5})
    models = Models(Rules(), {"talker": talker, "reasoner": reasoner, "facts": Rules()})
    shown = []
    async with Mind.open(folder, user="ann", models=models, responder=Coach.using()) as mind:
        for text in ("I turn over for hours.", "The street is loud.", "my husband", "haha", "The street is loud."):
            await mind.send(text)
            await mind.settled()
            shown.append(QUESTION in talker.asked[-1].messages[-1].text)
    assert shown == [False, True, False, False, False]
