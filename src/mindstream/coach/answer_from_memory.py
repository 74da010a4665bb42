"""A question that the user has answered before is answered in their own words, or by saying that nothing was found."""

from __future__ import annotations

import re

from mindstream.reasoners.conversation import DatedLine
from mindstream.text.persons import find_persons
from mindstream.text.words import terms

SURE_OF_OWN, SURE_OF_SELF, SURE = 0.1, 0.3, 0.6
"""How sure recall must be for a quotation: where they ask for what is theirs or what they said, for something of
themselves, for anything else."""
OPENING = (
    r"^\W*(?:(?:hey|hi|and|so|ok|okay|but|wait|please|sorry|again|tell me|remind me"
    r"|(?:can|could|would|will) you (?:please )?(?:tell|remind) me"
    r"|(?:do|can|did) (?:you|u) (?:still )?(?:know|remember|recall))[\s,:]+)*"
)
ASKS = re.compile(
    OPENING + r"(?:what|whats|what's|when|where|who|whos|who's|whose|which|how (?:old|many|much|long|often|late|early))"
    r"\b(?!\s*[?!,.])"
    r"|什么|几点|几个|几岁|多少|多久|哪|谁|何时",
    re.IGNORECASE,
)
ADVICE = re.compile(
    r"\b(?:should|shall|can|could|may|might|must|would|will|need|supposed|ought|have to"
    r"|do i do|i do (?:about|if|when|now)|am i doing|start|begin|plans?|steps?|next"
    r"|advice|advise|help|tips?|wrong|happening)\b"
    r"|怎么办|应该|可以|能|会不会|为什么|怎样|怎么|建议|计划|下一步|步骤|帮|要不要",
    re.IGNORECASE,
)
NAME = re.compile(r"\bmy name\b|\bi(?: am|'m)? called\b|我(?:叫|的名字)", re.IGNORECASE)
YOU = re.compile(r"\b(?:you|your|yours|u|ur)\b|你|您", re.IGNORECASE)
OWN = re.compile(
    r"\bmy\b|\bdid i\b|\bi (?:said|told|mentioned)\b|我的?[^，。？]{0,6}(?:说|告诉|叫|名字|在哪|几)", re.IGNORECASE
)


def asks_for_own(text: str) -> bool:
    """Tell whether an utterance asks for what is the user's own, or what they said."""
    return _asks(text) and bool(OWN.search(_without_opening(text)))


def asks_for_name(text: str) -> bool:
    """Tell whether the user asks what they are called."""
    return bool(NAME.search(text)) and _asks(text)


def best_answer(text: str, answers: tuple[DatedLine, ...], certainty: float) -> DatedLine | None:
    """Return the line to quote; None where nothing is asked that was told, or recall is not sure enough of it."""
    if not _asks(text):
        return None
    question = _without_opening(text)
    sure = SURE_OF_OWN if asks_for_own(text) else SURE_OF_SELF if find_persons(question).asker else SURE
    if YOU.search(question) or certainty < sure:
        return None
    asked = set(terms(text))
    return next((line for line in answers if set(terms(line.text)) - asked), None)


def _asks(text: str) -> bool:
    return bool(ASKS.search(text)) and not ADVICE.search(_without_opening(text))


def _without_opening(text: str) -> str:
    """Return a question without what only leads up to it: "can you tell me …", "do you remember …"."""
    return re.sub(OPENING, "", text, flags=re.IGNORECASE)
