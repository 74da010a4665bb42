"""What the words of a task, an order or a person want, as far as rules read them: English and Chinese."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["ask", "remind", "sleep", "keep", "recall", "write", "find"]

POLITE = re.compile(
    r"^\W*(?:(?:please|kindly|then|and|also|now|first|next|(?:can|could|would|will) you(?: please)?"
    r"|i(?:'d| would) like you to|i want you to|your task is to)\b[\s,]*"
    r"|请你?|麻烦你?|帮(?:我|忙)|你?能不能|你?可以|然后|接着|再)+",
    re.IGNORECASE,
)
ASK = re.compile(
    r"ask (?:me|us|the user)\b(?:\s+(?:about|for)\b)?\s*[:,]?\s*(?P<what>.+)"
    r"|(?:询?问)(?:一?问)?(?:我|我们|用户)[:：，,]?(?P<zh>.+)",
    re.IGNORECASE | re.DOTALL,
)
REMIND = re.compile(
    r"remind (?:me|us)\b(?:\s+(?:to|of|about|that)\b)?\s*[:,]?\s*(?P<what>.+)|提醒(?:我|我们)[:：，,]?(?P<zh>.+)",
    re.IGNORECASE | re.DOTALL,
)
SLEEP = re.compile(
    r"(?:go to )?(?:sleep|bed)\b|have a dream|tidy (?:up )?(?:(?:the|your) )?memory|S\(\)"
    r"|去?睡[觉眠]?|整理记忆|做[个一]*梦",
    re.IGNORECASE,
)
KEEP = re.compile(
    r"keep (?:an?|my|our|the) .*\b(?:diary|journal|log|logbook|record)\b|(?:记|写|坚持写?).*(?:日记|日志)",
    re.IGNORECASE,
)
OWN = re.compile(
    r"\b(?:what|how|when|where|who|which|whether|if|that|everything|things|all)\s+(?:\w+\s+)?(?:I|we)\b"
    r"(?!\s*(?:should|can|could))"
    r"|\b(?:my|our) (?:\w+ )?(?:days?|weeks?|months?|diary|journal|log|answers|notes|memor(?:y|ies))\b"
    r"|我(?:们)?(?:都|已经|还)?(?:说|讲|告诉|提|做|睡|吃|记|写|去|见)|我的.{0,4}(?:日记|日志|记录|一[天周])",
    re.IGNORECASE,
)
LATELY = re.compile(
    r"\b(?:this|the|last|past) (?:past |last )?(?:day|week|month)s?\b|(?:这|本|上|过去).{0,2}(?:周|星期|月|几天)",
    re.IGNORECASE,
)
REVIEWS = re.compile(
    r"(?:tell|show|read) (?:me|us)|remember|recall|sum up|summari[sz]e|review|recap|look back|go (?:back )?over|list"
    r"|总结|小结|回顾|回忆|告诉我|列出|梳理",
    re.IGNORECASE,
)
NOUNS = (
    r"(?:brief|briefing|report|summary|overview|memo|essay|paper|review|account|article|dossier|note|notes|fact ?sheet)"
)
NOUNS_ZH = r"(?:简报|报告|综述|摘要|概述|说明|文章|短文|小结|总结|笔记)"
WRITES = re.compile(
    rf"\b(?:write|prepare|draft|compile|make|produce|put together|create|give|deliver)\b[^.:?]{{0,60}}?\b{NOUNS}\b"
    rf"|(?:写|撰写|整理|准备|起草|编|出)[^，。：？]{{0,40}}?{NOUNS_ZH}",
    re.IGNORECASE,
)
ASKS = re.compile(
    r"(?:who|whom|whose|what|which|when|where|why|how|is|are|was|were|do|does|did|has|have|had|can|could|will|would|should)\b"
    r"(?=.*\?|\s+(?:\w+\s+)?(?:I|you|we|it|the|my|our|is|was|are|were|did|do|does)\b)",
    re.IGNORECASE,
)
ASKS_ZH = re.compile(r"[吗呢]\W*$|什么|谁|哪[里儿个些年天]|何时|几[点时岁个]|多少|多[久大高长]|为什么|为何|怎么|怎样")
DOES = re.compile(
    r"(?:ask|remind|find|look|search|write|prepare|draft|compile|research|investigate|collect|gather|list|compare|check"
    r"|read|summari[sz]e|sum|tell|explain|show|sleep|keep|make|create|send|buy|book|order|call|plan|work|calculate|translate)\b"
    r"|(?:询?问|提醒|查|找|搜|写|撰|整理|研究|调查|了解|收集|列|比较|总结|回顾|告诉|解释|说明|睡|准备|起草|计算|翻译|买|订|发)",
    re.IGNORECASE,
)
SWAPS = {
    "i": "you", "me": "you", "my": "your", "mine": "yours", "myself": "yourself", "am": "are", "i'm": "you're",
    "i've": "you've", "we": "you", "us": "you", "our": "your", "we're": "you're",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Wanted:
    """What words want done, and about what."""

    kind: Kind
    about: str


READ = 2_000
"""So much of a goal or a question is read, in characters: nobody says what they want at greater length."""


def read_task(text: str) -> Wanted:
    """Read what a task wants: to ask or remind the user, sleep, keep a diary, look back, write, find."""
    words = POLITE.sub("", text.strip()[:READ], count=1).strip()
    for kind, pattern in (("ask", ASK), ("remind", REMIND)):
        if found := pattern.match(words):
            return Wanted(kind, (found["what"] or found["zh"]).strip(" .。"))  # type: ignore[arg-type]
    if SLEEP.match(words):
        return Wanted("sleep", "")
    if KEEP.match(words):
        return Wanted("keep", words)
    own, reviews = OWN.search(words), REVIEWS.match(words)
    if (own and (reviews or WRITES.match(words) or is_question(words))) or (reviews and LATELY.search(words)):
        return Wanted("recall", words)
    return Wanted("write" if WRITES.search(words) else "find", words)


def is_question(text: str) -> bool:
    """Tell whether a person asks something."""
    words = text.strip()
    return words.endswith(("?", "？")) or bool(ASKS.match(POLITE.sub("", words, count=1)) or ASKS_ZH.search(words))


def is_command(text: str) -> bool:
    """Tell whether a person wants something done."""
    return bool(DOES.match(POLITE.sub("", text.strip(), count=1)))


def turn_to_user(clause: str) -> str:
    """Return a clause as it is said to whom it is about: how I slept -> how you slept; 我睡得怎么样 -> 你睡得怎么样."""
    if re.search(r"[\u4e00-\u9fff]", clause):
        return clause.replace("我们", "你们").replace("我", "你")
    return re.sub(r"[A-Za-z']+", lambda word: SWAPS.get(word[0].lower(), word[0]), clause)
