"""Algebra for the calculator: read formulas, solve them, print values.

It reads trees as JSON, so that no text reaches SymPy's own parser, and prints what it found as JSON.
"""

from __future__ import annotations

import ast
import contextlib
import json
import math
import re
import sys
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

import sympy

from mindstream.errors import ToolError

MAX_FORMULA, MAX_DEPTH = 2_000, 50
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
    if len(text) > MAX_FORMULA:
        raise ToolError(f"a formula has at most {MAX_FORMULA:,} characters, and that one has {len(text):,}")
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
    if depth > MAX_DEPTH:
        raise ToolError(f"a formula is nested at most {MAX_DEPTH} deep")
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


BITS, LARGEST_FACTORIAL = 12_000, 1_000
"""No number gets longer (3,600 digits), nor is a factorial taken of a larger one."""
TINY = 1e-12
Real: TypeAlias = Fraction | float


class NotLinear(Exception):  # noqa: N818 (what the formula is, not a failure)
    """The formula holds unknowns otherwise than added up."""


@dataclass(frozen=True, slots=True)
class Linear:
    """A number plus unknowns, each times a number."""

    constant: Real = Fraction(0)
    terms: Mapping[str, Real] = field(default_factory=dict)

    def plus(self, other: Linear, times: Real = Fraction(1)) -> Linear:
        """Add another, so many times."""
        terms = dict(self.terms)
        for name, factor in other.terms.items():
            terms[name] = bounded(terms.get(name, Fraction(0)) + factor * times)
        present = {name: factor for name, factor in terms.items() if not is_zero(factor)}
        return Linear(bounded(self.constant + other.constant * times), present)

    def scaled(self, times: Real) -> Linear:
        """Multiply by a number."""
        return Linear().plus(self, times)


def is_zero(value: Real) -> bool:
    """Tell whether a number is nothing, or what rounding left of nothing."""
    return abs(value) < TINY if isinstance(value, float) else value == 0


def bounded(value: Real) -> Real:
    """Return a number if it is one that can be handled.

    Raises:
        ToolError: it is too large, or none.
    """
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ToolError("that comes to no number, or to one too large")
    elif max(value.numerator.bit_length(), value.denominator.bit_length()) > BITS:
        raise ToolError("that number is too large: at most 3,600 digits are computed")
    return value


def evaluate(node: Node, known: Mapping[str, Linear] | None = None) -> Linear:
    """Work out a formula; `known`: what unknowns are.

    Raises:
        NotLinear: unknowns are multiplied, divided by, or under a function.
        ToolError: it has no real value, or one too large.
    """
    known = known or {}
    if isinstance(node, Number):
        return Linear(bounded(node.value))
    if isinstance(node, Name):
        if node.name in known:
            return known[node.name]
        constant = {"pi": math.pi, "e": math.e}.get(node.name)
        return Linear(terms={node.name: Fraction(1)}) if constant is None else Linear(constant)
    given = [evaluate(each, known) for each in node.to]
    try:
        return _apply(node.how, given)
    except ZeroDivisionError:
        raise ToolError("division by zero") from None
    except OverflowError:
        raise ToolError("that number is too large") from None


def _apply(how: str, given: Sequence[Linear]) -> Linear:
    first, last = given[0], given[-1]
    if how == "neg":
        return first.scaled(Fraction(-1))
    if how in "+-":
        return first.plus(last, Fraction(1 if how == "+" else -1))
    if how == "*" and not (first.terms and last.terms):
        return last.scaled(first.constant) if last.terms else first.scaled(last.constant)
    if how == "/" and not last.terms:
        if last.constant == 0:
            raise ZeroDivisionError
        return first.scaled(1 / last.constant)
    if any(each.terms for each in given):
        raise NotLinear
    return Linear(bounded(_number(how, [each.constant for each in given])))


