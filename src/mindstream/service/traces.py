"""Convert a log into spans, separately for each mind, and send spans by OTLP over HTTP.

The exporter is OpenTelemetry's, which is an optional dependency.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urlsplit

from mindstream import tracing
from mindstream.clock import Moment
from mindstream.errors import InputError, SettingsError, StorageError
from mindstream.identifiers import StreamKey, shown_name
from mindstream.life.events import SLOT, Asked, Replied, TurnBegan, TurnEnded
from mindstream.log.events import (
    BeliefChanged,
    Corrected,
    FollowUp,
    Heard,
    Logged,
    ModelCalled,
    Observed,
    RecallMade,
    Remembered,
    Said,
    SetAside,
    Thought,
    ToolCalled,
)
from mindstream.planning.journal import RunPlanned, Solved, Solving, StepBegan, StepFound
from mindstream.planning.run import PLANNER

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter


Trace: TypeAlias = tuple[str, ...]
"""Identifies a trace (see `trace_of`)."""


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
        attributes = {**span.attributes, tracing.AGENT: call.resident, "mindstream.step": call.step or 0}
        yield replace(span, attributes=attributes)

    def _memory(self, row: Logged) -> Span:
        more: Known = {tracing.RECORDS: 1}
        match row.event:
            case RecallMade(returned=returned):
                operation, more = tracing.SEARCH_MEMORY, {tracing.RECORDS: len(returned)}
            case Remembered(count=count):
                operation, more = tracing.CREATE_MEMORY, {tracing.RECORDS: count}
            case Corrected(old=old):
                operation, more = tracing.UPDATE_MEMORY, {tracing.RECORD: old, **more}
            case event:
                operation, more = tracing.UPSERT_MEMORY, {**more, "mindstream.slot": getattr(event, "slot", None)}
        known = {tracing.STORE: self._store, "mindstream.seq": row.seq, "mindstream.by": row.by, **more}
        return Span(operation, trace_of(row), "row", None, row.at, row.at, "", _given(known))


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
    trace: Trace
    key: str
    parent: str | None
    start: Moment
    end: Moment
    subject: str = ""
    attributes: Mapping[str, tracing.Value] = field(default_factory=dict)
    error: str = ""

    @property
    def name(self) -> str:
        return tracing.span_name(self.operation, self.subject)

    @property
    def trace_id(self) -> int:
        return _number(16, *self.trace)

    @property
    def span_id(self) -> int:
        return _number(8, *self.trace, self.key)

    @property
    def parent_id(self) -> int | None:
        return None if self.parent is None else _number(8, *self.trace, self.parent)


def trace_of(row: Logged) -> Trace:
    """Return the identity of the trace that begins at a row; the time makes it unique among several logs."""
    return row.mind, str(row.seq), repr(row.at)


def _number(size: int, *parts: str) -> int:
    """Return a number of `size` bytes that is computed from these parts; never 0, which is not a valid id."""
    return int.from_bytes(sha256("\0".join(parts).encode()).digest()[:size]) or 1


def failure(text: str) -> str:
    """Return the type in an error text of the form `Type: message`; "_OTHER" for another form, "" for no text."""
    kind = text.partition(":")[0].strip()
    return kind if kind.isidentifier() else "_OTHER" if text else ""


Known: TypeAlias = Mapping[str, tracing.Value | None]
"""Attributes of a span; those that are None are left out."""


def call_span(row: Logged, event: ModelCalled, trace: Trace, parent: str | None) -> Span:
    """Return the span of a model call; it ends at the time of the call's row."""
    start, error = row.at - event.seconds, failure(event.error)
    known: Known = {
        tracing.PROMPT: event.prompt,
        "mindstream.role": event.role,
        "mindstream.seq": row.seq,
        tracing.INPUT_TOKENS: event.input_tokens,
        tracing.OUTPUT_TOKENS: event.output_tokens,
        tracing.CACHED_TOKENS: event.cached_tokens or None,
        tracing.FIRST_PART_S: event.first_part_s,
        "mindstream.cost_usd": event.cost_usd,
        tracing.ASKED: tracing.write_messages(event.messages()) if event.asked else None,
        tracing.ANSWERED: tracing.write_answer(event.answered) if event.answered else None,
    }
    return chat_span(trace, f"chat {row.seq}", parent, start, row.at, event.model, known, error)


def chat_span(
    trace: Trace,
    key: str,
    parent: str | None,
    start: Moment,
    end: Moment,
    model: str,
    known: Known,
    error: str,
) -> Span:
    """Return the span of a request to a model."""
    named = tracing.model_attributes(model)
    return Span(
        tracing.CHAT, trace, key, parent, start, end, str(named[tracing.MODEL]), {**named, **_given(known)}, error
    )


