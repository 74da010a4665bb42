"""What somebody says of itself: who it is, how it lives, what it is doing, and what it would do."""

from __future__ import annotations

import re

from mindstream.text.kinship import find_kin, may_mean
from mindstream.text.words import terms
from mindstream.town.prompts.answer_interview import AnswerInterview
from mindstream.town.rules.interview_memory import (
    A_NAME,
    SIGHTED,
    TALKED,
    Said,
    at_place,
    first,
    fits,
    is_own,
    now_of,
    own,
    relations,
    remembered,
)
from mindstream.town.rules.question import LEAVES, THANKS, AskedSpan, Question, is_called
from mindstream.town.rules.times import read_days
from mindstream.town.rules.worth import TOLD, worth
from mindstream.town.sentences import sentences

ASPECTS = (
    (r"\b(?:introduc\w*|about (?:your|him|her)self|who are you)\b", r""),
    (
        r"\b(?:occupation|jobs?|profession|for a living|do(?:es)? (?:\w+ ){1,3}do\?*$|works? as"
        r"|where do(?:es)? .{1,40} work)",
        r"\b(?:is an?|is the|works?|working|runs?|owns?|studies|teaches|sells)\b",
    ),
    (
        r"\b(?:interests?|passion\w*|hobb\w+|inspir\w*|enjoy|you (?:like|love)(?: to do)?\?*$)",
        r"\b(?:lov\w+|likes?|enjoy\w*|interest\w*|passion\w*|avid|fond|curious|hop(?:e|es|ing)|dream\w*|explor\w*|writing)\b",
    ),
    (
        r"\b(?:liv\w+ (?:with|in your)|your (?:family|house|home)\?*$|household|housemates?)",
        r"\b(?:liv(?:e|es|ing) with|husband|wife|son|daughter|mother|father|partner|room-?mates?|housemates?)\b",
    ),
    (
        r"\b(?:get|wake|getting|waking) up\b|\b(?:to|in) bed\b|\bsleep\b",
        r"\b(?:bed|wakes?|awakes?|gets up|sleeps?)\b",
    ),
    (
        r"\b(?:schedule|routine|typical)\b",
        r"\b(?:bed|wakes?|awakes?|[ap]m|noon|midnight|every|daily|usually|days?|weekdays?)\b|\d[ap]m\b",
    ),
)
"""What is asked of somebody, and what the sentences that answer it say."""
BUSY = re.compile(
    r"\b(?:working on|are you planning|busy with|up to these days|(?:doing|on) (?:these days|lately|nowadays))\b",
    re.IGNORECASE,
)
LEARNT = re.compile(r"\b(?:learn\w*|reali[sz]ed?|noticed?|find out|found out|understood)\b", re.IGNORECASE)
HOW_ARE_YOU = re.compile(
    r"how(?: are|'s| is|s| do) (?:you|it|things|everything|life)\b"
    r"(?!.{0,12} (?:know|get|plan|feel about|like|think|do))",
    re.IGNORECASE,
)
DANGER = re.compile(r"\b(?:fires?|burn\w*|smok\w*|leak\w*|flood\w*|explod\w*|accident|hurt|bleed\w*)\b", re.IGNORECASE)
TAKEN = re.compile(r"\b(?:occupied|in use|taken|locked|closed|full)\b", re.IGNORECASE)
LACKING = re.compile(r"\b(?:empty|out of|run out|missing|gone|broken)\b", re.IGNORECASE)
PASSING = re.compile(r"\b(?:walk\w* by|pass\w* by|comes? in|meet|greets?|waves?|friend)\b", re.IGNORECASE)
SHOPS = ("market", "grocer", "bakery", "store", "shop")


def small_talk(ask: AnswerInterview, question: Question) -> str:
    """Answer a greeting, thanks, a goodbye, and how one is; "" where something else is asked."""
    said = question.said
    if LEAVES.search(said) and not question.focus:
        return "Goodbye."
    if not question.text:
        return "You are welcome." if THANKS.search(said) else f"Hello. I am {ask.who}."
    if HOW_ARE_YOU.match(question.text):
        return f"Hello. {present(ask)}" if ask.doing else f"Hello. I am {ask.who}."
    return ""


def present(ask: AnswerInterview) -> str:
    """Say what one is doing, and where."""
    if not ask.doing:
        return ""
    is_told = not ask.place or set(terms(ask.place)) & set(terms(ask.doing))
    return f"I am {ask.doing}{'' if is_told else f', in {at_place(ask, ask.place)}'}."


def basics(ask: AnswerInterview, question: Question, span: AskedSpan) -> str:
    """Answer what stands on one's passport, where one is, and what one is about; "" where something else is asked."""
    text = question.text
    if re.search(r"\byour name\b|\bare you called\b|^(?:and )?who are you\W*$", text, re.I):
        return f"I am {ask.who}."
    if re.search(r"\bhow old\b|\byour age\b", text, re.I) and question.you:
        head = ask.identity.split("\n", 1)[0].partition(", ")[2]
        return f"I am {head}." if head else ""
    if question.focus == "where" and question.you and re.search(r"\b(?:live|home)\b", text, re.I):
        return f"I live in {at_place(ask, ask.home)}." if ask.home else ""
    if question.you and re.match(r"where(?:'re| are) you\b(?! (?:go|from))|where am i\b", text, re.I):
        return f"I am in {at_place(ask, ask.place)}." if ask.place else "I am on the way."
    if BUSY.search(text) and question.you and not span.is_named:
        doing = re.compile(rf"{re.escape(ask.who)} (?:is (?:\w+ )?\w+ing\b|wants?\b|plans?\b)")
        busy = [own(ask.who, each.text) for each in remembered(ask) if not each.by and doing.match(each.text)]
        busy = [each for each in busy if " talking with " not in each]
        return " ".join(first(busy, 2)) or present(ask)
    if LEARNT.search(text) and question.you and not question.about - {"learn", "learnt", "learned", "yourself", "life"}:
        return " ".join(first((own(ask.who, each.text) for each in _insights(ask)), 2)) or "Nothing that I could name."
    return ""


