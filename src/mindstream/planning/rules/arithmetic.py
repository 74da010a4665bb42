"""A task that is a formula, in signs or in words: "12% of 340", "the sum of 3 and 5, squared", 12乘以8加3."""

from __future__ import annotations

import re

from mindstream.errors import ToolError
from mindstream.text.numerals import in_digits
from mindstream.tools.algebra.formula import FUNCTIONS, Apply, Name, Node, Number, read_formulas

ASKING = re.compile(
    r"^\s*(?:(?:(?:please|can you|could you|tell me|what(?:'s|’s)?|how much|is|are"
    r"|the (?:value|result|answer) (?:of|to)|calculate|compute|evaluate|work out|solve|find)\b"
    r"|请|问|计算|算一下|求|解|方程)\s*:?\s*)*"
    r"|(?:\s*(?:等于|是|得)?(?:多少|几))?(?:\s*(?:equals?|is|=))?[\s?？。.!=]*$",
    re.I,
)
NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?"
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
    text = ASKING.sub("", in_digits(task.strip()))
    text = re.sub(rf"(?:the )?({'|'.join(SEVERAL)}) (?:of|between) {LISTED}", _join, text, flags=re.I)
    text = re.sub(r",(?= (?:divided|multiplied|times|plus|minus|squared|cubed)\b)", "", text)
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


def _join(found: re.Match[str]) -> str:
    how = SEVERAL[found[1].lower()]
    numbers = [each.replace(",", "") for each in re.findall(NUMBER, found[2])]
    return f"{how}({', '.join(numbers)})" if how in FUNCTIONS else f"({how.join(numbers)})"


def _names(node: Node) -> list[str]:
    if isinstance(node, Name):
        return [] if node.name == "pi" else [node.name]
    return [name for each in node.to for name in _names(each)] if isinstance(node, Apply) else []
