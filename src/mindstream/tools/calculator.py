"""The calculator: parse formulas, compute exactly, solve linear equations; SymPy solves other equations.

This module has its own parser; no text reaches Python's or SymPy's evaluation. `solve_symbolic` runs in a child
process.
"""

from __future__ import annotations

import contextlib
import math
import operator
import re
import sys
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from mindstream.errors import ToolError
from mindstream.tools.child import run_child

MAX_FORMULA, MAX_DEPTH, MAX_EQUATIONS = 2_000, 50, 40
"""Maximum characters of a formula, depth of nesting, and number of statements that are solved together."""
CONSTANTS = {"pi": math.pi, "e": math.e}
SIGNS = {
    "×": "*", "·": "*", "⋅": "*", "∙": "*", "÷": "/", "∕": "/", "\u2044": "/", "−": "-", "–": "-", "—": "-", "^": "**",
    "²": "**2", "³": "**3", "√": " sqrt ", "π": " pi ", "\u00a0": " ", "；": ";", "，": ", ", "％": "%",
}  # fmt: skip
PRODUCTS = {"*": "*", "/": "/", "//": "//", "%": "mod", "of": "*", "mod": "mod"}
_SIGN = re.compile("|".join(map(re.escape, SIGNS)))
_VULGAR = re.compile(r"(\d*)([\u00bc-\u00be\u2150-\u215e])")
_TOKEN, _ARGUMENT = (
    re.compile(
        rf"(?:(?P<number>{grouped}(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d{{1,3}}(?!\w))?)|(?P<name>[^\W\d]\w*)"
        r"|(?P<sign>\*\*|//|[-+*/%!°(),=]))\s*"
    )
    for grouped in (r"\d{1,3}(?:,\d{3})+(?![\d,])(?:\.\d+)?|", "")
)
"""Tokens outside and inside a function's brackets: `1,200` is one number, but `max(1,200)` has two arguments."""

Tree: TypeAlias = "str | tuple[Any, ...]"
"""A number or a name as text, or an operator or function followed by its arguments."""
Formula: TypeAlias = tuple[Tree, ...]
"""One statement: the sides of an equation, or a single expression to be computed."""


def read_formulas(text: str) -> list[Formula]:
    """Parse statements that are separated by line ends, `;`, a comma or `and`.

    Raises:
        ToolError: the text is too long, nested too deep, or not a formula.
    """
    if len(text) > MAX_FORMULA:
        raise ToolError(f"a formula has at most {MAX_FORMULA:,} characters, but this one has {len(text):,}")
    plain = _VULGAR.sub(lambda found: f"({found[1] or 0}+{unicodedata.normalize('NFKC', found[2])})", text)
    plain = unicodedata.normalize("NFKC", _SIGN.sub(lambda sign: SIGNS[sign[0]], plain))
    plain = re.sub(r"[$€£¥₹](?=\s*[\d.])", "", plain).rstrip("?\n ")
    parts = [part for part in re.split(r"[;\n]|\band\b", plain) if part.strip()]
    if not parts:
        raise ToolError("there is no formula: write one, such as 15% of 80, or 2x + 3 = 11")
    return [formula for part in parts for formula in _Reader(part).statements()]


