"""The stories of `story.py` in Chinese: 3盒鸡蛋，每盒12个，吃了5个，还剩几个？"""

from __future__ import annotations

import re

from mindstream.planning.rules.story import Fact, NotUnderstood, Story, check_result
from mindstream.text.numerals import in_digits

HAN = r"[\u4e00-\u9fff]"
N, UNIT = r"(?P<n>\d+(?:\.\d+)?)", rf"(?P<unit>{HAN})(?P<noun>{HAN}{{0,4}})"
WHO = rf"(?P<who>(?!每|又|再|还){HAN}{{1,4}}?)??"
LOSS, GAIN = r"吃|用|卖|花|送|借出|丢|飞|拿|坏|死|喝|下|走", r"又来|收到|得到|捡|增加|收获|上|赚"
RATE = re.compile(rf"(?:每|1)(?P<per>{HAN})(?:(?!\d){HAN}){{0,4}}?{N}{UNIT}")
CHANGE = re.compile(
    rf"{WHO}(?:又|再|后来|然后|上午|下午)?(?:(?P<loss>{LOSS})|(?P<gain>{GAIN}))(?:了|走|掉|出|去|给){{0,3}}{N}{UNIT}"
)
STATE = re.compile(rf"{WHO}(?:原来|里|上)?(?:有|装了?|买了?|种了?|做了?|带了?|走了?|跑了?)?{N}{UNIT}")
ASKED = re.compile(
    rf"(?:请?问)?(?P<who>{HAN}{{1,4}}?)??(?:里|上)?(?P<rest>还剩下?|还有|剩下?|现在有?)?(?P<sum>一共|总共|共)?"
    r"(?:有|花了?|要|需要|付了?|是|买了?|卖了?|种了?)?(?:多少|几)"
    rf"(?P<unit>{HAN})?(?P<noun>{HAN}{{0,4}})"
)
PRONOUNS = {"他", "她", "它", "他们", "她们", "现在"}
LONG_UNITS = {"公", "平", "厘", "毫", "分", "小", "千"}
"""What such a unit is only its second character says."""


def read_chinese_story(task: str) -> str | None:
    """Return the formula of what a story asks; None where it is not understood whole."""
    clauses = [each.strip() for each in re.split(r"[，。；,;？?！]", in_digits(task)) if each.strip()]
    story = Story()
    try:
        for clause in clauses[:-1]:
            _read(story, re.sub(r"^一(?=[\u4e00-\u9fff])", "1", clause))
        return _ask(story, clauses[-1]) if story.facts else None
    except (NotUnderstood, RecursionError):
        return None


def _read(story: Story, clause: str) -> None:
    if found := RATE.fullmatch(clause):
        story.facts.append(Fact(found["n"], _unit(found), found["per"]))
    elif found := CHANGE.fullmatch(clause):
        _take_subject(story, found["who"])
        story.facts.append(Fact(found["n"], _unit(found), sign=-1 if found["loss"] else 1))
    elif found := STATE.fullmatch(clause):
        _take_subject(story, found["who"])
        story.facts.append(Fact(found["n"], _unit(found)))
    else:
        raise NotUnderstood(clause)


def _ask(story: Story, question: str) -> str:
    found = ASKED.fullmatch(question)
    if not found or not found["unit"]:
        raise NotUnderstood(question)
    _take_subject(story, found["who"])
    unit = _unit(found)
    mine = [fact for fact in story.facts if fact.unit == unit]
    if (found["sum"] and found["rest"]) or (len({bool(fact.sign) for fact in mine}) > 1 and not found["rest"]):
        raise NotUnderstood(question)
    if not found["rest"] and len(mine) > 1 and not found["sum"]:
        raise NotUnderstood(question)
    return check_result(story, unit, story.total(unit, is_rest=bool(found["rest"])))


def _take_subject(story: Story, who: str | None) -> None:
    """Note whom the story is about; a second one is not understood."""
    if not who or who in PRONOUNS:
        return
    if story.subject and who != story.subject:
        raise NotUnderstood(who)
    story.subject = who


def _unit(found: re.Match[str]) -> str:
    unit, noun = found["unit"], found["noun"]
    return unit + noun[:1] if unit in LONG_UNITS else unit
