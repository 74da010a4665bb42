"""Select the parts of a prompt that fit into a token budget, and find headings in plain text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from mindstream.models.model import estimate_tokens
from mindstream.text.words import CJK

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Part:
    """A list of items for a prompt, any of which can be left out.

    Attributes:
        keep: which items are kept if not all fit: the first ones, or the last ones (for a history).
    """

    name: str
    items: Sequence[object]
    keep: Literal["first", "last"] = "first"


@dataclass(frozen=True, slots=True)
class Fitted:
    """The selection: for each part, the positions of the kept items and the number of removed items."""

    places: dict[str, list[int]]
    cut: dict[str, int]
    tokens: int

    def kept(self, part: str, items: Sequence[T]) -> tuple[T, ...]:
        """Return the kept items of a part, in their order."""
        return tuple(items[place] for place in self.places[part])


def fit(parts: Sequence[Part], budget: int, tokens: Callable[[str], int] = estimate_tokens) -> Fitted:
    """Select the items that fit into `budget` tokens. Earlier parts have priority. In each part, the first item that
    does not fit and all items after it are removed (if the part keeps its last items: all items before it)."""
    room = budget
    places: dict[str, list[int]] = {}
    for part in parts:
        kept: list[int] = []
        order = range(len(part.items)) if part.keep == "first" else range(len(part.items) - 1, -1, -1)
        for n in order:
            size = tokens(str(part.items[n]))
            if size > room:
                break
            room -= size
            kept.append(n)
        places[part.name] = sorted(kept)
    cut = {part.name: len(part.items) - len(places[part.name]) for part in parts}
    return Fitted(places, cut, budget - room)


JOINT = " › "
"""Separator between a heading and the headings below it."""
MAX_HEADING, MAX_HEADING_ZH, MAX_HEADING_BEFORE_TEXT = 80, 24, 40
MARKED = re.compile(r"(#{1,6})\s+(?=[^\s#])")
UNDERLINE = re.compile(r"\A[=-]{3,}\Z")
ITEM = re.compile(r"\A(?:[-*>|+]|\d{1,3}[.)])")
CLOSING, STOPS = "\"'”’」』)]）", ".!?…:;,。！？：；，、"
CLAUSE = re.compile(r"[，；。]")


def find_headings(lines: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Yield for each heading its position in `lines`, its level, and its text. A heading without a mark such as # has
    level 0 in the first line with text (the title), and level 2 in any other line."""
    is_first = True
    for at, line in enumerate(lines):
        words = line.strip()
        if marked := MARKED.match(words):
            yield at, len(marked[1]), words[marked.end() :].rstrip("# ")
        elif words and _stands_alone(lines, at, words):
            yield at, 0 if is_first else 2, words
        is_first = is_first and not words


def open_headings(held: Sequence[tuple[int, str]], level: int, words: str) -> list[tuple[int, str]]:
    """Return the headings that apply to the text below a new heading: `held` without those of its level or deeper, and
    the new one."""
    return [
        *(each for each in held if each[0] < level),
        *((level + n, each) for n, each in enumerate(words.split(JOINT))),
    ]


def _stands_alone(lines: Sequence[str], at: int, words: str) -> bool:
    """Return whether a line is a heading without a mark: short, not a sentence, after an empty line or at the
    beginning, and followed by text."""
    longest = MAX_HEADING_ZH if CJK.search(words[:MAX_HEADING]) else MAX_HEADING
    if len(words) > longest or ITEM.match(words) or UNDERLINE.match(words):
        return False
    if words.rstrip(CLOSING).endswith(tuple(STOPS)) or CLAUSE.search(words):
        return False
    before, after = lines[at - 1].strip() if at else "", lines[at + 1].strip() if at + 1 < len(lines) else ""
    if before or not any(line.strip() for line in lines[at + 1 : at + 4]):
        return False
    begins = after[:1].isupper() or after[:1].isdigit() or bool(CJK.match(after))
    return not after or bool(UNDERLINE.match(after)) or (begins and len(words) <= MAX_HEADING_BEFORE_TEXT)