class _Reader:
    """A reader of statements, by recursive descent."""

    def __init__(self, text: str) -> None:
        self._text, self._at, self._depth = text.strip(), 0, 0
        self._in_call = False
        """Whether the innermost bracket is that of a function."""
        self._kind = self._word = ""
        """The current token. `_kind` is `number`, `name`, or the operator itself; `_word` is the token's text."""
        self._next()

    def statements(self) -> list[Formula]:
        """Read the whole text, and return its statements."""
        found = [[self._sum()]]
        while sign := self._take("=") or self._take(","):
            if sign == "=":
                found[-1].append(self._sum())
            elif self._kind:
                found.append([self._sum()])
        return [tuple(each) for each in found] if not self._kind else self._fail()

    def _sum(self) -> Tree:
        left = self._product()
        while (sign := self._kind) in ("+", "-"):
            self._next()
            right = self._product()
            if _is_percentage(right) and not _is_percentage(left):
                right = ("*", left, right)  # 80 + 15% is 92
            left = (sign, left, right)
        return left

    def _product(self) -> Tree:
        left, sign = self._signed(), ""
        while True:
            before, word = self._before, self._word.lower()
            if word in PRODUCTS or (word == "x" and before == "number" and self._number_follows()):
                sign = PRODUCTS.get(word, "*")
                self._next()
                left = (sign, left, self._signed())
            elif self._kind in ("number", "name", "("):
                if sign == "/":
                    raise ToolError("a formula such as 1/2x can mean (1/2)*x or 1/(2*x): write ( ) and *")
                if self._kind == "number":
                    raise ToolError(f"{self._word!r} is misplaced: write an operator such as * before this number")
                if before == "name" and self._kind == "name":
                    raise ToolError(
                        f"{self._word!r} is misplaced: words are not understood, only formulas; write * between two"
                        " names that are multiplied"
                    )
                left = ("*", left, self._power())
            else:
                return left

    def _signed(self) -> Tree:
        if self._depth >= MAX_DEPTH:
            raise ToolError(f"this formula is nested more than {MAX_DEPTH} levels deep: split it")
        self._depth += 1
        sign = self._take("-") or self._take("+")
        value = self._signed() if sign else self._power()
        self._depth -= 1
        return ("neg", value) if sign == "-" else value

    def _power(self) -> Tree:
        value = self._atom()
        while True:
            if self._kind == "%" and not self._number_follows():
                value = ("percent", value)
            elif self._kind == "!":
                value = ("factorial", value)
            elif self._kind == "°":
                value = ("*", value, ("/", "pi", "180"))
            else:
                return ("**", value, self._signed()) if self._take("**") else value
            self._next()
            self._before = "postfix"

    def _atom(self) -> Tree:
        kind, word = self._kind, self._word
        if kind == "(":
            return self._within(False)[0]
        if kind not in ("number", "name"):
            self._fail()
        self._next()
        if kind == "number":
            return word.replace(",", "")
        if word.lower() not in FUNCTIONS or self._kind not in ("number", "("):
            return word
        return (word.lower(), *(self._within(True) if self._kind == "(" else [self._atom()]))

    def _within(self, in_call: bool) -> list[Tree]:
        """Read a bracket: one value, or the arguments of a function."""
        outer, self._in_call = self._in_call, in_call
        self._next()
        values = [self._sum()]
        while in_call and self._take(","):
            values.append(self._sum())
        self._in_call = outer
        if not self._take(")"):
            self._fail()
        return values

    def _take(self, sign: str) -> str:
        """Return a sign and go to the next token; return "" if the sign is not the current token."""
        if self._kind != sign:
            return ""
        self._next()
        return sign

    def _next(self) -> None:
        """Go to the next token."""
        self._before, found = self._kind, (_ARGUMENT if self._in_call else _TOKEN).match(self._text, self._at)
        if found is None and self._at < len(self._text):
            rest = self._text[self._at :]
            raise ToolError(f"{rest[:20]!r} cannot be read here: write numbers, names, + - * / ^ ( ) % ! =")
        self._kind = self._word = ""
        if found is not None:
            kind = str(found.lastgroup)
            self._at, self._word = found.end(), found[kind]
            self._kind = self._word if kind == "sign" else kind
            if kind == "number" and re.match(r"[eE][+-]?\d", self._text[found.end(kind) :]):
                raise ToolError("write a power of ten like 1200e5: no comma before e, one to three digits after it")

    def _number_follows(self) -> bool:
        return self._text[self._at : self._at + 1] in {*"0123456789."}

    def _fail(self) -> NoReturn:
        raise ToolError(f"{self._text.strip()[:40]!r} is not a formula: a bracket or a sign is misplaced")


def _is_number(word: Tree) -> bool:
    return isinstance(word, str) and (word[0].isdecimal() or word[0] == ".")


def _is_percentage(tree: Tree) -> bool:
    return tree[0] == "percent" and _is_number(tree[1])


def words_in(tree: Tree) -> frozenset[str]:
    """Return the names in an expression that are not constants: unknowns, units, or words."""
    if isinstance(tree, str):
        return frozenset() if _is_number(tree) or tree in CONSTANTS else frozenset({tree})
    return frozenset[str]().union(*map(words_in, tree[1:]))


