"""The calculator: arithmetic and equations, read by our own parser, computed in bounded work."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from mindstream.errors import ToolError
from mindstream.tools import algebra
from mindstream.tools.child import run_child

SECONDS, MEGABYTES = 10, 1_000


async def calculator(expression: str) -> str:
    """Compute or solve exactly what is written as a formula, not in words: "2x + 3 = 11; x + 1" gives both.

    Arithmetic: 17.5 * (3 + 4), 15% of 80, 2^10, sqrt(2), 5!, round(10/3, 2). Equations, several between ";", with
    unknowns by any name: "2x + 3 = 11" is 4, or "Tim = 2*Ann; Tim + Ann = 30; Ann + 5" (the last is worked out).
    """
    try:
        return "\n".join(algebra.solve_linear(*algebra.statements_of(expression)))
    except algebra.NotLinear:
        if find_spec("sympy") is None:
            raise ToolError(
                "equations that are not linear need a package: pip install 'mindstream[planning]'"
            ) from None
    except (OverflowError, RecursionError):
        raise ToolError("that is too large") from None
    script = Path(algebra.__file__)
    return "\n".join(await run_child(script, "solve_symbolic", expression, seconds=SECONDS, megabytes=MEGABYTES))
