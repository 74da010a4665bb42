"""Redaction of personal data in inbound text; off unless it is switched on (text/personal).

Every entry point for text from users, files and tools calls this module first. So removed data reaches no log, no
memory, no model, no trace and no page. A mark replaces it that names the kind of data, such as [email].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

IN_THREAD_FROM = 2_000
"""Maximum length, in characters, of a text that is redacted directly. A longer text is redacted in a thread."""


@dataclass(frozen=True, slots=True)
class Cleaned:
    """A redacted text. `taken`: the number of redacted items by kind; it does not contain the items."""

    text: str
    taken: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return the counts as text, as in: 2 email, 1 phone."""
        return ", ".join(f"{count} {kind}" for kind, count in sorted(self.taken.items()))


class Redactor(Protocol):
    """Finds and replaces personal data in texts."""

    def clean(self, text: str) -> Cleaned:
        """Return the text with a mark in place of each item of personal data."""


_redactor: Redactor | None = None


def switch_on(redactor: Redactor | None) -> None:
    """Set the redactor of this process; None switches redaction off."""
    global _redactor
    _redactor = redactor


def is_on() -> bool:
    """Return whether inbound text is redacted."""
    return _redactor is not None


def clean(text: str) -> Cleaned:
    """Return a text after redaction; unchanged if redaction is off."""
    return Cleaned(text) if _redactor is None or not text else _redactor.clean(text)


def clean_within(value: Any) -> Any:
    """Redact all texts in a JSON value; the keys of objects stay unchanged."""
    match value:
        case str():
            return clean(value).text
        case list():
            return [clean_within(each) for each in value]
        case dict():
            return {name: clean_within(each) for name, each in value.items()}
    return value


async def cleaned(text: str) -> Cleaned:
    """Redact a text, in a thread if it is long, so that the event loop is not blocked."""
    if _redactor is None or len(text) <= IN_THREAD_FROM:
        return clean(text)
    from asyncio import to_thread

    return await to_thread(clean, text)
