from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from opentelemetry import trace as otel
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind
from traced_talk import a_talk

from mindstream import FakeModel, Memory, Planner, tool, tracing
from mindstream.tracing import span, trace

EXPORTED = InMemorySpanExporter()


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    _export_spans()
    EXPORTED.clear()
    yield EXPORTED
    trace(False)


@cache
def _export_spans() -> None:
    provider = otel.get_tracer_provider()
    if not isinstance(provider, TracerProvider):  # it can be set only once per process
        provider = TracerProvider()
        otel.set_tracer_provider(provider)
    provider.add_span_processor(SimpleSpanProcessor(EXPORTED))


async def test_tracing_is_off_by_default(folder: Path, spans: InMemorySpanExporter) -> None:
    await a_talk(folder)
    assert spans.get_finished_spans() == ()


async def test_calls_tools_and_reasoners_have_spans_with_genai_names(folder: Path, spans: InMemorySpanExporter) -> None:
    trace(True)
    await a_talk(folder)
    finished: dict[str, ReadableSpan] = {span.name: span for span in spans.get_finished_spans()}
    assert {"chat rules", "execute_tool recall", "invoke_agent sleep"} <= set(finished)
    agent, tool = finished["invoke_agent sleep"], finished["execute_tool recall"]
    assert agent.attributes and agent.attributes["gen_ai.agent.name"] == "sleep"
    assert agent.attributes["gen_ai.conversation.id"] == "monday"
    assert tool.attributes and tool.attributes["gen_ai.operation.name"] == "execute_tool"
    assert tool.parent and agent.context and tool.parent.span_id == agent.context.span_id
    assert "secret" not in "".join(str(span.attributes) for span in spans.get_finished_spans())


async def test_the_talkers_call_is_inside_the_span_of_the_turn(folder: Path, spans: InMemorySpanExporter) -> None:
    trace(True)
    await a_talk(folder)
    finished = spans.get_finished_spans()
    (turn,) = [span for span in finished if span.name == "invoke_agent talker"]
    assert turn.attributes and turn.attributes["gen_ai.conversation.id"] == "monday" and turn.context
    inside = [span.name for span in finished if span.parent and span.parent.span_id == turn.context.span_id]
    assert "chat rules" in inside


def test_errors_are_traced_by_class_only(spans: InMemorySpanExporter) -> None:
    trace(True)
    with pytest.raises(ValueError, match="my secret"), span("execute_tool", "look_up"):
        raise ValueError("my secret is the noise")
    (told,) = spans.get_finished_spans()
    assert told.attributes and told.attributes["error.type"] == "ValueError"
    assert told.events == () and told.status.description is None
    assert "secret" not in told.to_json()


async def test_memory_operations_have_spans_with_store_and_counts(folder: Path, spans: InMemorySpanExporter) -> None:
    trace(True)
    async with Memory.open(folder, "ann") as memory:
        old = await memory.retain("The key hangs behind the door.", "note")
        new = await memory.correct(old.id, "The key lies under the mat.")
        await memory.recall("Where is the key?", k=1)
        await memory.forget(new.record.id)
    told = [span for span in spans.get_finished_spans() if span.name.endswith("_memory")]
    assert [span.name for span in told] == ["create_memory", "update_memory", "search_memory", "delete_memory"]
    given = [dict(span.attributes or {}) for span in told]
    assert all(
        each[tracing.STORE] == "ann" and each[tracing.OPERATION] == span.name
        for each, span in zip(given, told, strict=True)
    )
    assert [each[tracing.RECORDS] for each in given] == [1, 1, 1, 2]  # both wordings are forgotten
    assert [each.get(tracing.RECORD) for each in given] == [old.id, old.id, None, None]
    assert {span.kind for span in told} == {SpanKind.INTERNAL}
    embedded = [span for span in spans.get_finished_spans() if span.name == "embeddings wordllama"]
    assert (
        embedded and embedded[0].kind is SpanKind.CLIENT and (embedded[0].attributes or {})[tracing.DIMENSIONS] == 256
    )
    assert not any("key" in str(span.attributes) for span in spans.get_finished_spans())


async def test_a_solved_task_has_spans_for_planning_tools_and_answer(spans: InMemorySpanExporter) -> None:
    def double(number: str) -> str:
        """Double a number."""
        return str(2 * int(number))

    trace(True)
    models = {
        "planner": FakeModel({"make_plan": ["Plan: double it.\n#E1 = double[21]\n"]}),
        "solver": FakeModel({"answer_from_evidence": ["42"]}),
    }
    await Planner(model=models, tools=[tool(double)]).solve("What is twice 21?")
    told = {span.name: span for span in spans.get_finished_spans()}
    run = told["invoke_agent planner"]
    assert run.parent is None and run.context
    for name in ("plan planner", "execute_tool double"):
        parent = told[name].parent
        assert parent and parent.span_id == run.context.span_id
    assert all(tracing.OPERATION in (span.attributes or {}) for span in told.values())


async def test_spans_contain_text_only_if_the_standard_variable_is_set(
    folder: Path, spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(tracing.CAPTURE, "SPAN_ONLY")
    trace(True)
    await a_talk(folder)
    finished = {span.name: dict(span.attributes or {}) for span in spans.get_finished_spans()}
    asked = json.loads(str(finished["chat rules"][tracing.ASKED]))
    assert {part["type"] for message in asked for part in message["parts"]} == {"text"}
    assert "rest" in str(finished["execute_tool recall"][tracing.ARGUMENTS])
    assert json.loads(str(finished["invoke_agent talker"][tracing.ANSWERED]))[0]["role"] == "assistant"
    trace(True, content=False)
    spans.clear()
    await a_talk(folder)
    assert not any(tracing.WORDS & set(span.attributes or {}) for span in spans.get_finished_spans())


def test_genai_attribute_names_are_defined_in_one_module() -> None:
    names = {value for name, value in vars(tracing).items() if name.isupper() and isinstance(value, str)}
    assert names >= tracing.WORDS | tracing.REMOTE and tracing.SCHEMA.endswith(tracing.VERSION)
    source = Path(tracing.__file__).parent.parent
    assert [path.parent.name for path in source.rglob("*.py") if '"gen_ai.' in path.read_text("utf-8")] == ["tracing"]
