"""A log as spans: each row goes to whoever tells of its kind, of each mind apart."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterator

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
from mindstream.service.traces.talks import Talks, Told, told_call, trace_of
from mindstream.tracing import genai


async def replay(rows: AsyncIterable[Logged]) -> AsyncIterator[Told]:
    """Yield what rows tell, as spans, with all the words that they hold; rows in the order of the log."""
    minds: dict[StreamKey, _Mind] = {}
    async for row in rows:
        if row.mind not in minds:
            minds[row.mind] = _Mind(shown_name(row.mind))
        for told in minds[row.mind].take(row):
            yield told
    for mind in minds.values():
        for told in mind.close():
            yield told


class _Mind:
    """One mind's log."""

    def __init__(self, store: str) -> None:
        self._store = store
        self._talks, self._runs, self._lives = Talks(), Runs(), Lives()

    def take(self, row: Logged) -> Iterator[Told]:
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

    def close(self) -> Iterator[Told]:
        yield from self._talks.close()
        yield from self._runs.close()
        yield from self._lives.close()

    def _resident(self, row: Logged, call: ModelCalled) -> Iterator[Told]:
        """Tell of a call that somebody of a town made: it is a trace of its own, and says who, and at which step."""
        told = told_call(row, call, trace_of(row), None)
        yield Told(
            told.operation,
            told.trace,
            told.key,
            None,
            told.start,
            told.end,
            told.subject,
            {**told.attributes, genai.AGENT: call.resident, "mindstream.step": call.step or 0},
            told.error,
        )

    def _memory(self, row: Logged) -> Told:
        told: dict[str, genai.Value] = {genai.STORE: self._store, "mindstream.seq": row.seq, "mindstream.by": row.by}
        match row.event:
            case RecallMade(returned=returned):
                operation = genai.SEARCH_MEMORY
                told[genai.RECORDS] = len(returned)
            case Remembered(count=count):
                operation = genai.CREATE_MEMORY
                told[genai.RECORDS] = count
            case Corrected(old=old):
                operation = genai.UPDATE_MEMORY
                told |= {genai.RECORD: old, genai.RECORDS: 1}
            case _:
                operation = genai.UPSERT_MEMORY
                told[genai.RECORDS] = 1
        if isinstance(row.event, BeliefChanged):
            told["mindstream.slot"] = row.event.slot
        return Told(operation, trace_of(row), "row", None, row.at, row.at, "", told)
