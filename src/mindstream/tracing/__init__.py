"""OpenTelemetry spans, off by default, with the names of OpenTelemetry's conventions for generative AI.

No other module defines these names. Source: github.com/open-telemetry/semantic-conventions-genai, docs/gen-ai (spans,
agent spans, memory). The conventions have the status "development" and may change, so readers of spans need `VERSION`.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from mindstream.errors import SettingsError

if TYPE_CHECKING:
    from opentelemetry.trace import SpanKind, Tracer

VERSION = "1.42.0-dev"
"""The version of OpenTelemetry's GenAI conventions that these names follow."""
SCHEMA = f"https://opentelemetry.io/schemas/gen-ai-dev/{VERSION}"
CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""The environment variable that requests texts in spans."""
ON_SPANS = frozenset({"true", "1", "span_only", "span_and_event"})
"""Values of the environment variable CAPTURE, in lower case, that request texts in spans."""

Value: TypeAlias = str | int | float | bool
Attributes: TypeAlias = Mapping[str, Value]

# The kinds of operations. A span's name begins with the kind of its operation.
CHAT = "chat"
EMBEDDINGS = "embeddings"
INVOKE_AGENT = "invoke_agent"
PLAN = "plan"
EXECUTE_TOOL = "execute_tool"
SEARCH_MEMORY = "search_memory"
CREATE_MEMORY = "create_memory"
UPDATE_MEMORY = "update_memory"
UPSERT_MEMORY = "upsert_memory"
DELETE_MEMORY = "delete_memory"
REMOTE = frozenset({CHAT, EMBEDDINGS})
"""Operations whose spans are of the kind CLIENT; all others are INTERNAL, since they run in this process."""

# Attributes.
OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
MODEL = "gen_ai.request.model"
FIRST_PART_S = "gen_ai.response.time_to_first_chunk"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
CACHED_TOKENS = "gen_ai.usage.cache_read.input_tokens"
DIMENSIONS = "gen_ai.embeddings.dimension.count"
AGENT = "gen_ai.agent.name"
CONVERSATION = "gen_ai.conversation.id"
TOOL = "gen_ai.tool.name"
CALL_ID = "gen_ai.tool.call.id"
STORE = "gen_ai.memory.store.id"
RECORD = "gen_ai.memory.record.id"
RECORDS = "gen_ai.memory.record.count"
PROMPT = "gen_ai.prompt.name"
ERROR = "error.type"

# Attributes that hold texts; they are recorded only on request.
ASKED = "gen_ai.input.messages"
ANSWERED = "gen_ai.output.messages"
ARGUMENTS = "gen_ai.tool.call.arguments"
RESULT = "gen_ai.tool.call.result"
QUERY = "gen_ai.memory.query.text"
CONTENTS = "gen_ai.memory.records"
WORDS = frozenset({ASKED, ANSWERED, ARGUMENTS, RESULT, QUERY, CONTENTS})

PROVIDERS = {"google": "gcp.gemini"}
"""Providers whose name in the conventions differs from the prefix of the model's name."""


def span_name(operation: str, subject: str = "") -> str:
    """Return the span name `operation subject`; without a subject, as in operations on memories, only `operation`."""
    return f"{operation} {subject}" if subject else operation


def model_attributes(name: str) -> dict[str, Value]:
    """Return the attributes for provider and model from a model's or embedder's name, such as `openai:gpt-5-mini`."""
    provider, _, model = name.partition("@http")[0].partition(":")
    return {PROVIDER: PROVIDERS.get(provider, provider), MODEL: model or provider}


def write_messages(messages: Iterable[tuple[str, str]]) -> str:
    """Return messages, pairs of a role and a text, in the form of `gen_ai.input.messages`."""
    written = [{"role": role, "parts": [{"type": "text", "content": text}]} for role, text in messages]
    return json.dumps(written, ensure_ascii=False)


def write_answer(text: str, finish: str = "stop") -> str:
    """Return an answer in the form of `gen_ai.output.messages`."""
    written = {"role": "assistant", "parts": [{"type": "text", "content": text}], "finish_reason": finish}
    return json.dumps([written], ensure_ascii=False)


def write_records(records: Iterable[tuple[str, str, float | None]]) -> str:
    """Return records (each an id, a text, and a score or None) in the form of `gen_ai.memory.records`."""
    return json.dumps(
        [{"id": id_, "content": text} | ({} if score is None else {"score": score}) for id_, text, score in records],
        ensure_ascii=False,
    )


class Span(Protocol):
    """The methods of a span."""

    def set_attribute(self, key: str, value: Value) -> None: ...

    def end(self) -> None: ...


