"""Exemplars: good answers and lessons that a prompt shows before a new question.

Talkers, planners and lives get a source of exemplars, such as a `Pool`, as the argument `exemplars=`. A source must
implement the protocol `Exemplars`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from mindstream.errors import InputError
from mindstream.foreign_code import ForeignFailure, ForeignTask

SHOTS = 3
"""Number of exemplars requested for a question. One text with a list of lessons may come before them."""


@dataclass(frozen=True, slots=True)
class Example:
    """An exemplar as it is shown in a prompt.

    Attributes:
        id: the id of the exemplar in its source; "" for a list of lessons.
        foreign: the text contains untrusted text, such as content of web pages.
        lessons: if the text is a list of lessons, the ids of these.
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
        """Return at most k exemplars, best first.

        If there are lessons for the query, one more example comes first. It contains the text of all these lessons.
        """

    async def offer(self, query: str, answer: str, shown: Sequence[Example]) -> object:
        """Receive a good answer as a new exemplar; `shown`: the exemplars that the prompt of that answer contained."""


async def find_examples(
    source: Exemplars | None, query: str, timeout_s: float | None = None
) -> tuple[tuple[Example, ...], str]:
    """Return the exemplars for a question, and the source's failure as a line of text ("": the source did not fail).

    The source is foreign code. If it raises an error, the answer continues without exemplars.
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
        raise InputError(
            "a source of exemplars must return mindstream.memory.recall.exemplars.Example objects; this one returned"
            " something else"
        )
    return found[: SHOTS + 1]
