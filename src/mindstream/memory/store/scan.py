"""Find records that are not indexed yet, by reading their texts."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mindstream.clock import SystemClock
from mindstream.log.names import StreamKey
from mindstream.memory.store.record import KINDS

PORTION = 2_000
"""Number of records that are searched by one statement."""
LOOK_S = 0.4
"""Maximum time, in seconds, for reading texts, newest first; this is enough for some hundreds of thousands."""
MOST_WORDS = 16
ENDS = " UNION ALL ".join(
    f"SELECT {end}(number) FROM records INDEXED BY records_latest WHERE stream = :stream AND kind = '{kind}'"
    for kind in KINDS
    for end in ("min", "max")
)
HOLDS = "(text LIKE ? OR ifnull(keywords LIKE ?, 0))"


def find_by_words(
    connection: sqlite3.Connection, stream: StreamKey, words: Sequence[str], n: int, after: int = 0
) -> list[int]:
    """Return the numbers of the n records with the most of these words (text/words.terms), weighted by their rarity.

    Records with numbers up to `after` are left out, and so are records that cannot be read within LOOK_S seconds.
    """
    words, clock = list(dict.fromkeys(words))[:MOST_WORDS], SystemClock()
    began = clock.elapsed()
    ends = [row[0] for row in connection.execute(ENDS, {"stream": stream}) if row[0] is not None]
    if not words or not ends:
        return []
    first, last = max(after + 1, min(ends)), max(ends)
    bits = " + ".join(f"{1 << at} * {HOLDS}" for at in range(len(words)))
    sql = f"SELECT number, {bits} AS held FROM records WHERE number BETWEEN ? AND ? AND +stream = ? AND held > 0"
    patterns, rows = [pattern for word in words for pattern in [f"%{_beginning(word)}%"] * 2], list[tuple[int, int]]()
    upto = last + 1
    while upto > first and (upto > last or clock.elapsed() - began < LOOK_S):
        rows += connection.execute(sql, (*patterns, max(first, upto - PORTION), upto - 1, stream))
        upto -= PORTION
    return _best(np.array(rows, np.int64).reshape(-1, 2), len(words), last + 1 - max(first, upto), n)


def _best(rows: NDArray[np.int64], words: int, read: int, n: int) -> list[int]:
    numbers, marks = rows[:, 0], (rows[:, 1][:, None] >> np.arange(words)) & 1
    scores = marks @ np.log1p(read / (marks.sum(axis=0) + 0.5))
    best: list[int] = numbers[np.lexsort((-numbers, -scores))[:n]].tolist()
    return best


def _beginning(word: str) -> str:
    """Return the beginning that all forms of a word have in common; the stem may differ from all forms in its end."""
    return word[:-1] if word.endswith("i") and len(word) > 3 else word
