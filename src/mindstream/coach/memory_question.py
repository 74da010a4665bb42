"""A question for what the user told: whether an utterance is one, and what it asks for."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mindstream.coach.asked_value import Asked, asked_kind
from mindstream.text.kinship import find_kin
from mindstream.text.language import language_of
from mindstream.text.spelling import correct_spelling

LEAD_IN = re.compile(
    r"^\W*(?:(?:hey|hi|hello|and|so|ok|okay|but|wait|please|sorry|again|by the way|btw|remind me|tell me"
    r"|(?:can|could|would|will) (?:you|u) (?:please )?(?:tell|remind) me(?: again)?"
    r"|(?:i (?:just )?(?:wonder|was wondering) if )?(?:(?:do|can|did|would) )?(?:you|u) (?:\w+ )?"
    r"(?:know|remember|recall))[\s,:]+)+"
    r"|^\W*(?:那|嗨|对了|對了|请问|請問|[你您](?:还|還)?(?:知不知道|记不记得|知道|记得|記得|晓得|曉得)"
    r"|告诉我|告訴我)+[，,]?",
    re.IGNORECASE,
)
ASIDE = re.compile(
    r"\b(?:did )?i (?:(?:ever|already) )?(?:tell|told|said|say|mention|mentioned)(?: to)?(?: (?:you"
    r"|u))?(?: about)?\b"
    r"|[我俺](?:是不是)?(?:跟|和|对|對|同|给|給|向)[你您](?:说|說|讲|講|提)(?:过|過)?|[我俺](?:说|說|告诉"
    r"|告訴)(?:过|過)?(?:[你您])?",
    re.IGNORECASE,
)
ASKS = re.compile(
    r"(?:^|[,.;!:]\s*)(?:(?:in|at|on|for|with|to|from|since) )?(?:(?:who|where|when)(?:'?s\b| (?:is|are|was"
    r"|were|do|does|did|has|have|had|am|will)\b)"
    r"|(?:what|wat|wot|which|who|how (?:old|many|much|long|often|late|early|far|tall|heavy|big|high))"
    r"(?:'?s\b|(?:\s+[\w'’]+){0,3}?\s+(?:is|are|was|were|do|does|did|has|have|had|am|will)\b))"
    r"|(?:^|[,.;!:]\s*)(?:what|wat|wot|who|where|when|wen|which|how (?:old|many|much|long|often|late"
    r"|early))\b(?=.*\?\s*$)"
    r"|(?:^|[,.;!:]\s*)(?:(?:my|our) .*\bname\b|(?:the )?names? of (?:my|our)\b).*\?",
    re.IGNORECASE,
)
ASKS_IN_CHINESE = re.compile(
    "什[么麼]|啥|[几幾]|哪|[谁誰]|多[少大久长長高重远遠]|何[时時]|好多|[咩乜]|邊[個度間]|好[久大高]"
)
STATES_IN_CHINESE = re.compile(
    "[都也](?!.*[?？])|几乎|幾乎|[好这那前没]几|[這沒]幾|[没沒](?:什|啥|多少)|不了[几幾]|不管|无论|不知道|不晓得|哪怕"
)
ADVICE = re.compile(
    r"\b(?:should|shall|can|could|may|might|must|would|will|ought|supposed to|have to|need to)\s+(?:i|we|it"
    r"|this|that)\b"
    r"|\bi (?:should|shall|can|could|may|might|must|would|ought|have to|need)\b|\bwill (?:help|work"
    r"|happen)\b|\b(?:can|could|would|should) (?:help|be)\b"
    r"|\b(?:supposed|meant) to\b|\b(?:do|can) we (?:begin|start|go)\b"
    r"|办法|辦法|安排|注意|新的|[干幹][啥嘛]|[啥什][么麼]?招"
    r"|\b(?:what|how) do i do\b(?! for a)|\bdo i (?:need|try|get help|start|begin)\b|\bam i doing\b"
    r"|\b(?:plans?|steps?|advice|advise|tips?|suggest\w*|recommend\w*|wrong with|happening|next for|helps?)\b"
    r"|怎[么麼]|咋|怎样|怎樣|如何|[为為](?:什|啥)|應該|应该|该|該|[^可功]能|可以|要不要|会不会|會不會|建议"
    r"|建議|[计計][划劃]|下一步|步[骤驟]|[帮幫]我|合[适適]|最好|正常|\b(?:normal|healthy|best|better|right)\b",
    re.IGNORECASE,
)
NAME = re.compile(
    r"\bmy (?:own )?name\b|\bi(?: am|'m)? called\b|\bam i called\b|^\W*(?:[我俺]叫|[我俺]的?名字)", re.IGNORECASE
)
YOU = re.compile(r"\b(?:you|your|yours|u|ur)\b|[你您]", re.IGNORECASE)
OWN = re.compile(
    r"\b(?:my|our|mine)\b|\b(?:do|did|am|was|have|had) (?:i|we)\b|\bi (?:said|told|mentioned)\b"
    r"|[我俺咱]",
    re.IGNORECASE,
)
OF_OTHERS = re.compile(r"\b(?:he|she|him|her|his)\b|[他她佢]", re.IGNORECASE)
OF_SOMETHING_KNOWN = re.compile(r"\bthe\b|[\u3400-\u9fff](?!是(?:什|啥|咩))", re.IGNORECASE)
CAPITAL = re.compile(r"(?<=[\w'’] )[A-Z][a-z]+")


LONGEST = 300
"""A question has at most so many characters; nor is more of a line read for its answer."""
LONGEST_PLAIN = 80
"""So many characters a plain question has at most."""


@dataclass(frozen=True, slots=True)
class MemoryQuestion:
    """A question for what was told: what kind of thing it asks for, of what it speaks, and whether it is one's own."""

    kind: Asked
    body: str
    own: bool
    known: bool


