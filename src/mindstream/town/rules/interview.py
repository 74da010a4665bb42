"""An answer in an interview without a model: from who somebody is, what it remembers and what it plans, or none."""

from __future__ import annotations

import re

from mindstream.models.prompt import rule
from mindstream.text.words import terms
from mindstream.town.prompts.answer_interview import AnswerInterview
from mindstream.town.rules.interview_day import activity, day_sentences, plan_at, why_here
from mindstream.town.rules.interview_lookup import TELLS, look_up
from mindstream.town.rules.interview_memory import A_NAME, now_of, relations
from mindstream.town.rules.interview_people import company, for_somebody, is_sight, meetings, of, who_is
from mindstream.town.rules.interview_self import about_somebody, basics, kin, news, present, reaction, small_talk
from mindstream.town.rules.question import Question, find_clock, read_question, read_span

UNKNOWN, UNHEARD = "I do not know.", "I have not heard of that."
GIVES = re.compile(r"\b(?:gift|present|compliment|surprise|cook|say to|book\b.{1,60}\blike)\b", re.IGNORECASE)
RECENT = re.compile(r"\b(?:recently met|met recently|spend time with|spend an? \w+ with)\b", re.IGNORECASE)
OF_TALK = re.compile(r"(?:I|my|we|our|you|your|that|it)\b", re.IGNORECASE)
"""How a remark begins that tells of whoever speaks or is spoken to."""
NEWS = re.compile(r"\bnew\b|\bnews\b|\bgossip\b|\bheard (?:any|some)thing\b|\bheard lately\b", re.IGNORECASE)
OPINION = re.compile(r"\b(?:think (?:of|about)|like|feel about|opinion|know|about|tell|who)\b", re.IGNORECASE)


@rule(AnswerInterview)
def answer_from_memory(ask: AnswerInterview) -> str:
    """Answer by what the question wants to know; what nothing supports is not known."""
    named = _named(ask)
    question = read_question(ask.question, ask.who, named, ask.lines)
    return small_talk(ask, question) or _of_time(ask, question, named) or _of_people(ask, question, named)


def _named(ask: AnswerInterview) -> list[str]:
    """Return the others whom a question means; one whom nobody here knows by a whole name stands as it was written."""
    question = ask.question[:1_000].strip()
    start = question.split(maxsplit=1)[0] if question else ""
    written = [name.removeprefix(f"{start} ") for name in A_NAME.findall(question)]
    places = " ".join((*ask.places, *ask.memories, ask.identity))
    strange = [
        name
        for name in written
        if " " in name and ask.who not in name and name not in ask.named and (f"the {name}" not in question)
    ]
    return [
        *ask.named,
        *(name for name in strange if not any(name in each for each in ask.places) or name not in places),
    ]


def _of_time(ask: AnswerInterview, question: Question, named: list[str]) -> str:
    """Answer what is asked of a time: what one does then, whom one met, what is new."""
    clock = find_clock(question.text)
    if clock is not None and not question.past and re.search(r"\b(?:doing|do|be|plans?)\b", question.text):
        return plan_at(ask, clock, question.text) or UNKNOWN
    if RECENT.search(question.text):
        return company(ask)
    if GIVES.search(question.text) and named:
        return for_somebody(ask, named[0], question.text)
    happens = "what would you" in question.text.lower() or (question.text.endswith("!") and not question.focus)
    if happens and (told := reaction(ask, question.text)):
        return told
    if NEWS.search(question.text) and not question.about and not named:
        return news(ask) or "I have heard nothing new."
    span = read_span(question, *now_of(ask))
    return basics(ask, question, span) or meetings(ask, question, span) or activity(ask, question, span)


def _of_people(ask: AnswerInterview, question: Question, named: list[str]) -> str:
    """Answer what is asked of oneself, of others, and of everything else."""
    told_by = question.past and TELLS.search(question.text)
    if named and not told_by and not _rest(question, named[0], ask) and OPINION.search(question.text):
        return who_is(ask, named[0])
    if (stranger := _stranger(ask, question)) and not named:
        return f"I do not know who {stranger} is."
    subject = named[0] if named else ask.who if question.you else ""
    answer = "" if named else kin(ask, question)
    answer = answer or (about_somebody(ask, question, subject) if subject else "")
    answer = answer or look_up(ask, question, named, day_sentences(ask, question))
    if answer:
        return answer
    if question.focus == "whether" and question.you and not (named or question.past or question.future):
        return present(ask) or UNKNOWN
    if question.focus == "why" and question.you:
        return why_here(ask) or UNKNOWN
    if told_by and named:
        return f"{named[0]} told me nothing that I remember."
    if named:
        known = [each for each in of(ask, named[0]) if not is_sight(each)]
        return f"I do not know that of {named[0]}. {known[0]}" if known else f"I do not know much of {named[0]}."
    return UNKNOWN if question.focus else "I see." if OF_TALK.match(question.text) else UNHEARD


def _rest(question: Question, name: str, ask: AnswerInterview) -> frozenset[str]:
    """Return what a question is about besides somebody, and what that is to whoever is asked."""
    known = " ".join(what for other, what in relations(ask) if other == name)
    return question.about - frozenset(terms(f"{known} friend person call man woman like feel opinion"))


def _stranger(ask: AnswerInterview, question: Question) -> str:
    """Return a name in capitals, as of somebody, of whom nothing is known."""
    found = re.search(
        r"\b(?:who(?:'s| is)|[Kk]now|[Mm]et|about|of|called) (?P<name>[A-Z][a-z]{2,20})\W*$", question.text
    )
    known = f"{ask.identity} {' '.join(ask.memories)}"
    return found["name"] if found is not None and found["name"] not in known else ""
