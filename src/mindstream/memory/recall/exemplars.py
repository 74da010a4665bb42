"""Exemplars: good answers and lessons, shown before a new question. A source, such as a pool, is passed to a mind.

Talkers, planners and lives take it as the argument `exemplars=`, and do not depend on its kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from mindstream.errors import InputError
from mindstream.foreign_code import ForeignFailure, ForeignTask

SHOTS = 3
"""Number of exemplars requested; lessons, as one text, may come before them."""


@dataclass(frozen=True, slots=True)
class Example:
    """An exemplar as it is shown.

    Attributes:
        id: its id in the source, "" for lessons; foreign: it contains untrusted text.
        lessons: the ids of lessons, if it is a list of lessons.
    """

    text: str
    id: str = ""
    foreign: bool = False
    lessons: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text


class Exemplars(Protocol):
    """A source of exemplars similar to a question, which also receives new ones.

    Both methods may be called from several tasks at once.
    """

    async def examples(self, query: str, k: int) -> Sequence[Example]:
        """Return at most k exemplars, the best first, after the lessons for the query, if there are any."""

    async def offer(self, query: str, answer: str, shown: Sequence[Example]) -> object:
        """Receive a good answer; `shown`: the exemplars that were shown before its question."""


async def find_examples(
    source: Exemplars | None, query: str, timeout_s: float | None = None
) -> tuple[tuple[Example, ...], str]:
    """Return the exemplars for a question, and, if the source failed, a line that says why there are none.

    The source is foreign code: whatever error it raises, the answer continues without exemplars.
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
    return found[: SHOTS + 1]
