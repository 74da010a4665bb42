"""A question and its parts: what a brief is to answer, one by one."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mindstream.life.rules.reading import NOUNS, NOUNS_ZH, READ

MOST = 7
FILE = re.compile(r"\b(?P<name>[\w-]+\.(?:md|txt))\b")
WH = r"(?:who|whom|whose|what|which|when|where|why|how|whether|if)\b"
WH_ZH = r"(?:什么|谁|哪|何时|何地|几|多少|多久|为什么|为何|怎么|怎样|如何|是否)"
ON = r"(?:on|about|regarding|concerning|answering|explaining|saying|covering|into)"
SOURCES = re.compile(
    r"[,;]?\s*\b(?:with|and|giving|naming|including)? ?(?:its |the |their |all )?"
    r"(?:sources|quotations|quotes|references|citations)\b"
    r"|[,;]?\s*\b(?:from|in|over|out of|using|based on) (?:the |these |my |our )?"
    r"(?:documents|files|folder|papers|texts)(?: in (?:the|this|my) folder)?\b"
    r"|[,;]?\s*\b(?:into|in|as|to) (?:the |a )?(?:file )?(?:called )?[\w.-]+\.(?:md|txt)\b"
    r"|[（(]?附(?:上)?(?:来源|出处|引文)[)）]?"
    r"|(?:根据|依据|从)[^，。]{0,6}(?:文档|文件|资料|文件夹)(?:中|里|里面)?[，]?",
    re.IGNORECASE,
)
LEAD = re.compile(
    rf"^.*?\b{NOUNS}\b[^.:;?]{{0,60}}?(?:\b{ON}\b|\bof\b|:|,)\s*(?:the (?:question|topic|subject)s?\b[:,]?\s*)?",
    re.IGNORECASE | re.DOTALL,
)
VERB = re.compile(
    r"^(?:find out|look (?:up|into|for)|research|investigate|search (?:the \w+ )?for|explain|describe|study|learn"
    rf"|answer|collect|gather|report|tell me|summari[sz]e)\b\s*(?:(?:what|everything|all) (?:the )?\w+ (?:say|says) )?"
    rf"(?:{ON}\b)?\s*(?:the question\b[:,]?)?\s*",
    re.IGNORECASE,
)
ABOUT_ZH = re.compile(
    rf"^.*?(?:关于|有关|围绕)(?P<subject>.+?)的?(?:一[份篇个])?{NOUNS_ZH}[，,：:。]?(?P<rest>.*)$", re.DOTALL
)
LEAD_ZH = re.compile(
    rf"^.*?{NOUNS_ZH}[，,：:。]?|^(?:查一?查|查明|查找|查一下|查|搜索|研究|调查|了解|收集|解释)(?:一下)?"
)
SAYS_ZH = re.compile(r"^(?:说明|回答|介绍|讲讲|写明|讲清楚?|包括|内容)(?:一下)?[:：，,]?")
LEANS = re.compile(
    r"\b(?:it|its|he|him|his|she|her|hers|they|them|their|theirs|there|this|that|these|those)\b"
    rf"|^(?:{WH_ZH}|有|是|由|被|花|要|在)|[它他她其这那]",
    re.IGNORECASE,
)
OWN = re.compile(r"\b(?:the|an?|my|our|your)\s+\w|(?<=\w )[A-Z][a-z]|\d|[\u4e00-\u9fff]")


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: its subject ("" where the one part says it all) and its parts."""

    subject: str
    parts: tuple[str, ...]

    @property
    def title(self) -> str:
        """What it is about, in a line."""
        return self.subject if self.subject and self.subject not in self.parts else ", ".join(self.parts)

    def subject_of(self, part: str) -> str:
        """Return what a part is about: a first part is no subject of another that names its own."""
        is_first = self.subject == self.parts[0]
        return (
            "" if is_first and (part == self.subject or (OWN.search(part) and not LEANS.search(part))) else self.subject
        )


def read_question(text: str) -> Question:
    """Read the question that a task puts: without what is to be done with it, split into its parts."""
    first, *further = re.split(r"(?<=[.!?。！？])\s+", text.strip()[:READ])
    told = (each for each in further if not FILE.search(each))  # where it is to be written is no part of what is asked
    body = SOURCES.sub("", " ".join((first, *told)))
    chinese = bool(re.search(r"[\u4e00-\u9fff]", body))
    return _chinese(body) if chinese else _english(body)


def _english(body: str) -> Question:
    lead = LEAD.match(body)
    rest = _trim(body[lead.end() :] if lead else VERB.sub("", body))
    if not rest:
        return Question("", (_trim(body),))
    head, colon, listed = re.sub(rf" [-–—] (?={WH})", ": ", rest, flags=re.IGNORECASE).partition(":")
    if colon and head.strip() and listed.strip():
        return _question(_trim(head), _listed(listed))
    pieces = re.split(rf"\s*[;?]\s+|,?\s+and\s+(?={WH})|,\s*(?={WH})", rest, flags=re.IGNORECASE)
    parts = [piece for each in pieces if (piece := _trim(each))]
    return _question(parts[0] if len(parts) > 1 else "", parts)


def _listed(text: str) -> list[str]:
    asks = re.search(rf"\b{WH}", text, re.IGNORECASE)
    joint = rf"\s*[;?,]\s*(?:and\s+)?|\s+and\s+{f'(?={WH})' if asks else ''}"
    return [piece for each in re.split(joint, text, flags=re.IGNORECASE) if (piece := _trim(each))]


def _chinese(body: str) -> Question:
    found = ABOUT_ZH.match(body)
    subject, rest = (found["subject"], found["rest"]) if found else ("", LEAD_ZH.sub("", body, count=1))
    rest = SAYS_ZH.sub("", _trim(rest))
    if not rest:
        return _question("", [_trim(subject or body)])
    head, colon, listed = rest.replace("：", ":").partition(":")
    if colon and listed.strip() and not subject:
        subject, rest = _trim(head), listed
    pieces = re.split(rf"[，,、；;？?]|以及|(?:和|与)(?=[^和与]*{WH_ZH})", rest)
    parts = [piece for each in pieces if (piece := _trim(re.sub(r"^(?:和|与|并)", "", each.strip())))]
    return _question(subject or (parts[0] if len(parts) > 1 else ""), parts)


def _question(subject: str, parts: list[str]) -> Question:
    return Question(subject, tuple(dict.fromkeys(parts))[:MOST])


def _trim(text: str) -> str:
    return " ".join(text.split()).strip(" .,;:?!，。；：？！、")
