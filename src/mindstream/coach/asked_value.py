"""What kind of thing a question asks for (a time, a number, a name, …), and whether a line holds such a thing."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from mindstream.text.dates import MONTHS, NUMBERS, WEEKDAYS

Asked: TypeAlias = Literal["age", "hour", "time", "number", "name", "work", "who", "place", "what"]

HOW_MANY = r"how (?:many|much|long|far|often|tall|heavy|big|high|fast|large)"
QUESTIONS: dict[Asked, re.Pattern[str]] = {
    "age": re.compile(
        r"\bhow old\b|\bwhat age\b|(?:多大|幾大|几大)(?:年纪|年紀|岁数|歲數)?|[几幾多]少?岁|[几幾]歲|好多岁"
        r"|[岁歲][数數]",
        re.IGNORECASE,
    ),
    "hour": re.compile(
        r"\bwh?at (?:time|hour)\b|\bhow (?:early|late)\b|[几幾][点點时時]", re.IGNORECASE
    ),
    "time": re.compile(
        r"\b(?:when|wen)(?:'?s)?\b|\b(?:what|which) (?:day|date|month|year|weekday|evening|morning|night)s?\b"
        r"|什[么麼][时時][候间間]|啥时候?|[几幾][月号號]|哪[一]?[天年月日]|何[时時]|(?:星期|礼拜|禮拜|周|週)[几幾]",
        re.IGNORECASE,
    ),
    "number": re.compile(
        rf"\b{HOW_MANY}\b|多少钱?|多少錢|多[久长長高重远遠]|好多(?:钱|錢|久)?|[几幾]多|第?[几幾](?:年级"
        rf"|年級)?", re.IGNORECASE
    ),
    "name": re.compile(
        r"\bnames?\b|\b(?:called|named)\b|(?:叫|喊)?什[么麼]名字?|[叫姓](?:做|作)?(?:什[么麼]|啥子?"
        r"|[咩乜]嘢?)名?字?|名字|咩名",
        re.IGNORECASE,
    ),
    "work": re.compile(
        r"\bwhat do(?:es)?(?= (?!i\b)[\w' ]+ do\W*$)|\b(?:jobs?|professions?|occupations?)\b"
        r"|\bfor a living\b|[职職][业業]|[做干幹]的?是?(?:什[么麼]|啥子?|咩)(?:工作?|[职職][业業]"
        r"|行[业業])?的?|什[么麼]工作|啥工作|咩工|[从從]事什",
        re.IGNORECASE,
    ),
    "who": re.compile(r"\bwho(?:'?s|se|m)?\b|[谁誰]|哪个人|邊個|边个", re.IGNORECASE),
    "place": re.compile(
        r"\bwhere(?:'?s)?\b|\b(?:what|which) (?:city|town|country|place|village|street|district)\b"
        r"|哪[里裡儿兒]|哪旮[沓瘩]|邊度|边度|[邊边哪][间間]|[哪什][么麼]?(?:地方|城市|国家|國家)"
        r"|哪个?(?:城市|国家)|(?<=[在住去喺])哪",
        re.IGNORECASE,
    ),
    "what": re.compile(
        r"\b(?:what|wat|wot|which)(?:'?s)?\b|什[么麼]|啥子?|[咩乜]嘢?|哪[个個些种種样樣]?|做[么麼]", re.IGNORECASE
    ),
}  # fmt: skip
"""How each kind is asked for; the first that fits. Words of asking are no words to look for."""

_WORDS = "|".join(NUMBERS[2:])
_TENS = (
    "thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen|twenty|thirty|fou?rty|fifty|sixty|seventy|eighty"
    "|ninety|hundred|thousand"
)
NUMBER = rf"(?:\d[\d.,]*|\b(?:one(?= \w)|{_WORDS}|{_TENS})(?:[ -](?:{_WORDS}|one))?\b)"
C_NUMBER = "[0-9零一二三四五六七八九十百千万萬两兩俩半仨]"
_C_COUNTED = (
    "(?:[0-9二三四五六七八九十百千万萬两兩俩半仨]"
    "|一(?=[个個只隻条條天次年月周週星点點杯瓶片包根块塊岁歲斤公元百千万两]))"
)
VALUES: dict[Asked, re.Pattern[str]] = {
    "age": re.compile(
        rf"{NUMBER}(?=\s*(?:[,.;!)]|$|years?\b|yrs?\b|y\.?o\b|months?\b|weeks? old|and\b|in\b|now\b|this\b"
        rf"|next\b|on\b|old\b|today\b))"
        rf"|{C_NUMBER}+多?个?[岁歲月]|{C_NUMBER}{{2,}}了|[过過]{C_NUMBER}+大?[寿壽]|{C_NUMBER}+生日",
        re.IGNORECASE,
    ),
    "hour": re.compile(
        rf"\b\d{{1,2}}(?:[:.]\d\d)? ?(?:am|pm|a\.m|p\.m|o'?clock|h)\b|\b\d{{1,2}}[:.]\d\d\b|\bhalf past\b"
        rf"|\bo'?clock\b|\b(?:midnight|noon)\b"
        rf"|\b(?:at|by|around|about|before|until|till?|til|after|to|past|from|since|half|it's|is"
        rf"|between) (?:about |around )?{NUMBER}"
        rf"|{C_NUMBER}+[点點]|半夜|凌晨|中午",
        re.IGNORECASE,
    ),
    "time": re.compile(
        rf"\b\d{{1,2}}(?:[:.]\d\d)? ?(?:am|pm|a\.m|p\.m|o'?clock|h)\b|\b\d{{1,2}}:\d\d\b|\bhalf past\b|\bo'?clock\b"
        rf"|\b(?:at|by|around|about|before|until|till?|til|after|to|past|from|since|on|for|the|is|it's"
        rf"|half) {NUMBER}"
        rf"|\b(?:{'|'.join(MONTHS)}|january|february|march|april|june|july|august|sept(?:ember)?|october"
        rf"|november|december)\b(?! \w+ed\b)"
        rf"|\b(?:{'|'.join(WEEKDAYS)}|mon|tues?|wed|thurs?|fri|sat|sun)s?\b"
        r"|\b(?:midnight|noon|dawn|dusk|lunch|dinner|breakfast|bed|christmas|easter|spring|summer|autumn"
        r"|fall|winter|tomorrow"
        r"|tonight|yesterday|today|weekends?|(?:next|last|every|this) \w+|(?:days?|weeks?|months?"
        r"|years?) ago|\d+(?:st|nd|rd|th)|\d{4})\b"
        rf"|{C_NUMBER}+[点點月号號日]|(?:周|週|星期|礼拜|禮拜)[一二三四五六日天末]|[今明后後昨前去]天"
        rf"|[今明去前]年|[上下]个?個?[月周週星礼禮]"
        r"|凌晨|清晨|中午|半夜|国庆|國慶|五一|圣诞|聖誕|春节|春節|元旦|中秋|过年|過年|[春夏秋冬]天|暑假|寒假"
        r"|天[亮黑]|年底|月底",
        re.IGNORECASE,
    ),
    "number": re.compile(rf"{NUMBER}|\b(?:once|twice|every|daily|half|dozen|couple)\b|{_C_COUNTED}"
    rf"|每", re.IGNORECASE),
    "work": re.compile(
        r"\b(?:works?|working|teach(?:es)?|drives?|studys?|studies|runs?|retired|used to be|job|jobs|student"
        r"|trainee)\b|\b(?:i'?m|i am|is|as|was|be|work) an? \w+"
        r"|[做当當教管开開跑]|是\S*[师師员員工生长長医醫农農板]|上班|工作|退休|[师師员員司][傅机機]?(?![气氣])",
        re.IGNORECASE,
    ),
    "place": re.compile(
        r"\b(?:in|at|to|from|near|above|below|behind|under|beside|next to|outside|inside|into|onto|over"
        r"|through|on)\b"
        r"|(?<=[a-z,] )[A-Z][a-z]+|[在去到住从從放搁擱喺回往]|医院|醫院",
    ),
    "name": re.compile(
        r"\b(?:called|named) (?!me\b|us\b|him\b|her\b|them\b|it\b|a\b|the\b|in\b|off\b|for\b|out\b|back\b"
        r"|to\b)\w|\bnames? (?:is|are)\b"
        r"|叫(?![唤喚醒我他她得不个個都做苦])[^\W\d_]|姓\w|名字",
        re.IGNORECASE,
    ),
}  # fmt: skip
"""How what is asked for looks in a line; whoever is asked for has a name, or none that could be told."""


OF_ONESELF: dict[Asked, re.Pattern[str]] = {
    "work": re.compile(
        r"\bi(?:'?m| am) (?:an? |\w+, (?:an? )?\w+|studying|retired)|\bi (?:work|teach|drive|study|bake"
        r"|write|sell|run|do|used to be) |\bas an? \w+"
        r"|[我俺](?:是|当|當|做|教|开|開|跑|种|種)|[做当當教开開跑种種管]|上班|工作",
        re.IGNORECASE,
    ),
    "age": re.compile(rf"\bi(?:'?m| am|'ll be| turned?) {NUMBER}(?! \w+s\b)|[我俺](?:今年|都"
    rf"|快)?{C_NUMBER}+多?[岁歲]", re.IGNORECASE),
}  # fmt: skip
"""How people say it of themselves, without naming what it is."""


def states_of_oneself(line: str, kind: Asked) -> bool:
    """Tell whether a line says of the user what a question without further words asks for: their work, their age."""
    pattern = OF_ONESELF.get(kind)
    return pattern is not None and bool(pattern.search(line))


def asked_kind(question: str) -> Asked | None:
    """Return what kind of thing a question asks for; None where it asks for nothing."""
    return next((kind for kind, pattern in QUESTIONS.items() if pattern.search(question)), None)


def without_asking(question: str) -> str:
    """Return a question without the words by which it asks."""
    for pattern in QUESTIONS.values():
        question = pattern.sub(" ", question)
    return question


def holds_value(line: str, kind: Asked) -> bool:
    """Tell whether a line holds something of a kind."""
    pattern = VALUES.get(kind)
    return pattern is None or bool(pattern.search(line))
