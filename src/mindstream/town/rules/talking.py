"""A conversation without a model: people say who they are, tell what the other has not heard, and answer what they are
asked to. All of it is drawn from what they remember."""

from __future__ import annotations

import re

from mindstream import chance
from mindstream.models.prompt import rule
from mindstream.town.prompts.take_from_talk import TakeFromTalk, Taken
from mindstream.town.prompts.utter import Utter, Utterance
from mindstream.town.rules.times import names_time
from mindstream.town.rules.worth import TOLD, worth
from mindstream.town.sentences import sentences

ASKED = ("Would you like to come?", "Will you be there?", "Can I count on you?")
COMES, STAYS, KNOWN = "I would love to.", "I am afraid I cannot.", "I know."
HELPS = "And I will help to prepare it."
HELPFUL = 0.4
"""How probable it is that somebody whom the host knows, and who comes, helps."""
LIKELY, LIKELY_OF_FRIENDS = 0.5, 0.75
"""How probable it is that somebody takes an invitation up."""
HEARD = ("Have you heard?", "Did you know?", "Let me tell you something.")


@rule(Utter)
def tell_what_is_new(ask: Utter) -> Utterance:
    """Greet, answer, and tell what weighs most of what the other has not heard; end it when there is nothing more."""
    mine = [line for line in ask.lines if line.startswith(f"{ask.who}: ")]
    words = [_answer(ask)] if ask.lines else []
    if not mine:
        words = [_greeting(ask), *words]
    number = _news(ask)
    if number:
        fact = ask.memories[number - 1]
        words += [chance.pick(HEARD, ask.who, ask.other, fact), _punctuated(fact)]
        if names_time(fact):
            words.append(chance.pick(ASKED, ask.who, fact))
    said = " ".join(word for word in words if word)
    if not said or (not number and mine):
        return Utterance(text=said or f"See you, {_first(ask.other)}.", ends=True)
    return Utterance(text=said[:600], passes_on=[number] if number else [], ends=ask.left <= 1)


def _greeting(ask: Utter) -> str:
    """Say hello, and who one is to whom one does not know."""
    known = ask.relation or any(ask.other in memory and "talked with" in memory for memory in ask.memories)
    itself = next((each for line in ask.identity.splitlines() for each in sentences(line) if _is_of(ask.who, each)), "")
    hello = f"Hello {_first(ask.other)}."
    return hello if known or not itself else f"{hello} I am {ask.who}. {_punctuated(itself)}"


def _is_of(who: str, sentence: str) -> bool:
    return sentence.startswith(f"{who} is ")


def _answer(ask: Utter) -> str:
    """Take an invitation up, or not."""
    last = ask.lines[-1]
    if not last.endswith(ASKED):
        return ""
    if ask.who in last.partition(": ")[2]:
        return KNOWN
    comes = chance.fraction("comes", ask.who, ask.other, last) < (LIKELY_OF_FRIENDS if ask.relation else LIKELY)
    is_host = f"{ask.other} is " in last or f"{ask.other}'s " in last
    helps = is_host and chance.fraction("helps", ask.who, last) < HELPFUL * (2 if ask.relation else 1)
    return (f"{COMES} {HELPS}" if helps else COMES) if comes else STAYS


def _news(ask: Utter) -> int:
    """Return the number of what weighs most of what the other has not heard and is not about; 0: nothing does."""
    said = " ".join(ask.lines).casefold()
    best, found = float(TOLD), 0
    for number, memory in enumerate(ask.memories, 1):
        fresh = number not in ask.told and len(memory) <= 400 and memory.casefold().rstrip(".!") not in said
        about_other = memory.startswith(ask.other) or memory.startswith(f"{ask.who} is {ask.other}'s")
        if fresh and not about_other and (weight := worth(memory)) >= best + bool(found) * 1e-9:
            best, found = weight + 1e-6, number
    return found


def _punctuated(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _first(name: str) -> str:
    return name.split()[0]


@rule(TakeFromTalk)
def keep_what_was_said(ask: TakeFromTalk) -> Taken:
    """Keep what the other said that weighs, and what was agreed on."""
    heard = [each for line in ask.lines if (rest := _of(ask.other, line)) for each in sentences(rest)]
    heard = [each for each in heard if each not in (*HEARD, *ASKED, COMES, STAYS, KNOWN, HELPS)]
    told = sorted({each for each in heard if worth(each) >= TOLD or _is_of(ask.other, each)}, key=heard.index)
    dated = [each for line in ask.lines for each in sentences(line.partition(": ")[2]) if names_time(each)]
    memo = " ".join(told[:2])[:400]
    about = re.sub(r"[.!?]+$", "", (told or dated or ["this and that"])[0])[:180]
    return Taken(about=about, memo=memo, plan=_plan(ask, dated))


def _of(who: str, line: str) -> str:
    return line[len(who) + 2 :] if line.startswith(f"{who}: ") else ""


def _plan(ask: TakeFromTalk, dated: list[str]) -> str:
    """Return what one agreed to come to; "" nothing."""
    for asked, answer in zip(ask.lines, ask.lines[1:], strict=False):
        if asked.endswith(ASKED) and _of(ask.who, answer) and COMES in answer:
            fact = next((each for each in sentences(_of(ask.other, asked)) if each in dated), "")
            if fact:
                deed = "will help to prepare it" if HELPS in answer else "will be there"
                return f"{ask.who} {deed}: {fact}"[:400]
    return ""
