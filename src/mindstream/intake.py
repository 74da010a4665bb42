"""What this process takes in, without what says who somebody is: off until it is switched on (text/personal).

Each door through which words of people, files and tools come asks here first: so nothing of what is taken out reaches
the log, the memory, a model, a trace or a page. What stands in its place says of which kind it was: [email].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

SHORT = 2_000
"""A text of fewer characters is looked through at once; a longer one beside the event loop."""


@dataclass(frozen=True, slots=True)
class Cleaned:
    """A text as it is taken in; `taken`: how many of which kind were taken out, and not what they said."""

    text: str
    taken: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        """Say what was taken out, in words."""
        return ", ".join(f"{count} {kind}" for kind, count in sorted(self.taken.items()))


class Redactor(Protocol):
    """Finds in texts what says who somebody is."""

    def clean(self, text: str) -> Cleaned:
        """Return a text with marks in place of what was found."""


_redactor: Redactor | None = None


def switch_on(redactor: Redactor | None) -> None:
    """Have all that this process takes in looked through; None: nothing."""
    global _redactor
    _redactor = redactor


def is_on() -> bool:
    """Tell whether anything is looked through."""
    return _redactor is not None


def clean(text: str) -> Cleaned:
    """Return a text as it may be taken in."""
    return Cleaned(text) if _redactor is None or not text else _redactor.clean(text)


def clean_within(value: Any) -> Any:
    """Return a JSON value with all of its texts as they may be taken in; keys stay."""
    match value:
        case str():
            return clean(value).text
        case list():
            return [clean_within(each) for each in value]
        case dict():
            return {name: clean_within(each) for name, each in value.items()}
    return value


async def cleaned(text: str) -> Cleaned:
    """Do the same without holding up others where the text is long."""
    if _redactor is None or len(text) <= SHORT:
        return clean(text)
    from asyncio import to_thread

    return await to_thread(clean, text)
