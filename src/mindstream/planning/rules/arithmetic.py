"""A task that is a formula, in signs or in words: "12% of 340", "the sum of 3 and 5, squared", 12乘以8加3."""

from __future__ import annotations

import re

from mindstream.errors import ToolError
from mindstream.text.numerals import fractions_in_digits, in_digits
from mindstream.text.units import size_of
from mindstream.tools.algebra.formula import FUNCTIONS, Apply, Name, Node, Number, read_formulas

ASKING = re.compile(
    r"^\s*(?:(?:(?:please|can you|could you|tell me|what(?:'s|’s)?|how much|is|are"
    r"|the (?:value|result|answer) (?:of|to)|calculate|compute|evaluate|work out|solve|find)\b"
    r"|请|问|计算|算一下|求|解|方程)\s*:?\s*)*"
    r"|(?:\s*(?:等于|是|得)?(?:多少|几))?(?:\s*(?:equals?|is|=))?[\s?？。.!=]*$",
    re.I,
)
NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?"
UNIT = r"(?:square )?[^\W\d]+[²³]?(?:/[a-z])?"
GIVEN = rf"(?P<n>{NUMBER}) ?(?P<unit>{UNIT})"
CONVERSIONS = [re.compile(form, re.I) for form in (
    rf"(?:how (?:much|many) (?:is|are) |convert |what is |what are |){GIVEN} (?:in|to|into) (?P<wanted>{UNIT})",
    rf"how many (?P<wanted>{UNIT}) (?:(?:are|is) (?:there )?(?:in )?|(?:do|does) ){GIVEN}(?: make| have)?",
    rf"(?P<n>{NUMBER}) ?(?P<unit>[^\W\d]+?)(?:是|等于|有|合)?(?:多少|几)个?(?P<wanted>[^\W\d]+)",
)]  # fmt: skip
THEN = re.compile(
    r",? then (?=divided|multiplied)|, (?=(?:divided|multiplied|times|plus|minus|squared|cubed)\b)"
    r"|[，,]?再(?=[加减乘除])"
)
ADDED = re.compile(
    rf"(?:what is |how much is )?{GIVEN} ?(?P<sign>[+-]|plus|minus|加|减) ?(?P<n2>{NUMBER}) ?"
    rf"(?P<wanted>{UNIT})",
    re.I,
)
LISTED = rf"({NUMBER}(?:\s*(?:,|and|和|、)\s*(?:and\s+)?{NUMBER})+)"
SEVERAL = {"sum": "sum", "average": "mean", "mean": "mean", "product": " * ", "difference": " - ", "quotient": " / "}
SIGNS = (
    (r"(?:the )?square root of", " sqrt "),
    (r"to the power of|的次方", " ^ "),
    (r"\bsquared\b|的?平方", "^2"),
    (r"\bcubed\b|的?立方", "^3"),
    (r"\bper ?cent\b", "%"),
    (r"(?:百分之)(\d+(?:\.\d+)?)", r"\1%"),
    (r"(?<=%)的", " of "),
    (r"\b(?:multiplied by|times)\b|乘以?", " * "),
    (r"\bdivided by\b|除以", " / "),
    (r"\bplus\b|加上?", " + "),
    (r"\b(?:minus|subtract(?:ed)? by)\b|减去?", " - "),
    (r"\b(?:twice|double)\b", " 2 * "),
    (r"\bhalf (?:of )?(?=\d|the )", " 1/2 * "),
    (r"\bmodulo\b", " mod "),
    (r"[（]", "("),
    (r"[）]", ")"),
)


def read_arithmetic(task: str) -> str | None:
    """Return the formula that a task asks to work out; None where it is none."""
    if conversion := read_conversion(task):
        return conversion
    text = ASKING.sub("", fractions_in_digits(in_digits(task.strip())))
    text = re.sub(rf"(?:the )?({'|'.join(SEVERAL)}) (?:of|between) {LISTED}", _join, text, flags=re.I)
    text = re.sub(r"(?<![\d.])(\d+(?:\.\d+)?)的(\d+(?:\.\d+)?%)", r"\2 of \1", text)
    text = re.sub(r"^(add|subtract|take) (.+) (?:to|from) (.+)$", _swap, text, flags=re.I)
    first, *further = THEN.split(text)  # "20 plus 4, divided by 3" goes on with what is there
    text = "".join(["(" * len(further) + first, *(f") {part}" for part in further)])
    for words, sign in SIGNS:
        text = re.sub(words, sign, text, flags=re.I)
    text = " ".join(text.split())
    try:
        formulas = read_formulas(text)
    except ToolError:
        return None
    sides = [side for formula in formulas for side in formula.sides]
    is_equation = any(len(formula.sides) > 1 for formula in formulas)
    names = {name for side in sides for name in _names(side)}
    plain = not any(isinstance(side, Number | Name) for side in sides) or is_equation
    return text if plain and (is_equation or not names) and all(len(name) == 1 for name in names) else None


def _swap(found: re.Match[str]) -> str:
    return f"{found[3]} {'+' if found[1].lower() == 'add' else '-'} ({found[2]})"


def read_conversion(task: str) -> str | None:
    """Return the formula of "3.5 kilometres in metres", "How many minutes are there in 2 hours?", 3公里是多少米."""
    text = in_digits(" ".join(task.split())).strip(" .?？。")
    for form in CONVERSIONS:
        if found := form.fullmatch(text):
            given, wanted = size_of(found["unit"]), size_of(found["wanted"])
            if given and wanted and given[0] == wanted[0]:
                return f"({found['n'].replace(',', '')} * {given[1]} / {wanted[1]}) {found['wanted']}"
    if found := ADDED.fullmatch(text):
        given, wanted = size_of(found["unit"]), size_of(found["wanted"])
        if given and wanted and given[0] == wanted[0] and found["unit"] != found["wanted"]:
            sign = "-" if found["sign"] in ("-", "minus", "减") else "+"
            return f"({found['n']} * {given[1]} / {wanted[1]} {sign} {found['n2']}) {found['wanted']}"
    return None


def _join(found: re.Match[str]) -> str:
    how = SEVERAL[found[1].lower()]
    numbers = [each.replace(",", "") for each in re.findall(NUMBER, found[2])]
    if how in FUNCTIONS:
        return f"{how}({', '.join(numbers)})"
    return f"{'abs' if '-' in how else ''}({how.join(numbers)})"


def _names(node: Node) -> list[str]:
    if isinstance(node, Name):
        return [] if node.name == "pi" else [node.name]
    return [name for each in node.to for name in _names(each)] if isinstance(node, Apply) else []
