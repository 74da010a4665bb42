"""Convert a log into spans, separately for each mind."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterator
from dataclasses import replace

from mindstream.life.events import SLOT
from mindstream.log.events import (
    BeliefChanged,
    Corrected,
    Logged,
    ModelCalled,
    Observed,
    RecallMade,
    Remembered,
    ToolCalled,
)
from mindstream.log.names import StreamKey, shown_name
from mindstream.service.traces.lives import Lives
from mindstream.service.traces.runs import Runs
from mindstream.service.traces.talks import Span, Talks, call_span, trace_of
from mindstream.tracing import genai


async def replay(rows: AsyncIterable[Logged]) -> AsyncIterator[Span]:
    """Yield the spans for the rows of a log, with all texts."""
    minds: dict[StreamKey, _Mind] = {}
    async for row in rows:
        if row.mind not in minds:
            minds[row.mind] = _Mind(shown_name(row.mind))
        for span in minds[row.mind].take(row):
            yield span
    for mind in minds.values():
        for span in mind.close():
            yield span


class _Mind:
    """Builds the spans for the rows of one mind."""

    def __init__(self, store: str) -> None:
        self._store = store
        self._talks, self._runs, self._lives = Talks(), Runs(), Lives()

    def take(self, row: Logged) -> Iterator[Span]:
        event = row.event
        match event:
            case ModelCalled(resident=resident) if resident:
                yield from self._resident(row, event)
            case ModelCalled(about=about) if self._lives.seqs.intersection(about):
                return
            case ModelCalled(about=about) if self._runs.run_of(about):
                yield from self._runs.take(row)
            case ToolCalled(slot=slot) | Observed(slot=slot) if slot == SLOT:
                yield from self._lives.take(row)
            case RecallMade() | Remembered() | Corrected() | BeliefChanged():
                yield self._memory(row)
            case _:
                yield from self._talks.take(row)
                if not isinstance(event, ModelCalled | ToolCalled | Observed):
                    yield from self._runs.take(row)
                    yield from self._lives.take(row)

    def close(self) -> Iterator[Span]:
        yield from self._talks.close()
        yield from self._runs.close()
        yield from self._lives.close()

    def _resident(self, row: Logged, call: ModelCalled) -> Iterator[Span]:
        """Yield the span of a model call for a town's resident: a separate trace, with the resident and the step."""
        span = call_span(row, call, trace_of(row), None)
        attributes = {**span.attributes, genai.AGENT: call.resident, "mindstream.step": call.step or 0}
        yield replace(span, attributes=attributes)

    def _memory(self, row: Logged) -> Span:
        attributes: dict[str, genai.Value] = {
            genai.STORE: self._store,
            "mindstream.seq": row.seq,
            "mindstream.by": row.by,
        }
        match row.event:
            case RecallMade(returned=returned):
                operation = genai.SEARCH_MEMORY
                attributes[genai.RECORDS] = len(returned)
            case Remembered(count=count):
                operation = genai.CREATE_MEMORY
                attributes[genai.RECORDS] = count
            case Corrected(old=old):
                operation = genai.UPDATE_MEMORY
                attributes |= {genai.RECORD: old, genai.RECORDS: 1}
            case _:
                operation = genai.UPSERT_MEMORY
                attributes[genai.RECORDS] = 1
        if isinstance(row.event, BeliefChanged):
            attributes["mindstream.slot"] = row.event.slot
        return Span(operation, trace_of(row), "row", None, row.at, row.at, "", attributes)
