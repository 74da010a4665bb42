"""The names from OpenTelemetry's conventions for generative AI that mindstream uses; no other module defines them.

Source: github.com/open-telemetry/semantic-conventions-genai, docs/gen-ai (spans, agent spans, memory). The conventions
have the status "development" and may change, so readers of spans need `VERSION`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TypeAlias

VERSION = "1.42.0-dev"
"""The version of OpenTelemetry's GenAI conventions that these names follow."""
SCHEMA = f"https://opentelemetry.io/schemas/gen-ai-dev/{VERSION}"
CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""The environment variable that requests texts in spans."""
ON_SPANS = frozenset({"true", "1", "span_only", "span_and_event"})
"""Values of the environment variable CAPTURE, in lower case, that request texts in spans."""

Value: TypeAlias = str | int | float | bool
Attributes: TypeAlias = Mapping[str, Value]

# Operations; the first word of a span's name.
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
    """Return the span name `operation subject`, or the operation alone without a subject, as for memories."""
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
