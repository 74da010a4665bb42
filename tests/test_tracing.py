from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry import trace as otel
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from mindstream import Coach, FakeModel, Mind, Models
from mindstream.models.model import Call
from mindstream.tracing import span, trace

EXPORTED = InMemorySpanExporter()


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    if not isinstance(otel.get_tracer_provider(), TracerProvider):
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(EXPORTED))
        otel.set_tracer_provider(provider)
    EXPORTED.clear()
    yield EXPORTED
    trace(False)


async def a_talk(folder: Path) -> None:
    look = [Call("find_resources", '{"query": "rest"}')]
    reasoner = FakeModel({"think": [look, '{"thought": "nothing"}']}, name="thinker")
    named = Models.named({})
    models = Models(named.of("talker"), {"reasoner": reasoner, "facts": named.of("facts")})
    async with Mind.open(folder, user="ann", session="monday", models=models, responder=Coach.using()) as mind:
        async for _ in mind.hear("My secret is the noise at night."):
            pass
        await mind.settled()


async def test_nothing_is_traced_until_it_is_switched_on(folder: Path, spans: InMemorySpanExporter) -> None:
    await a_talk(folder)
    assert spans.get_finished_spans() == ()


async def test_calls_tools_and_reasoners_have_spans_with_the_genai_names(
    folder: Path, spans: InMemorySpanExporter
) -> None:
    trace(True)
    await a_talk(folder)
    finished: dict[str, ReadableSpan] = {span.name: span for span in spans.get_finished_spans()}
    assert {"chat rules", "execute_tool find_resources", "invoke_agent sleep"} <= set(finished)
    agent, tool = finished["invoke_agent sleep"], finished["execute_tool find_resources"]
    assert agent.attributes and agent.attributes["gen_ai.agent.name"] == "sleep"
    assert agent.attributes["gen_ai.conversation.id"] == "monday"
    assert tool.attributes and tool.attributes["gen_ai.operation.name"] == "execute_tool"
    assert tool.parent and agent.context and tool.parent.span_id == agent.context.span_id
    assert "secret" not in "".join(str(span.attributes) for span in spans.get_finished_spans())


async def test_a_turn_has_a_span_and_the_talkers_call_lies_in_it(folder: Path, spans: InMemorySpanExporter) -> None:
    trace(True)
    await a_talk(folder)
    finished = spans.get_finished_spans()
    (turn,) = [span for span in finished if span.name == "invoke_agent talker"]
    assert turn.attributes and turn.attributes["gen_ai.conversation.id"] == "monday" and turn.context
    inside = [span.name for span in finished if span.parent and span.parent.span_id == turn.context.span_id]
    assert "chat rules" in inside


def test_an_error_is_told_by_its_class_alone(spans: InMemorySpanExporter) -> None:
    trace(True)
    with pytest.raises(ValueError, match="my secret"), span("execute_tool", "look_up"):
        raise ValueError("my secret is the noise")
    (told,) = spans.get_finished_spans()
    assert told.attributes and told.attributes["error.type"] == "ValueError"
    assert told.events == () and told.status.description is None
    assert "secret" not in told.to_json()
