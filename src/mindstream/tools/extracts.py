"""The lines of some passages of documents that fit a query best: so much a tool gives, and a model reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from mindstream.models.embedders.wordllama import shared_embedder
from mindstream.text.context import JOINT, find_headings, open_headings
from mindstream.text.lexical import Lexical
from mindstream.text.words import sentences, terms

READER = MarkdownIt("commonmark").enable("table")
LONGEST = 220
"""A paragraph that is longer than this, in characters, is cut between its sentences."""
WHOLE = 400
"""A table, list or paragraph of so many characters comes whole."""
LIKENESS = 0.5
"""So much counts how like a query a line is beside the words that they share."""
FIRST = 0.3
"""So much more counts a line of the best portion than one of the last."""
SURE, LEAST = 2, 0.4
"""So many lines come in any case; another one that fits less than so much of what the best one does is left out."""
GAP = "…"
"""Stands where lines between others are left out."""


@dataclass(frozen=True, slots=True)
class Line:
    """A row of a table (`columns` is the first one), a point of a list, or a paragraph or a part of it.

    Attributes:
        under: its headings.
        block: the number of its table, list or paragraph in the portion.
    """

    text: str
    under: str
    block: int
    columns: str = ""

    @property
    def headed(self) -> str:
        """The line below all that says what it is of."""
        return " ".join(filter(None, (self.under, self.columns, self.text)))


@dataclass(frozen=True, slots=True)
class Portion:
    """A part of a document: `place` says which (`boat.md, lines 3-9`), `under` are the headings above it."""

    place: str
    under: str
    text: str

    def lines(self) -> Iterator[Line]:
        """Yield its lines, each with its headings."""
        above = open_headings([], 1, self.under) if self.under else []
        for number, block in enumerate(SyntaxTreeNode(READER.parse(_marked(self.text))).children):
            if block.type == "heading":
                above = open_headings(above, int(block.tag[1:]), _words(block))
                continue
            under = JOINT.join(words for _, words in above)
            texts = list(_texts(block))
            columns = texts.pop(0) if block.type == "table" else ""
            yield from (Line(text, under, number, columns) for text in texts)


def _marked(text: str) -> str:
    """Mark the headings of a text that stand alone on a line without a mark."""
    lines = text.splitlines()
    for at, level, words in find_headings(lines):
        if not lines[at].lstrip().startswith("#") and not "".join(lines[at + 1 : at + 2]).strip():
            lines[at] = f"{'#' * max(level, 1)} {words}"
    return "\n".join(lines)


def _texts(block: SyntaxTreeNode) -> Iterator[str]:
    """Yield the rows of a table, the points of a list, the parts of anything else."""
    match block.type:
        case "table":
            rows = (node for node in block.walk() if node.type == "tr")
            yield from (f"| {' | '.join(map(_words, row.children))} |" for row in rows)
        case "bullet_list" | "ordered_list":
            yield from (
                f"{item.markup if item.info == '' else item.info + item.markup} {_words(item)}"
                for item in block.children
            )
        case _:
            yield from _parts(_words(block))


def _words(node: SyntaxTreeNode) -> str:
    """Return what is written in a node, on one line."""
    written = (each.content for each in node.walk() if each.type in {"inline", "fence", "code_block", "html_block"})
    return " ".join(" ".join(written).split())


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

    A line is ranked by the words that it, its headings and its columns share with the query (BM25), by how like they
    are, and by the rank of its portion. Those that fit far less than the best are left out; a small table, list or
    paragraph that one is of comes whole.
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
    scores = words / max(float(words.max(initial=0.0)), 1e-9) + LIKENESS * (vectors[1:] @ vectors[0]) - FIRST * ranks
    best = np.argsort(-scores, kind="stable")[:count]
    fitting = {*best[:SURE], *(at for at in best[SURE:] if scores[at] >= LEAST * scores[best[0]])}
    held = groupby(range(len(lines)), key=lambda at: (lines[at][0], lines[at][1].block))
    blocks = [set(block) for _, block in held]
    small = [block for block in blocks if block & fitting and sum(len(lines[at][1].text) for at in block) <= WHOLE]
    by_head = groupby(sorted(fitting.union(*small)), key=lambda at: (portions[lines[at][0]].place, lines[at][1].under))
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
