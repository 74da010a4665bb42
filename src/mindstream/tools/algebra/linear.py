"""Linear equations, solved exactly by elimination."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from mindstream.tools.algebra.values import Linear, is_zero


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
