"""Equations that are not linear, solved by SymPy: run as a process of its own (see tools/child.py), never imported.

It reads trees as JSON, so that no text reaches SymPy's own parser, and prints what it found as JSON.
"""

import contextlib
import json
import sys
from typing import Any

import sympy

LONGEST, MOST = 400, 12
OPERATORS: dict[str, Any] = {
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
    operator = OPERATORS.get(tree[0]) or getattr(sympy, OTHERWISE.get(tree[0], tree[0]))
    return operator(*(build(each, real) for each in tree[1:]))


def write(value: Any) -> str:
    """Write a value, exact and about what it is."""
    exact = str(value).replace("**", "^")
    if value.is_number and not value.is_Rational:
        about = str(sympy.N(value, 10))
        return (
            f"{exact} ≈ {about}" if len(exact) <= 60 and not value.is_Float and "CRootOf" not in exact else f"≈ {about}"
        )
    return exact[:LONGEST]


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
    for each in found[:MOST]:
        values = ", ".join(f"{name} = {write(value)}".replace("= ≈", "≈") for name, value in each.items())
        lines += [values] if values else []
        lines += [write(sympy.simplify(build(one, real).subs(each))) for one in asked]
    more = len(found) - MOST
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
