"""The lines of some passages that fit a query best: so much of documents a tool gives, and a model reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mindstream.models.embedders.wordllama import shared_embedder
from mindstream.text.lexical import Lexical
from mindstream.text.words import sentences, terms

LONGEST = 220
"""What is longer than this, in characters, is cut between its sentences."""
POINTS = ("|", "- ", "* ", "+ ", "#")
"""What begins so stands for itself."""
LIKENESS = 0.5
"""So much counts how like a query a line is beside the words that they share."""
FIRST = 0.3
"""So much more counts a line of the best passage than one of the last."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a document: `place` says which (`boat.md, lines 3-9`), `under` are its headings."""

    place: str
    under: str
    text: str

    def lines(self) -> Iterator[str]:
        """Yield rows of tables, points of lists, and paragraphs; what is long in parts of whole sentences."""
        held = ""
        for line in (" ".join(each.split()) for each in (*self.text.splitlines(), "")):
            if not line or line.startswith(POINTS):
                yield from _parts(held)
                held = ""
            if not line.startswith("#"):
                held = f"{held} {line}".strip()


def _parts(paragraph: str) -> Iterator[str]:
    held = ""
    for sentence in sentences(paragraph) if len(paragraph) > LONGEST else [paragraph]:
        if held and len(held) + len(sentence) > LONGEST:
            yield held
            held = ""
        held = f"{held} {sentence}".strip()
    if held:
        yield held


async def extract(passages: Sequence[Passage], query: str, count: int) -> str:
    """Return so many lines of the passages, in their order, each portion under the place that it is from.

    A line is ranked by the words that it and its headings share with the query (BM25), by how like they are, and by the
    rank of its passage.
    """
    lines = [(rank, line) for rank, each in enumerate(passages) for line in each.lines()]
    if not lines:
        return "\n\n".join(f"{passage.place}:\n{passage.text}" for passage in passages[:1])
    headed = [f"{passages[rank].under} {line}" for rank, line in lines]
    index = Lexical()
    for text in headed:
        index.add(terms(text))
    words = index.scores(terms(query))
    vectors = await shared_embedder().embed([query, *headed])
    ranks = np.array([rank for rank, _ in lines]) / len(passages)
    scores = words / max(float(words.max(initial=0.0)), 1e-9) + LIKENESS * (vectors[1:] @ vectors[0]) - FIRST * ranks
    found: dict[int, list[str]] = {}
    for at in sorted(np.argsort(-scores, kind="stable")[:count].tolist()):
        found.setdefault(lines[at][0], []).append(lines[at][1])
    return "\n\n".join("\n".join([_head(passages[rank]), *of]) for rank, of in found.items())


def _head(passage: Passage) -> str:
    return f"{passage.place} ({passage.under}):" if passage.under else f"{passage.place}:"
