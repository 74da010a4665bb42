"""Algebra for the calculator: read formulas, compute exactly, solve linear equations; SymPy solves the others.

Formulas are rewritten in Python's grammar and parsed by `ast`; only the trees that `_check` allows are evaluated, by
`fold`. No text reaches Python's or SymPy's own evaluation. `solve_symbolic` runs in a child process.
"""

from __future__ import annotations

import ast
import contextlib
import math
import operator
import re
import sys
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeAlias, TypeVar

from mindstream.errors import ToolError

V = TypeVar("V")
MAX_FORMULA, MAX_DEPTH, MAX_EQUATIONS = 2_000, 50, 40
"""Maximum characters of a formula, nesting, and statements that are solved together."""
FUNCTIONS = frozenset({
    "sqrt", "cbrt", "abs", "round", "floor", "ceil", "min", "max", "sum", "mean", "factorial", "gcd", "lcm", "log",
    "ln", "log2", "log10", "exp", "sin", "cos", "tan", "asin", "acos", "atan",
})  # fmt: skip
CONSTANTS = {"pi": math.pi, "e": math.e}
SIGNS = {
    "×": "*", "·": "*", "⋅": "*", "∙": "*", "÷": "/", "∕": "/", "\u2044": "/", "−": "-", "–": "-", "—": "-", "^": "**",
    "²": "**2", "³": "**3", "√": " sqrt ", "π": " pi ", "\u00a0": " ", "；": ";", "，": ", ", "％": "%",
}  # fmt: skip
POSTFIX = {"%": ".percent", "!": ".factorial", "°": ".degrees"}
OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "mod", ast.Pow: "**"}
_SIGN = re.compile("|".join(map(re.escape, SIGNS)))
_VULGAR = re.compile(r"(\d*)([\u00bc-\u00be\u2150-\u215e])")
_REST = (
    r"(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d{1,3}(?!\w))?)|(?P<name>[^\W\d]\w*)|(?P<sign>\*\*|//|[-+*/%!°(),=]))"
    r"\s*(?P<number_next>(?=[\d.]))?"
)
_TOKEN, _ARGUMENT = (
    re.compile(rf"\s*(?:(?P<number>{thousands}{_REST}") for thousands in (r"\d{1,3}(?:,\d{3})+(?![\d,])(?:\.\d+)?|", "")
)
"""`1,200` is one number, but two among the arguments of a function."""

Formula: TypeAlias = tuple[ast.expr, ...]
"""One statement: sides that are equal, or a single side, whose value is asked for."""


def read_formulas(text: str) -> list[Formula]:
    """Read statements that are separated by line ends, `;`, a comma or `and`.

    Raises:
        ToolError: the text is too long, nested too deep, or no formula.
    """
    if len(text) > MAX_FORMULA:
        raise ToolError(f"a formula has at most {MAX_FORMULA:,} characters, and that one has {len(text):,}")
    plain = _VULGAR.sub(lambda found: f"({found[1] or 0}+{unicodedata.normalize('NFKC', found[2])})", text)
    plain = unicodedata.normalize("NFKC", _SIGN.sub(lambda sign: SIGNS[sign[0]], plain))
    plain = re.sub(r"[$€£¥₹](?=\s*[\d.])", "", plain).rstrip("?\n ")
    parts = [part for part in re.split(r"[;\n]|\band\b", plain) if part.strip()]
    if not parts:
        raise ToolError("there is no formula: write one, such as 15% of 80, or 2x + 3 = 11")
    return [formula for part in parts for formula in _statements(part)]


def _statements(text: str) -> list[Formula]:
    try:
        tree = ast.parse(_python(text), mode="eval").body
        statements = tree.elts if isinstance(tree, ast.Tuple) else [tree]
        found = [(each.left, *each.comparators) if isinstance(each, ast.Compare) else (each,) for each in statements]
        for side in (side for formula in found for side in formula):
            _check(side)
    except SyntaxError as error:
        raise ToolError(f"{text.strip()[:40]!r} is no formula: {error.msg}") from None
    except (MemoryError, RecursionError):
        raise ToolError("that formula is nested too deep") from None
    return found


