"""Values that a text gives, by their kind: a time of day, a weekday, a month, a number, a person, a name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

NUMBER = (
    r"\d+(?:[.,]\d+)?|(?:(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)(?:-| )?)?"
    r"(?:one|two|three|four|five|six|seven|eight|nine)|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen"
    r"|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|a hundred"
)
NUMBER_ZH = r"(?:\d{1,6}(?:\.\d{1,3})?|[零一二两三四五六七八九十百千]{1,8})"
PEOPLE = [
    "mother",
    "father",
    "mum",
    "mom",
    "mam",
    "dad",
    "daddy",
    "parents?",
    "sister",
    "brother",
    "son",
    "daughter",
    "kids?",
    "child(?:ren)?",
    "baby",
    "toddler",
    "twins?",
    "husband",
    "wife",
    "partner",
    "boyfriend",
    "girlfriend",
    "fianc[eé]e?",
    "flatmate",
    "roommate",
    "housemate",
    "neighbou?rs?",
    "boss",
    "colleagues?",
    "friends?",
    "uncle",
    "aunt(?:ie)?",
    "cousin",
    "nephew",
    "niece",
    "gran",
    "grandma",
    "grandpa",
    "grandmother",
    "grandfather",
    "nan",
    "dogs?",
    "cats?",
    "pupp(?:y|ies)",
    "kittens?",
    "landlord",
    "landlady",
    "tenant",
    "lodger",
    "nurse",
    "doctor",
    "guests?",
]
PEOPLE_ZH = (
    r"我?的?(?:老公|丈夫|先生|老婆|妻子|太太|爱人|对象|男朋友|女朋友|爸爸?|妈妈?|父亲|母亲|爷爷|奶奶|外公|外婆|姥姥"
    r"|姥爷"
    r"|哥哥?|姐姐?|弟弟?|妹妹?|儿子|女儿|孩子|宝宝|婴儿|室友|邻居|同事|老板|领导|朋友|舅舅?|叔叔?|阿姨|岳母|婆婆|公公|狗"
    r"|猫)"
)
_PERSON = "|".join(PEOPLE)
KINDS: dict[str, re.Pattern[str]] = {
    "clock": re.compile(
        rf"\b(?:\d{{1,2}}[:.]\d{{2}}(?: ?[ap]m)?|\d{{1,2}} ?[ap]m|(?:half|quarter|ten|twenty"
        rf"|five)(?: past| to) (?:{NUMBER})"
        rf"|(?:{NUMBER})(?: thirty| fifteen| forty-five| o'?clock)|midnight|noon)\b"
        rf"|(?:(?<=\bat )|(?<=\bby )|(?<=\buntil )|(?<=\btill )|(?<=\baround )|(?<=\bbefore )|(?<=\bafter ))"
        rf"(?:{NUMBER})\b(?! (?:hours?|minutes?|times|weeks?|months?|years?))"
        rf"|(?:凌晨|早上|上午|中午|下午|晚上|半夜)?{NUMBER_ZH}点(?:半|一刻|三刻|钟|{NUMBER_ZH}分?)?",
        re.IGNORECASE,
    ),
    "weekday": re.compile(
        r"\b(?:next |last |this )?(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\b(?:tomorrow"
        r"|yesterday|today|tonight)\b"
        r"|[上下这本]*(?:周|星期|礼拜)[一二三四五六日天末]|[今明昨后前]天",
        re.IGNORECASE,
    ),
    "month": re.compile(
        r"\b(?:January|February|March|April|May|June|July|August|September|October|November|December)\b"
        rf"|{NUMBER_ZH}月(?!份?大)|[春夏秋冬]天|\b(?:spring|summer|autumn|winter)\b"
    ),
    "ordinal": re.compile(
        r"\b(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|\d+(?:st|nd|rd|th))\b"
        rf"|第{NUMBER_ZH}",
        re.IGNORECASE,
    ),
    "number": re.compile(rf"\b(?:once|twice|(?:{NUMBER})(?: and a half)?)\b|{NUMBER_ZH}(?=\D|$)", re.IGNORECASE),
    "person": re.compile(rf"\b(?:{_PERSON})(?:[ -]in[ -]law)?\b|{PEOPLE_ZH}", re.IGNORECASE),
    "name": re.compile(
        r"(?<![.!?“] )(?<!^)\b(?!I\b)[A-Z][\w'-]+\b|(?<=名字是)[\u3400-\u9fff]{2,4}|(?<=叫)[\u3400-\u9fff]{2,4}"
    ),
}
"""The narrower kinds first: a time holds a number, a weekday is a word with a capital."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value as it stands in a text, and what is counted or measured by it: the word after it."""

    kind: str
    start: int
    end: int
    text: str
    unit: str


def values(text: str, kind: str = "") -> Iterator[Value]:
    """Give the values of a text, those of one kind where one is named; what is part of another is none."""
    taken: list[tuple[int, int]] = []
    for name, shape in KINDS.items():
        for found in shape.finditer(text):
            start, end = found.span()
            if any(start < stop and begin < end for begin, stop in taken):
                continue
            taken.append((start, end))
            if kind in ("", name):
                after = re.match(r"[\s-]*([a-z]+|[\u3400-\u9fff])", text[end:], re.IGNORECASE)
                unit = after[1].lower().rstrip("s") if after else ""
                yield Value(name, start, end, found[0], unit)


def kind_of(text: str) -> str:
    """Name the kind of the first value of a text, by the order of kinds; "" where it gives none."""
    return next((value.kind for value in values(text)), "")
