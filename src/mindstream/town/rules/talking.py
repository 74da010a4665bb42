"""A conversation without a model: people say who they are, tell what comes to mind and the other has not heard, and
answer what they are asked to. All of it is drawn from what they remember."""

from __future__ import annotations

import re

from mindstream import chance
from mindstream.models.prompt import rule
from mindstream.town.prompts.take_from_talk import TakeFromTalk, Taken
from mindstream.town.prompts.utter import Utter, Utterance
from mindstream.town.rules.inviting import (
    ANSWERS,
    ASKED,
    ASKED_ALONG,
    MOMENT,
    answer_invitation,
    invite,
    is_invitation,
    is_over,
    next_item,
)
from mindstream.town.rules.voice import hear_from, say_as
from mindstream.town.rules.worth import NEWS, is_everyday, worth
from mindstream.town.sentences import sentences

HEARD = ("Have you heard?", "Did you know?", "Let me tell you something.")
REPLIES = ("Thank you for telling me.", "Is that so?", "I see.")
REPLIES_TO_OWN = ("That sounds interesting.", "I see.", "Good luck with it.", "I wish you well with it.")
QUESTIONS = (*ASKED, *ASKED_ALONG)
KNOWN = "Yes, I have heard of it."
PHRASES = frozenset((*HEARD, *QUESTIONS, *REPLIES, *REPLIES_TO_OWN, KNOWN, *ANSWERS))
FORMULA = re.compile(r"(?:Hello|Good (?:morning|evening)|See you|Nice to meet you|Well, thank you)\b")
SMALL_TALK = "How is your day?"
HOSTS_TELL, TELLS_OWN, TELLS, TELLS_MORE = 0.97, 0.85, 0.35, 0.03
"""How probable it is that hosts tell of what they give, that one tells what is one's own, what others do; and so much
more for each point of worth."""
WHO_IS = re.compile(r"^[A-Z][\w' -]{1,40} is (?:an?|the) [a-z]")


@rule(Utter)
def tell_what_is_new(ask: Utter) -> Utterance:
    """Greet, answer, and tell one thing, to those whom one is close to two; end it when there is nothing more."""
    mine = [line for line in ask.lines if line.startswith(f"{ask.who}: ")]
    words = [*([] if mine else [_greeting(ask)]), _answer(ask)]
    number = _news(ask) if len(mine) < (2 if ask.relation else 1) else 0
    if number:
        fact = ask.memories[number - 1]
        if WHO_IS.match(fact):
            words.append(f"Do you know {fact.partition(' is ')[0]}?")
        elif not fact.startswith(ask.who):
            words.append(chance.pick(HEARD, ask.who, ask.other, fact))
        words.append(_punctuated(say_as(ask.who, fact)))
        if is_invitation(fact):
            words.append(invite(ask, fact))
    if not (number or mine or ask.lines):
        words.append(SMALL_TALK)
    ends = not number and bool(mine)
    if ends:
        words.append(f"See you, {_first(ask.other)}.")
    said = " ".join(word for word in words if word)
    return Utterance(text=said[:600], passes_on=[number] if number else [], ends=ends or ask.left <= 1)


def _greeting(ask: Utter) -> str:
    """Say hello, and who one is to whom one does not know."""
    if ask.last_talk == "today":
        return f"Hello again, {_first(ask.other)}."
    hour = int(found["hour"]) if (found := MOMENT.search(ask.situation)) else 12
    hello = "Good morning" if hour < 10 else "Good evening" if hour >= 18 else "Hello"
    if ask.relation or ask.last_talk:
        return f"{hello}, {_first(ask.other)}."
    itself = next((each for line in ask.identity.splitlines() for each in sentences(line) if _is_of(ask.who, each)), "")
    what = re.split(r",? and | who |, ", itself.rstrip(".").partition(" is ")[2], maxsplit=1)[0]
    named = f"I am {ask.who}, {what}." if what and WHO_IS.match(itself) else f"I am {ask.who}."
    return f"{hello}. {named}{' Nice to meet you.' if ask.lines else ''}"


def _is_of(who: str, sentence: str) -> bool:
    return sentence.startswith(f"{who} is ")