def _python(text: str) -> str:
    """Rewrite a formula in Python's grammar: numbers and names in quotes, postfix signs as attributes."""
    written, before, text, at = list[str](), "", text.rstrip(), 0
    calls, products = [False], [""]  # for each open bracket: whether it is a function's, and the last operator in it
    while at < len(text):
        found = (_ARGUMENT if calls[-1] else _TOKEN).match(text, at)
        if found is None:
            rest = text[at:].strip()
            raise ToolError(f"{rest[:20]!r} cannot be read here: write numbers, names, + - * / ^ ( ) % ! =")
        at = found.end()
        kind, word = _classify(found, before, text[at : at + 1])
        if kind == "postfix":
            written.append(POSTFIX[word])
        elif kind != "sign" or word == "(":
            if before not in ("", "function"):
                _check_product(before, kind, word, products[-1])
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


def _classify(found: re.Match[str], before: str, follows: str) -> tuple[str, str]:
    """Return the kind of a token and its Python form: `of`, `mod`, and the `x` in `3 x 4` are operators."""
    number_next = found["number_next"] is not None
    kind = next(each for each in ("number", "name", "sign") if found[each])
    word = found[kind]
    if kind == "number":
        if re.match(r"[eE][+-]?\d", found.string[found.end(kind) :]):
            raise ToolError("an exponent has at most three digits")
        return kind, word.replace(",", "")
    if word in POSTFIX and before and not (word == "%" and number_next):
        return "postfix", word
    if word in ("x", "X") and before == "number" and number_next:
        return "sign", "*"
    if word.lower() in ("of", "mod") and before:
        return "sign", "*" if word.lower() == "of" else "%"
    if word.lower() in FUNCTIONS and (number_next or follows == "("):
        return "function", word.lower()
    return kind, word


def _check_product(before: str, kind: str, word: str, sign: str) -> None:
    """Refuse two neighbours without an operator that are no product, or a product with two possible meanings."""
    if sign == "/":
        raise ToolError("a division before a product without a sign can be meant in two ways: use ( ) and *")
    if kind == "number" or (before == "name" and kind != "sign"):
        raise ToolError(
            f"{word!r} cannot stand where it stands: words are not understood, only formulas; write * between two"
            " names that are multiplied"
        )


def _check(tree: ast.expr, depth: int = 0) -> None:
    """Refuse all of Python's grammar but numbers, names, operators, postfix signs and calls of functions by name."""
    if depth > MAX_DEPTH:
        raise ToolError(f"a formula is nested at most {MAX_DEPTH} deep")
    match tree:
        case ast.Constant(value=str()):
            pass
        case ast.UnaryOp(operand=inner) | ast.Attribute(value=inner):
            _check(inner, depth + 1)
        case ast.BinOp(left=left, right=right):
            _check(left, depth)
            _check(right, depth + 1)
        case ast.Call(func=ast.Constant(), args=[_, *_] as given, keywords=[]):
            for each in given:
                _check(each, depth + 1)
        case _:
            raise SyntaxError("a bracket or a sign stands where none can")


def _is_number(word: str) -> bool:
    return word[0].isdecimal() or word[0] == "."