MAX_BITS, MAX_FACTORIAL = 12_000, 1_000
"""Maximum bits of a number (3,600 digits), and maximum argument of a factorial."""
TINY = 1e-12
Real: TypeAlias = Fraction | float
Linear: TypeAlias = Mapping[str, Real]
"""A linear expression: non-zero factors by the names of their unknowns, and the constant under the name ""."""


class NotLinear(Exception):  # noqa: N818 (a property of the formula, not a failure)
    """The formula multiplies unknowns, divides by an unknown, or applies a function to an unknown."""


def _plus(first: Linear, second: Linear, times: Real = Fraction(1)) -> Linear:
    """Return `first` plus `times` times `second`."""
    total = dict(first)
    for name, factor in second.items():
        total[name] = _bounded(total.get(name, Fraction(0)) + factor * times)
    return {name: factor for name, factor in total.items() if not name or not is_zero(factor)}


def is_zero(value: Real) -> bool:
    """Return whether a number is zero, up to a rounding error."""
    return abs(value) < TINY if isinstance(value, float) else value == 0


def _bounded(value: Real) -> Real:
    """Return a number; raise ToolError if it is too large, infinite, or not a number."""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ToolError("the result is not a number, or is too large")
    elif max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS:
        raise ToolError("that number is too large: at most 3,600 digits are computed")
    return value


def evaluate(tree: Tree, known: Mapping[str, Linear] | None = None) -> Linear:
    """Compute an expression; `known`: values of variables.

    Raises:
        NotLinear: the expression is not linear, so SymPy is needed.
        ToolError: the expression has no real value, or one that is too large.
    """
    try:
        return _value(tree, known or {})
    except ZeroDivisionError:
        raise ToolError("division by zero") from None
    except OverflowError:
        raise ToolError("that number is too large") from None


def _value(tree: Tree, known: Mapping[str, Linear]) -> Linear:
    if isinstance(tree, tuple):
        return _apply(tree[0], [_value(each, known) for each in tree[1:]])
    if _is_number(tree):
        return {"": _bounded(Fraction(tree))}
    return known.get(tree) or ({"": CONSTANTS[tree]} if tree in CONSTANTS else {"": Fraction(0), tree: Fraction(1)})


def _apply(how: str, given: list[Linear]) -> Linear:
    zero, first, last = {"": Fraction(0)}, given[0], given[-1]
    if how in ("neg", "percent"):
        return _plus(zero, first, Fraction(-1) if how == "neg" else Fraction(1, 100))
    if how in ("+", "-"):
        return _plus(first, last, Fraction(1 if how == "+" else -1))
    if how == "*" and min(len(first), len(last)) == 1:
        return _plus(zero, last, first[""]) if len(last) > 1 else _plus(zero, first, last[""])
    if how == "/" and len(last) == 1:
        if last[""] == 0:
            raise ZeroDivisionError
        return _plus(zero, first, 1 / last[""])
    if any(len(each) > 1 for each in given):
        raise NotLinear
    try:
        return {"": _bounded(OF_NUMBERS[how](*(each[""] for each in given)))}
    except ValueError:
        raise ToolError(f"{how} has no real value for these arguments") from None
    except TypeError:
        raise ToolError(f"{how} was called with a wrong number of arguments: {len(given)}") from None


def _power(base: Real, exponent: Real) -> Real:
    """Return a real power, exact if possible.

    Raises:
        ToolError: the power is too large or not real.
        ZeroDivisionError: the power is a negative power of 0.
    """
    if base == 0 and exponent < 0:
        raise ZeroDivisionError
    if isinstance(base, Fraction) and isinstance(exponent, Fraction):
        if exponent.denominator == 1:
            bits = max(base.numerator.bit_length(), base.denominator.bit_length())
            if bits > 1 and bits * abs(exponent) > MAX_BITS + bits:
                raise ToolError("that power is too large: at most 3,600 digits are computed")
            return Fraction(base ** int(exponent))
        if base >= 0 and exponent.denominator <= 64 and (root := _exact_root(base, exponent.denominator)) is not None:
            return _power(root, Fraction(exponent.numerator))
    if base < 0 and exponent != int(exponent):
        raise ToolError("a negative number has no real power with a fractional exponent")
    return math.pow(base, exponent)