def _insights(ask: AnswerInterview) -> list[Said]:
    """Return what one has come to think of oneself since one lives here."""
    own_words = f"{ask.identity}\n"
    return [
        each
        for each in remembered(ask)
        if each.at and not each.by and ask.who in each.text and is_own(ask.who, each)
        and each.text.rstrip(".") not in own_words and ": " not in each.text and " will " not in each.text
    ]  # fmt: skip


def kin(ask: AnswerInterview, question: Question) -> str:
    """Answer whether one has a family, and who it is; "" where that is not asked."""
    text = re.sub(r"\bmarried\b", "partner", question.text, flags=re.IGNORECASE)
    text = re.sub(r"\bsiblings?\b", "brother sister", text, flags=re.IGNORECASE)
    asked = find_kin(text)
    if not asked or not question.you or question.focus not in ("whether", "who", "how", ""):
        return ""
    found = [
        (name, what)
        for name, what in relations(ask)
        if any(may_mean(one, other) for one in asked for other in find_kin(what)) or is_called(what, text)
    ]
    if not found:
        return "Not that I know of."
    yes = "Yes. " if question.focus == "whether" else ""
    return yes + " ".join(f"{name} is my {what}." for name, what in found[:6])


def about_somebody(ask: AnswerInterview, question: Question, name: str) -> str:
    """Answer what is asked of oneself or of another, from who one is and what one remembers of them."""
    for asked, answers in ASPECTS:
        if not re.search(asked, question.text, re.IGNORECASE):
            continue
        if not answers:
            return _introduction(ask) if name == ask.who else ""
        pattern = re.compile(answers, re.IGNORECASE)
        known = [each for each in remembered(ask) if is_own(name, each)]
        known = [each for each in known if fits(ask, question.focus if question.focus == "where" else "", each)]
        found = [own(ask.who, each.text) for each in known if pattern.search(each.text) and each.text.startswith(name)]
        if name != ask.who:
            found = [re.sub(r" \([^)]*\)", "", each) for each in found]
        found += [own(ask.who, each.text) for each in known if pattern.search(each.text)] if name == ask.who else []
        if name == ask.who and "liv" in asked:
            found += [
                f"I know {other} ({what})."
                for other, what in relations(ask)
                if pattern.search(what) and other not in " ".join(found)
            ]
        if name == ask.who and "interest" in asked and not found:  # then it is what one is and does
            found = [own(ask.who, each.text) for each in known][:2]
        if name == ask.who and "occupation" in asked and not found:
            found = _living(ask)
        found.sort(key=lambda text: " (" in text and "I know " not in text)
        if not found and name == ask.who and "liv" in asked:
            return "I do not know of anybody."
        return " ".join(first(found, 3 if name == ask.who else 2))
    return ""


def _living(ask: AnswerInterview) -> list[str]:
    """Return the line that says what one does for a living."""
    lines = [line for line in ask.identity.splitlines()[1:] if not line.startswith(("Traits: ", "Knows: "))]
    return [own(ask.who, sentence) for sentence in sentences(lines[0])][:2] if lines else []


def _introduction(ask: AnswerInterview) -> str:
    head, *rest = ask.identity.splitlines()
    told = [f"I am {head}.", *(own(ask.who, line) for line in rest if not line.startswith("Knows: "))]
    return " ".join(told)[:900]


def reaction(ask: AnswerInterview, question: str) -> str:
    """Say what one would do about something that happens now."""
    near, doing = " and ".join(ask.near[:2]), ask.doing.partition(" (")[0]
    stop = "I would get up" if doing.startswith("sleep") else f"I would stop {doing}" if doing else "I would stop"
    if PASSING.search(question):
        name = (
            next((each for each in A_NAME.findall(question) if each in " ".join(ask.memories)), "")
            or (ask.near or ("",))[0]
        )
        told = news(ask)
        return f"I would say hello{f' to {name}' if name else ''}{f' and tell them this: {told}' if told else '.'}"
    if DANGER.search(question):
        warned = f", and warn {near}" if near else ""
        return f"{stop} at once, see to it or call for help{warned}."
    if TAKEN.search(question):
        return f"I would wait until it is free{f' and go on {doing} meanwhile' if doing else ''}."
    if LACKING.search(question):
        shop = next((place for word in SHOPS for place in ask.places if word in place.lower()), "")
        return f"I would go to {shop} and buy what is missing." if shop else "I would go and buy what is missing."
    return f"{stop} and see to it." if "what would you" in question.lower() else ""


def news(ask: AnswerInterview) -> str:
    """Return what weighs most of what one could tell."""
    today, _ = now_of(ask)
    told = [
        each.text
        for each in remembered(ask)
        if worth(each.text) >= TOLD and each.by != ask.who
        and not (TALKED.match(each.text) or SIGHTED.search(each.text))
        and ((each.at and each.text not in ask.identity) or read_days(each.text, today))
    ]  # fmt: skip
    return own(ask.who, max(told, key=lambda text: (ask.who not in text, worth(text)))) if told else ""
