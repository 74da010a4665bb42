"""Send spans by OTLP over HTTP, with OpenTelemetry's exporter, which is an optional dependency."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterable, Callable, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mindstream.errors import InputError, SettingsError, StorageError
from mindstream.service.traces.replay import Span
from mindstream.tracing import genai

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter

BATCH = 500
"""Maximum number of spans in a request."""
PATH = "/v1/traces"
NANO = 1_000_000_000


async def send(spans: AsyncIterable[Span], url: str, *, content: bool = False) -> int:
    """Send spans to a collector, and return their number. If spans are sent again, they have the same ids.

    Args:
        url: the collector's URL, such as `http://localhost:4318`; with a path if that is not /v1/traces. The exporter
            reads headers, timeouts and certificates from environment variables such as OTEL_EXPORTER_OTLP_HEADERS.
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
    """Return the URL to which spans are sent: a URL without a path gets the path /v1/traces."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise InputError(f"--otlp must be the URL of a collector, such as http://localhost:4318, not {url!r}")
    return url if parts.path.strip("/") else f"{url.rstrip('/')}{PATH}"


def open_exporter(url: str) -> SpanExporter:
    """Return OpenTelemetry's exporter for a collector."""
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
    """Return a function that converts a span into a span of the SDK; `content`: include texts of users and models."""
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

    resource = Resource.create({"service.name": "mindstream"})
    scope = InstrumentationScope("mindstream", schema_url=genai.SCHEMA)
    sampled = TraceFlags(TraceFlags.SAMPLED)

    def make(span: Span) -> ReadableSpan:
        kept = {name: value for name, value in span.attributes.items() if content or name not in genai.WORDS}
        failed = {genai.ERROR: span.error} if span.error else {}
        parent = span.parent_id
        return ReadableSpan(
            name=span.name,
            context=SpanContext(span.trace_id, span.span_id, is_remote=False, trace_flags=sampled),
            parent=None if parent is None else SpanContext(span.trace_id, parent, is_remote=False, trace_flags=sampled),
            resource=resource,
            attributes={genai.OPERATION: span.operation, **kept, **failed},
            kind=SpanKind.CLIENT if span.operation in genai.REMOTE else SpanKind.INTERNAL,
            status=Status(StatusCode.ERROR) if span.error else Status(),
            start_time=int(span.start * NANO),
            end_time=int(max(span.start, span.end) * NANO),
            instrumentation_scope=scope,
        )

    return make
