"""Spans sent on by OTLP over HTTP, by OpenTelemetry's own exporter: an extra, loaded when it is asked for."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterable, Callable, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mindstream.errors import InputError, SettingsError, StorageError
from mindstream.service.traces.talks import Told
from mindstream.tracing import genai

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter

BATCH = 500
PATH = "/v1/traces"
NANO = 1_000_000_000


async def send(spans: AsyncIterable[Told], url: str, *, content: bool = False) -> int:
    """Send spans to a collector and return how many; a second time the same ones have the same ids.

    Args:
        url: `http://localhost:4318`, or the whole address where it is not /v1/traces there. Headers, time limits and
            certificates are taken from the environment, as the exporter does (OTEL_EXPORTER_OTLP_HEADERS …).
        content: with people's words.

    Raises:
        SettingsError: the exporter is not installed.
        InputError: this is no URL.
        StorageError: the collector cannot be reached, or takes them not.
    """
    exporter, count = open_exporter(url), 0
    waiting: list[ReadableSpan] = []
    make = _maker(content)
    try:
        async for told in spans:
            waiting.append(make(told))
            if len(waiting) == BATCH:
                count += await _export(exporter, waiting, url)
                waiting = []
        if waiting:
            count += await _export(exporter, waiting, url)
    finally:
        await asyncio.to_thread(exporter.shutdown)
    return count


def endpoint(url: str) -> str:
    """Return where spans are sent to: the usual path where a URL names none."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise InputError(f"--otlp wants the URL of a collector, as http://localhost:4318, not {url!r}")
    return url if parts.path.strip("/") else f"{url.rstrip('/')}{PATH}"


def open_exporter(url: str) -> SpanExporter:
    """Return OpenTelemetry's exporter for this collector."""
    address = endpoint(url)
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    except ImportError:
        raise SettingsError("spans cannot be sent yet: pip install 'mindstream[otlp]'") from None
    logging.getLogger("opentelemetry.exporter.otlp").setLevel(logging.CRITICAL)  # what fails is told here
    return OTLPSpanExporter(endpoint=address)


async def _export(exporter: SpanExporter, spans: Sequence[ReadableSpan], url: str) -> int:
    from opentelemetry.sdk.trace.export import SpanExportResult

    if await asyncio.to_thread(exporter.export, spans) is not SpanExportResult.SUCCESS:
        raise StorageError(f"{endpoint(url)} did not take the spans: is a collector listening there?")
    return len(spans)


def _maker(content: bool) -> Callable[[Told], ReadableSpan]:
    """Return what makes a span of the SDK from what is told; with people's words, or without."""
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

    resource = Resource.create({"service.name": "mindstream"})
    scope = InstrumentationScope("mindstream", schema_url=genai.SCHEMA)
    sampled = TraceFlags(TraceFlags.SAMPLED)

    def make(told: Told) -> ReadableSpan:
        kept = {name: value for name, value in told.attributes.items() if content or name not in genai.WORDS}
        failed = {genai.ERROR: told.error} if told.error else {}
        parent = told.parent_id
        return ReadableSpan(
            name=told.name,
            context=SpanContext(told.trace_id, told.span_id, is_remote=False, trace_flags=sampled),
            parent=None if parent is None else SpanContext(told.trace_id, parent, is_remote=False, trace_flags=sampled),
            resource=resource,
            attributes={genai.OPERATION: told.operation, **kept, **failed},
            kind=SpanKind.CLIENT if told.operation in genai.REMOTE else SpanKind.INTERNAL,
            status=Status(StatusCode.ERROR) if told.error else Status(),
            start_time=int(told.start * NANO),
            end_time=int(max(told.start, told.end) * NANO),
            instrumentation_scope=scope,
        )

    return make
