"""Which sentence of what somebody knows answers a question, by its words and by what it wants to know."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mindstream.text.words import terms
from mindstream.town.prompts.answer_interview import AnswerInterview
from mindstream.town.rules.interview_memory import SIGHTED, TALKED, Said, fits, quoted, remembered
from mindstream.town.rules.question import Question
from mindstream.town.rules.worth import worth

OF_QUESTION = 0.75
"""So much of a question's words must stand in what answers it."""
TELLING = 4
"""A line of fewer words than these tells nothing: it greets, or answers."""
ASKS = re.compile(r"\?$|\b(?:about|knows?|asks?|asking|wonders?|tell) (?:who|whether|if|what)\b", re.IGNORECASE)
NOT = re.compile(r"\b(?:not|never|no longer|nobody|nothing|cannot|refuse[sd]?|declined?)\b|n't\b", re.IGNORECASE)
FROM = re.compile(r"\b(?:told|said|invited|asked|heard)\b", re.IGNORECASE)
FROM_WORDS = frozenset(terms("told tell said invited asked heard"))
TELLS = re.compile(r"\b(?:said|tell|told|say|mention\w*)\b", re.IGNORECASE)


def look_up(ask: AnswerInterview, question: Question, named: Sequence[str], day: Sequence[Said] = ()) -> str:
    """Return what was said that has the question's words; yes or no is answered by whether there is any.

    Args:
        day: what stands in the day's plan, in sentences.
    """
    told_by = _told_by(question, named)
    by_whom = question.focus == "who" and question.you and bool(FROM.search(question.text))
    wanted = question.about - FROM_WORDS if by_whom else question.about
    if not wanted and not told_by:
        return ""
    found: list[tuple[tuple[bool, int, float], str]] = []
    for number, said in enumerate((*remembered(ask), *(day if question.focus not in ("who", "why") else ()))):
        held = wanted & set(terms(said.text if named or told_by else f"{said.by} {said.text}"))
        if len(held) < OF_QUESTION * len(wanted) or ASKS.search(said.text):
            continue
        is_talk = TALKED.match(said.text) is not None
        if "'s plan for " in said.text or (is_talk and question.focus == "whether"):
            continue
        if (by_whom or question.focus == "why") and SIGHTED.search(said.text):
            continue
        if by_whom and said.by in ("", ask.who):
            continue
        if told_by and not wanted and len(terms(said.text)) < TELLING:
            continue
        if (told_by and said.by != told_by) or not all(name in f"{said.by} {said.text}" for name in named):
            continue
        if not fits(ask, question.focus, said):
            continue
        plain = not is_talk and not SIGHTED.search(said.text)
        found.append(((plain, len(held), worth(said.text) - number * 1e-2), _words(ask, question, said)))
    return max(found)[1] if found else ""


def _told_by(question: Question, named: Sequence[str]) -> str:
    """Return whose words are asked for: `What did Ada tell you?`."""
    asked = len(named) == 1 and question.past and question.focus == "what" and TELLS.search(question.text)
    return named[0] if asked else ""


def _words(ask: AnswerInterview, question: Question, said: Said) -> str:
    words = quoted(ask, said)
    is_no = NOT.search(said.text) is not None and NOT.search(question.text) is None
    is_about = not question.you or (not said.by and ask.who in said.text)
    return f"Yes. {words}" if question.focus == "whether" and is_about and not is_no else words