def fold(tree: ast.expr, leaf: Callable[[str], V], apply: Callable[[str, list[V]], V]) -> V:
    """Evaluate a checked tree.

    Args:
        leaf: returns the value of a number or a name.
        apply: applies an operator (`+ - * / // ** mod neg`) or a function to values.
    """
    match tree:
        case ast.UnaryOp(op=sign, operand=inner):
            value = fold(inner, leaf, apply)
            return apply("neg", [value]) if isinstance(sign, ast.USub) else value
        case ast.BinOp(left=left, op=how, right=right):
            first, second, sign = fold(left, leaf, apply), fold(right, leaf, apply), OPERATORS[type(how)]
            if sign in ("+", "-") and _is_percentage(right) and not _is_percentage(left):
                second = apply("*", [first, second])  # 80 + 15% is 92
            return apply(sign, [first, second])
        case ast.Attribute(value=inner, attr=sign):
            value = fold(inner, leaf, apply)
            if sign == "factorial":
                return apply(sign, [value])
            if sign == "degrees":
                return apply("*", [value, apply("/", [leaf("pi"), leaf("180")])])
            return apply("/", [value, leaf("100")])
        case ast.Call(func=ast.Constant(value=name), args=given):
            return apply(str(name), [fold(each, leaf, apply) for each in given])
    assert isinstance(tree, ast.Constant)
    return leaf(str(tree.value))


def _is_percentage(tree: ast.expr) -> bool:
    match tree:
        case ast.Attribute(value=ast.Constant(value=str(word)), attr="percent"):
            return _is_number(word)
    return False


def words_in(tree: ast.expr) -> frozenset[str]:
    """Return the names in a side that are no constants: unknowns, units, or words."""
    return fold(
        tree,
        lambda word: frozenset() if _is_number(word) or word in CONSTANTS else frozenset({word}),
        lambda _, given: frozenset[str]().union(*given),
    )


MAX_BITS, MAX_FACTORIAL = 12_000, 1_000
"""Maximum length of a number (3,600 digits), and of what a factorial is taken of."""
TINY = 1e-12
Real: TypeAlias = Fraction | float


class NotLinear(Exception):  # noqa: N818 (a property of the formula, not a failure)
    """Unknowns are multiplied, divided by, or under a function."""


@dataclass(frozen=True, slots=True)
class Linear:
    """A constant plus unknowns, each with a factor."""

    constant: Real = Fraction(0)
    terms: Mapping[str, Real] = field(default_factory=dict)

    def plus(self, other: Linear, times: Real = Fraction(1)) -> Linear:
        """Return this sum plus `times` another."""
        terms = dict(self.terms)
        for name, factor in other.terms.items():
            terms[name] = _bounded(terms.get(name, Fraction(0)) + factor * times)
        present = {name: factor for name, factor in terms.items() if not is_zero(factor)}
        return Linear(_bounded(self.constant + other.constant * times), present)


def is_zero(value: Real) -> bool:
    """Return whether a number is zero, up to a rounding error."""
    return abs(value) < TINY if isinstance(value, float) else value == 0


def _bounded(value: Real) -> Real:
    """Return a number unless it is too large, infinite, or not a number."""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ToolError("that comes to no number, or to one too large")
    elif max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS:
        raise ToolError("that number is too large: at most 3,600 digits are computed")
    return value


def evaluate(tree: ast.expr, known: Mapping[str, Linear] | None = None) -> Linear:
    """Compute one side of a formula; `known`: values of unknowns.

    Raises:
        NotLinear: SymPy is needed.
        ToolError: it has no real value, or one that is too large.
    """

    def leaf(word: str) -> Linear:
        if _is_number(word):
            return Linear(_bounded(Fraction(word)))
        if known and word in known:
            return known[word]
        return Linear(CONSTANTS[word]) if word in CONSTANTS else Linear(terms={word: Fraction(1)})

    try:
        return fold(tree, leaf, _apply)
    except ZeroDivisionError:
        raise ToolError("division by zero") from None
    except OverflowError:
        raise ToolError("that number is too large") from None


