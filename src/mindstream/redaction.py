"""Redaction of inbound text; off until it is switched on (text/personal).

Every entry point for text from users, files and tools calls it first. So redacted data reach neither the log
nor the memory, a model, a trace or a page. A mark in its place names the kind: [email].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

IN_THREAD_FROM = 2_000
"""Texts of fewer characters are processed at once, longer ones in a thread."""


@dataclass(frozen=True, slots=True)
class Cleaned:
    """A redacted text; `taken`: number of redactions by kind, without the redacted words."""

    text: str
    taken: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return the redactions in words."""
        return ", ".join(f"{count} {kind}" for kind, count in sorted(self.taken.items()))


class Redactor(Protocol):
    """Finds personal data in texts."""

    def clean(self, text: str) -> Cleaned:
        """Return a text with marks in place of its matches."""


_redactor: Redactor | None = None


def switch_on(redactor: Redactor | None) -> None:
    """Set the redactor of this process; None: off."""
    global _redactor
    _redactor = redactor


def is_on() -> bool:
    """Return whether inbound text is redacted."""
    return _redactor is not None


def clean(text: str) -> Cleaned:
    """Return a text after redaction."""
    return Cleaned(text) if _redactor is None or not text else _redactor.clean(text)


def clean_within(value: Any) -> Any:
    """Return a JSON value with all of its texts redacted; keys stay."""
    match value:
        case str():
            return clean(value).text
        case list():
            return [clean_within(each) for each in value]
        case dict():
            return {name: clean_within(each) for name, each in value.items()}
    return value


async def cleaned(text: str) -> Cleaned:
    """Redact a text without blocking the event loop if it is long."""
    if _redactor is None or len(text) <= IN_THREAD_FROM:
        return clean(text)
    from asyncio import to_thread

    return await to_thread(clean, text)
