"""Convert the log of a life into spans; each turn is a trace.

The id of an event gives its place (see life/events): `1.2` is a step of turn 1, `1.2.1` a call that this step
requested, and `1.2.1.3` a step of the agent that this call started.
"""

from __future__ import annotations

from collections.abc import Iterator

from mindstream.life.events import SLOT, Asked, Replied, TurnBegan, TurnEnded
from mindstream.log.events import Logged, Observed, ToolCalled
from mindstream.service.traces.talks import Known, Span, agent_span, chat_span, failure, tool_span, trace_of
from mindstream.tracing import genai


class Lives:
    """Builds the spans of one mind's life from rows in the order of the log."""

    def __init__(self) -> None:
        self._traces: dict[str, tuple[str, ...]] = {}
        self._turn: tuple[Logged, TurnBegan] | None = None
        self._asked: dict[str, Logged] = {}
        self._called: dict[str, tuple[Logged, ToolCalled]] = {}
        self.seqs: set[int] = set()
        """Numbers of the rows with requests to models. A model call for one of them gets no span of its own, since the
        reply to the request becomes the span."""
        self._latest = 0.0

    def take(self, row: Logged) -> Iterator[Span]:
        """Yield the spans that end with this row."""
        self._latest = row.at
        match row.event:
            case TurnBegan() as began:
                yield from self.close()
                self._turn, self._traces[str(began.turn)] = (row, began), trace_of(row)
            case Asked(id=id_):
                self._asked[id_] = row
                self.seqs.add(row.seq)
            case Replied() as replied:
                yield self._replied(row, replied)
            case ToolCalled(slot=slot, id=id_) as call if slot == SLOT:
                self._called[id_] = row, call
            case Observed(slot=slot, id=id_) as found if slot == SLOT and id_ in self._called:
                yield self._observed(row, found)
            case TurnEnded(words=words, error=error) if self._turn:
                yield self._ended(*self._turn, row.at, words, error)

    def close(self) -> Iterator[Span]:
        """Yield the span of the turn that has not ended, if any."""
        if self._turn:
            yield self._ended(*self._turn, self._latest, "", "unfinished")

    def _place(self, id_: str, row: Logged) -> tuple[tuple[str, ...], str | None]:
        """Return the trace of a step or call, and the key of its parent span: the enclosing call, else the turn."""
        turn, *inside = id_.split(".")
        if turn not in self._traces:
            return trace_of(row), None  # it belongs to no turn
        above = inside[: (len(inside) - 1) // 2 * 2]
        return self._traces[turn], ".".join(["call " + turn, *above]) if above else "turn"

    def _replied(self, row: Logged, replied: Replied) -> Span:
        asked = self._asked.pop(replied.id, row)
        trace, parent = self._place(replied.id, asked)
        wished = "".join(f"{call.tool}({call.arguments})\n" for call in replied.calls)
        known: Known = {
            "mindstream.role": replied.role,
            "mindstream.tokens": replied.tokens,
            "mindstream.seq": row.seq,
            "mindstream.cost_usd": replied.cost_usd,
            genai.ANSWERED: genai.write_answer(f"{wished}{replied.text}"),
        }
        key, error = f"chat {replied.id}", failure(replied.error)
        return chat_span(trace, key, parent, asked.at, row.at, replied.model, known, error)

    def _observed(self, row: Logged, found: Observed) -> Span:
        began, call = self._called.pop(found.id)
        trace, parent = self._place(found.id, began)
        return tool_span(trace, f"call {found.id}", parent, began.at, row, found, call.arguments, began.seq)

    def _ended(self, row: Logged, began: TurnBegan, end: float, words: str, error: str) -> Span:
        self._turn = None
        known: Known = {"mindstream.turn": began.turn, "mindstream.because": began.because}
        return agent_span(
            trace_of(row), "turn", None, row.at, end, SLOT, row.seq, began.words, words, known, failure(error)
        )
