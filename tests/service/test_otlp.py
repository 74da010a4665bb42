from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from mindstream import Coach, FakeModel, Life, ManualClock, Memory, Mind, Models, Planner, tool, tracing
from mindstream.errors import InputError, StorageError
from mindstream.log.events import ModelCalled
from mindstream.memory.store.redaction import MARK
from mindstream.memory.store.store import Erasure
from mindstream.models.model import Call
from mindstream.service.traces import endpoint, replay, send

pytest.importorskip("opentelemetry.exporter.otlp.proto.http.trace_exporter", reason="the extra otlp is not installed")

from collector import Collector, attributes, collecting
from traced_talk import a_talk


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as server:
        yield server


async def send_log(folder: Path, collector: Collector, *, content: bool = False) -> int:
    async with Memory.open(folder, "ann") as memory:
        return await send(replay(memory.log()), collector.url, content=content)


async def test_a_conversation_is_exported_with_its_times_and_parents(folder: Path, collector: Collector) -> None:
    await a_talk(folder)
    assert await send_log(folder, collector) == len(collector.spans)
    assert collector.paths == {"/v1/traces"} and collector.schemas == {tracing.SCHEMA}
    (turn,) = [span for span in collector.spans if not span.parent_span_id and span.name.startswith("invoke_agent")]
    async with Memory.open(folder, "ann") as memory:
        heard = await anext(memory.log(kinds=["heard"]))
    assert turn.start_time_unix_nano == int(heard.at * 1e9)
    assert attributes(turn)["gen_ai.conversation.id"] == "monday"
    (look,) = collector.named("execute_tool recall")
    thought = collector.parent(look)
    assert attributes(thought)["gen_ai.agent.name"] == "sleep" and collector.parent(thought) == turn
    chats = [span for span in collector.spans if attributes(span)["gen_ai.operation.name"] == "chat"]
    talker = next(span for span in chats if attributes(span)["mindstream.role"] == "talker")
    assert collector.parent(talker) == turn
    assert {span.trace_id for span in (turn, look, thought, talker)} == {turn.trace_id}


async def test_model_calls_of_a_reasoner_are_its_child_spans(folder: Path, collector: Collector) -> None:
    async with Mind.open(folder, user="ann", responder=Coach.using(pack="sleep")) as mind:
        await mind.send("My thoughts race. Work is stressful.")
        await mind.settled()
    await send_log(folder, collector)
    (thought,) = collector.named("invoke_agent sleep")
    (asked,) = [span for span in collector.spans if attributes(span).get("mindstream.role") == "reasoner"]
    assert collector.parent(asked) == thought and collector.parent(thought).name == "invoke_agent talker"
    assert thought.start_time_unix_nano <= asked.start_time_unix_nano < asked.end_time_unix_nano
    assert attributes(asked)["gen_ai.usage.input_tokens"] == 0 and attributes(asked)["gen_ai.provider.name"] == "rules"


async def test_texts_are_sent_only_on_request(folder: Path, collector: Collector) -> None:
    await a_talk(folder)
    await send_log(folder, collector)
    assert not any("secret" in str(span) for span in collector.spans)
    assert not any(tracing.WORDS & attributes(span).keys() for span in collector.spans)
    collector.spans.clear()
    await send_log(folder, collector, content=True)
    (turn,) = [span for span in collector.spans if "secret" in attributes(span).get(tracing.ASKED, "")]
    assert json.loads(attributes(turn)[tracing.ASKED])[0]["parts"][0]["content"] == "My secret is the noise at night."


async def test_an_erased_call_is_exported_without_its_text(folder: Path, collector: Collector) -> None:
    async with Memory.open(folder, "ann") as memory:
        asked = json.dumps([["user", "The parrot Zibeth sings."]])
        called = ModelCalled(role="talker", prompt="talk", model="rules", seconds=1.0, asked=asked, answered="It does.")
        (row,) = await memory.commit(called)
        await memory.store.erase(memory.key, Erasure(ids=(), rows=frozenset({row.seq})))
    assert await send_log(folder, collector, content=True) == 1
    (chat,) = collector.spans
    assert json.loads(attributes(chat)[tracing.ASKED])[0]["parts"][0]["content"] == MARK