def _number(how: str, given: Sequence[Real]) -> Real:
    try:
        return OF_NUMBERS[how](*given)
    except ValueError:
        raise ToolError(f"{how} has no real value there") from None
    except TypeError:
        raise ToolError(f"{how} does not take {len(given)} values") from None


def power(base: Real, exponent: Real) -> Real:
    """Return a power, exact where it can be.

    Raises:
        ToolError: it is too large, or not real.
    """
    if base == 0 and exponent < 0:
        raise ZeroDivisionError
    if isinstance(base, Fraction) and isinstance(exponent, Fraction):
        if exponent.denominator == 1:
            bits = max(base.numerator.bit_length(), base.denominator.bit_length())
            if bits > 1 and bits * abs(exponent) > BITS + bits:
                raise ToolError("that power is too large: at most 3,600 digits are computed")
            return Fraction(base ** int(exponent))
        if base >= 0 and exponent.denominator <= 64 and (root := _exact_root(base, exponent.denominator)) is not None:
            return power(root, Fraction(exponent.numerator))
    if base < 0 and exponent != int(exponent):
        raise ToolError("a negative number has no real power with a fraction in it")
    return math.pow(base, exponent)


def _exact_root(base: Fraction, n: int) -> Fraction | None:
    found = []
    for whole in (base.numerator, base.denominator):
        near = math.isqrt(whole) if n == 2 else round(whole ** (1 / n)) if whole.bit_length() < 1_000 else 0
        if near.bit_length() * n > 2 * BITS or near**n != whole:
            return None
        found.append(near)
    return Fraction(*found)


def _factorial(value: Real) -> Real:
    if not 0 <= value <= LARGEST_FACTORIAL:
        raise ToolError(f"a factorial is taken of whole numbers from 0 to {LARGEST_FACTORIAL:,}")
    return Fraction(math.factorial(_whole(value)))


def _rounded(value: Real, places: Real = Fraction(0)) -> Real:
    if abs(float(places)) > 300:
        raise ToolError("round takes at most 300 places")
    step = Fraction(10) ** int(places)
    return Fraction(math.floor(abs(Fraction(value)) * step + Fraction(1, 2))) / step * (-1 if value < 0 else 1)


def _log(value: Real, base: Real = Fraction(10)) -> Real:
    """Return a logarithm, to base 10 where none is given; exact where it is a whole number."""
    if value <= 0 or base <= 0 or base == 1:
        raise ToolError("a logarithm is taken of a number above 0, to a base above 0 that is not 1")
    near = round(found := _ln(value) / _ln(base))
    return Fraction(near) if abs(near) < 5_000 and isinstance(base, Fraction) and base**near == value else found


def _ln(value: Real) -> float:
    if isinstance(value, Fraction):
        return math.log(value.numerator) - math.log(value.denominator)
    return math.log(value)


def _whole(value: Real) -> int:
    if value != int(value):
        raise ToolError("whole numbers are wanted there")
    return int(value)


