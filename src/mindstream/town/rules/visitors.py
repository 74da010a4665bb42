"""What a resident answers a visitor without a model: as in an interview, but who tells something is thanked, and who
invites gets the answer that a neighbour would get."""

from __future__ import annotations

import re

from mindstream.town.prompts.answer_interview import AnswerInterview
from mindstream.town.prompts.utter import Utter, Utterance
from mindstream.town.rules.interview import UNHEARD, answer_from_memory
from mindstream.town.rules.inviting import ASKED
from mindstream.town.rules.talking import tell_what_is_new

HELLO = re.compile(r"(?:hello|hi|hey|good (?:morning|afternoon|evening|day))\b", re.IGNORECASE)
THANKS = "Thank you for telling me."


def answer_visitor(ask: AnswerInterview, by: str) -> str:
    """Answer by what was said: an invitation, a question, or something that is told."""
    said = ask.question.strip()
    if said.endswith(ASKED):
        return _answer_invitation(ask, by)
    told = said.rstrip("!") + "." if said.endswith("!") else said  # which in an interview is something that happens
    answer: str = answer_from_memory(ask.model_copy(update={"question": told}))
    if answer == UNHEARD and "?" not in said:
        answer = THANKS
    if not HELLO.match(said):
        return answer
    rest = answer.removeprefix("Hello.").strip()
    return f"Hello {by}." if ask.lines and rest.startswith("I am ") else f"Hello {by}. {rest}".strip()


def _answer_invitation(ask: AnswerInterview, by: str) -> str:
    said = (*ask.lines, f"{by}: {ask.question.strip()}")
    situation = f"It is {ask.when}. {ask.who} is {ask.doing}."
    answer: Utterance = tell_what_is_new(
        Utter(who=ask.who, identity=ask.identity, other=by, situation=situation, lines=said, left=1)
    )
    return answer.text
