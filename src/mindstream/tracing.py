"""OpenTelemetry spans with the names of the GenAI conventions; off until `trace(True)`.

Nothing is exported by mindstream itself: whoever switches it on configures an SDK and an exporter in the usual way.
Words of users and models are never put into spans.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer


class Span(Protocol):
    """What can be told to a span."""

    def set_attribute(self, key: str, value: str | int | float | bool) -> None: ...

    def end(self) -> None: ...


class _Nothing:
    def set_attribute(self, key: str, value: str | int | float | bool) -> None:
        pass

    def end(self) -> None:
        pass


_on = False


def trace(on: bool) -> None:
    """Switch spans on or off, for the whole process."""
    global _on
    _on = on


def start_span(operation: str, subject: str, **attributes: str | int) -> Span:
    """Begin a span `operation subject` that is not made current (for generators); the caller ends it."""
    if not _on:
        return _Nothing()
    return _tracer().start_span(f"{operation} {subject}", attributes=_named(operation, attributes))


def span(operation: str, subject: str, **attributes: str | int) -> contextlib.AbstractContextManager[Span]:
    """Run a block in a span `operation subject`; spans begun inside are its children; an error is told by its class."""
    return _span(operation, subject, attributes) if _on else contextlib.nullcontext(_Nothing())


@contextlib.contextmanager
def _span(operation: str, subject: str, attributes: dict[str, str | int]) -> Iterator[Span]:
    with _tracer().start_as_current_span(
        f"{operation} {subject}", attributes=_named(operation, attributes),
        record_exception=False, set_status_on_exception=False,  # an error's message may quote what was said
    ) as current:  # fmt: skip
        try:
            yield current
        except BaseException as error:
            current.set_attribute("error.type", type(error).__name__)
            raise


def _tracer() -> Tracer:
    from opentelemetry import trace as otel

    return otel.get_tracer("mindstream")


def _named(operation: str, attributes: dict[str, str | int]) -> dict[str, str | int]:
    """Give attributes their GenAI names: agent_name -> gen_ai.agent.name."""
    named: dict[str, str | int] = {"gen_ai.operation.name": operation}
    return named | {f"gen_ai.{name.replace('_', '.', 1)}": value for name, value in attributes.items()}
