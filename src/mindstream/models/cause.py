"""What a call of a model is for, as whoever asks says it: it stands in the log with the call.

with calls_for(Cause(rows=(heard.seq,))):
    await ask(model, prompt)

Tasks that are begun in the block inherit it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cause:
    """What calls are for.

    Attributes:
        rows: the seqs of the rows of the log that they think about, or answer.
        resident, step: who in a town asks, and when; "" and None: it is in none.
    """

    rows: tuple[int, ...] = ()
    resident: str = ""
    step: int | None = None


NOBODY_SAID = Cause()
_cause: ContextVar[Cause] = ContextVar("cause", default=NOBODY_SAID)


@contextmanager
def calls_for(cause: Cause) -> Iterator[None]:
    """Let calls that begin in the block be for something. Not around a `yield` of an async generator."""
    before = _cause.set(cause)
    try:
        yield
    finally:
        _cause.reset(before)


def current_cause() -> Cause:
    """Return what a call that begins now is for."""
    return _cause.get()
