"""Find the words of erased records in other texts and remove them."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterable
from functools import lru_cache

from pydantic import JsonValue

from mindstream.memory.store.record import nfc, normalised

MARK = "[erased]"
"""Replaces erased words in a text."""
SHORTEST = 8
"""Minimum length, in characters, of an erased text that is searched for inside other texts. A shorter erased text is
found only if it is the whole of another text."""
HEADS, TAIL = (200, 1000), 80
"""Lengths, in characters, of the parts of a long text that are quoted elsewhere. HEADS: its beginning (200 are quoted
by other records, 1,000 by dreams). TAIL: its end (quoted by decisions in older logs)."""


RUN = re.compile(r"[a-z0-9]+")


class ErasedWords:
    """The texts of erased records, to be removed from other texts; letter case, Unicode form, spaces and quotation
    marks are ignored."""

    def __init__(self, texts: Iterable[str]) -> None:
        whole = {_plain(nfc(text)) for text in texts} - {""}
        pieces = {text[:head].strip() for text in whole for head in HEADS if len(text) > head}
        pieces |= {text[-TAIL:].strip() for text in whole if len(text) > TAIL}
        self._whole = {normalised(text) for text in whole}
        longest = {max(RUN.findall(text.lower()), key=len, default="") for text in whole}
        pieces_runs = {max(RUN.findall(text.lower()), key=len, default="") for text in pieces}
        self._runs = sorted(longest | pieces_runs, key=len)
        self._by_start: dict[str, list[str]] = {}
        for text in sorted(whole | pieces, key=len, reverse=True):
            folded = _folded(text)
            if len(folded) >= SHORTEST:
                self._by_start.setdefault(folded[:SHORTEST], []).append(folded)

    def __bool__(self) -> bool:
        return bool(self._whole)

    def pieces(self) -> list[str]:
        """Return the case-folded texts to search for: whole texts, and the beginnings and ends of long ones."""
        return [words for some in self._by_start.values() for words in some]

    def may_be_in(self, payload: str) -> bool:
        """Return quickly whether a text or JSON may contain one of the erased texts. False means certainly not.

        Of each erased text, the longest run of ASCII letters and digits is searched for. The result is always True if
        the payload contains non-ASCII characters or Unicode escapes, because case folding may turn these into ASCII
        letters.
        """
        if not payload.isascii() or "\\u" in payload:
            return True
        lower = payload.lower()
        return any(run in lower for run in self._runs)

    def redact(self, text: str) -> str:
        """Return a text with MARK in place of each occurrence of an erased text.

        If an occurrence cannot be located, because letters are written in another way (ß, ss), return MARK alone.
        """
        if normalised(_plain(text)) in self._whole:
            return MARK
        for words in self._found(text):
            text, count = _pattern(words).subn(MARK, nfc(text))
            if not count and words in _folded(text):  # the pattern misses letters that equal several (ß = ss)
                return MARK
        return text

    def _found(self, text: str) -> list[str]:
        """Return the erased texts that a text contains, longest first."""
        folded = _folded(text)
        starts = {folded[at : at + SHORTEST] for at in range(len(folded) - SHORTEST + 1)} & self._by_start.keys()
        found = [words for start in starts for words in self._by_start[start] if words in folded]
        return sorted(found, key=len, reverse=True)


def rewrite_texts(
    value: JsonValue, rewrite: Callable[[str], str], is_gone: Callable[[str], bool] = lambda _: False
) -> JsonValue:
    """Return a value with every text in it rewritten. A text that is JSON is parsed first, because words in JSON may be
    escaped.

    Args:
        is_gone: returns, for the name of a field, whether the field is removed.
    """
    if isinstance(value, dict):
        return {name: rewrite_texts(each, rewrite, is_gone) for name, each in value.items() if not is_gone(name)}
    if isinstance(value, list):
        return [rewrite_texts(each, rewrite, is_gone) for each in value]
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith(("{", "[", '"')):
        with contextlib.suppress(ValueError, RecursionError):
            held = json.loads(value)
            new = rewrite_texts(held, rewrite, is_gone)
            return value if new == held else json.dumps(new, ensure_ascii=False)
    return rewrite(value)


def _plain(text: str) -> str:
    """Return a text without surrounding quotation marks and final punctuation: a note of the text may lack these."""
    return text.strip().strip("“”\"'„«»").rstrip(".!?。！？;； ").strip()


def _folded(text: str) -> str:
    return " ".join(nfc(text).casefold().split())


@lru_cache(1000)
def _pattern(words: str) -> re.Pattern[str]:
    return re.compile(r"\s+".join(map(re.escape, words.split())), re.IGNORECASE)
