"""Measure every call of a model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field

from mindstream.clock import Clock, Moment, SystemClock
from mindstream.errors import ModelError
from mindstream.models.cause import NOBODY_SAID, Cause, current_cause
from mindstream.models.model import Call, Cut, Message, Model, Part, Piece, Request, Usage
from mindstream.tracing import fail, genai, is_on, start_span, tell, with_content


@dataclass(frozen=True, slots=True)
class Words:
    """What was asked, word by word, and what was answered; calls of tools are written as they were wished for."""

    asked: tuple[Message, ...]
    answered: str


@dataclass(frozen=True, slots=True)
class Metered:
    """One call of a model.

    Attributes:
        prompt: the prompt's label.
        first_s: seconds until its first part came, or None where none came.
        usage: None where the endpoint told none.
        error: what went wrong, as `Class: message`.
        broken_off: whoever asked stopped listening.
        cut: what was left out of the request so that it fits the model's window.
        mended: its reply was no JSON, and was read by a library (see wrappers/mend).
        cause: what it was for.
        words: where they are kept; else None.
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
    cause: Cause = NOBODY_SAID
    words: Words | None = field(default=None, repr=False)


class Meter:
    """Hands a `Metered` to `on_call` when a call has ended, however it ended; with its words, where it is to."""

    def __init__(
        self, model: Model, on_call: Callable[[Metered], None], clock: Clock | None = None, *, keeps_words: bool = False
    ) -> None:
        self.name = model.name
        self._model = model
        self._on_call = on_call
        self._clock = clock or SystemClock()
        self._keeps_words = keeps_words

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        at, start, cause = self._clock.now(), self._clock.elapsed(), current_cause()
        answered: list[str] = []
        first_s: float | None = None
        usage: Usage | None = None
        error: str | None = None
        broken_off = False
        try:
            async with aclosing(self._model.reply(request)) as parts:
                async for part in parts:
                    first_s = self._clock.elapsed() - start if first_s is None else first_s
                    usage = part if isinstance(part, Usage) else usage
                    if self._keeps_words:
                        answered.append(_words_of(part))
                    yield part
        except ModelError as failure:
            error = f"{type(failure).__name__}: {failure}"
            raise
        except (GeneratorExit, asyncio.CancelledError):
            broken_off = True
            raise
        finally:
            seconds = self._clock.elapsed() - start
            label = request.prompt.label()
            words = Words(request.messages, "".join(answered)) if self._keeps_words else None
            call = Metered(
                self.name,
                request.role,
                label,
                at,
                first_s,
                seconds,
                usage,
                error,
                broken_off,
                request.cut,
                cause=cause,
                words=words,
            )
            self._on_call(call)
            if request.on_call:
                request.on_call(call)


def _words_of(part: Part) -> str:
    match part:
        case Piece():
            return part.text
        case Call():
            return f"{part.tool}({part.arguments})\n"
        case _:
            return ""


# Tell whoever asks what their calls were: for models that many minds share, each with a log of its own.


class WithListener:
    """Passes requests on with `on_call` in them; the meter below tells it of each attempt."""

    def __init__(self, model: Model, on_call: Callable[[Metered], None]) -> None:
        self._model = model
        self._on_call = on_call

    @property
    def name(self) -> str:
        return self._model.name

    def reply(self, request: Request) -> AsyncGenerator[Part]:
        further = request.on_call

        def tell(call: Metered) -> None:
            self._on_call(call)
            if further is not None:
                further(call)

        return self._model.reply(request.but(on_call=tell))


# A span for every call of a model.


class Traced:
    """Begins a `chat` span with the request and ends it with the answer; tokens where they are known."""

    def __init__(self, model: Model) -> None:
        self.name = model.name
        self._model = model

    def reply(self, request: Request) -> AsyncGenerator[Part]:
        return self._in_span(request) if is_on() else self._model.reply(request)

    async def _in_span(self, request: Request) -> AsyncGenerator[Part]:
        named = genai.model_attributes(self.name)
        call = start_span(genai.CHAT, str(named[genai.MODEL]), named)
        tell(call, {genai.PROMPT: request.prompt.label(), "mindstream.role": request.role})
        keeps, answered = with_content(), list[str]()
        if keeps:
            tell(call, {genai.ASKED: genai.write_messages((each.role, each.text) for each in request.messages)})
        try:
            async with aclosing(self._model.reply(request)) as parts:
                async for part in parts:
                    if isinstance(part, Usage):
                        tell(call, _tokens(part))
                    elif keeps:
                        answered.append(_words_of(part))
                    yield part
        except ModelError as error:
            fail(call, type(error).__name__)
            raise
        finally:
            if keeps:
                tell(call, {genai.ANSWERED: genai.write_answer("".join(answered))})
            call.end()


def _tokens(usage: Usage) -> dict[str, genai.Value]:
    told: dict[str, genai.Value] = {
        genai.INPUT_TOKENS: usage.input_tokens,
        genai.OUTPUT_TOKENS: usage.output_tokens,
    }
    return told | ({genai.CACHED_TOKENS: usage.cached_tokens} if usage.cached_tokens else {})
