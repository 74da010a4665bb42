"""The second stage of recall: a reranker reads the question and the best records of the first stage, and reorders them.

It is off unless a reranker is named (`second_stage`). The figures in docs/benchmarks.md are those of the first stage.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import ClassVar, Protocol

from mindstream.errors import ModelError, SettingsError
from mindstream.frozen import Frozen
from mindstream.memory.store.record import Record
from mindstream.models.embedders.embedder import CrossEncoder
from mindstream.models.model import Model
from mindstream.models.prompt import Prompt, ask, rule
from mindstream.models.roles import Models


class Ranked(Frozen):
    """The numbers of the memories that answer, the best first."""

    best: list[int]


class RankMemories(Prompt[Ranked]):
    """Which of these memories answer the question, the best first?"""

    role: ClassVar[str] = "reranker"

    query: str
    memories: tuple[str, ...]


@rule(RankMemories)
def leave_order(ask: RankMemories) -> Ranked:
    """Without a model, keep the order."""
    return Ranked(best=list(range(1, len(ask.memories) + 1)))


NONE, MODEL, CROSS = "none", "model", "cross"
FORMS = "none, model, cross:NAME-OR-FOLDER"
LONGEST = 600
"""Maximum number of characters of a memory's text that the reranker reads, from its beginning."""


class Reranker(Protocol):
    """Orders memories by how well they answer a question."""

    async def order(self, query: str, memories: Sequence[str]) -> Sequence[int]:
        """Return indexes into `memories`, the best answer first. Memories whose indexes are missing are ranked after
        these, in the given order.

        Raises:
            ModelError: the reranker failed.
        """


@dataclass(frozen=True, slots=True)
class ByModel:
    """A reranker that shows all memories to a language model in one call."""

    model: Model

    async def order(self, query: str, memories: Sequence[str]) -> Sequence[int]:
        ranked = await ask(self.model, RankMemories(query=query, memories=tuple(memories)))
        return [number - 1 for number in ranked.best if 0 < number <= len(memories)]


@dataclass(frozen=True)
class ByCrossEncoder:
    """A reranker that scores each memory with a cross-encoder in this process; the model is loaded when first used."""

    name: str
    _loaded: list[CrossEncoder] = field(default_factory=list)
    _loading: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def order(self, query: str, memories: Sequence[str]) -> Sequence[int]:
        async with self._loading:
            if not self._loaded:
                self._loaded.append(await asyncio.to_thread(CrossEncoder, self.name))
        scores = await self._loaded[0].scores(query, memories)
        return sorted(range(len(memories)), key=lambda at: -scores[at])


@dataclass(frozen=True, slots=True)
class SecondStage:
    """A reranker, and the number of memories that it reads for a question.

    Attributes:
        most: maximum number of memories that the reranker reads. If a recall returns more memories, the reranker reads
            as many as are returned.
    """

    reranker: Reranker
    most: int = 20

    async def best(self, query: str, records: Sequence[Record], k: int) -> tuple[list[int], str]:
        """Return the indexes of the k best records, best first, and an error message ("": none).

        If the reranker fails, the records keep their order, and the message says why.
        """
        texts = [_line(record) for record in records]
        try:
            order = list(dict.fromkeys(await self.reranker.order(query, texts)))
        except ModelError as error:
            return list(range(min(k, len(texts)))), str(error)
        return [*order, *(at for at in range(len(texts)) if at not in set(order))][:k], ""


def check_reranker(name: str) -> str:
    """Return the name of a reranker if it is valid; "" if the name is "" or "none".

    Raises:
        SettingsError: the name has none of the valid forms.
    """
    kind, _, rest = name.partition(":")
    if name in ("", NONE):
        return ""
    if name == MODEL or (kind == CROSS and rest):
        return name
    raise SettingsError(f"{name!r} is not the name of a reranker; expected {FORMS}")


def second_stage(name: str, most: int, models: Models | None) -> SecondStage | None:
    """Return the second stage that a name stands for; None if it is "" or "none".

    Raises:
        SettingsError: the name has none of the valid forms, or it is `model` and no model is available.
    """
    name = check_reranker(name)
    if not name:
        return None
    if name != MODEL:
        return SecondStage(ByCrossEncoder(name.partition(":")[2]), most)
    if models is None or models.only_rules:
        raise SettingsError("the reranker `model` needs a model, and none is set: set --model, or --reranker none")
    return SecondStage(ByModel(models.of("reranker", "reasoner")), most)


def _line(record: Record) -> str:
    day = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%d")
    who = f" {record.by}:" if record.by else ""
    return f"{day}{who} {' '.join(record.text[:LONGEST].split())}"
