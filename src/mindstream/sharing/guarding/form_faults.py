"""What code can honestly tell of a pair without reading it: its form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from mindstream.memory.store.validation import MAX_TEXT
from mindstream.text.words import plain_words

LONG = 20
"""From so many words on a text that says one of them over and over is noise."""


def find_faults(query: str, answer: str) -> tuple[str, ...]:
    """Say what is wrong with a pair's form; nothing where it is sound. Whether it is any good is not asked."""
    return tuple(_faults(query, answer))


def _faults(query: str, answer: str) -> Iterator[str]:
    asked, words = plain_words(query), plain_words(answer)
    if not asked:
        yield "the query has no words"
    if not words:
        yield "the answer has no words"
        return
    if asked == words or (len(words) >= len(asked) > 3 and not set(words) - set(asked)):
        yield "the answer only repeats the query"
    if len(words) >= LONG and Counter(words).most_common(1)[0][1] > len(words) / 2:
        yield "the answer says one word over and over"
    if len(answer) + len(query) > MAX_TEXT:
        yield f"query and answer have more than {MAX_TEXT:,} characters together"