class _Nothing:
    def set_attribute(self, key: str, value: Value) -> None:
        pass

    def end(self) -> None:
        pass


NOTHING = _Nothing()
_OFF = contextlib.nullcontext[Span](NOTHING)
is_on = False
"""Whether spans are recorded; `trace` sets it."""
_content = False


def trace(on: bool, *, content: bool | None = None) -> None:
    """Switch spans on or off, for the whole process.

    Args:
        content: include texts of users, models and memories in spans; None: only if the environment variable
            `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` (of the OpenTelemetry conventions) asks for it.

    Raises:
        SettingsError: OpenTelemetry is not installed.
    """
    global is_on, _content
    if on and find_spec("opentelemetry") is None:
        raise SettingsError("spans need a package that is not installed: pip install 'mindstream[otlp]'")
    wished = os.environ.get(CAPTURE, "").lower() in ON_SPANS
    is_on, _content = on, on and (wished if content is None else content)


def with_content() -> bool:
    """Return whether texts are recorded in spans."""
    return _content


def start_span(operation: str, subject: str, attributes: Attributes | None = None) -> Span:
    """Start a span named `operation subject`, which the caller must end. It does not become the current span (for
    generators)."""
    if not is_on:
        return NOTHING
    named = _named(operation, attributes)
    return _tracer().start_span(span_name(operation, subject), attributes=named, kind=_kind(operation))


def span(
    operation: str, subject: str = "", attributes: Attributes | None = None
) -> contextlib.AbstractContextManager[Span]:
    """Run a block in a span named `operation subject`. Spans that are started in the block are children of this span.
    Of an error, only the class is recorded."""
    return _span(operation, subject, attributes) if is_on else _OFF


def tell(traced: Span, attributes: Attributes) -> None:
    """Set attributes of a span; attributes that hold texts are set only if texts are recorded."""
    for name, value in attributes.items():
        if _content or name not in WORDS:
            traced.set_attribute(name, value)


def fail(traced: Span, kind: str) -> None:
    """Mark a span as failed, with the kind of the failure. The error's message is left out, because it may quote
    texts."""
    if is_on:
        from opentelemetry.trace import Status, StatusCode

        traced.set_attribute(ERROR, kind)
        if set_status := getattr(traced, "set_status", None):
            set_status(Status(StatusCode.ERROR))


@contextlib.contextmanager
def _span(operation: str, subject: str, attributes: Attributes | None) -> Iterator[Span]:
    with _tracer().start_as_current_span(
        span_name(operation, subject),
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

    return otel.get_tracer("mindstream", schema_url=SCHEMA)


def _kind(operation: str) -> SpanKind:
    from opentelemetry.trace import SpanKind

    return SpanKind.CLIENT if operation in REMOTE else SpanKind.INTERNAL


def _named(operation: str, attributes: Mapping[str, Value] | None) -> dict[str, Value]:
    kept = {name: value for name, value in (attributes or {}).items() if _content or name not in WORDS}
    return {OPERATION: operation, **kept}


Asked: TypeAlias = Any
"""The second argument of a traced function, after the stream: a query, an id, drafts, a removal."""


def tell_found(query: str, found: Sequence[Any]) -> dict[str, Value]:
    """Return the span attributes of a recall."""
    told: dict[str, Value] = {RECORDS: len(found)}
    if with_content():
        contents = [(each.record.id, each.record.text, each.score) for each in found]
        told |= {QUERY: query, CONTENTS: write_records(contents)}
    return told


def tell_written(_: Asked, records: Sequence[Any]) -> dict[str, Value]:
    """Return the span attributes for written records."""
    told: dict[str, Value] = {RECORDS: len(records)}
    if len(records) == 1:
        told[RECORD] = records[0].id
    if with_content():
        told[CONTENTS] = write_records((each.id, each.text, None) for each in records)
    return told


def tell_changed(old: str, record: Any) -> dict[str, Value]:
    """Return the span attributes for a record that was superseded."""
    told: dict[str, Value] = {RECORD: old, RECORDS: 1}
    if record is not None and with_content():
        told[CONTENTS] = write_records([(record.id, record.text, None)])
    return told


def tell_believed(slot: str, _: Any) -> dict[str, Value]:
    """Return the span attributes for a belief that was changed."""
    return {RECORDS: 1, "mindstream.slot": slot}


def tell_removed(removal: Any, gone: Any) -> dict[str, Value]:
    """Return the span attributes for a removal of records."""
    told: dict[str, Value] = {RECORDS: gone.records}
    if len(removal.asked) == 1:
        told[RECORD] = removal.asked[0].id
    return told