OF_NUMBERS: dict[str, Callable[..., Real]] = {
    "mod": lambda value, by: value % by,
    "//": lambda value, by: Fraction(value // by),
    "**": power,
    "min": lambda *given: min(given),
    "max": lambda *given: max(given),
    "sum": lambda *given: sum(given, Fraction(0)),
    "mean": lambda *given: sum(given, Fraction(0)) / len(given),
    "gcd": lambda *given: Fraction(math.gcd(*map(_whole, given))),
    "lcm": lambda *given: Fraction(math.lcm(*map(_whole, given))),
    "sqrt": lambda value: power(value, Fraction(1, 2)),
    "cbrt": lambda value: power(value, Fraction(1, 3)) if value >= 0 else -power(-value, Fraction(1, 3)),
    "abs": abs,
    "floor": lambda value: Fraction(math.floor(value)),
    "ceil": lambda value: Fraction(math.ceil(value)),
    "round": _rounded,
    "factorial": _factorial,
    "log": _log,
    "log10": lambda value: _log(value),
    "log2": lambda value: _log(value, Fraction(2)),
    "ln": lambda value: _log(value, math.e),
    "exp": lambda value: math.exp(value) if value else Fraction(1),
    **{name: getattr(math, name) for name in ("sin", "cos", "tan", "asin", "acos", "atan")},
}


def written(value: Real) -> str:
    """Write a number as people do: whole, as a decimal that ends, else as a fraction and about what it is."""
    if isinstance(value, float):
        short = f"{value:.10g}"
        return short if abs(value - float(short)) < TINY * max(1.0, abs(value)) else f"≈ {short}"
    if value.denominator == 1:
        return str(value.numerator)
    if (scaled := value * 10**12).denominator == 1 and abs(value) < 10**18:
        digits = str(abs(scaled.numerator)).rjust(13, "0")
        return f"{'-' * (value < 0)}{digits[:-12]}.{digits[-12:]}".rstrip("0")
    try:
        near = f"≈ {float(value):.10g}"
    except OverflowError:
        near = f"≈ {value.numerator // value.denominator}"
    exact = f"{value.numerator}/{value.denominator}"
    return f"{exact} {near}" if len(exact) <= 24 else near


def written_sum(value: Linear) -> str:
    """Write a number plus unknowns: `2 x + 3`."""
    parts = [
        f"{'' if factor == 1 else '-' if factor == -1 else _factor(factor)}{name}"
        for name, factor in value.terms.items()
    ]
    if not parts or not is_zero(value.constant):
        parts.append(written(value.constant))
    if parts[0].startswith("-") and not parts[-1].startswith("-"):
        parts = [*parts[-1:], *parts[:-1]]
    return " + ".join(parts).replace("+ -", "- ")


def _factor(factor: Real) -> str:
    text = written(factor).removeprefix("≈ ").partition(" ")[0]
    return f"({text}) " if "/" in text else f"{text} "


@dataclass(frozen=True, slots=True)
class Solution:
    """What each unknown is; of free unknowns the others may hold some. `contradicts`: nothing solves them all."""

    values: dict[str, Linear] = field(default_factory=dict)
    free: tuple[str, ...] = ()
    contradicts: bool = False


def solve_linear(zero: Sequence[Linear]) -> Solution:
    """Solve for the values of all unknowns at which each of these sums is 0."""
    names = list(dict.fromkeys(name for each in zero for name in each.terms))
    solved: dict[str, Linear] = {}
    for each in zero:
        rest = _replaced(each, solved)
        if not rest.terms:
            if not is_zero(rest.constant):
                return Solution(contradicts=True)
            continue
        name = _pivot(rest)
        others = Linear(rest.constant, {other: factor for other, factor in rest.terms.items() if other != name})
        found = others.scaled(-1 / rest.terms[name])
        solved = {old: _replaced(value, {name: found}) for old, value in solved.items()} | {name: found}
    free = tuple(name for name in names if name not in solved)
    return Solution({name: solved[name] for name in names if name in solved}, free)


def _pivot(value: Linear) -> str:
    """Choose the unknown to solve for: one with an exact factor, else the one with the largest."""
    exact = next((name for name, factor in value.terms.items() if isinstance(factor, Fraction)), None)
    return exact or max(value.terms, key=lambda name: abs(float(value.terms[name])))


def _replaced(value: Linear, known: dict[str, Linear]) -> Linear:
    result = Linear(value.constant)
    for name, factor in value.terms.items():
        result = result.plus(known.get(name, Linear(terms={name: Fraction(1)})), factor)
    return result


MAX_SYMBOLIC, MAX_UNKNOWNS = 400, 12
SYMPY_OPERATORS: dict[str, Any] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "//": lambda a, b: sympy.floor(a / b),
    "**": lambda a, b: a**b,
    "neg": lambda a: -a,
    "sum": lambda *all: sum(all),
    "mean": lambda *all: sum(all) / len(all),
    "log": lambda a, *base: sympy.log(a, *(base or (10,))),
    "log10": lambda a: sympy.log(a, 10),
    "log2": lambda a: sympy.log(a, 2),
}
OTHERWISE = {"mod": "Mod", "abs": "Abs", "ceil": "ceiling", "min": "Min", "max": "Max"}
"""What SymPy calls by another name; the functions that are not named here it calls as we do."""


