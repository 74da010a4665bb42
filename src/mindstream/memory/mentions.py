"""What mentions a subject: its words as they stand, or all of its telling words in any form and order."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable

from mindstream.errors import InputError
from mindstream.memory.record import Record
from mindstream.text.words import UNSPACED, terms

EDGE = re.compile(rf"[^\W{UNSPACED}]")
"""A letter or digit of a script that puts spaces between words."""

FEWEST, MOST_OF = 3, 0.75
"""So many telling words a text must have to be quoted in other words, and so large a part of them a line of it."""


def mentions(subject: str) -> Callable[[str], bool]:
    """Return what tells whether a text mentions a subject.

    Raises:
        InputError: there is no word in it that could be looked for.
    """
    wanted, plain = set(terms(subject)), " ".join(subject.split())
    if not wanted:
        raise InputError(f"{subject!r} has no words to look for: name what is to be forgotten, as in: the red bicycle")
    before, after = (r"(?<!\w)" if EDGE.match(plain[0]) else ""), (r"(?!\w)" if EDGE.match(plain[-1]) else "")
    phrase = re.compile(before + r"\s+".join(map(re.escape, plain.split())) + after, re.IGNORECASE)
    return lambda text: bool(phrase.search(text)) or wanted <= set(terms(text))


def quotes(texts: Iterable[str]) -> Callable[[str], bool]:
    """Return what tells whether a line says what one of these texts says, "you" for "I" and the like aside.

    Texts of under FEWEST telling words say too little for that.
    """
    asked = [words for text in texts if len(words := set(terms(text))) >= FEWEST]
    holders: dict[str, list[int]] = {}
    for at, words in enumerate(asked):
        for word in words:
            holders.setdefault(word, []).append(at)

    def quotes_one(line: str) -> bool:
        shared = Counter(at for word in set(terms(line)) for at in holders.get(word, ()))
        return any(count >= MOST_OF * len(asked[at]) for at, count in shared.items())

    return quotes_one


def words_of(record: Record) -> str:
    """Return all words of a record: what it says, its keywords, what it is about."""
    about = () if record.about is None else (record.about.subject, record.about.predicate, record.about.object)
    return "\n".join((record.text, *record.keywords, *about))