def _apply(how: str, given: list[Linear]) -> Linear:
    first, last = given[0], given[-1]
    if how == "neg":
        return Linear().plus(first, Fraction(-1))
    if how in ("+", "-"):
        return first.plus(last, Fraction(1 if how == "+" else -1))
    if how == "*" and not (first.terms and last.terms):
        return Linear().plus(last, first.constant) if last.terms else Linear().plus(first, last.constant)
    if how == "/" and not last.terms:
        if last.constant == 0:
            raise ZeroDivisionError
        return Linear().plus(first, 1 / last.constant)
    if any(each.terms for each in given):
        raise NotLinear
    try:
        return Linear(_bounded(OF_NUMBERS[how](*(each.constant for each in given))))
    except ValueError:
        raise ToolError(f"{how} has no real value there") from None
    except TypeError:
        raise ToolError(f"{how} does not take {len(given)} values") from None


def _power(base: Real, exponent: Real) -> Real:
    """Return a real power, exact if possible."""
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
        raise ToolError("a negative number has no real power with a fraction in it")
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
        raise ToolError(f"a factorial is taken of whole numbers from 0 to {MAX_FACTORIAL:,}")
    return Fraction(math.factorial(_whole(value)))


def _rounded(value: Real, places: Real = Fraction(0)) -> Real:
    if abs(float(places)) > 300:
        raise ToolError("round takes at most 300 places")
    step = Fraction(10) ** int(places)
    return Fraction(math.floor(abs(Fraction(value)) * step + Fraction(1, 2))) / step * (-1 if value < 0 else 1)


def _log(value: Real, base: Real = Fraction(10)) -> Real:
    """Return a logarithm, exact where it is a whole number."""
    if value <= 0 or base <= 0 or base == 1:
        raise ToolError("a logarithm is taken of a number above 0, to a base above 0 that is not 1")
    near = round(found := _ln(value) / _ln(base))
    return Fraction(near) if abs(near) < 5_000 and isinstance(base, Fraction) and base**near == value else found


def _ln(value: Real) -> float:
    return math.log(value.numerator) - math.log(value.denominator) if isinstance(value, Fraction) else math.log(value)


def _whole(value: Real) -> int:
    if value != int(value):
        raise ToolError("whole numbers are wanted there")
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


def written(value: Real) -> str:
    """Write a number as people do: whole, as a finite decimal, else as a fraction and its rounded value."""
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


def statements_of(text: str) -> tuple[list[tuple[ast.expr, ast.expr]], list[ast.expr]]:
    """Return the equations of a text, and the sides whose values are asked for.

    Raises:
        ToolError: see `read_formulas`, or there are too many.
    """
    formulas = read_formulas(text)
    equations = [pair for each in formulas for pair in pairwise(each)]
    asked = [each[0] for each in formulas if len(each) == 1]
    if len(equations) + len(asked) > MAX_EQUATIONS:
        raise ToolError(f"at most {MAX_EQUATIONS} equations are solved together")
    return equations, asked


def solve_linear(equations: Sequence[tuple[ast.expr, ast.expr]], asked: Sequence[ast.expr]) -> list[str]:
    """Return a line for each unknown, then the values that are asked for.

    Raises:
        NotLinear: SymPy is needed.
    """
    zero = [evaluate(left).plus(evaluate(right), Fraction(-1)) for left, right in equations]
    if zero and not any(each.terms for each in zero):
        true = all(is_zero(each.constant) for each in zero)
        lines = ["true" if true else f"false: the sides differ by {written(zero[-1].constant)}"]
        return lines + [written_sum(evaluate(each)) for each in asked]
    values = _eliminate(zero)
    if values is None:
        return ["no solution: the equations contradict one another"]
    names = dict.fromkeys(name for each in zero for name in each.terms)
    free = [name for name in names if name not in values]
    if len(values) == 1 and not free and not asked:  # a single value, so that another formula can use it
        return [written_sum(value) for value in values.values()]
    lines = [f"{name} = {written_sum(values[name])}".replace("= ≈", "≈") for name in names if name in values]
    lines += [f"{', '.join(free)} can be anything"] * bool(free)
    return [*lines, *(written_sum(evaluate(each, values)) for each in asked)]