def _exact_root(base: Fraction, n: int) -> Fraction | None:
    found = []
    for whole in base.as_integer_ratio():
        near = math.isqrt(whole) if n == 2 else round(whole ** (1 / n)) if whole.bit_length() < 1_000 else 0
        if near.bit_length() * n > 2 * MAX_BITS or near**n != whole:
            return None
        found.append(near)
    return Fraction(*found)


def _factorial(value: Real) -> Real:
    if not 0 <= value <= MAX_FACTORIAL:
        raise ToolError(f"factorials are computed only of whole numbers from 0 to {MAX_FACTORIAL:,}")
    return Fraction(math.factorial(_whole(value)))


def _rounded(value: Real, places: Real = Fraction(0)) -> Real:
    if abs(float(places)) > 300:
        raise ToolError("round accepts -300 to 300 decimal places")
    step = Fraction(10) ** int(places)
    return Fraction(math.floor(abs(Fraction(value)) * step + Fraction(1, 2))) / step * (-1 if value < 0 else 1)


def _log(value: Real, base: Real = Fraction(10)) -> Real:
    """Return a logarithm: exact if it is a whole number below 5,000 and the base is exact, else approximate.

    Raises:
        ToolError: the logarithm is not defined.
    """
    if value <= 0 or base <= 0 or base == 1:
        raise ToolError("a logarithm needs a number above 0, and a base above 0 other than 1")
    near = round(found := _ln(value) / _ln(base))
    return Fraction(near) if abs(near) < 5_000 and isinstance(base, Fraction) and base**near == value else found


def _ln(value: Real) -> float:
    return math.log(value.numerator) - math.log(value.denominator) if isinstance(value, Fraction) else math.log(value)


def _whole(value: Real) -> int:
    if value != int(value):
        raise ToolError(f"expected a whole number, found {written(value)}")
    return int(value)


