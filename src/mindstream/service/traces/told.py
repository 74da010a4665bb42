"""A span that is told after the event, from rows of a log; the same rows give the same ids, whenever they are told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256

from mindstream.clock import Moment
from mindstream.log.events import Logged
from mindstream.tracing import genai


@dataclass(frozen=True, slots=True)
class Told:
    """What happened from one moment to another.

    Attributes:
        trace: what tells its trace from all others (`trace_of`).
        key: what tells it from the others of its trace; parent: the key of what it is part of, None of the first.
        error: the kind of failure it ended with; "": it did not fail.
    """

    operation: str
    trace: tuple[str, ...]
    key: str
    parent: str | None
    start: Moment
    end: Moment
    subject: str = ""
    attributes: Mapping[str, genai.Value] = field(default_factory=dict)
    error: str = ""

    @property
    def name(self) -> str:
        return genai.span_name(self.operation, self.subject)

    @property
    def trace_id(self) -> int:
        return _number(16, *self.trace)

    @property
    def span_id(self) -> int:
        return _number(8, *self.trace, self.key)

    @property
    def parent_id(self) -> int | None:
        return None if self.parent is None else _number(8, *self.trace, self.parent)


def trace_of(row: Logged) -> tuple[str, ...]:
    """Return the trace that begins at a row; its time keeps logs apart in which people have the same names."""
    return row.mind, str(row.seq), repr(row.at)


def _number(size: int, *parts: str) -> int:
    """Return a number of so many bytes that these parts always give; never 0, which means none."""
    return int.from_bytes(sha256("\0".join(parts).encode()).digest()[:size]) or 1


def failure(text: str) -> str:
    """Return the kind of a failure whose text is `Kind: message`; "" of no text."""
    kind = text.partition(":")[0].strip()
    return kind if kind.isidentifier() else "_OTHER" if text else ""