def _eliminate(zero: Sequence[Linear]) -> dict[str, Linear] | None:
    """Return the unknowns for which each of these sums is 0; None if they contradict one another."""
    solved: dict[str, Linear] = {}
    for each in zero:
        rest = _substituted(each, solved)
        if not rest.terms:
            if not is_zero(rest.constant):
                return None
            continue
        exact = next((name for name, factor in rest.terms.items() if isinstance(factor, Fraction)), None)
        pivot = exact or max(rest.terms, key=lambda name: abs(float(rest.terms[name])))
        others = Linear(rest.constant, {name: factor for name, factor in rest.terms.items() if name != pivot})
        found = Linear().plus(others, -1 / rest.terms[pivot])
        solved = {name: _substituted(value, {pivot: found}) for name, value in solved.items()} | {pivot: found}
    return solved


def _substituted(value: Linear, known: Mapping[str, Linear]) -> Linear:
    result = Linear(value.constant)
    for name, factor in value.terms.items():
        result = result.plus(known.get(name, Linear(terms={name: Fraction(1)})), factor)
    return result


MAX_SYMBOLIC, MAX_SOLUTIONS = 400, 12
SYMPY_NAMES = {"mod": "Mod", "abs": "Abs", "ceil": "ceiling", "min": "Min", "max": "Max"}
"""Functions that SymPy calls by another name."""


def solve_symbolic(text: str) -> list[str]:
    """Solve by SymPy: return a line for each solution, then the values that are asked for. Runs in a child process.

    Raises:
        SystemExit: there is no value; the message is for the caller.
    """
    try:
        return _solve(*statements_of(text))
    except NotImplementedError:
        sys.exit("there is no known way to solve that")
    except ToolError as error:
        sys.exit(str(error))
    except (ZeroDivisionError, ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        sys.exit("that has no value")


def _solve(equations: list[tuple[ast.expr, ast.expr]], asked: list[ast.expr], real: bool = True) -> list[str]:
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


def _symbolic(tree: ast.expr, real: bool) -> Any:
    """Return a side as SymPy's expression; a part without unknowns is computed here, within our own limits."""
    import sympy

    operators: dict[str, Callable[..., Any]] = {
        "+": operator.add,
        "-": operator.sub,
        "*": operator.mul,
        "/": operator.truediv,
        "//": operator.floordiv,
        "**": operator.pow,
        "neg": operator.neg,
        "sum": lambda *all: sum(all),
        "mean": lambda *all: sum(all) / len(all),
        "log": lambda a, *base: sympy.log(a, *(base or (10,))),
        "log10": lambda a: sympy.log(a, 10),
        "log2": lambda a: sympy.log(a, 2),
    }

    def leaf(word: str) -> tuple[Linear | None, Any]:
        if _is_number(word):
            return Linear(Fraction(word)), sympy.Rational(word)
        return None, {"pi": sympy.pi, "e": sympy.E}.get(word) or sympy.Symbol(word, real=real or None)

    def apply(how: str, given: list[tuple[Linear | None, Any]]) -> tuple[Linear | None, Any]:
        exact = [value for value, _ in given if value is not None]
        if len(exact) == len(given) and isinstance((value := _apply(how, exact)).constant, Fraction):
            return value, sympy.Rational(*value.constant.as_integer_ratio())
        applied = operators.get(how) or getattr(sympy, SYMPY_NAMES.get(how, how))
        return None, applied(*(expression for _, expression in given))

    return fold(tree, leaf, apply)[1]


def _show(value: Any) -> str:
    """Write a value, exact and rounded."""
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
    """Return the real solutions that Newton's method finds from several starts."""
    import sympy

    found: list[Any] = []
    for start in (0.1, 1, -1, 3, -3, 10, -10, 100, -100):
        with contextlib.suppress(ValueError, ZeroDivisionError, TypeError, KeyError):
            root = sympy.nsolve(zero, unknown, start)
            if root.is_real and all(abs(root - each) > 1e-9 for each in found):
                found.append(root)
    return [{unknown: root} for root in sorted(found)]
