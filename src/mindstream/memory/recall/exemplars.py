"""Exemplars: answers that were good, shown before a new question. Whoever finds them, a pool say, is handed to a mind.

Talkers, planners and lives take them by one argument, `exemplars=`, and know nothing of where they come from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from mindstream.errors import InputError
from mindstream.foreign_code import ForeignFailure, ForeignTask

SHOTS = 3
"""So many are asked for."""


@dataclass(frozen=True, slots=True)
class Example:
    """An exemplar as it is shown.

    Attributes:
        id: by which whoever found it knows it; foreign: words of strangers stand in it.
    """

    text: str
    id: str = ""
    foreign: bool = False

    def __str__(self) -> str:
        return self.text


class Exemplars(Protocol):
    """Whoever finds exemplars that are like a new question, and takes new ones.

    Both may be called from several tasks at once: nothing is kept between them.
    """

    async def examples(self, query: str, k: int) -> Sequence[Example]:
        """Return at most k of them, the best first."""

    async def offer(self, query: str, answer: str, shown: Sequence[Example]) -> object:
        """Take an answer that was good; `shown`: what stood before its question."""


async def find_examples(
    source: Exemplars | None, query: str, timeout_s: float | None = None
) -> tuple[tuple[Example, ...], str]:
    """Return what is shown before a question, and, where the source failed, in a line why there is nothing.

    The source is foreign code: whatever is wrong with it, an answer goes on without.
    """
    if source is None:
        return (), ""
    try:
        return tuple(await ForeignTask(lambda: _found(source, query)).result(timeout_s)), ""
    except ForeignFailure as broken:
        return (), str(broken)


async def _found(source: Exemplars, query: str) -> Sequence[Example]:
    found = await source.examples(query, SHOTS)
    if not all(isinstance(each, Example) for each in found):
        raise InputError("a source of exemplars gives `memory.exemplars.Example`, and this one gave something else")
    return found[:SHOTS]
