"""Links in a text: which there are, and a text without those that nobody gave."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Iterable, Set
from contextlib import aclosing

LONGEST = 2_000
"""The longest link that is waited for, in characters."""
LEFT_OUT = "…"
ENDS = ".,;:!?)]}*_'~/"
"""What ends a sentence, not a link; and a slash that makes no other link."""
_REST = r"[!#-;=?-~]"
_BEFORE = "(?<![a-z0-9])"
_DOMAIN = r"(?<![\w@.-])(?:[a-z0-9-]{1,63}\.){1,4}"
_FLAGS = re.IGNORECASE | re.ASCII
WITH_SCHEME = re.compile(rf"(?:https?://|{_BEFORE}www\.){_REST}*", _FLAGS)
LINK = re.compile(
    rf"(?:https?://|{_BEFORE}[a-z][a-z0-9+.\-]{{1,15}}+://|{_BEFORE}www\.){_REST}*"
    rf"|{_DOMAIN}(?:(?:com|org|net|edu|gov|info|io|app|uk|cn)(?![\w-])(?:/{_REST}*)?|[a-z]{{2,24}}/{_REST}+)",
    _FLAGS,
)
"""A link with its scheme, with www, or as a bare name with a path or a common ending; all of it ASCII."""
_MAYBE = re.compile(r"://|\.[a-z0-9]", re.IGNORECASE)
"""What every link has: most texts have none of it, and are done with."""
BEGUN = re.compile(
    rf"(?:h|ht|htt|https?|https?:|https?:/|https?://{_REST}*|{_BEFORE}(?:w|ww|www|www\.{_REST}*))\Z", _FLAGS
)  # fmt: skip
"""A link, or what can become one, at the end of what has come so far."""


def has_links(text: str) -> bool:
    """Tell whether there is a link in a text."""
    return bool(_MAYBE.search(text) and LINK.search(text))


def links(texts: Iterable[str]) -> frozenset[str]:
    """Return the links in these texts, written in one way: without scheme, `www.` and what ends a sentence."""
    return frozenset(bare(found[0]) for text in texts if _MAYBE.search(text) for found in LINK.finditer(text))


def without_links(text: str, given: Set[str], pattern: re.Pattern[str] = LINK) -> tuple[str, list[str]]:
    """Return a text without the links that are not given (see `links`), and those."""
    gone: list[str] = []
    if not _MAYBE.search(text):
        return text, gone

    def keep(found: re.Match[str]) -> str:
        if (link := bare(found[0])) in given:
            return found[0]
        gone.append(link)
        return LEFT_OUT + found[0][len(found[0].rstrip(ENDS)) :]

    return pattern.sub(keep, text), gone


async def pieces_without_links(pieces: AsyncGenerator[str], given: Callable[[], Set[str]]) -> AsyncGenerator[str]:
    """Pass pieces on without links that are not given; only what may be the beginning of a link waits for its end.

    `given` is asked when there is a link. A bare name (`example.org`) is not looked for: any word could begin one.
    """

    def passed(text: str) -> str:
        return without_links(text, given(), WITH_SCHEME)[0] if WITH_SCHEME.search(text) else text

    held = ""
    async with aclosing(pieces):
        async for piece in pieces:
            held += piece
            begun = BEGUN.search(held)
            at = begun.start() if begun and len(held) - begun.start() < LONGEST else len(held)
            if at:
                yield passed(held[:at])
            held = held[at:]
    if held:
        yield passed(held)


def bare(link: str) -> str:
    """Write a link in the one way in which links are compared."""
    rest = re.sub(r"^(?:[a-z][a-z0-9+.\-]*://)?(?:www\.)?", "", link.rstrip(ENDS), flags=re.IGNORECASE)
    host, slash, path = rest.partition("/")
    return f"{host.lower()}{slash}{path}"
