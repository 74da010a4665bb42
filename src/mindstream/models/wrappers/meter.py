"""Measure and trace every call of a model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
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
        error: the error as `Class: message`.
        broken_off: the caller stopped reading.
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


class Meter:
    """Passes a `Metered` to `on_call` when a call has ended in any way; records a span if tracing is on.

    Args:
        keeps_words: `Metered.words` has the full text of the call.
    """

    def __init__(
        self, model: Model, on_call: Callable[[Metered], None], clock: Clock | None = None, *, keeps_words: bool = False
    ) -> None:
        self.name, self._model, self._on_call = model.name, model, on_call
        self._clock, self._keeps_words = clock or SystemClock(), keeps_words

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        at, start, cause = self._clock.now(), self._clock.elapsed(), current_cause()
        span = self._begin_span(request) if is_on() else None
        keeps, answered = self._keeps_words or with_content(), list[str]()
        first_s = usage = error = None
        broken_off = False
        try:
            async with aclosing(self._model.reply(request)) as parts:
                async for part in parts:
                    if first_s is None:
                        first_s = self._clock.elapsed() - start
                    match part:
                        case Usage():
                            usage = part
                        case Piece() if keeps:
                            answered.append(part.text)
                        case Call() if keeps:
                            answered.append(f"{part.tool}({part.arguments})\n")
                    yield part
        except ModelError as failure:
            error = f"{type(failure).__name__}: {failure}"
            raise
        except (GeneratorExit, asyncio.CancelledError):
            broken_off = True
            raise
        finally:
            words = Words(request.messages, "".join(answered)) if self._keeps_words else None
            seconds, label = self._clock.elapsed() - start, request.prompt.label()
            measured = (at, first_s, seconds, usage, error, broken_off, request.cut)
            call = Metered(self.name, request.role, label, *measured, cause=cause, words=words)
            if span:
                _end_span(span, call, "".join(answered))
            self._on_call(call)
            if request.on_call:
                request.on_call(call)

    def _begin_span(self, request: Request) -> Span:
        named = genai.model_attributes(self.name)
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


class WithListener:
    """Reports the calls of one caller to that caller's `on_call`, for models that many minds share.

    It puts `on_call` into each request; the inner `Meter` reports each attempt to it.
    """

    def __init__(self, model: Model, on_call: Callable[[Metered], None]) -> None:
        self._model, self._on_call = model, on_call

    @property
    def name(self) -> str:
        return self._model.name

    def reply(self, request: Request) -> AsyncGenerator[Part]:
        further = request.on_call

        def report(call: Metered) -> None:
            self._on_call(call)
            if further is not None:
                further(call)

        return self._model.reply(request.but(on_call=report))
