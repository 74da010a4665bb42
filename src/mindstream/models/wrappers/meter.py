"""Measure and trace every call of a model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mindstream.clock import Clock, Moment, SystemClock
from mindstream.errors import ModelError
from mindstream.models.model import (
    NO_CAUSE,
    Call,
    Cause,
    Cut,
    Message,
    Model,
    Part,
    Piece,
    Request,
    Usage,
    current_cause,
)
from mindstream.models.wrappers.layer import Layer, Layered
from mindstream.tracing import Span, fail, genai, is_on, start_span, tell, with_content


@dataclass(frozen=True, slots=True)
class Words:
    """The full text of a request and of its answer; tool calls are written as `tool(arguments)`."""

    asked: tuple[Message, ...]
    answered: str


@dataclass(frozen=True, slots=True)
class Metered:
    """One call of a model.

    Attributes:
        prompt: the prompt's label.
        first_s: seconds until the first part arrived; None if none did.
        usage: None if the endpoint reported none.
        error: the ModelError as `Class: message`; None if there was none.
        broken_off: the caller cancelled or stopped reading, or another wrapper, such as `Guard`, ended the reply.
        cut: the parts that were removed from the request so that it fits the model's window.
        mended: the reply was not JSON, and was parsed as JSON5 (see `Mend`).
        cause: the purpose of the call.
        words: the full text, if the meter keeps it.
    """

    model: str
    role: str
    prompt: str
    at: Moment
    first_s: float | None
    seconds: float
    usage: Usage | None = None
    error: str | None = None
    broken_off: bool = False
    cut: tuple[Cut, ...] = ()
    mended: bool = False
    cause: Cause = NO_CAUSE
    words: Words | None = field(default=None, repr=False)


class Meter(Layered):
    """Passes a `Metered` to `on_call` when a call has ended in any way; records a span if tracing is on.

    Args:
        keeps_words: `Metered.words` has the full text of the call.
    """

    def __init__(
        self, inner: Model, on_call: Callable[[Metered], None], clock: Clock | None = None, *, keeps_words: bool = False
    ) -> None:
        super().__init__(inner)
        self._on_call, self._clock, self._keeps_words = on_call, clock or SystemClock(), keeps_words

    def layer(self, request: Request) -> Layer:
        return _Measured(self.inner, request, self._on_call, self._clock, keeps_words=self._keeps_words)


class _Measured(Layer):
    def __init__(
        self, inner: Model, request: Request, on_call: Callable[[Metered], None], clock: Clock, *, keeps_words: bool
    ) -> None:
        super().__init__(inner, request)
        self._on_call, self._clock, self._keeps_words = on_call, clock, keeps_words
        self._at, self._start, self._cause = clock.now(), clock.elapsed(), current_cause()
        self._span = _begin_span(inner.name, request) if is_on() else None
        self._keeps = keeps_words or with_content()
        self._answered: list[str] = []
        self._first_s: float | None = None
        self._usage: Usage | None = None

    async def start(self) -> None:
        self._first_s = self._clock.elapsed() - self._start

    def take(self, part: Part) -> Sequence[Part]:
        match part:
            case Usage():
                self._usage = part
            case Piece() if self._keeps:
                self._answered.append(part.text)
            case Call() if self._keeps:
                self._answered.append(f"{part.tool}({part.arguments})\n")
        return (part,)

    def close(self, failure: BaseException | None) -> None:
        request, answered = self.request, "".join(self._answered)
        call = Metered(
            self.inner.name,
            request.role,
            request.prompt.label(),
            self._at,
            self._first_s,
            self._clock.elapsed() - self._start,
            self._usage,
            f"{type(failure).__name__}: {failure}" if isinstance(failure, ModelError) else None,
            isinstance(failure, GeneratorExit | asyncio.CancelledError),
            request.cut,
            cause=self._cause,
            words=Words(request.messages, answered) if self._keeps_words else None,
        )
        if self._span:
            _end_span(self._span, call, answered)
        self._on_call(call)
        if request.on_call:
            request.on_call(call)


def _begin_span(model: str, request: Request) -> Span:
    named = genai.model_attributes(model)
    span = start_span(genai.CHAT, str(named[genai.MODEL]), named)
    tell(span, {genai.PROMPT: request.prompt.label(), "mindstream.role": request.role})
    if with_content():
        tell(span, {genai.ASKED: genai.write_messages((each.role, each.text) for each in request.messages)})
    return span


def _end_span(span: Span, call: Metered, answered: str) -> None:
    if used := call.usage:
        tell(span, {genai.INPUT_TOKENS: used.input_tokens, genai.OUTPUT_TOKENS: used.output_tokens})
        tell(span, {genai.CACHED_TOKENS: used.cached_tokens} if used.cached_tokens else {})
    if call.error:
        fail(span, call.error.partition(":")[0])
    if with_content():
        tell(span, {genai.ANSWERED: genai.write_answer(answered)})
    span.end()


class WithListener(Layered):
    """Reports the calls of one caller to that caller's `on_call`, for models that many minds share.

    It puts `on_call` into each request; the inner `Meter` reports each attempt to it.
    """

    def __init__(self, inner: Model, on_call: Callable[[Metered], None]) -> None:
        super().__init__(inner)
        self._on_call = on_call

    def layer(self, request: Request) -> Layer:
        return _Reported(self.inner, request, self._on_call)


class _Reported(Layer):
    def __init__(self, inner: Model, request: Request, on_call: Callable[[Metered], None]) -> None:
        super().__init__(inner, request.but(on_call=self._report))
        self._on_call, self._further = on_call, request.on_call

    def _report(self, call: Metered) -> None:
        self._on_call(call)
        if self._further is not None:
            self._further(call)
