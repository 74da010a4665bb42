"""Does what is believed rest on anything? Words are looked up in what was said and found; nothing is guessed."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cached_property

from mindstream.text.words import terms

SHARE = 0.5
"""So much of a text's words must have been said where it names no words that it rests on."""
SHORTEST = 4
"""A quotation of fewer letters says nothing (of a script without spaces: of fewer than half as many)."""
SHOWN = 400
BROKEN_OFF = re.compile(r"\.{3}|…")


class Support:
    """What people said, tools gave and memory holds: what a belief may rest on.

    Source: grounded beliefs (a quotation is looked up, verbatim but for case, spaces and signs).
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = list(texts)

    @cached_property
    def _letters(self) -> str:
        return "\n".join(["", *map(_letters, self._texts), ""])

    @cached_property
    def _terms(self) -> frozenset[str]:
        return frozenset(term for text in self._texts for term in terms(text))

    def has_quotation(self, quoted: str) -> bool:
        """Tell whether a quotation stands somewhere; of one with gaps (…), whether all its parts do.

        One that is very short must be all that was said ("no").
        """
        parts = [letters for part in BROKEN_OFF.split(quoted) if (letters := _letters(part))]
        long = sum(len(part) * (1 if part.isascii() else 2) for part in parts) >= SHORTEST
        wanted = parts if long else [f"\n{part}\n" for part in parts]
        return bool(parts) and all(part in self._letters for part in wanted)

    def has_most_words(self, text: str) -> bool:
        """Tell whether at least half of a text's words were said, numbers all of them."""
        wanted = set(terms(text))
        if not wanted:
            return False
        said = wanted & self._terms
        return len(said) >= SHARE * len(wanted) and all(term in said for term in wanted if term.isdigit())


def named(unsupported: Iterable[str]) -> str:
    """Name what rests on nothing, in a few words."""
    return ", ".join(f"“{each}”" for each in unsupported)[:SHOWN]


def complaint(unsupported: Iterable[str]) -> str:
    """Say to a model what rests on nothing, and what to do."""
    return (
        f"Nobody said this, and no tool gave it: {named(unsupported)}. Copy the words that it rests on into "
        '"rests_on", as they stand; leave out what rests on none.'
    )


def _letters(text: str) -> str:
    """Return what counts in comparing; in a prompt `<` is written `&lt;`."""
    plain = unicodedata.normalize("NFKC", text.replace("&lt;", "<")).casefold()
    return re.sub(r"[\W_]+", "", plain)