def build(tree: Any, real: bool = True) -> Any:
    """Build SymPy's expression of a tree: a fraction as two numbers, a name, or an operator with its arguments."""
    if isinstance(tree, str):
        return {"pi": sympy.pi, "e": sympy.E}.get(tree) or sympy.Symbol(tree, real=real or None)
    if isinstance(tree[0], int):
        return sympy.Rational(*tree)
    operator = SYMPY_OPERATORS.get(tree[0]) or getattr(sympy, OTHERWISE.get(tree[0], tree[0]))
    return operator(*(build(each, real) for each in tree[1:]))


def write(value: Any) -> str:
    """Write a value, exact and about what it is."""
    exact = str(value).replace("**", "^")
    if value.is_number and not value.is_Rational:
        about = str(sympy.N(value, 10))
        return (
            f"{exact} ≈ {about}" if len(exact) <= 60 and not value.is_Float and "CRootOf" not in exact else f"≈ {about}"
        )
    return exact[:MAX_SYMBOLIC]


def solve(equations: list[Any], asked: list[Any], real: bool = True) -> list[str]:
    """Return lines: the solutions, real ones where there are any, then what was asked for."""
    zero = [build(left, real) - build(right, real) for left, right in equations]
    unknown = sorted(set().union(*(each.free_symbols for each in zero)), key=str)
    found, note = list[dict[Any, Any]](), ""
    with contextlib.suppress(NotImplementedError):  # where SymPy knows no way there is none
        found = list(sympy.solve(zero[0] if len(zero) == 1 else zero, unknown, dict=True)) if zero else [{}]
    if real:
        found = [each for each in found if not any(is_complex(value) for value in each.values())]
    if real and not found and len(zero) == len(unknown) == 1:
        found, note = near(zero[0], unknown[0]), "found by approaching; there may be others"
    if not found:
        return ["no real solution was found", *solve(equations, asked, real=False)] if real else []
    lines = []
    for each in found[:MAX_UNKNOWNS]:
        values = ", ".join(f"{name} = {write(value)}".replace("= ≈", "≈") for name, value in each.items())
        lines += [values] if values else []
        lines += [write(sympy.simplify(build(one, real).subs(each))) for one in asked]
    more = len(found) - MAX_UNKNOWNS
    return lines + [f"… and {more} more"] * (more > 0) + [note] * bool(note)


def is_complex(value: Any) -> bool:
    """Tell whether a value is a number with an imaginary part."""
    return bool(value.is_number and abs(sympy.im(sympy.N(value))) > 1e-9)


def near(zero: Any, unknown: Any) -> list[dict[Any, Any]]:
    """Return real solutions that are approached from some places."""
    found: list[Any] = []
    for start in (0.1, 1, -1, 3, -3, 10, -10, 100, -100):
        try:
            root = sympy.nsolve(zero, unknown, start)
        except (ValueError, ZeroDivisionError, TypeError, KeyError):
            continue
        if root.is_real and all(abs(root - each) > 1e-9 for each in found):
            found.append(root)
    return [{unknown: root} for root in sorted(found)]


if __name__ == "__main__":
    sys.setrecursionlimit(3_000)
    given = json.load(sys.stdin)
    try:
        print(json.dumps({"lines": solve(given["equations"], given["asked"])}))
    except NotImplementedError:
        print(json.dumps({"error": "there is no known way to solve that"}))
    except (ZeroDivisionError, ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        print(json.dumps({"error": "that has no value"}))
