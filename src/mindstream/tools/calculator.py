"""The calculator: arithmetic and equations, read by our own parser, computed in bounded work."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

from mindstream.errors import ToolError
from mindstream.tools.algebra import (
    Apply,
    Name,
    Node,
    NotLinear,
    Number,
    evaluate,
    is_zero,
    read_formulas,
    solve_linear,
    written,
    written_sum,
)
from mindstream.tools.child import run_child

SECONDS, MEGABYTES = 10, 1_000
MOST = 40
"""So many equations are solved together."""


async def calculator(expression: str) -> str:
    """Compute or solve exactly what is written as a formula, not in words: "2x + 3 = 11; x + 1" gives both.

    Arithmetic: 17.5 * (3 + 4), 15% of 80, 2^10, sqrt(2), 5!, round(10/3, 2). Equations, several between ";", with
    unknowns by any name: "2x + 3 = 11" is 4, or "Tim = 2*Ann; Tim + Ann = 30; Ann + 5" (the last is worked out).
    """
    formulas = read_formulas(expression)
    equations = [(left, right) for each in formulas for left, right in pairwise(each)]
    asked = [each[0] for each in formulas if len(each) == 1]
    if len(equations) + len(asked) > MOST:
        raise ToolError(f"at most {MOST} equations are solved together")
    try:
        return "\n".join(_linear_lines(equations, asked))
    except NotLinear:
        return "\n".join(await _symbolic_lines(equations, asked))
    except (OverflowError, RecursionError):
        raise ToolError("that is too large") from None


def _linear_lines(equations: list[tuple[Node, Node]], asked: list[Node]) -> list[str]:
    zero = [evaluate(Apply("-", each)) for each in equations]
    if equations and not any(each.terms for each in zero):
        true = all(is_zero(each.constant) for each in zero)
        lines = ["true" if true else f"false: the sides differ by {written(zero[-1].constant)}"]
        return lines + [written_sum(evaluate(each)) for each in asked]
    solution = solve_linear(zero)
    if solution.contradicts:
        return ["no solution: the equations contradict one another"]
    if len(solution.values) == 1 and not solution.free and not asked:  # alone it can stand in another formula
        return [written_sum(value) for value in solution.values.values()]
    lines = [f"{name} = {written_sum(value)}".replace("= ≈", "≈") for name, value in solution.values.items()]
    lines += [f"{', '.join(solution.free)} can be anything"] * bool(solution.free)
    return [*lines, *(written_sum(evaluate(each, solution.values)) for each in asked)]


async def _symbolic_lines(equations: list[tuple[Node, Node]], asked: list[Node]) -> list[str]:
    if find_spec("sympy") is None:
        raise ToolError("equations that are not linear need a package: pip install 'mindstream[planning]'")
    given = {
        "equations": [[_tree(left), _tree(right)] for left, right in equations],
        "asked": [_tree(each) for each in asked],
    }
    script = Path(__file__).with_name("algebra") / "symbolic.py"
    found = await run_child(script, given, seconds=SECONDS, megabytes=MEGABYTES)
    return [str(line) for line in found["lines"]]


def _tree(node: Node) -> object:
    """Write a formula as JSON; what holds no unknown is worked out before, within our own bounds."""
    if isinstance(node, Name):
        return node.name
    if isinstance(node, Number):
        return node.value.as_integer_ratio()
    with suppress(NotLinear):
        value = evaluate(node)
        if not value.terms and isinstance(value.constant, Fraction):
            return value.constant.as_integer_ratio()
    return [node.how, *map(_tree, node.to)]