def _answer(ask: Utter) -> str:
    """Take an invitation up, or not; say something to what was told."""
    if not ask.lines:
        return ""
    told = _statements(ask.other, ask.lines[-1:])
    if ask.lines[-1].endswith(SMALL_TALK):
        later = next_item(ask.day, ask.situation)
        return f"Well, thank you; later I am {later}." if later else "Well, thank you."
    if told and ask.lines[-1].endswith(QUESTIONS):
        return answer_invitation(ask, told[-1])
    news = [each for each in told if not WHO_IS.match(each)]
    if not news:
        return ""
    known = any(each.rstrip(".!") in memory for each in news for memory in ask.memories)
    replies = REPLIES_TO_OWN if news[0].startswith(ask.other) else REPLIES
    return KNOWN if known else chance.pick(replies, ask.who, ask.other, news[0])


def _statements(who: str, lines: tuple[str, ...]) -> list[str]:
    """Return what somebody said in a talk, as others remember it, without what is only polite."""
    said = [each for line in lines if (rest := _of(who, line)) for each in sentences(rest)]
    return [
        hear_from(who, each) for each in said
        if each not in PHRASES and not each.endswith("?") and not FORMULA.match(each) and len(each.split()) > 1
    ]  # fmt: skip


def _news(ask: Utter) -> int:
    """Return the number of what comes up first of what the other has not heard: mostly what weighs most; 0: none."""
    said = {each.rstrip(".!") for name in (ask.who, ask.other) for each in _statements(name, ask.lines)}
    best, found = 0.0, 0
    for number, memory in enumerate(ask.memories, 1):
        fresh = number not in ask.told and len(memory) <= 400 and memory.rstrip(".!") not in said
        weight = worth(memory)
        if not fresh or weight < NEWS or weight <= best or memory.startswith(ask.other):
            continue
        comes_first = weight * (0.3 + 0.7 * chance.fraction("first", ask.who, ask.other, ask.situation, memory))
        if comes_first <= best:
            continue
        if any(each.startswith(ask.other) and memory.rstrip(".!") in each for each in ask.memories):
            continue  # the other has answered to it
        if (WHO_IS.match(memory) and _is_of(ask.who, memory)) or is_over(memory, ask.situation):
            continue
        if chance.fraction("tells", ask.who, ask.other, ask.situation, memory) < _comes_up(ask, memory, weight):
            best, found = comes_first, number
    return found


def _comes_up(ask: Utter, memory: str, weight: float) -> float:
    """Return how probable it is that something is told: what is one's own, and what one has a part in, most."""
    if memory.startswith(ask.who):
        return HOSTS_TELL if is_invitation(memory) else TELLS_OWN * (0.4 if is_everyday(memory) else 1)
    p = max(0.04, TELLS + TELLS_MORE * weight - 0.25 * bool(WHO_IS.match(memory)) + 0.1 * bool(ask.relation))
    part = [each for each in ask.memories if each.startswith(f"{ask.who} ") and memory.rstrip(".!") in each]
    return p + 0.2 if any(" will " in each[: len(ask.who) + 6] for each in part) else p / 2 if part else p


def _punctuated(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _first(name: str) -> str:
    return name.split()[0]


@rule(TakeFromTalk)
def keep_what_was_said(ask: TakeFromTalk) -> Taken:
    """Keep what the other said that weighs, who comes to what, and what was agreed on."""
    heard = _statements(ask.other, ask.lines)
    told = [each for each in dict.fromkeys(heard) if worth(each) >= NEWS and len(each.split()) > 2]
    told = sorted(told, key=lambda each: bool(WHO_IS.match(each)))
    mine = [each for each in _statements(ask.who, ask.lines) if not WHO_IS.match(each)]
    news = [each for each in told if not WHO_IS.match(each)]
    about = f"how {re.sub(r'[.!?]+$', '', (news or mine)[0])}"[:180] if news or mine else "this and that"
    comes = _agreed(ask, ask.who, ask.other)
    memo = comes
    for each in told[:2]:
        memo = f"{memo} {each}".strip() if len(memo) + len(each) < 400 else memo
    return Taken(about=about, memo=memo, plan=_agreed(ask, ask.other, ask.who))


def _of(who: str, line: str) -> str:
    return line[len(who) + 2 :] if line.startswith(f"{who}: ") else ""


def _agreed(ask: TakeFromTalk, asks: str, answers: str) -> str:
    """Return what one of the two answered to an invitation of the other; "" where nobody was invited."""
    for asked, answer in zip(ask.lines, ask.lines[1:], strict=False):
        said = _of(answers, answer)
        deed = next((deed for words, deed in ANSWERS.items() if words in said), "")
        if asked.endswith(QUESTIONS) and deed and (told := _statements(asks, (asked,))):
            return f"{answers} {deed}: {told[-1]}"[:400]
    return ""
