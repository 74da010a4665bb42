"""OpenTelemetry spans for operations of a memory; no spans are created while tracing is off."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, ParamSpec, TypeAlias, TypeVar

from mindstream import tracing
from mindstream.tracing import genai

P = ParamSpec("P")
R = TypeVar("R")
Asked: TypeAlias = Any
"""The second argument of an operation: a query, an id, drafts, a removal."""
Tell: TypeAlias = Callable[[Asked, Any], Mapping[str, genai.Value]]
"""Computes the attributes of a span from the operation's second argument and its result."""


def traced(
    operation: str, argument: str, tell: Tell
) -> Callable[[Callable[P, Coroutine[Any, Any, R]]], Callable[P, Coroutine[Any, Any, R]]]:
    """Return a decorator that runs a function of a stream in a span.

    Args:
        operation: the kind of operation, for the span.
        argument: the name of the function's second parameter.
        tell: computes the attributes of the span.
    """

    def decorate(do: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, Coroutine[Any, Any, R]]:
        async def in_span(*args: P.args, **kwargs: P.kwargs) -> R:
            stream: Any = args[0]
            with tracing.span(operation, "", {genai.STORE: stream.name}) as span:
                result = await do(*args, **kwargs)
                tracing.tell(span, tell(args[1] if len(args) > 1 else kwargs.get(argument), result))
                return result

        @functools.wraps(do)
        def begin(*args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
            return in_span(*args, **kwargs) if tracing.is_on() else do(*args, **kwargs)

        return begin

    return decorate


def tell_found(query: str, found: Sequence[Any]) -> dict[str, genai.Value]:
    """Return the span attributes of a recall."""
    told: dict[str, genai.Value] = {genai.RECORDS: len(found)}
    if tracing.with_content():
        contents = [(each.record.id, each.record.text, each.score) for each in found]
        told |= {genai.QUERY: query, genai.CONTENTS: genai.write_records(contents)}
    return told


def tell_written(_: Asked, records: Sequence[Any]) -> dict[str, genai.Value]:
    """Return the span attributes for written records."""
    told: dict[str, genai.Value] = {genai.RECORDS: len(records)}
    if len(records) == 1:
        told[genai.RECORD] = records[0].id
    if tracing.with_content():
        told[genai.CONTENTS] = genai.write_records((each.id, each.text, None) for each in records)
    return told


def tell_changed(old: str, record: Any) -> dict[str, genai.Value]:
    """Return the span attributes for a record that was superseded."""
    told: dict[str, genai.Value] = {genai.RECORD: old, genai.RECORDS: 1}
    if record is not None and tracing.with_content():
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