def tool_span(
    trace: Trace,
    key: str,
    parent: str | None,
    start: Moment,
    row: Logged,
    found: Observed | StepFound,
    arguments: str,
    seq: int,
) -> Span:
    """Return the span of a tool call.

    `row`: the log row of the result, with which the call ended. `seq`: the number of the row at which viewers show the
    span.
    """
    known: Known = {
        tracing.TOOL: found.tool,
        tracing.ARGUMENTS: arguments,
        tracing.CALL_ID: (found.step if isinstance(found, StepFound) else found.id) or None,
        tracing.RESULT: found.text,
        "mindstream.seq": seq,
    }
    error = "ToolError" if found.failed else ""
    return Span(tracing.EXECUTE_TOOL, trace, key, parent, start, row.at, found.tool, _given(known), error)


def agent_span(
    trace: Trace,
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
        tracing.AGENT: agent,
        "mindstream.seq": seq,
        tracing.ASKED: None if asked is None else tracing.write_messages([("user", asked)]),
        tracing.ANSWERED: None if answered is None else tracing.write_answer(answered),
    }
    return Span(tracing.INVOKE_AGENT, trace, key, parent, start, end, agent, _given({**attributes, **known}), error)


def _given(known: Known) -> dict[str, tracing.Value]:
    return {name: value for name, value in known.items() if value is not None}


TURN, TALKER, REASONER = "turn", "talker", "reasoner"
MAX_OPEN = 20
"""Maximum number of answered turns that stay open, because further rows may belong to them."""


@dataclass(slots=True)
class _Turn:
    """The turn of a user's message that has not ended: the message, and its answers and model calls so far."""

    trace: Trace
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
        self._heard: dict[int, tuple[Trace, str]] = {}
        self._begun: dict[tuple[str, str, str], tuple[Logged, ToolCalled]] = {}
        self._tools: dict[str, list[tuple[Logged, ToolCalled, Logged, Observed]]] = {}

    def take(self, row: Logged) -> Iterator[Span]:
        """Read the next row of the log; yield the spans that it completes or closes."""
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
        """Yield the spans of the turns that are still open at the end of the log."""
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
        known: Known = {tracing.CONVERSATION: turn.session or None}
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
        known: Known = {tracing.CONVERSATION: session or None}
        yield agent_span(trace, key, parent, start, row.at, slot, row.seq, None, text, known, error)
        yield from inside


ROOT = "run"


@dataclass(slots=True)
class _Run:
    trace: Trace
    began: Logged
    solving: Solving
    since: Moment
    """When the run's last row was written; before its second row, when the run began. If the next row is a plan, its
    planning began then."""


class Runs:
    """Builds the spans of one mind's runs from rows in the order of the log."""

    def __init__(self) -> None:
        self._runs: dict[str, _Run] = {}
        self._by_seq: dict[int, str] = {}
        self._steps: dict[tuple[str, str], tuple[Logged, StepBegan]] = {}

    def take(self, row: Logged) -> Iterator[Span]:
        """Read the next row of the log; yield the spans that it completes or closes."""
        match row.event:
            case Solving(run=name) as solving:
                self._by_seq[row.seq] = name
                if name not in self._runs:  # otherwise the run is only resumed
                    self._runs[name] = _Run(trace_of(row), row, solving, row.at)
            case ModelCalled(about=about) as call:
                if run := self._runs.get(self.run_of(about) or ""):
                    yield call_span(row, call, run.trace, ROOT)
            case RunPlanned(run=name) as planned if name in self._runs:
                yield self._planned(row, planned, self._runs[name])
            case StepBegan(run=name, step=step) as began:
                self._steps[name, step] = row, began
            case StepFound(run=name) as found if name in self._runs:
                yield self._found(row, found, self._runs[name])
            case Solved(run=name, answer=answer, stopped=stopped) if name in self._runs:
                yield _root(self._runs.pop(name), row.at, answer, stopped)

    def run_of(self, about: tuple[int, ...]) -> str | None:
        """Return the name of the run that a model call was made for; None if it was made for no run."""
        return next((self._by_seq[seq] for seq in reversed(about) if seq in self._by_seq), None)

    def close(self) -> Iterator[Span]:
        """Yield the root spans of the runs that have not ended."""
        for run in self._runs.values():
            yield _root(run, run.since, "", "unfinished")

    def _planned(self, row: Logged, planned: RunPlanned, run: _Run) -> Span:
        since, run.since = run.since, row.at
        attributes: dict[str, tracing.Value] = {
            tracing.AGENT: PLANNER,
            "mindstream.seq": row.seq,
            tracing.ANSWERED: tracing.write_answer(json.dumps(planned.plan, ensure_ascii=False)),
        }
        return Span(tracing.PLAN, run.trace, f"plan {row.seq}", ROOT, since, row.at, PLANNER, attributes)

    def _found(self, row: Logged, found: StepFound, run: _Run) -> Span:
        began, step = self._steps.pop((found.run, found.step), (None, None))
        run.since = row.at
        if step and not found.tool:
            found = found.model_copy(update={"tool": step.tool})
        arguments = step.arguments if step else json.dumps(found.arguments, ensure_ascii=False)
        start = began.at if began else row.at - found.seconds
        return tool_span(run.trace, f"step {row.seq}", ROOT, start, row, found, arguments, row.seq)