async def test_the_same_log_gives_the_same_ids(folder: Path, collector: Collector) -> None:
    await a_talk(folder)
    count = await send_log(folder, collector)
    ids = [(span.trace_id, span.span_id) for span in collector.spans]
    assert len(set(ids)) == count
    assert await send_log(folder, collector) == count
    assert [(span.trace_id, span.span_id) for span in collector.spans[count:]] == ids


async def test_logs_of_people_with_one_name_are_kept_apart(folder: Path, collector: Collector) -> None:
    for each, start in (("one", 1_000.0), ("two", 2_000.0)):
        async with Memory.open(folder / each, "ann", clock=ManualClock(start)) as memory:
            await memory.retain("The key hangs behind the door.", "note")
    for each in ("one", "two"):
        await send_log(folder / each, collector)
    assert len({span.trace_id for span in collector.spans}) == len(collector.spans) == 2


async def test_a_run_is_a_trace_with_its_plan_and_tool_spans(folder: Path, collector: Collector) -> None:
    def double(number: str) -> str:
        """Double a number."""
        return str(2 * int(number))

    plan = "Plan: double it.\n#E1 = double[21]\n"
    models = {
        "planner": FakeModel({"make_plan": [plan]}),
        "solver": FakeModel({"answer_from_evidence": ["42"]}),
    }
    async with Memory.open(folder, "ann") as memory:
        await Planner(model=models, tools=[tool(double)], memory=memory).solve("What is twice 21?", run="twice")
    await send_log(folder, collector)
    (run,) = collector.named("invoke_agent planner")
    (planned,), (called,) = collector.named("plan planner"), collector.named("execute_tool double")
    assert not run.parent_span_id and collector.parent(planned) == run and collector.parent(called) == run
    assert attributes(run)["mindstream.run"] == "twice" and called.end_time_unix_nano <= run.end_time_unix_nano


async def test_steps_of_a_life_are_children_of_the_call_that_started_them(folder: Path, collector: Collector) -> None:
    def measure(room: str) -> str:
        """Measure a room."""
        return "12 square metres"

    model = FakeModel({
        "live": [
            [Call("M1", '{"task": "Measure the hall.", "context": "none"}')],
            [Call("finish_task", '{"task": 1, "result": "12"}')],
            "Done.",
        ],
        "carry_out": [[Call("measure", '{"room": "hall"}')], "12 square metres"],
    })  # fmt: skip
    async with (
        Memory.open(folder, "ann", clock=ManualClock()) as memory,
        Life.open(memory, Models(model), goal="Measure the hall.", tools=[tool(measure)]) as life,
    ):
        await life.run()
    await send_log(folder, collector)
    turn = collector.named("invoke_agent life")[0]
    (measured,), (worker,) = collector.named("execute_tool measure"), collector.named("execute_tool M1")
    assert collector.parent(measured) == worker and collector.parent(worker) == turn and not turn.parent_span_id
    chats = [span for span in collector.spans if attributes(span).get("mindstream.role") == "M1"]
    assert chats and all(collector.parent(span) == worker for span in chats)
    assert attributes(measured)["gen_ai.tool.call.id"].startswith(attributes(worker)["gen_ai.tool.call.id"] + ".")


async def test_writes_and_corrections_are_exported_without_their_text(folder: Path, collector: Collector) -> None:
    async with Memory.open(folder, "ann") as memory:
        old = await memory.retain("The key hangs behind the door.", "note")
        await memory.correct(old.id, "The key lies under the mat.")
    await send_log(folder, collector)
    assert attributes(collector.named("create_memory")[0])["gen_ai.memory.record.count"] == 1
    (changed,) = collector.named("update_memory")
    assert attributes(changed)["gen_ai.memory.record.id"] == old.id
    assert attributes(changed)["gen_ai.memory.store.id"] == "ann" and "mat" not in str(collector.spans)


async def test_a_collector_that_refuses_is_an_error(folder: Path, collector: Collector) -> None:
    await a_talk(folder)
    collector.status = 400
    with pytest.raises(StorageError, match="did not accept the spans"):
        await send_log(folder, collector)


def test_a_collector_url_without_a_path_gets_the_default_path() -> None:
    assert endpoint("http://localhost:4318") == endpoint("http://localhost:4318/") == "http://localhost:4318/v1/traces"
    assert endpoint("https://host/api/public/otel/v1/traces") == "https://host/api/public/otel/v1/traces"
    with pytest.raises(InputError, match="URL of a collector"):
        endpoint("localhost:4318")