def read_question(text: str) -> MemoryQuestion | None:
    """Return what an utterance asks of memory; None where it asks for nothing that may have been told, or is long."""
    if len(text) > LONGEST:
        return None
    body = LEAD_IN.sub("", correct_spelling(text.strip().replace("’", "'")))
    asked = bool(ASKS.search(body)) or (ASKS_IN_CHINESE.search(body) and not STATES_IN_CHINESE.search(body))
    aside = ASIDE.search(body)
    if not (asked or aside) or (ADVICE.search(body) and not aside):
        return None
    own = bool(OWN.search(body) or OF_OTHERS.search(body) or find_kin(body))
    body = ASIDE.sub(" ", body)
    kind = asked_kind(body)
    if kind is None or YOU.search(body):
        return None
    known = own or bool(CAPITAL.search(body))
    if kind == "what" and not known and not OF_SOMETHING_KNOWN.search(body):
        return None
    return MemoryQuestion(kind, body, own, known)


def asks_for_name(text: str) -> bool:
    """Tell whether the user asks what they are called."""
    return read_question(text) is not None and bool(NAME.search(LEAD_IN.sub("", text)))


def asks_for_own(text: str) -> bool:
    """Tell whether an utterance asks for what is the user's own, or what they said."""
    question = read_question(text)
    return question is not None and question.own


def only_asks_for_own(text: str) -> bool:
    """Tell whether an utterance does nothing else: one short clause that asks for what is the user's own."""
    clause = text.strip().rstrip("?？!. ")
    most = LONGEST_PLAIN // 4 if language_of(text) == "zh" else LONGEST_PLAIN
    return len(clause) <= most and not re.search("[,，;；.。!！]", clause) and asks_for_own(text)


def is_question(text: str) -> bool:
    """Tell whether a line asks, and so states nothing to quote."""
    text = text.strip(" “”")
    return text[-1:] in "?？" or read_question(text) is not None
