"""Convert conversations into spans: each message of a user is a trace, with the turn as its root.

Runs of reasoners are children of the turn. The row of a model call names its role and the message, not the reasoner.
So a call is assigned by its role: `talker` to the turn; the name of a reasoner to that reasoner; `reasoner` to the
reasoner that finishes next; any other role to the turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TypeAlias

from mindstream.clock import Moment
from mindstream.log.events import FollowUp, Heard, Logged, ModelCalled, Observed, Said, SetAside, Thought, ToolCalled
from mindstream.planning.journal import StepFound
from mindstream.tracing import genai


@dataclass(frozen=True, slots=True)
class Span:
    """A span.

    Attributes:
        trace: identifies its trace (see `trace_of`).
        key: identifies the span within its trace.
        parent: the key of its parent; None for the root.
        subject: the model, tool or agent that the span is about.
        error: the type of the error that ended it; "": it did not fail.
    """

    operation: str
    trace: tuple[str, ...]
    key: str
    parent: str | None
    start: Moment
    end: Moment
    subject: str = ""
    attributes: Mapping[str, genai.Value] = field(default_factory=dict)
    error: str = ""

    @property
    def name(self) -> str:
        return genai.span_name(self.operation, self.subject)

    @property
    def trace_id(self) -> int:
        return _number(16, *self.trace)

    @property
    def span_id(self) -> int:
        return _number(8, *self.trace, self.key)

    @property
    def parent_id(self) -> int | None:
        return None if self.parent is None else _number(8, *self.trace, self.parent)


def trace_of(row: Logged) -> tuple[str, ...]:
    """Return the identity of the trace that begins at a row; the time makes it unique among several logs."""
    return row.mind, str(row.seq), repr(row.at)


def _number(size: int, *parts: str) -> int:
    """Return a number of `size` bytes that is computed from these parts; never 0, which is not a valid id."""
    return int.from_bytes(sha256("\0".join(parts).encode()).digest()[:size]) or 1


def failure(text: str) -> str:
    """Return the type in an error text of the form `Type: message`; "_OTHER" for another form, "" for no text."""
    kind = text.partition(":")[0].strip()
    return kind if kind.isidentifier() else "_OTHER" if text else ""


Known: TypeAlias = Mapping[str, genai.Value | None]
"""Attributes of a span; those that are None are left out."""


def call_span(row: Logged, event: ModelCalled, trace: tuple[str, ...], parent: str | None) -> Span:
    """Return the span of a model call, whose row was written when the call ended."""
    start, error = row.at - event.seconds, failure(event.error)
    known: Known = {
        genai.PROMPT: event.prompt,
        "mindstream.role": event.role,
        "mindstream.seq": row.seq,
        genai.INPUT_TOKENS: event.input_tokens,
        genai.OUTPUT_TOKENS: event.output_tokens,
        genai.CACHED_TOKENS: event.cached_tokens or None,
        genai.FIRST_PART_S: event.first_part_s,
        "mindstream.cost_usd": event.cost_usd,
        genai.ASKED: genai.write_messages(event.messages()) if event.asked else None,
        genai.ANSWERED: genai.write_answer(event.answered) if event.answered else None,
    }
    return chat_span(trace, f"chat {row.seq}", parent, start, row.at, event.model, known, error)


def chat_span(
    trace: tuple[str, ...],
    key: str,
    parent: str | None,
    start: Moment,
    end: Moment,
    model: str,
    known: Known,
    error: str,
) -> Span:
    """Return the span of a request to a model."""
    named = genai.model_attributes(model)
    return Span(genai.CHAT, trace, key, parent, start, end, str(named[genai.MODEL]), {**named, **_given(known)}, error)


def tool_span(
    trace: tuple[str, ...],
    key: str,
    parent: str | None,
    start: Moment,
    row: Logged,
    found: Observed | StepFound,
    arguments: str,
    seq: int,
) -> Span:
    """Return the span of a tool call, which ended with the row of its result; `seq`: the row that it is shown at."""
    known: Known = {
        genai.TOOL: found.tool,
        genai.ARGUMENTS: arguments,
        genai.CALL_ID: (found.step if isinstance(found, StepFound) else found.id) or None,
        genai.RESULT: found.text,
        "mindstream.seq": seq,
    }
    error = "ToolError" if found.failed else ""
    return Span(genai.EXECUTE_TOOL, trace, key, parent, start, row.at, found.tool, _given(known), error)


def agent_span(
    trace: tuple[str, ...],
    key: str,
    parent: str | None,
    start: Moment,
    end: Moment,
    agent: str,
    seq: int,
    asked: str | None,
    answered: str | None,
    known: Known,
    error: str = "",
) -> Span:
    """Return the span of an agent's work on a message, a task or a thought."""
    attributes: Known = {
        genai.AGENT: agent,
        "mindstream.seq": seq,
        genai.ASKED: None if asked is None else genai.write_messages([("user", asked)]),
        genai.ANSWERED: None if answered is None else genai.write_answer(answered),
    }
    return Span(genai.INVOKE_AGENT, trace, key, parent, start, end, agent, _given({**attributes, **known}), error)


