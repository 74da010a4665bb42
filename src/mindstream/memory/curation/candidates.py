"""Find records that may mention a subject or repeat a text, by the word index; the caller then checks each text.

No matching record is missed: only terms that every matching text must contain are looked up. If a subject or text has
no such term (a single emoji, a name that is also a stop word), the result is None: the caller must read all texts.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mindstream.memory.curation.mentions import MIN_QUOTED_SHARE, MIN_QUOTED_WORDS, necessary_words
from mindstream.memory.store.redaction import ErasedWords
from mindstream.text.words import ANY_WORD, STOP, terms

if TYPE_CHECKING:
    from mindstream.memory.store.columns import Columns

Rows = NDArray[np.int64]


def may_mention(columns: Columns, subject: str) -> Rows | None:
    """Return the positions of the records that may mention a subject; None: any record may."""
    best: Rows | None = None
    for alternatives in necessary_words(subject):
        each = [certain_terms(form, at_edges=True) for form in alternatives]
        if all(each):
            rows = np.unique(np.concatenate([_holding_all(columns, some) for some in each]))
            best = rows if best is None or len(rows) < len(best) else best
    return best


def may_quote(columns: Columns, texts: Sequence[str]) -> Rows | None:
    """Return the positions of the records that may repeat one of these texts completely or in most words; None: any
    record may."""
    found: list[Rows] = []
    for text in texts:
        words = sorted(set(terms(text)))
        if len(words) >= MIN_QUOTED_WORDS:
            documents = columns.lexical.matches_of(words).documents
            found.append(np.flatnonzero(np.bincount(documents) >= MIN_QUOTED_SHARE * len(words)))
    for piece in ErasedWords(texts).pieces():
        certain = certain_terms(piece)
        if not certain:
            return None
        found.append(_holding_all(columns, certain))
    return np.unique(np.concatenate(found)) if found else np.empty(0, np.int64)


def certain_terms(text: str, *, at_edges: bool = False) -> set[str]:
    """Return terms that are in the index for every text that contains this one, in any letter case.

    Args:
        at_edges: this text occurs in the others as whole words: no other letters touch it.
    """
    plain = unicodedata.normalize("NFKC", text.lower())
    certain = set[str]()
    for word in ANY_WORD.finditer(plain):
        touches = not at_edges and (word.start() == 0 or word.end() == len(plain))
        if word["run"] and len(word["run"]) > 1:
            certain.update(terms(word["run"]))
        elif not word["run"] and not touches and _is_plain(word[0]):
            certain.update(terms(word[0]))
    return certain


def _is_plain(word: str) -> bool:
    """Return whether a word has only one form in the index, however it is spelt; ß, for example, is also ss."""
    return word not in STOP and word.casefold() == word and "ss" not in word


def _holding_all(columns: Columns, wanted: Iterable[str]) -> Rows:
    """Return the documents that contain all of these terms."""
    wanted = sorted(wanted)
    counts = np.bincount(columns.lexical.matches_of(wanted).documents)
    return np.flatnonzero(counts == len(wanted))
