"""Which of a user's own words answer what was asked: a short phrase, or none; never a whole raw sentence."""

from __future__ import annotations

import re

from mindstream.text.language import CJK
from mindstream.text.values import values

WORDS, LETTERS = 6, 14
"""So many words, or Chinese characters, a phrase has at most; one that says when may have half as many more."""
LEADS = re.compile(
    r"^(?:(?:yes|yeah|no|well|so|um+|uh+|hm+|oh|okay|ok|honestly|just|mostly|mainly|usually"
    r"|probably|perhaps|maybe|i guess"
    r"|i think|i suppose|i'd say|it'?s(?: mostly| mainly| probably| just| the| been)?|it is"
    r"|that would be|that'?s|there'?s)\b[\s,.:]*)+"
    r"|^(?:嗯|哦|呃|那|其实|主要是?|就是|应该是|可能是?|我觉得是?|我想是?|一般是?|最近|[，,\s])+",
    re.IGNORECASE,
)
TRIED = re.compile(
    r"^(?:(?:yes|well|so)\b[\s,]*)?(?:i(?:'ve| have)? )?(?:already |also |even )*tried(?: out)? (?P<en>[^.!?;]+)"
    r"|^(?:我)?(?:已经|都|也)*(?:试过|试了|用过|吃过|做过)(?P<zh>[^。！？；]+)",
    re.IGNORECASE,
)
WISHED = re.compile(
    r"\b(?:i(?:'d| would|d)? (?:really |just |only |so |do )*(?:like|love|want|wish|hope|prefer|aim|rather)"
    r"|my (?:goal|aim|dream|hope|wish) (?:is|would be)|i(?:'d| would) (?:just |finally "
    r"|really )*)(?: to| for| that)?\s+(?P<en>[^.!?;\n]+)"
    r"|(?:想要|想|希望|但愿|盼着|(?:目标|愿望|心愿)是)(?:要|能够)?(?P<zh>[^。！？；\n]+)",
    re.IGNORECASE,
)
CLAUSE = re.compile(
    r"^(?:i|we|he|she|they|you|it|my|our|his|her|their|this|that|everything|nothing|none|no|all"
    r"|ugh|argh|omg|god|lol|same)\b"
    r"|\b(?:i|i'm|i've|im|we|we're|am|is|are|was|were|isn't|don't|can't|won't)\b|^[我咱他她它你您唉哎这那]|没有?$",
    re.IGNORECASE,
)
"""Words that stand in a sentence, or in place of a thing, and not in the name of one."""
ASKS_WHEN = re.compile(
    r"\b(?:how (?:long|many|often)|when|what time|last)\b|多久|几|什么时候|时间|上一次", re.IGNORECASE
)
WHEN = re.compile(
    r"\b(?:(?:ever )?since|for|from|at|around|about|until|between|every|before|after)\b.*"
    r"|\b(?:years|months|weeks|always)\b.*",
    re.IGNORECASE,
)
SAYS_WHEN = re.compile(
    r"\b(?:since|always|forever|ages|(?:year|month|week|day|night|hour|minute|summer|winter"
    r"|autumn|spring|childhood)s?)\b|[年月周天夜晚]|小时|一直|从小",
    re.IGNORECASE,
)


def answering_phrase(text: str, asked: str) -> str:
    """Return the phrase that answers a question, in the user's words; "" where it is none, or longer than one."""
    plain = text.replace("’", "'").strip().rstrip(".!。！…~～ ")
    if re.search(r"[.!?。！？;；\n](?!\d)", plain):
        return ""
    if found := TRIED.match(plain):
        return _short((found["en"] or found["zh"]).strip(), 1)
    if ASKS_WHEN.search(asked):
        return _time_phrase(plain)
    bare = LEADS.sub("", plain)
    return "" if CLAUSE.search(bare) or re.search("[,，]", bare) else _short(bare, 1)


def wished_phrase(text: str) -> str:
    """Return what is wished for, in the user's words; "" where that cannot be told."""
    found = WISHED.search(text.replace("’", "'"))
    return _short((found["en"] or found["zh"]).strip(), 2) if found else ""


def _time_phrase(text: str) -> str:
    if not (SAYS_WHEN.search(text) or any(value.kind != "person" for value in values(text))):
        return ""
    if re.match(r"(?:i|i'm|i've|we|my|it)\b", text, re.IGNORECASE):
        found = WHEN.search(text)
        text = found[0] if found else ""
    return _short(re.sub("^我", "", text), 1.5)


def _short(words: str, times: float) -> str:
    long = len(words) > LETTERS * times if CJK.search(words) else len(words.split()) > WORDS * times
    return "" if long else words