def _given(known: Known) -> dict[str, genai.Value]:
    return {name: value for name, value in known.items() if value is not None}


TURN, TALKER, REASONER = "turn", "talker", "reasoner"
MAX_OPEN = 20
"""Maximum number of answered turns that stay open, because further rows may belong to them."""


@dataclass(slots=True)
class _Turn:
    """A message of a user, whose turn is still open."""

    trace: tuple[str, ...]
    heard: Logged
    session: str
    end: Moment
    text: str
    answers: list[str] = field(default_factory=list)
    calls: list[tuple[Logged, ModelCalled]] = field(default_factory=list)


class Talks:
    """Builds the spans of one mind's conversations from rows in the order of the log."""

    def __init__(self) -> None:
        self._turns: dict[int, _Turn] = {}
        self._heard: dict[int, tuple[tuple[str, ...], str]] = {}
        self._begun: dict[tuple[str, str, str], tuple[Logged, ToolCalled]] = {}
        self._tools: dict[str, list[tuple[Logged, ToolCalled, Logged, Observed]]] = {}

    def take(self, row: Logged) -> Iterator[Span]:
        """Yield the spans that end with this row."""
        match row.event:
            case Heard(session=session, text=text):
                yield from self._over()
                self._heard[row.seq] = trace_of(row), session
                self._turns[row.seq] = _Turn(trace_of(row), row, session, row.at, text)
            case Said(answers=seq, text=text) | FollowUp(answers=seq, text=text) if seq in self._turns:
                turn = self._turns[seq]
                turn.end = row.at
                turn.answers.append(text)
            case ModelCalled(about=about) as call:
                yield from self._call(row, call, next((seq for seq in about if seq in self._heard), None))
            case ToolCalled() as call:
                self._begun[call.slot, call.tool, call.id] = row, call
            case Observed() as found if begun := self._begun.pop((found.slot, found.tool, found.id), None):
                self._tools.setdefault(found.slot, []).append((*begun, row, found))
            case Thought(slot=slot, about=about) | SetAside(slot=slot, about=about):
                yield from self._thought(row, slot, about)

    def close(self) -> Iterator[Span]:
        """Yield the spans that are open at the end of the log."""
        for turn in self._turns.values():
            yield self._root(turn)
            for row, call in turn.calls:
                yield call_span(row, call, turn.trace, TURN)
        self._turns.clear()

    def _over(self) -> Iterator[Span]:
        """Close answered turns without pending calls, except the MAX_OPEN newest."""
        for seq in [seq for seq, turn in self._turns.items() if turn.answers and not turn.calls][:-MAX_OPEN]:
            yield self._root(self._turns.pop(seq))

    def _root(self, turn: _Turn) -> Span:
        known: Known = {genai.CONVERSATION: turn.session or None}
        answers, start = "\n".join(turn.answers), turn.heard.at
        return agent_span(turn.trace, TURN, None, start, turn.end, TALKER, turn.heard.seq, turn.text, answers, known)

    def _call(self, row: Logged, call: ModelCalled, seq: int | None) -> Iterator[Span]:
        if seq is None:
            yield call_span(row, call, trace_of(row), None)
        elif call.role == TALKER or seq not in self._turns:
            yield call_span(row, call, self._heard[seq][0], TURN)
        else:
            self._turns[seq].calls.append((row, call))

    def _thought(self, row: Logged, slot: str, about: tuple[int, ...]) -> Iterator[Span]:
        seq = next((seq for seq in about if seq in self._heard), None)
        turn = None if seq is None else self._turns.get(seq)
        trace, session = (trace_of(row), "") if seq is None else self._heard[seq]
        key = f"{slot} {row.seq}"
        made = [each for each in turn.calls if each[1].role in (slot, REASONER)] if turn else []
        if turn:
            turn.calls = [each for each in turn.calls if each not in made]
        inside = [call_span(at, call, trace, key) for at, call in made]
        inside += [
            tool_span(trace, f"tool {begun.seq}", key, begun.at, ended, found, call.arguments, begun.seq)
            for begun, call, ended, found in self._tools.pop(slot, [])
        ]
        start = min((each.start for each in inside), default=row.at)
        parent = None if seq is None else TURN
        text = row.event.text if isinstance(row.event, Thought) else None
        error = "SetAside" if isinstance(row.event, SetAside) else ""
        known: Known = {genai.CONVERSATION: session or None}
        yield agent_span(trace, key, parent, start, row.at, slot, row.seq, None, text, known, error)
        yield from inside
