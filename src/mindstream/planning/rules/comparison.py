"""Questions which of two things is more: "Which is higher, A or B?", "Is A older than B?", A和B哪个更长."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from mindstream.planning.rules.chain import Chain, read_chain
from mindstream.text.dimensions import DIMENSIONS, Dimension, dimension_of

MORE = {"more": True, "larger": True, "higher": True, "greater": True, "bigger": True, "longer": True, "fewer": False,
        "less": False, "smaller": False, "lower": False, "shorter": False}  # fmt: skip
ZH = {
    "高": Dimension("高度", True), "矮": Dimension("高度", False), "长": Dimension("长度", True),
    "短": Dimension("长度", False), "深": Dimension("深度", True), "大": Dimension("面积", True),
    "小": Dimension("面积", False), "贵": Dimension("价格", True), "便宜": Dimension("价格", False),
    "重": Dimension("重量", True), "轻": Dimension("重量", False),
}  # fmt: skip
MEASURES = {dimension.noun for dimension in DIMENSIONS.values()}
IS = r"(?:is|was|are|runs|stands|has|have|had)"
PAIR = r"(?P<a>.+?)(?:,)? or (?P<b>.+)"
HAS = rf"(?:the |a |an )?(?P<more>{'|'.join(MORE)}) (?P<noun>[a-z]+(?: [a-z]+)?)"
COMPARED = r"(?:the )?(?P<how>more [a-z]+|[a-z]+er|[a-z]+est)"
BORN = r"(?:born|founded|built|opened|completed|established|published) (?P<time>earlier|first|later|before|after)"
HOW_MUCH = r"how much (?P<how>more [a-z]+|[a-z]+er)"
FORMS = [re.compile(form, re.I) for form in (
    rf"(?:which|who|what)(?: of the two)?(?: [a-z]+)? {IS} (?:{HAS}|{COMPARED}|{BORN})(?: [a-z]+)?[,:] ?{PAIR}",
    rf"(?:is|was|are) (?P<a>.+?) (?:{COMPARED}|{BORN}) than (?P<b>.+)",
    rf"{HOW_MUCH} is (?P<a>.+?) than (?P<b>.+)",
    rf"(?:does|do|did) (?P<a>.+?) have (?:{HAS}) than (?P<b>.+)",
    rf"(?P<a>.+?)(?:和|与|跟)(?P<b>.+?)(?:相比)?[，,]?(?:哪个|哪座|哪条|哪家|谁)(?:的?(?P<zhnoun>[\u4e00-\u9fff]{{1,4}}?))??更?(?P<zh>{'|'.join(ZH)})",
    rf"(?P<a>.+?)比(?P<b>.+?)更?(?P<zh>{'|'.join(ZH)})吗",
)]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two things, each with what is compared as its last relation; `names`: what to answer for each."""

    first: Chain
    second: Chain
    which: Literal["more", "less", "difference"]
    names: tuple[str, str]


def read_comparison(task: str) -> Comparison | None:
    """Return what a question compares; None where it is no comparison of two."""
    text = " ".join(task.split()).strip(" ?.!？。")
    for form in FORMS:
        if found := form.fullmatch(text):
            dimension = _dimension(found.groupdict())
            chains = [read_chain(words) for words in (found["a"], found["b"])]
            if dimension is None or not all(chains) or re.search(r"\bor\b|,", found["a"]):
                return None
            first, second = (_measured(chain, dimension) for chain in chains if chain)
            yes, no = ("是", "不是") if text.endswith("吗") else ("yes", "no")
            asks_yes = form.pattern.startswith(("(?:is|", "(?:does|")) or text.endswith("吗")
            names = (yes, no) if asks_yes else (found["a"].strip(), found["b"].strip())
            which: Literal["more", "less"] = "more" if dimension.much else "less"
            if not form.pattern.startswith("how"):
                return Comparison(first, second, which, names)
            pair = (first, second) if dimension.much else (second, first)
            return None if dimension.noun == "when begun" else Comparison(*pair, "difference", names)
    return None


def _dimension(found: dict[str, str | None]) -> Dimension | None:
    if sign := found.get("zh"):
        return Dimension(found.get("zhnoun") or ZH[sign].noun, ZH[sign].much)
    if more := found.get("more"):
        noun = str(found["noun"])
        return Dimension("population" if noun in ("people", "inhabitants") else noun, MORE[more.lower()])
    if time := found.get("time"):
        return Dimension("when begun", time.lower() in ("later", "after"))
    return dimension_of(str(found.get("how") or "").lower().removeprefix("more "))


def _measured(chain: Chain, dimension: Dimension) -> Chain:
    """Add what is measured, unless the thing is a measure already: "the height of K2"."""
    is_measure = bool(chain.relations) and chain.relations[-1] in MEASURES
    return chain if is_measure else chain.of(dimension.noun)
