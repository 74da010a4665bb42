"""The lines of some passages of documents that fit a query best: so much a tool gives, and a model reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from mindstream.models.embedders.wordllama import shared_embedder
from mindstream.text.headings import JOINT, find_headings, open_headings
from mindstream.text.lexical import Lexical
from mindstream.text.words import sentences, terms

LONGEST = 220
"""What is longer than this, in characters, is cut between its sentences."""
POINTS = ("|", "- ", "* ", "+ ", "#")
"""What begins so stands for itself."""
LIKENESS = 0.5
"""So much counts how like a query a line is beside the words that they share."""
FIRST = 0.3
"""So much more counts a line of the best portion than one of the last."""
LEAST = 0.4
"""A line that fits less than so much of what the best one does is left out."""


SMALL = 6
"""A table of so many rows comes whole."""
GAP = "…"
"""Stands where lines between others are left out."""


@dataclass(frozen=True, slots=True)
class Line:
    """A row of a table (`columns` is the first one), a point of a list, or a paragraph; `under` are its headings."""

    text: str
    under: str
    columns: str = ""

    @property
    def whole(self) -> str:
        return " ".join(filter(None, (self.under, self.columns, self.text)))


@dataclass(frozen=True, slots=True)
class Portion:
    """A part of a document: `place` says which (`boat.md, lines 3-9`), `under` are the headings above it."""

    place: str
    under: str
    text: str

    def lines(self) -> Iterator[Line]:
        """Yield its lines, each with its headings; what is long in parts of whole sentences."""
        held, columns, above = "", "", open_headings([], 1, self.under) if self.under else []
        rows = [" ".join(each.split()) for each in (*self.text.splitlines(), "")]
        for at, row in enumerate(rows):
            under = JOINT.join(words for _, words in above)
            if not row or row.startswith(POINTS):
                yield from (Line(part, under) for part in _parts(held))
                held = ""
            columns = columns if row.startswith("|") else ""
            if row.startswith("#"):
                above = next((open_headings(above, level, words) for _, level, words in find_headings([row])), above)
            elif row.startswith("|") and _is_rule(rows[at + 1]):
                columns = row
            elif columns and not _is_rule(row):
                yield Line(row, under, columns)
            elif not columns:
                held = f"{held} {row}".strip()


def _is_rule(row: str) -> bool:
    """Tell whether a row of a table only parts its first row from the others."""
    return row.startswith("|") and "-" in row and not row.strip("|-: ")


def _parts(paragraph: str) -> Iterator[str]:
    held = ""
    for sentence in sentences(paragraph) if len(paragraph) > LONGEST else [paragraph]:
        if held and len(held) + len(sentence) > LONGEST:
            yield held
            held = ""
        held = f"{held} {sentence}".strip()
    if held:
        yield held


async def extract(portions: Sequence[Portion], query: str, count: int) -> str:
    """Return so many lines of the portions, in their order, below the place and headings that they are from.

    Those that fit far less than the best are left out; a small table that a row is of comes whole.

    A line is ranked by the words that it, its headings and its columns share with the query (BM25), by how like they
    are, and by the rank of its portion.
    """
    lines = [(rank, line) for rank, each in enumerate(portions) for line in each.lines()]
    if not lines:
        return "\n\n".join(f"{portion.place}:\n{portion.text}" for portion in portions[:1])
    index = Lexical()
    for _, line in lines:
        index.add(terms(line.whole))
    words = index.scores(terms(query))
    vectors = await shared_embedder().embed([query, *(line.whole for _, line in lines)])
    ranks = np.array([rank for rank, _ in lines]) / len(portions)
    scores = words / max(float(words.max(initial=0.0)), 1e-9) + LIKENESS * (vectors[1:] @ vectors[0]) - FIRST * ranks
    best = np.argsort(-scores, kind="stable")[:count]
    fitting = {best[0], *(at for at in best[1:] if scores[at] >= LEAST * scores[best[0]])}
    tables = [{at for at, _ in held} for _, held in groupby(enumerate(lines), key=_table)]
    whole = [table for table in tables if 1 < len(table) <= SMALL and table & fitting]
    chosen = sorted(fitting.union(*whole))
    by_head = groupby(chosen, key=lambda at: (portions[lines[at][0]].place, lines[at][1].under))
    return "\n\n".join("\n".join(_shown(*head, {at: lines[at][1] for at in held})) for head, held in by_head)


def _table(numbered: tuple[int, tuple[int, Line]]) -> tuple[int, str | int]:
    """Tell rows of a table from those of another one; any other line stands for itself."""
    at, (rank, line) = numbered
    return rank, line.columns or at


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