def _root(run: _Run, end: Moment, answer: str, stopped: str) -> Span:
    known: Known = {"mindstream.run": run.solving.run, "mindstream.way": run.solving.how}
    task, error = run.solving.task, "Stopped" if stopped else ""
    return agent_span(run.trace, ROOT, None, run.began.at, end, PLANNER, run.began.seq, task, answer, known, error)


class Lives:
    """Builds the spans of one mind's life from rows in the order of the log."""

    def __init__(self) -> None:
        self._traces: dict[str, Trace] = {}
        self._turn: tuple[Logged, TurnBegan] | None = None
        self._asked: dict[str, Logged] = {}
        self._called: dict[str, tuple[Logged, ToolCalled]] = {}
        self.seqs: set[int] = set()
        """Numbers of the `asked` rows, in which the life requests a model's reply. A model call for such a row gets no
        span of its own, because the logged reply becomes the span."""
        self._latest = 0.0

    def take(self, row: Logged) -> Iterator[Span]:
        """Read the next row of the log; yield the spans that it completes or closes."""
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

    def _place(self, id_: str, row: Logged) -> tuple[Trace, str | None]:
        """Return the trace of a step or call, and the key of its parent span: the enclosing call, else the turn. The
        key is None if the step or call belongs to no turn.
        """
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
            tracing.ANSWERED: tracing.write_answer(f"{wished}{replied.text}"),
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


BATCH = 500
"""Maximum number of spans that are sent in one request."""
PATH = "/v1/traces"
NANO = 1_000_000_000


async def send(spans: AsyncIterable[Span], url: str, *, content: bool = False) -> int:
    """Send spans to a collector, and return their number. If spans are sent again, they have the same ids.

    Args:
        url: the collector's URL, such as `http://localhost:4318`. A URL without a path gets the path /v1/traces. The
            exporter reads headers, timeouts and certificates from environment variables such as
            OTEL_EXPORTER_OTLP_HEADERS.
        content: include texts of users and models.

    Raises:
        SettingsError: the exporter is not installed.
        InputError: `url` is not an HTTP URL.
        StorageError: the collector cannot be reached, or rejects the spans.
    """
    exporter, count = open_exporter(url), 0
    waiting: list[ReadableSpan] = []
    make = _maker(content)
    try:
        async for span in spans:
            waiting.append(make(span))
            if len(waiting) == BATCH:
                count += await _export(exporter, waiting, url)
                waiting = []
        if waiting:
            count += await _export(exporter, waiting, url)
    finally:
        await asyncio.to_thread(exporter.shutdown)
    return count


def endpoint(url: str) -> str:
    """Return the URL to which spans are sent: a URL without a path gets the path /v1/traces.

    Raises:
        InputError: the URL is not an HTTP URL.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise InputError(f"--otlp must be the URL of a collector, such as http://localhost:4318, not {url!r}")
    return url if parts.path.strip("/") else f"{url.rstrip('/')}{PATH}"


def open_exporter(url: str) -> SpanExporter:
    """Return OpenTelemetry's exporter for a collector.

    Raises:
        InputError: the URL is not an HTTP URL.
        SettingsError: the package of the exporter is not installed.
    """
    address = endpoint(url)
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    except ImportError:
        raise SettingsError("sending spans needs the exporter: pip install 'mindstream[otlp]'") from None
    logging.getLogger("opentelemetry.exporter.otlp").setLevel(logging.CRITICAL)  # `_export` reports errors
    return OTLPSpanExporter(endpoint=address)


async def _export(exporter: SpanExporter, spans: Sequence[ReadableSpan], url: str) -> int:
    from opentelemetry.sdk.trace.export import SpanExportResult

    if await asyncio.to_thread(exporter.export, spans) is not SpanExportResult.SUCCESS:
        raise StorageError(f"{endpoint(url)} did not accept the spans: is a collector listening there?")
    return len(spans)


def _maker(content: bool) -> Callable[[Span], ReadableSpan]:
    """Return a function that converts a span into a span of the SDK; `content`: whether to include the texts of users
    and models."""
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

    resource = Resource.create({"service.name": "mindstream"})
    scope = InstrumentationScope("mindstream", schema_url=tracing.SCHEMA)
    sampled = TraceFlags(TraceFlags.SAMPLED)

    def make(span: Span) -> ReadableSpan:
        kept = {name: value for name, value in span.attributes.items() if content or name not in tracing.WORDS}
        failed = {tracing.ERROR: span.error} if span.error else {}
        parent = span.parent_id
        return ReadableSpan(
            name=span.name,
            context=SpanContext(span.trace_id, span.span_id, is_remote=False, trace_flags=sampled),
            parent=None if parent is None else SpanContext(span.trace_id, parent, is_remote=False, trace_flags=sampled),
            resource=resource,
            attributes={tracing.OPERATION: span.operation, **kept, **failed},
            kind=SpanKind.CLIENT if span.operation in tracing.REMOTE else SpanKind.INTERNAL,
            status=Status(StatusCode.ERROR) if span.error else Status(),
            start_time=int(span.start * NANO),
            end_time=int(max(span.start, span.end) * NANO),
            instrumentation_scope=scope,
        )

    return make
