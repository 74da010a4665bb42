"""Formulas as people write them, read into a tree: `2x + 3 = 11`, `15% of 80`, `1,200 × 3²`. Nothing is run here."""

from __future__ import annotations

import ast
import re
import unicodedata
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from mindstream.errors import ToolError

LONGEST, DEEPEST = 2_000, 50
"""So many characters of a formula are read, nested so deep."""
FUNCTIONS = frozenset({
    "sqrt", "cbrt", "abs", "round", "floor", "ceil", "min", "max", "sum", "mean", "factorial", "gcd", "lcm", "log",
    "ln", "log2", "log10", "exp", "sin", "cos", "tan", "asin", "acos", "atan",
})  # fmt: skip
CONSTANTS = frozenset({"pi", "e"})
WRITTEN = {
    "×": "*", "·": "*", "⋅": "*", "∙": "*", "÷": "/", "∕": "/", "\u2044": "/", "−": "-", "–": "-", "—": "-", "^": "**",
    "²": "**2", "³": "**3", "√": " sqrt ", "π": " pi ", "\u00a0": " ", "；": ";", "，": ", ", "％": "%",
}  # fmt: skip
BEHIND = {"%": ".percent", "!": ".factorial", "°": ".degrees"}
OPERATORS = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "mod",
    ast.Pow: "**",
}
_SIGN = re.compile("|".join(map(re.escape, WRITTEN)))
_VULGAR = re.compile(r"(\d*)([\u00bc-\u00be\u2150-\u215e])")
_THOUSANDS = r"\d{1,3}(?:,\d{3})+(?![\d,])(?:\.\d+)?|"
_REST = (
    r"(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d{1,3}(?!\w))?)|(?P<name>[^\W\d]\w*)|(?P<sign>\*\*|//|[-+*/%!°(),=]))"
    r"\s*(?P<number_next>(?=[\d.]))?"
)
_TOKEN, _ARGUMENT = (re.compile(rf"\s*(?:(?P<number>{each}{_REST}") for each in (_THOUSANDS, ""))
"""`1,200` is one number, but two among the arguments of a function."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number, exact; `percent`: it was written with a percent sign, and is a hundredth of that already."""

    value: Fraction
    percent: bool = False


@dataclass(frozen=True, slots=True)
class Name:
    """An unknown, a unit, or a constant."""

    name: str


@dataclass(frozen=True, slots=True)
class Apply:
    """An operator (`+ - * / // ** mod neg`) or a function of its arguments."""

    how: str
    to: tuple[Node, ...]


Node: TypeAlias = Number | Name | Apply


Formula: TypeAlias = tuple[Node, ...]
"""One statement: sides that are equal, or one side alone, which is asked for."""


def read_formulas(text: str) -> list[Formula]:
    """Read statements that stand on lines of their own, or between `;`, a comma or `and`.

    Raises:
        ToolError: it is too long, too deep, or no formula.
    """
    if len(text) > LONGEST:
        raise ToolError(f"a formula has at most {LONGEST:,} characters, and that one has {len(text):,}")
    plain = _VULGAR.sub(lambda found: f"({found[1] or 0}+{unicodedata.normalize('NFKC', found[2])})", text)
    plain = unicodedata.normalize("NFKC", _SIGN.sub(lambda sign: WRITTEN[sign[0]], plain))
    plain = re.sub(r"[$€£¥₹](?=\s*[\d.])", "", plain).rstrip("?\n ")
    parts = [part for part in re.split(r"[;\n]|\band\b", plain) if part.strip()]
    if not parts:
        raise ToolError("there is no formula: write one, such as 15% of 80, or 2x + 3 = 11")
    return [formula for part in parts for formula in _statements(part)]


def _statements(text: str) -> list[Formula]:
    try:
        tree = ast.parse(_python(text), mode="eval").body
        statements = tree.elts if isinstance(tree, ast.Tuple) else [tree]
        sides = [[each.left, *each.comparators] if isinstance(each, ast.Compare) else [each] for each in statements]
        return [tuple(map(_node, each)) for each in sides]
    except SyntaxError as error:
        raise ToolError(f"{text.strip()[:40]!r} is no formula: {error.msg}") from None
    except (MemoryError, RecursionError):
        raise ToolError("that formula is nested too deep") from None


