"""OpenTelemetry spans with the names of the GenAI conventions (tracing/genai); they are off until `trace(True)`.

mindstream itself exports nothing: configure an OpenTelemetry SDK and an exporter. Texts of users, models and memories
are recorded only if requested.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeAlias, TypeVar

from mindstream.errors import SettingsError
from mindstream.tracing import genai

if TYPE_CHECKING:
    from opentelemetry.trace import SpanKind, Tracer


class Span(Protocol):
    """The methods of a span."""

    def set_attribute(self, key: str, value: genai.Value) -> None: ...

    def end(self) -> None: ...


class _Nothing:
    def set_attribute(self, key: str, value: genai.Value) -> None:
        pass

    def end(self) -> None:
        pass


NOTHING = _Nothing()
_OFF = contextlib.nullcontext[Span](NOTHING)
_on = _content = False


def trace(on: bool, *, content: bool | None = None) -> None:
    """Switch spans on or off, for the whole process.

    Args:
        content: include text of users, models and memories; None: only if the environment variable
            `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` (of the conventions) asks for it.

    Raises:
        SettingsError: OpenTelemetry is not installed.
    """
    global _on, _content
    if on and find_spec("opentelemetry") is None:
        raise SettingsError("spans need a package that is not installed: pip install 'mindstream[otlp]'")
    wished = os.environ.get(genai.CAPTURE, "").lower() in genai.ON_SPANS
    _on, _content = on, on and (wished if content is None else content)


def is_on() -> bool:
    """Return whether spans are recorded."""
    return _on


def with_content() -> bool:
    """Return whether texts are recorded in spans."""
    return _content


def start_span(operation: str, subject: str, attributes: genai.Attributes | None = None) -> Span:
    """Start a span named `operation subject`, without making it the current span (for generators); the caller ends
    it."""
    if not _on:
        return NOTHING
    named = _named(operation, attributes)
    return _tracer().start_span(genai.span_name(operation, subject), attributes=named, kind=_kind(operation))


def span(
    operation: str, subject: str = "", attributes: genai.Attributes | None = None
) -> contextlib.AbstractContextManager[Span]:
    """Run a block in a span named `operation subject`. Spans inside the block are its children. Of an error, only the
    class is recorded."""
    return _span(operation, subject, attributes) if _on else _OFF


def tell(traced: Span, attributes: genai.Attributes) -> None:
    """Set attributes of a span; attributes that hold texts are set only if texts are recorded."""
    for name, value in attributes.items():
        if _content or name not in genai.WORDS:
            traced.set_attribute(name, value)


def fail(traced: Span, kind: str) -> None:
    """Mark a span as failed, with the kind of the failure; the error's message, which may quote texts, is left out."""
    if _on:
        from opentelemetry.trace import Status, StatusCode

        traced.set_attribute(genai.ERROR, kind)
        if set_status := getattr(traced, "set_status", None):
            set_status(Status(StatusCode.ERROR))


@contextlib.contextmanager
def _span(operation: str, subject: str, attributes: genai.Attributes | None) -> Iterator[Span]:
    with _tracer().start_as_current_span(
        genai.span_name(operation, subject),
        attributes=_named(operation, attributes),
        kind=_kind(operation),
        record_exception=False,
        set_status_on_exception=False,  # an error's message may quote texts
    ) as current:
        try:
            yield current
        except BaseException as error:
            fail(current, type(error).__name__)
            raise


def _tracer() -> Tracer:
    from opentelemetry import trace as otel

    return otel.get_tracer("mindstream", schema_url=genai.SCHEMA)


def _kind(operation: str) -> SpanKind:
    from opentelemetry.trace import SpanKind

    return SpanKind.CLIENT if operation in genai.REMOTE else SpanKind.INTERNAL


def _named(operation: str, attributes: Mapping[str, genai.Value] | None) -> dict[str, genai.Value]:
    kept = {name: value for name, value in (attributes or {}).items() if _content or name not in genai.WORDS}
    return {genai.OPERATION: operation, **kept}


P = ParamSpec("P")
R = TypeVar("R")
Asked: TypeAlias = Any
"""The second argument of a traced function, after the stream: a query, an id, drafts, a removal."""
Tell: TypeAlias = Callable[[Asked, Any], Mapping[str, genai.Value]]
"""Computes the attributes of a span from the operation's second argument and its result."""


def traced(
    operation: str, argument: str, describe: Tell
) -> Callable[[Callable[P, Coroutine[Any, Any, R]]], Callable[P, Coroutine[Any, Any, R]]]:
    """Return a decorator that runs a function of a stream in a span.

    Args:
        operation: the kind of operation, for the span.
        argument: the name of the function's second parameter.
        describe: computes the attributes of the span.
    """

    def decorate(do: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, Coroutine[Any, Any, R]]:
        async def in_span(*args: P.args, **kwargs: P.kwargs) -> R:
            stream: Any = args[0]
            with span(operation, "", {genai.STORE: stream.name}) as begun:
                result = await do(*args, **kwargs)
                tell(begun, describe(args[1] if len(args) > 1 else kwargs.get(argument), result))
                return result

        @functools.wraps(do)
        def begin(*args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
            return in_span(*args, **kwargs) if is_on() else do(*args, **kwargs)

        return begin

    return decorate


def tell_found(query: str, found: Sequence[Any]) -> dict[str, genai.Value]:
    """Return the span attributes of a recall."""
    told: dict[str, genai.Value] = {genai.RECORDS: len(found)}
    if with_content():
        contents = [(each.record.id, each.record.text, each.score) for each in found]
        told |= {genai.QUERY: query, genai.CONTENTS: genai.write_records(contents)}
    return told


def tell_written(_: Asked, records: Sequence[Any]) -> dict[str, genai.Value]:
    """Return the span attributes for written records."""
    told: dict[str, genai.Value] = {genai.RECORDS: len(records)}
    if len(records) == 1:
        told[genai.RECORD] = records[0].id
    if with_content():
        told[genai.CONTENTS] = genai.write_records((each.id, each.text, None) for each in records)
    return told


def tell_changed(old: str, record: Any) -> dict[str, genai.Value]:
    """Return the span attributes for a record that was superseded."""
    told: dict[str, genai.Value] = {genai.RECORD: old, genai.RECORDS: 1}
    if record is not None and with_content():
        told[genai.CONTENTS] = genai.write_records([(record.id, record.text, None)])
    return told


def tell_believed(slot: str, _: Any) -> dict[str, genai.Value]:
    """Return the span attributes for a belief that was changed."""
    return {genai.RECORDS: 1, "mindstream.slot": slot}


def tell_removed(removal: Any, gone: Any) -> dict[str, genai.Value]:
    """Return the span attributes for a removal of records."""
    told: dict[str, genai.Value] = {genai.RECORDS: gone.records}
    if len(removal.asked) == 1:
        told[genai.RECORD] = removal.asked[0].id
    return told
