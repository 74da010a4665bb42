"""The MCP server through the official client, over HTTP and stdio, with both generations of the protocol."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from fake_endpoint import FakeEndpoint, Says
from mcp.shared.exceptions import MCPError
from mcp_clients import ERAS, called, on_stdio, over_http, refused
from served import Served

from mindstream.errors import InputError
from mindstream.server.mcp.stdio import leaving_on_signals
from mindstream.server.mcp.tools import USUAL, checked_sets, every_set, every_tool
from mindstream.service.operations.operation import operations
from mindstream.service.operations.runtime import Runtime
from mindstream.settings import Settings


@pytest.mark.parametrize("era", ERAS)
async def test_memories_are_kept_over_stdio(folder: Path, era: str) -> None:
    async with on_stdio(folder, "--user", "ann", mode=era) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == list(USUAL)
        made = await called(client, "retain", content="The spare key hangs behind the door.")
        found = await called(client, "recall", query="where is the key?", k=1)
        assert [each["id"] for each in found["memories"]] == [made["id"]]
        assert (await called(client, "forget", memory_id=made["id"]))["forgotten"]
        assert (await called(client, "list_memories"))["memories"] == []
        assert "has no memory" in await refused(client, "get_memory", memory_id=made["id"])


OPENING: list[dict[str, object]] = [
    {
        "id": 0,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "x", "version": "1"},
        },
    },
    {"method": "notifications/initialized"},
]


def on_input(folder: Path, given: bytes, **settings: str) -> list[dict[str, Any]]:
    """Run `mindstream mcp` on an input, and return its messages."""
    words = [sys.executable, "-m", "mindstream", "mcp", "--data", str(folder)]
    done = subprocess.run(
        words, input=given, capture_output=True, timeout=60, check=True, env={**os.environ, **settings}
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def as_lines(*messages: dict[str, object]) -> bytes:
    return b"".join(json.dumps({"jsonrpc": "2.0", **each}).encode() + b"\n" for each in messages)


def retaining(number: object, content: str) -> dict[str, object]:
    return {"id": number, "method": "tools/call", "params": {"name": "retain", "arguments": {"content": content}}}


def test_inexact_lines_are_read_or_refused(folder: Path) -> None:
    batch = json.dumps([{"jsonrpc": "2.0", **retaining(number, f"Box {number}.")} for number in (1, 2)]).encode()
    said = on_input(
        folder,
        b"\xef\xbb\xbf"
        + as_lines(*OPENING, retaining(3, "A cut \ud83d face."))
        + batch
        + b"\nhello\n\n{}\n"
        + as_lines({"id": 4, "method": "tools/call", "params": []})
        + as_lines({"id": 5, "method": "ping"}).strip(),  # a last line without an end
    )
    answers = [each for each in said if each["id"] is not None]
    assert sorted(each["id"] for each in answers if "result" in each) == [0, 1, 2, 3, 5]
    assert [(each["id"], each["error"]["code"]) for each in answers if "error" in each] == [(4, -32600)]
    assert [each["error"]["code"] for each in said if each["id"] is None] == [-32700, -32600]


def test_a_cancelled_request_does_not_delay_the_end(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        model = f"http://127.0.0.1:{silent.getsockname()[1]}/v1#silent"
        cancel: dict[str, object] = {"method": "notifications/cancelled", "params": {"requestId": "slow"}}
        reflect: dict[str, object] = {"id": "slow", "method": "tools/call", "params": {"name": "reflect"}}
        lines = as_lines(*OPENING, retaining(1, "Anna keeps bees behind the house."), reflect, cancel)
        said = on_input(folder, lines, MINDSTREAM_MODEL=model)
    assert 1 in [each["id"] for each in said]


def test_every_request_before_the_end_of_input_is_answered(folder: Path) -> None:
    kept = [{"name": "retain", "arguments": {"content": f"Key {number} is in drawer {number}."}} for number in range(5)]
    calls: list[dict[str, object]] = [
        {"id": number, "method": "tools/call", "params": each} for number, each in enumerate(kept, 1)
    ]
    answers = {each["id"]: each["result"] for each in on_input(folder, as_lines(*OPENING, *calls))}
    assert sorted(answers) == [0, 1, 2, 3, 4, 5]
    assert not any(answers[number].get("isError") for number in range(1, 6))


@pytest.mark.parametrize("era", ERAS)
async def test_memories_are_kept_over_http(served: Served, era: str) -> None:
    async with over_http(f"{served.url}/mcp/ann", mode=era) as client:
        assert client.protocol_version == ("2025-11-25" if era == "legacy" else era)
        made = await called(client, "retain", content="The spare key hangs behind the door.")
        found = await called(client, "recall", query="where is the key?", k=1)
        assert found["memories"][0]["receipt"]["parts"]["words"] > 0
        assert (await called(client, "get_memory", memory_id=made["id"]))["text"].startswith("The spare key")
    with served.client() as rest:
        assert rest.get(f"/api/v1/users/ann/memories/{made['id']}").status_code == 200


async def test_each_path_serves_one_user(served: Served) -> None:
    async with over_http(f"{served.url}/mcp/ann") as ann, over_http(f"{served.url}/mcp/bob") as bob:
        made = await called(ann, "retain", content="Ann likes tea.")
        assert "has no memory" in await refused(bob, "get_memory", memory_id=made["id"])
        assert "has no memory" in await refused(bob, "forget", memory_id=made["id"])
        assert (await called(bob, "recall", query="tea", user="ann"))["memories"] == []


async def test_the_server_uses_no_sessions(served: Served) -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    with served.client(headers={"Accept": "application/json, text/event-stream"}) as client:
        answer = client.post("/mcp", json=asked)
        assert answer.status_code == 200 and "mcp-session-id" not in answer.headers
        told = client.post(
            "/mcp", json={"jsonrpc": "2.0", "id": 2, "method": "tools/list"}, headers={"Mcp-Session-Id": "of-yesterday"}
        )
        assert told.status_code == 200 and "retain" in told.text
        for method in ("GET", "DELETE"):
            assert client.request(method, "/mcp").status_code == 405


def test_tools_are_built_from_the_operations_table() -> None:
    by_name = {each.mcp: each for each in operations() if each.mcp}
    assert set(every_tool()) == set(by_name)
    assert every_set() == ("care", "plan", "pool", "town")
    for name, tool in every_tool().items():
        assert tool.operation is by_name[name]
        assert set(tool.names) == set(tool.operation.request.model_fields)
        assert len(set(tool.names.values())) == len(tool.names)
        for schema in (tool.input, tool.output):
            assert schema["type"] == "object"
            jsonschema_rs.meta.validate(schema)
        wanted = tool.input["required"]
        assert isinstance(wanted, list) and isinstance(tool.input["properties"], dict)
        assert set(wanted) <= set(tool.input["properties"])
    with pytest.raises(InputError, match="no set of tools 'everything'"):
        checked_sets("plan,everything")


def test_hints_declare_what_a_tool_may_do() -> None:
    tools = every_tool()
    assert [name for name, tool in tools.items() if tool.is_destructive] == ["forget"]
    assert [name for name, tool in tools.items() if tool.is_abroad] == ["solve", "resume_plan"]
    assert [name for name in USUAL if tools[name].is_read_only] == [
        "recall", "list_memories", "get_memory", "get_operation"
    ]  # fmt: skip


async def test_further_tool_sets_are_selected_in_the_url(served: Served) -> None:
    async with over_http(f"{served.url}/mcp/ann?tools=care,plan,pool,town") as client:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == list(every_tool())
        for tool in tools:
            assert tool.annotations and tool.annotations.open_world_hint is not None and tool.output_schema
    async with over_http(f"{served.url}/mcp/ann") as client:
        with pytest.raises(MCPError, match="no tool of that name"):
            await client.call_tool("solve", {"task": "6*7"})
    with served.client() as rest:
        assert rest.post("/mcp/ann?tools=nonsense", json={}).status_code == 422


@pytest.mark.parametrize(
    "arguments",
    [
        {"query": "tea", "k": "2", "kinds": '["note"]'},
        {"query": "tea", "kinds": "note, thought", "k": None, "reasoning": "the user asked"},
        {"query": "tea", "kinds": None, "floor": "0", "touch": "false", "limit": 3},
    ],
)
async def test_arguments_are_accepted_in_the_forms_models_send(served: Served, arguments: dict[str, object]) -> None:
    async with over_http(f"{served.url}/mcp/ann") as client:
        await called(client, "retain", content="Tea is made at four.", text="another", id="mine", importance="7")
        found = await called(client, "recall", **arguments)
        assert [each["text"] for each in found["memories"]] == ["Tea is made at four."]
        listed = await called(client, "list_memories", kinds=["note", "thought"], limit="1")
        assert len(listed["memories"]) == 1
        assert listed["memories"][0]["importance"] == 7
        await called(client, "retain", content="Tea is made of leaves.")
        assert len((await called(client, "recall", query="tea", limit=1))["memories"]) == 1
        listed = await called(client, "list_memories", kinds=["note"], top_k="1")
        assert len(listed["memories"]) == 1


def test_arguments_may_be_a_json_string(served: Served) -> None:
    quoted = {"name": "retain", "arguments": json.dumps({"content": "Tea is made at four."})}
    with served.client(headers={"Accept": "application/json, text/event-stream"}) as client:
        told = client.post("/mcp/ann", json={"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": quoted})
        assert told.status_code == 200 and '"isError":false' in told.text.replace(" ", "")
        assert len(client.get("/api/v1/users/ann/memories").json()["memories"]) == 1


async def test_errors_name_the_wrong_argument(served: Served) -> None:
    async with over_http(f"{served.url}/mcp/ann") as client:
        said = await refused(client, "retain", importance=5)
        assert said == "The request is invalid: content: Field required"
        assert "k: " in await refused(client, "recall", query="x", k="many")
        for given in ({}, {"q": "x"}, {"query": None}):  # an argument may have the name of a request field
            assert await refused(client, "recall", **given) == "The request is invalid: query: Field required"
        said = await refused(client, "recall", query={"a": 1}, k=[])
        assert "query: Input should be a valid string, found an object" in said and "found a list" in said


async def test_resources_are_listed_in_pages(served: Served) -> None:
    async with over_http(f"{served.url}/mcp/ann") as client:
        for number in range(60):
            await called(client, "retain", content=f"note number {number}")
        seen, cursor = list[str](), ""
        while True:
            page = await called(client, "list_memories", limit=25, cursor=cursor)
            seen += [each["text"] for each in page["memories"]]
            if not (cursor := page["next"]):
                break
        assert len(seen) == len(set(seen)) == 60
        first = await client.list_resources()
        assert first.next_cursor
        second = await client.list_resources(cursor=first.next_cursor)
        uris = [each.uri for each in (*first.resources, *second.resources)]
        assert len(uris) == len(set(uris)) == 60 and not second.next_cursor
        content = (await client.read_resource(uris[0])).contents[0]
        assert json.loads(getattr(content, "text", ""))["text"] == "note number 59"
        with pytest.raises(MCPError, match="cursor"):
            await client.list_resources(cursor="nonsense")


async def test_a_plan_is_an_operation_and_a_resource(served: Served, door: FakeEndpoint) -> None:
    door.otherwise = Says("It is 42.")
    told: list[str | None] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        told.append(message)

    async with over_http(f"{served.url}/mcp/ann?tools=plan") as client:
        result = await client.call_tool("solve", {"task": "what is 6 times 7?", "how": "react"}, None, on_progress)
        shape = result.structured_content
        assert shape["state"] == "done" and shape["result"]["answer"] == "It is 42.", shape
        assert (await called(client, "get_operation", operation_id=shape["id"]))["state"] == "done"
        (plan,) = (await client.list_resources()).resources
        assert plan.uri == f"plan://{shape['run']}"
        content = (await client.read_resource(plan.uri)).contents[0]
        assert json.loads(getattr(content, "text", ""))["answer"] == "It is 42."


async def test_a_plan_waits_for_approval(folder: Path) -> None:
    with Served(folder, model="rules") as served:
        async with over_http(f"{served.url}/mcp/ann?tools=plan") as client:
            shape = await called(client, "solve", task="17.5% of 2480", approve=True)
            assert shape["state"] == "waiting" and shape["waits_for"][0]["what"] == "plan"
            shape = await called(client, "approve_plan", run=shape["id"], yes="true")
            assert shape["state"] == "done" and shape["result"]["answer"].startswith("434"), shape
            shape = await called(client, "solve", task="17.5% of 2480", approve=True)
            shape = await called(client, "approve_plan", run=shape["id"], yes="no")
            assert shape["state"] == "failed" and "refused" in shape["problem"]


async def test_reflection_draws_thoughts_from_memories(served: Served, door: FakeEndpoint) -> None:
    async with over_http(f"{served.url}/mcp/ann") as client:
        for text in ("Ann swims on Mondays.", "Ann swims on Fridays."):
            await called(client, "retain", content=text)
        door.will(
            Says('{"questions": ["What does Ann like?"]}'),
            Says('{"insights": [{"text": "Ann likes to swim.", "because": [1, 2]}]}'),
        )
        shape = await called(client, "reflect")
        assert shape["state"] == "done", shape
        (thought,) = shape["result"]["thoughts"]
        assert thought["text"] == "Ann likes to swim." and thought["kind"] == "thought"
        assert thought["text"] in [each["text"] for each in (await called(client, "list_memories"))["memories"]]


async def test_reflection_requires_a_model(folder: Path) -> None:
    with Served(folder, model="rules") as served:
        async with over_http(f"{served.url}/mcp/ann") as client:
            assert "reflection needs a language model" in await refused(client, "reflect")


async def test_templates_list_the_readable_resources(served: Served) -> None:
    async with over_http(f"{served.url}/mcp/ann?tools=town") as client:
        forms = [each.uri_template for each in (await client.list_resource_templates()).resource_templates]
        assert forms == ["memory://{id}", "dream://{id}", "plan://{run}", "town://{town}/{step}"]
        for uri in (
            "memory://none",
            "memory://a/b",
            "town://ville",
            "town://ville/1",
            "file:///etc/passwd",
            "plan://x/1",
        ):
            with pytest.raises(MCPError, match="Not found"):
                await client.read_resource(uri)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_while_it_waits_for_input(folder: Path, number: signal.Signals) -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    words = [sys.executable, "-m", "mindstream", "mcp", "--data", str(folder)]
    with subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=partial(signal.signal, number, signal.SIG_DFL),  # a background job ignores some signals
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}) + "\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["result"]["serverInfo"]["name"] == "mindstream"
        process.send_signal(number)
        assert process.wait(timeout=200) == 128 + number


async def test_a_system_without_signal_handlers_can_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> None:
        raise NotImplementedError

    loop = asyncio.get_running_loop()
    monkeypatch.setattr(loop, "add_signal_handler", missing)
    monkeypatch.setattr(loop, "remove_signal_handler", missing)
    with leaving_on_signals(Runtime(Settings())):
        pass


def test_an_unknown_tool_set_is_refused(folder: Path) -> None:
    words = [sys.executable, "-m", "mindstream", "mcp", "--data", str(folder), "--tools", "all"]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and not done.stdout and "the sets are care, plan, pool, town" in done.stderr
