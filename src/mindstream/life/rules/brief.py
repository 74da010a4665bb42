"""A brief out of what was found: quotations by part, each with where it stands, and what is missing."""

from __future__ import annotations

from collections.abc import Sequence

from mindstream.life.rules.phrases import phrase
from mindstream.life.rules.quoting import Quote, read_quotes

ASPECTS = ("when", "how much", "why")
"""What is asked of a subject about which nothing else was asked (see phrases)."""
Finding = tuple[str, str]
"""A part of the question, and what was found on it."""


def write_brief(title: str, findings: Sequence[Finding], language: str) -> str:
    """Write the brief; a sentence that answers two parts stands where it came first, unless it is all that there is."""
    places: dict[str, int] = {}
    said: set[str] = set()
    body: list[str] = []
    for part, found in findings:
        quotes = read_quotes(found)
        if not quotes and is_missing(found):
            continue
        fresh = [quote for quote in quotes if quote.words not in said] or quotes[:1]
        said |= {quote.words for quote in fresh}
        lines = [_line(quote, places) for quote in fresh] or [found.strip()]
        body += [f"## {_capital(part)}", "", *lines, ""]
    if lacking := missing(findings):
        body += [f"## {phrase('missing_title', language)}", ""]
        body += [f"- {phrase('missing_line', language, _capital(part))}" for part in lacking] + [""]
    sources = [f"{number}. {place}" for place, number in places.items()]
    if sources:
        files = len({Quote("", place).file for place in places})
        lead = phrase("lead", language, files, "s" * (files != 1))
        body = [f"*{lead}*", "", *body, f"## {phrase('sources', language)}", "", *sources]
    return "\n".join([f"# {_capital(title)}", "", *body]).strip() + "\n"


def missing(findings: Sequence[Finding]) -> list[str]:
    """Return the parts on which nothing was found; that a question of our own has no answer is no lack."""
    own = {phrase(name, language) for name in ASPECTS for language in ("en", "zh")}
    return [part for part, found in findings if is_missing(found) and part not in own]


def is_missing(found: str) -> bool:
    """Tell whether nothing was found."""
    said = [phrase(name, language) for name in ("nothing", "no_source") for language in ("en", "zh")]
    return not found.strip() or any(each in found for each in said)


def _line(quote: Quote, places: dict[str, int]) -> str:
    number = places.setdefault(quote.place, len(places) + 1)
    return f"- “{quote.words}” [{number}]"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
