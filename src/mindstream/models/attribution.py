"""Attribute model calls to their purpose; the log stores this with each call.

with calls_for(Cause(rows=(heard.seq,))):
    await ask(model, prompt)

Tasks that are started in the block inherit the cause.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cause:
    """The purpose of model calls.

    Attributes:
        rows: the seqs of the log rows that the calls are about, or answer.
        resident, step: the resident and the time step of a town; "" and None outside of towns.
    """

    rows: tuple[int, ...] = ()
    resident: str = ""
    step: int | None = None


NO_CAUSE = Cause()
_cause: ContextVar[Cause] = ContextVar("cause", default=NO_CAUSE)


@contextmanager
def calls_for(cause: Cause) -> Iterator[None]:
    """Attribute calls that start in the block to a cause. Do not use it around a `yield` of an async generator."""
    before = _cause.set(cause)
    try:
        yield
    finally:
        _cause.reset(before)


def current_cause() -> Cause:
    """Return the cause of a call that starts now."""
    return _cause.get()
