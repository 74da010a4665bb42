"""Extracts of documents: the few lines that fit a query best; they are the search result that a model reads."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from mindstream.models.embedders.wordllama import shared_embedder
from mindstream.text.context import JOINT, find_headings, open_headings
from mindstream.text.lexical import Lexical
from mindstream.text.words import sentences, terms

MAX_LINE = 220
"""Length in characters above which a paragraph is divided into parts of whole sentences."""
WHOLE = 400
"""Maximum length in characters of a table, list or paragraph that is returned as a whole."""
SIMILARITY = 0.5
"""Weight of the similarity of vectors in the score of a line, relative to shared words."""
RANK = 0.3
"""Approximate advantage in score that a line of the first portion, which fits best, has over a line of the last one."""
MIN_LINES, MIN_SCORE = 2, 0.4
"""MIN_LINES: number of lines that are always returned. MIN_SCORE: share of the best line's score that each further line
needs."""
GAP = "…"
ITEM = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)])\s+\S")
RULE = re.compile(r"[|\s:-]+")


@dataclass(frozen=True, slots=True)
class Line:
    """The unit of an extract: a row of a table, an item of a list, a paragraph, or a part of a long paragraph.

    Attributes:
        under: the headings above the line.
        block: the number of its table, list or paragraph in the portion.
        columns: the header row of its table; "" outside of tables.
    """

    text: str
    under: str
    block: int
    columns: str = ""

    @property
    def headed(self) -> str:
        """The line with its headings and columns, which is compared with a query."""
        return " ".join(filter(None, (self.under, self.columns, self.text)))


@dataclass(frozen=True, slots=True)
class Portion:
    """A part of a document: `place` locates it (`boat.md, lines 3-9`), `under` are the headings above it."""

    place: str
    under: str
    text: str

    def lines(self) -> Iterator[Line]:
        """Yield the portion's lines, each with the headings above it."""
        above = open_headings([], 1, self.under) if self.under else []
        texts = self.text.splitlines()
        headings = {
            at: (level, words)
            for at, level, words in find_headings(texts)
            if texts[at].lstrip().startswith("#") or not "".join(texts[at + 1 : at + 2]).strip()
        }
        for number, (kind, lines) in enumerate(_blocks(texts, headings)):
            if isinstance(kind, int):
                above = open_headings(above, max(headings[kind][0], 1), headings[kind][1])
                continue
            columns = lines.pop(0) if kind == "table" else ""
            parts = _sentences(" ".join(lines)) if kind == "text" else lines
            under = JOINT.join(words for _, words in above)
            yield from (Line(text, under, number, columns) for text in parts if not RULE.fullmatch(text))


def _blocks(lines: Sequence[str], headings: Mapping[int, object]) -> Iterator[tuple[int | str, list[str]]]:
    """Yield the blocks of a text: a heading as its line number, a table, list or paragraph as its type; each with its
    lines."""
    kind: int | str = ""
    held: list[str] = []
    for at, line in enumerate([*lines, ""]):
        words = " ".join(line.split())
        new: int | str = "text" if words else ""
        if at in headings:
            new = at
        elif words.startswith("|"):
            new = "table"
        elif ITEM.match(line):
            new = "list"
        elif words and kind == "list":  # the line continues an item
            held[-1] += f" {words}"
            continue
        if new != kind:
            if held:
                yield kind, held
            kind, held = new, []
        held += [words] if words else []


def _sentences(paragraph: str) -> Iterator[str]:
    """Yield a paragraph as a whole, or in parts of whole sentences if it is long."""
    held = ""
    for sentence in sentences(paragraph) if len(paragraph) > MAX_LINE else [paragraph]:
        if held and len(held) + len(sentence) > MAX_LINE:
            yield held
            held = ""
        held = f"{held} {sentence}".strip()
    if held:
        yield held


async def extract(portions: Sequence[Portion], query: str, count: int) -> str:
    """Return about `count` lines of the portions, in their order, below their places and headings.

    A line is ranked by the words that it, its headings and its columns share with the query (BM25), by the similarity
    of their vectors, and by the rank of its portion (the first portion is the best). Lines far below the best score are
    left out, except for the best MIN_LINES; a short table, list or paragraph is returned whole.
    """
    lines = [(rank, line) for rank, each in enumerate(portions) for line in each.lines()]
    if not lines:
        return "\n\n".join(f"{portion.place}:\n{portion.text}" for portion in portions[:1])
    index = Lexical()
    for _, line in lines:
        index.add(terms(line.headed))
    words = index.scores(terms(query))
    vectors = await shared_embedder().embed([query, *(line.headed for _, line in lines)])
    ranks = np.array([rank for rank, _ in lines]) / len(portions)
    scores = words / max(float(words.max(initial=0.0)), 1e-9) + SIMILARITY * (vectors[1:] @ vectors[0]) - RANK * ranks
    best = np.argsort(-scores, kind="stable")[:count]
    fitting = {*best[:MIN_LINES], *(at for at in best[MIN_LINES:] if scores[at] >= MIN_SCORE * scores[best[0]])}
    for _, block in groupby(range(len(lines)), key=lambda at: (lines[at][0], lines[at][1].block)):
        whole = set(block)
        if whole & fitting and sum(len(lines[at][1].text) for at in whole) <= WHOLE:
            fitting |= whole
    by_head = groupby(sorted(fitting), key=lambda at: (portions[lines[at][0]].place, lines[at][1].under))
    return "\n\n".join("\n".join(_shown(*head, {at: lines[at][1] for at in held})) for head, held in by_head)


def _shown(place: str, under: str, lines: Mapping[int, Line]) -> Iterator[str]:
    yield f"{place} ({under}):" if under else f"{place}:"
    columns = ""
    for at, line in lines.items():
        if line.columns != columns:
            columns = line.columns
            yield from filter(None, [columns])
        elif at - 1 not in lines and at > min(lines):
            yield GAP
        yield line.text
