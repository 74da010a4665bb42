"""Which lines of a plain text head what follows: those that Markdown marks, and short ones that stand alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from mindstream.text.words import CJK

JOINT = " › "
"""Stands between a title and what is headed below it."""
LONGEST, LONGEST_ZH, LONGEST_BEFORE_TEXT = 80, 24, 40
MARKED = re.compile(r"(#{1,6})\s+(?=[^\s#])")
UNDERLINE = re.compile(r"\A[=-]{3,}\Z")
ITEM = re.compile(r"\A(?:[-*>|+]|\d{1,3}[.)])")
CLOSING, STOPS = "\"'”’」』)]）", ".!?…:;,。！？：；，、"
CLAUSE = re.compile(r"[，；。]")


def find_headings(lines: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Yield each line that heads what follows: where it stands, its level (0: a title without a mark), its words."""
    is_first = True
    for at, line in enumerate(lines):
        words = line.strip()
        if marked := MARKED.match(words):
            yield at, len(marked[1]), words[marked.end() :].rstrip("# ")
        elif words and _stands_alone(lines, at, words):
            yield at, 0 if is_first else 2, words
        is_first = is_first and not words


def open_headings(held: Sequence[tuple[int, str]], level: int, words: str) -> list[tuple[int, str]]:
    """Return what stands above a text after one more heading."""
    return [
        *(each for each in held if each[0] < level),
        *((level + n, each) for n, each in enumerate(words.split(JOINT))),
    ]


def _stands_alone(lines: Sequence[str], at: int, words: str) -> bool:
    """Tell whether a line is short, no sentence, and stands before a text, not in it."""
    longest = LONGEST_ZH if CJK.search(words[:LONGEST]) else LONGEST
    if len(words) > longest or ITEM.match(words) or UNDERLINE.match(words):
        return False
    if words.rstrip(CLOSING).endswith(tuple(STOPS)) or CLAUSE.search(words):
        return False
    before, after = lines[at - 1].strip() if at else "", lines[at + 1].strip() if at + 1 < len(lines) else ""
    if before or not any(line.strip() for line in lines[at + 1 : at + 4]):
        return False
    begins = after[:1].isupper() or after[:1].isdigit() or bool(CJK.match(after))
    return not after or bool(UNDERLINE.match(after)) or (begins and len(words) <= LONGEST_BEFORE_TEXT)