OF_NUMBERS: dict[str, Callable[..., Real]] = {
    "mod": lambda value, by: value % by,
    "//": lambda value, by: Fraction(value // by),
    "**": _power,
    "min": lambda *given: min(given),
    "max": lambda *given: max(given),
    "sum": lambda *given: sum(given, Fraction(0)),
    "mean": lambda *given: sum(given, Fraction(0)) / len(given),
    "gcd": lambda *given: Fraction(math.gcd(*map(_whole, given))),
    "lcm": lambda *given: Fraction(math.lcm(*map(_whole, given))),
    "sqrt": lambda value: _power(value, Fraction(1, 2)),
    "cbrt": lambda value: _power(value, Fraction(1, 3)) if value >= 0 else -_power(-value, Fraction(1, 3)),
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


FUNCTIONS = OF_NUMBERS.keys() - {"mod", "//", "**"}


def written(value: Real) -> str:
    """Write a number exactly, if possible as a whole number or a decimal of at most 12 places.

    Otherwise write a fraction, followed by the rounded value ("1/3 ≈ 0.3333333333"). A fraction of more than 24
    characters is left out. A float is rounded to ten digits, with "≈" if rounding changes the float.
    """
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
    exact = str(value)
    return f"{exact} {near}" if len(exact) <= 24 else near


def written_sum(value: Linear) -> str:
    """Write a constant plus unknowns: `2 x + 3`."""
    parts = [_factor(factor) + name for name, factor in value.items() if name]
    if not parts or not is_zero(value[""]):
        parts.append(written(value[""]))
    if parts[0].startswith("-") and not parts[-1].startswith("-"):
        parts = [*parts[-1:], *parts[:-1]]
    return " + ".join(parts).replace("+ -", "- ")


def _factor(factor: Real) -> str:
    if abs(factor) == 1:
        return "-" * (factor < 0)
    text = written(factor).removeprefix("≈ ").partition(" ")[0]
    return f"({text}) " if "/" in text else f"{text} "


def statements_of(text: str) -> tuple[list[tuple[Tree, Tree]], list[Tree]]:
    """Return the equations of a text, and the expressions to be computed.

    Raises:
        ToolError: the text is too long, nested too deep, or not a formula, or has more than MAX_EQUATIONS equations and
            expressions.
    """
    formulas = read_formulas(text)
    equations = [pair for each in formulas for pair in pairwise(each)]
    asked = [each[0] for each in formulas if len(each) == 1]
    if len(equations) + len(asked) > MAX_EQUATIONS:
        raise ToolError(f"at most {MAX_EQUATIONS} equations and expressions are computed together")
    return equations, asked


def solve_linear(equations: Sequence[tuple[Tree, Tree]], asked: Sequence[Tree]) -> list[str]:
    """Solve linear equations. Return a line for each unknown with a value, a line for all other unknowns, and then the
    values of the expressions in `asked`.

    If there is a single unknown and no expression, only the value of the unknown is returned, without its name. If the
    equations have no unknowns, the first line says whether the equations are true. If they contradict one another, the
    only line says so.

    Raises:
        NotLinear: a formula is not linear, so SymPy is needed.
        ToolError: a formula has no real value, such as a division by zero, or a number is too large.
    """
    zero = [_plus(evaluate(left), evaluate(right), Fraction(-1)) for left, right in equations]
    names = dict.fromkeys(name for each in zero for name in each if name)
    lines, values = list[str](), _eliminate(zero)
    if zero and not names:
        true = all(is_zero(each[""]) for each in zero)
        lines, values = ["true" if true else f"false: the sides differ by {written(zero[-1][''])}"], {}
    if values is None:
        return ["no solution: the equations contradict one another"]
    free = [name for name in names if name not in values]
    if len(values) == 1 and not free and not asked:  # a single value, so that another formula can use it
        return [written_sum(value) for value in values.values()]
    lines += [f"{name} = {written_sum(values[name])}".replace("= ≈", "≈") for name in names if name in values]
    lines += [f"{', '.join(free)} can be anything"] * bool(free)
    return [*lines, *(written_sum(evaluate(each, values)) for each in asked)]


def _eliminate(zero: Sequence[Linear]) -> dict[str, Linear] | None:
    """Solve the equations "sum = 0" for the unknowns; return None if the equations contradict each other."""
    solved: dict[str, Linear] = {}
    for each in zero:
        rest = _substituted(each, solved)
        names = [name for name in rest if name]
        if not names:
            if not is_zero(rest[""]):
                return None
            continue
        exact = next((name for name in names if isinstance(rest[name], Fraction)), None)
        pivot = exact or max(names, key=lambda name: abs(float(rest[name])))
        others = {name: factor for name, factor in rest.items() if name != pivot}
        found = _plus({"": Fraction(0)}, others, -1 / rest[pivot])
        solved = {name: _substituted(value, {pivot: found}) for name, value in solved.items()} | {pivot: found}
    return solved


def _substituted(value: Linear, known: Mapping[str, Linear]) -> Linear:
    result: Linear = {"": value[""]}
    for name, factor in value.items():
        if name:
            result = _plus(result, known.get(name, {"": Fraction(0), name: Fraction(1)}), factor)
    return result


MAX_SYMBOLIC, MAX_SOLUTIONS = 400, 12
SYMPY_NAMES = {"mod": "Mod", "abs": "Abs", "ceil": "ceiling", "min": "Min", "max": "Max"}
"""Functions that have another name in SymPy."""


def solve_symbolic(text: str) -> list[str]:
    """Solve equations with SymPy; return a line for each solution, with the requested values below it.

    `calculator` calls this function in a child process.

    Raises:
        SystemExit: there is no result; its message is for the caller.
    """
    try:
        return _solve(*statements_of(text))
    except NotImplementedError:
        sys.exit("there is no known way to solve that")
    except ToolError as error:
        sys.exit(str(error))
    except (ZeroDivisionError, ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        sys.exit("that has no value")


def _solve(equations: list[tuple[Tree, Tree]], asked: list[Tree], real: bool = True) -> list[str]:
    import sympy

    zero = [_symbolic(left, real) - _symbolic(right, real) for left, right in equations]
    unknown = sorted(set().union(*(each.free_symbols for each in zero)), key=str)
    found, note = list[dict[Any, Any]](), ""
    with contextlib.suppress(NotImplementedError):  # SymPy knows no method
        found = list(sympy.solve(zero[0] if len(zero) == 1 else zero, unknown, dict=True)) if zero else [{}]
    if real:
        found = [each for each in found if not any(map(_is_complex, each.values()))]
    if real and not found and len(zero) == len(unknown) == 1:
        found, note = _approach(zero[0], unknown[0]), "found by approaching; there may be others"
    if not found:
        return ["no real solution was found", *_solve(equations, asked, real=False)] if real else []
    lines = []
    for each in found[:MAX_SOLUTIONS]:
        values = ", ".join(f"{name} = {_show(value)}".replace("= ≈", "≈") for name, value in each.items())
        lines += [values] if values else []
        lines += [_show(sympy.simplify(_symbolic(one, real).subs(each))) for one in asked]
    more = len(found) - MAX_SOLUTIONS
    return lines + [f"… and {more} more"] * (more > 0) + [note] * bool(note)


def _symbolic(tree: Tree, real: bool) -> Any:
    """Return a SymPy expression; parts without unknowns are computed by `evaluate`, within this module's limits."""
    import sympy

    with contextlib.suppress(NotLinear):
        exact = evaluate(tree)
        if len(exact) == 1 and isinstance(exact[""], Fraction):
            return sympy.Rational(*exact[""].as_integer_ratio())
    if isinstance(tree, str):
        return {"pi": sympy.pi, "e": sympy.E}.get(tree) or sympy.Symbol(tree, real=real or None)
    operators: dict[str, Callable[..., Any]] = {
        "+": operator.add,
        "-": operator.sub,
        "*": operator.mul,
        "/": operator.truediv,
        "//": operator.floordiv,
        "**": operator.pow,
        "neg": operator.neg,
        "percent": lambda value: value / 100,
        "sum": lambda *all: sum(all),
        "mean": lambda *all: sum(all) / len(all),
        "log": lambda a, *base: sympy.log(a, *(base or (10,))),
        "log10": lambda a: sympy.log(a, 10),
        "log2": lambda a: sympy.log(a, 2),
    }
    name = str(tree[0])
    applied = operators.get(name) or getattr(sympy, SYMPY_NAMES.get(name, name))
    return applied(*(_symbolic(each, real) for each in tree[1:]))


def _show(value: Any) -> str:
    """Return a value as text.

    Rational numbers and formulas with unknowns are exact. Other numbers are rounded to 10 digits. If the exact form of
    such a number is short, it precedes the rounded number: `sqrt(2) ≈ 1.414213562`.
    """
    import sympy

    exact = str(value).replace("**", "^")
    if not value.is_number or value.is_Rational:
        return exact[:MAX_SYMBOLIC]
    about = f"≈ {sympy.N(value, 10)}"
    return f"{exact} {about}" if len(exact) <= 60 and not value.is_Float and "CRootOf" not in exact else about


def _is_complex(value: Any) -> bool:
    import sympy

    return bool(value.is_number and abs(sympy.im(sympy.N(value))) > 1e-9)


def _approach(zero: Any, unknown: Any) -> list[dict[Any, Any]]:
    """Return the real solutions that SymPy's numeric solver finds from several starting points."""
    import sympy

    found: list[Any] = []
    for start in (0.1, 1, -1, 3, -3, 10, -10, 100, -100):
        with contextlib.suppress(ValueError, ZeroDivisionError, TypeError, KeyError):
            root = sympy.nsolve(zero, unknown, start)
            if root.is_real and all(abs(root - each) > 1e-9 for each in found):
                found.append(root)
    return [{unknown: root} for root in sorted(found)]


SECONDS, MEGABYTES = 10, 1_000
"""Limits of the child process: CPU time in seconds, and memory in megabytes."""


async def calculator(expression: str) -> str:
    """Compute or solve a formula, not words: "2x + 3 = 11; x + 1" gives both.

    Arithmetic: 17.5 * (3 + 4), 15% of 80, 2^10, sqrt(2), 5!, round(10/3, 2). Equations, several between ";", with
    unknowns by any name: "2x + 3 = 11" is 4, or "Tim = 2*Ann; Tim + Ann = 30; Ann + 5" (the last is worked out).
    """
    try:
        return "\n".join(solve_linear(*statements_of(expression)))
    except NotLinear:
        if find_spec("sympy") is None:
            raise ToolError(
                "equations that are not linear need a package: pip install 'mindstream[planning]'"
            ) from None
    except (OverflowError, RecursionError):
        raise ToolError("a number in this formula, or the formula itself, is too large") from None
    return "\n".join(
        await run_child(Path(__file__), "solve_symbolic", expression, seconds=SECONDS, megabytes=MEGABYTES)
    )
