"""What a formula comes to: exact fractions as long as it can be, sums of unknowns, and no number without end."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from mindstream.errors import ToolError
from mindstream.tools.algebra.formula import Name, Node, Number

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