def _python(text: str) -> str:
    """Write a formula in Python's grammar, which reads it: numbers and names in quotes, signs behind as attributes."""
    written, before, text, at = list[str](), "", text.rstrip(), 0
    calls, products = [False], [""]  # for each open bracket: is it a function's, and what was multiplied by last in it
    while at < len(text):
        found = (_ARGUMENT if calls[-1] else _TOKEN).match(text, at)
        if found is None:
            rest = text[at:].strip()
            raise ToolError(f"{rest[:20]!r} cannot be read here: write numbers, names, + - * / ^ ( ) % ! =")
        at = found.end()
        kind, word = _meant(found, before, text[at : at + 1])
        if kind == "behind":
            written.append(BEHIND[word])
        elif kind != "sign" or word == "(":
            if before not in ("", "function"):
                _check_side_by_side(before, kind, word, products[-1])
                written.append("*")
            leaf = word if word == "(" else repr(word)
            written.append(f"({leaf})" if before == "function" and kind == "number" else leaf)
        else:
            written.append("==" if word == "=" else word)
        if word == "(":
            calls.append(before == "function")
            products.append("")
        elif word == ")":
            calls, products = calls[:-1] or [False], products[:-1] or [""]
        elif word in ("*", "/", "//", "%") or (before and word in ("+", "-", "=", ",")):
            products[-1] = word
        before = kind if kind != "sign" else ")" * (word == ")")
    return "".join(written)


def _meant(found: re.Match[str], before: str, follows: str) -> tuple[str, str]:
    """Return the kind of a token, and what it is in Python: `of`, `mod`, and the `x` in `3 x 4` are signs."""
    number_next = found["number_next"] is not None
    kind = next(each for each in ("number", "name", "sign") if found[each])
    word = found[kind]
    if kind == "number":
        if re.match(r"[eE][+-]?\d", found.string[found.end(kind) :]):
            raise ToolError("an exponent has at most three digits")
        return kind, word.replace(",", "")
    if word in BEHIND and before and not (word == "%" and number_next):
        return "behind", word
    if word in ("x", "X") and before == "number" and number_next:
        return "sign", "*"
    if word.lower() in ("of", "mod") and before:
        return "sign", "*" if word.lower() == "of" else "%"
    if word.lower() in FUNCTIONS and (number_next or follows == "("):
        return "function", word.lower()
    return kind, word


def _check_side_by_side(before: str, kind: str, word: str, sign: str) -> None:
    """Raise ToolError where two things without a sign between them are no product, or could be meant in two ways."""
    if sign == "/":
        raise ToolError("a division before a product without a sign can be meant in two ways: use ( ) and *")
    if kind == "number" or (before == "name" and kind != "sign"):
        raise ToolError(
            f"{word!r} cannot stand where it stands: words are not understood, only formulas; write * between two"
            " names that are multiplied"
        )


def _node(tree: ast.expr, depth: int = 0) -> Node:
    """Take what Python's grammar has read over into our own tree; whatever else it can say is refused."""
    if depth > DEEPEST:
        raise ToolError(f"a formula is nested at most {DEEPEST} deep")
    match tree:
        case ast.Constant(value=str(word)):
            return Number(Fraction(word)) if word[0].isdecimal() or word[0] == "." else Name(word)
        case ast.UnaryOp(op=sign, operand=inner):
            node = _node(inner, depth + 1)
            return Apply("neg", (node,)) if isinstance(sign, ast.USub) else node
        case ast.BinOp(left=left, op=operator, right=right):
            return _operation(OPERATORS[type(operator)], _node(left, depth), _node(right, depth + 1))
        case ast.Attribute(value=inner, attr=sign):
            return _with_sign(_node(inner, depth + 1), sign)
        case ast.Call(func=ast.Constant(value=str(name)), args=[_, *_] as given, keywords=[]):
            return Apply(name, tuple(_node(each, depth + 1) for each in given))
    raise SyntaxError("a bracket or a sign stands where none can")


def _operation(sign: str, left: Node, right: Node) -> Node:
    if sign in "+-" and getattr(right, "percent", False) and not getattr(left, "percent", False):
        right = Apply("*", (left, right))  # 80 + 15% is 92
    return Apply(sign, (left, right))


def _with_sign(node: Node, sign: str) -> Node:
    if sign == "factorial":
        return Apply("factorial", (node,))
    if sign == "degrees":
        return Apply("*", (node, Apply("/", (Name("pi"), Number(Fraction(180))))))
    if isinstance(node, Number):
        return Number(node.value / 100, percent=True)
    return Apply("/", (node, Number(Fraction(100))))
