"""Reflection: from observations to insights (Park 2023, 4.2).

A counter falls by the importance of each new observation and chat line. At zero, the model asks questions about the
most recent records, memories are recalled for each question, and the model derives insights from these memories, with
the memories as evidence. The counter is computed from the records since the last `Reflected` event, so it survives
restarts and is the same in every process. Without a language model there is no reflection, and nothing is rated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
from pydantic import Field

from mindstream.errors import Conflict
from mindstream.frozen import Frozen
from mindstream.log import erasures
from mindstream.log.events import Reflected
from mindstream.memory.lifecycle import importance
from mindstream.memory.memory import Memory
from mindstream.memory.recall.recall import Recalled
from mindstream.memory.store.columns import KIND_CODES
from mindstream.memory.store.record import Kind, Record, RecordDraft, normalised
from mindstream.memory.store.store import Entry
from mindstream.models.model import Model
from mindstream.models.prompt import Prompt, ask
from mindstream.models.rules import Rules
from mindstream.reasoners.reasoner import RunContext, RunResult, Trigger, Writing
from mindstream.together import together

MAX_INSIGHT_CHARACTERS, MAX_EVIDENCE = 500, 100
"""Maximum length of an insight in characters, and maximum number of memories that it names as its evidence."""


class Insight(Frozen):
    """One insight, drawn from memories."""

    text: str = Field(
        min_length=1, max_length=MAX_INSIGHT_CHARACTERS, description="One sentence that stands on its own."
    )
    because: list[int] = Field(max_length=MAX_EVIDENCE, description="The numbers of the memories that support it.")


class Found(Frozen):
    """The insights, the best first."""

    insights: list[Insight] = Field(max_length=20)


class Insights(Prompt[Found]):
    """Write up to `count` insights that answer `question` and that the memories of `who` support."""

    who: str
    question: str
    memories: tuple[str, ...]
    count: int = 5


class Questions(Frozen):
    """High-level questions, the most salient first."""

    questions: list[Annotated[str, Field(max_length=1_000)]] = Field(max_length=20)


class SalientQuestions(Prompt[Questions]):
    """Write the `count` most salient high-level questions that the memories of `who` can answer."""

    who: str
    memories: tuple[str, ...]
    count: int = 3


START = 150.0
RECENT, QUESTIONS, RECALLED, INSIGHTS = 100, 3, 30, 5
BY, OWN = "reflect", "own"
"""BY: author of insights. OWN: data field that marks an insight which names the mind itself, and is not shared with
others."""
MAX_SHOWN_CHARACTERS = 500
"""Maximum number of characters of a memory that the model is shown."""
REFLECTED_ON: tuple[Kind, ...] = ("observation", "chat", "note", "thought")
COUNTED: tuple[Kind, ...] = ("observation", "chat")
"""Kinds of records whose importance lowers the counter; at 0 a reflection is due."""


async def counter(stream: Memory, start: float = START) -> float:
    """Return the importance that is still missing until the next reflection; at 0 or less, a reflection is due.

    `start`: the total importance of new records at which a reflection is due.

    Only records of the kinds COUNTED whose importance is rated count.
    """
    columns = await stream.columns()
    last = await stream.store.last(stream.key, "reflected")
    new = np.isin(columns.kind.values, [KIND_CODES[kind] for kind in COUNTED])
    if last and isinstance(last.event, Reflected):
        at = columns.position.get(last.event.upto)
        if at is None:  # that record was erased
            new &= columns.created.values > last.at
        else:
            new[: at + 1] = False
    return start - float(np.nansum(columns.importance.values[new]))


async def reflect(stream: Memory, model: Model) -> list[Record]:
    """Reflect now, even if the importance of new records does not make a reflection due yet; return the new thoughts as
    records.

    Raises:
        ModelError: the model failed; nothing is written.
    """
    async with erasures.reading(stream.store):
        reflection = await _reflection(stream, model)
        while True:
            entry = await _entry(stream, reflection, model)
            try:
                await stream.commit(entry)
            except Conflict:
                await asyncio.sleep(0)  # another process wrote one of the thoughts; build the entry without it
                continue
            return await stream.records([record.id for record in entry.records])


async def reflection_entry(stream: Memory, model: Model) -> Entry:
    """Reflect now, and return the log entry with the new thoughts, which the caller commits.

    Raises:
        ModelError: the model failed; there is nothing to commit.
    """
    return await _entry(stream, await _reflection(stream, model), model)


async def reflect_if_due(stream: Memory, model: Model, start: float = START) -> list[Record]:
    """Rate unrated records, then reflect if a reflection is due (see `counter`). Without a language model, do nothing.

    Raises:
        ModelError: the model failed; no thought is written.
    """
    if model.name == Rules.name:
        return []
    await rate(stream, model)
    await stream.columns()
    return await reflect(stream, model) if await counter(stream, start) <= 0 else []


async def rate(stream: Memory, model: Model) -> None:
    """Rate the importance of unrated records of the kinds in COUNTED."""
    async for ratings in importance.rate(stream, model, COUNTED):
        await stream.commit(revisions=ratings)


@dataclass(frozen=True)
class ReflectReasoner:
    """Reflects in the background of a conversation.

    At every fifth utterance (or by another trigger), the reasoner rates new records. It then reflects if the counter is
    at 0 or below. The counter begins at `start` after a reflection; each new observation or message lowers it by its
    importance.
    """

    model: Model
    start: float = START
    slot: str = "reflect"
    trigger: Trigger = field(default_factory=lambda: Trigger(every=5))
    timeout_s: float = 300.0

    async def think(self, context: RunContext) -> RunResult:
        stream = context.memory
        if self.model.name == Rules.name:
            return RunResult("no reflection without a model" if context.events else "", self.model.name)
        await rate(stream, self.model)
        await stream.columns()
        left = await counter(stream, self.start)
        if left > 0:
            return RunResult(
                f"no reflection yet: importance of {left:.0f} of {self.start:.0f} is missing", self.model.name
            )
        reflection = await _reflection(stream, self.model)

        async def write() -> Writing:
            return [await _entry(stream, reflection, self.model)], ()

        thought = "; ".join(insight.text for insight, _ in reflection.insights) or "nothing new"
        return RunResult(thought, self.model.name, write=write)


@dataclass(frozen=True, slots=True)
class _Reflection:
    """The result of a reflection.

    Attributes:
        upto: the id of the newest record of the memory when the reflection began; "": there was none.
        insights: the insights, each with the ids of its evidence.
    """

    upto: str
    questions: tuple[str, ...]
    insights: tuple[tuple[Insight, tuple[str, ...]], ...]


async def _reflection(stream: Memory, model: Model) -> _Reflection:
    ids = (await stream.columns()).ids
    upto = ids[-1] if ids else ""
    recent = await stream.store.latest(stream.key, REFLECTED_ON, RECENT, now=stream.clock.now())
    if not recent:
        return _Reflection(upto, (), ())
    memories = tuple(record.text[:MAX_SHOWN_CHARACTERS] for record in recent)
    salient = await ask(model, SalientQuestions(who=stream.name, memories=memories, count=QUESTIONS))
    questions = tuple(text.strip() for text in salient.questions if text.strip())[:QUESTIONS]
    recalled = [await stream.recall(question, RECALLED, kinds=REFLECTED_ON) for question in questions]
    found = await together(*(_insights(stream, model, *each) for each in zip(questions, recalled, strict=True)))
    return _Reflection(upto, questions, tuple(insight for insights in found for insight in insights))


async def _insights(
    stream: Memory, model: Model, question: str, recalled: Sequence[Recalled]
) -> list[tuple[Insight, tuple[str, ...]]]:
    """Return the insights that recalled memories support, for a question, with the ids of their evidence."""
    memories = tuple(each.record.text[:MAX_SHOWN_CHARACTERS] for each in recalled)
    reply = await ask(model, Insights(who=stream.name, question=question, memories=memories, count=INSIGHTS))
    found = []
    for insight in reply.insights[:INSIGHTS]:
        numbers = [number for number in dict.fromkeys(insight.because) if 0 < number <= len(recalled)]
        if numbers and insight.text.strip():
            found.append((insight, tuple(recalled[number - 1].record.id for number in numbers)))
    return found


async def _entry(stream: Memory, reflection: _Reflection, model: Model) -> Entry:
    """Return the log entry of a reflection, with its new thoughts. Committing the entry also resets the counter of
    importance that triggers reflections."""
    first = {normalised(each[0].text): each for each in reversed(reflection.insights)}
    known = await stream.find_same("thought", [insight.text for insight, _ in reflection.insights])
    news = [
        RecordDraft(
            text=insight.text,
            kind="thought",
            by=BY,
            evidence=evidence,
            data={OWN: True} if stream.name.casefold() in insight.text.casefold() else {},
        )
        for said, (insight, evidence) in reversed(first.items())
        if said not in known
    ]
    thoughts = tuple(await stream.build_records(news))
    event = Reflected(
        upto=reflection.upto,
        questions=reflection.questions,
        thoughts=tuple(record.id for record in thoughts),
        model=model.name,
    )
    return Entry(event, BY, thoughts, distinct=True)
