"""The provider against a real HTTP endpoint with scripted behaviour."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import Iterator
from email.utils import formatdate
from typing import Any

import pytest
from asking import ADD, Judge, parts_of, talk, text_of
from fake_endpoint import (
    EMPTY,
    GARBAGE,
    KEY,
    NO_SUCH_MODEL,
    WRONG_KEY,
    WRONG_SHAPE,
    Behaviour,
    Breaks,
    Calls,
    Fails,
    FakeEndpoint,
    Floods,
    Says,
    Stalls,
    Streams,
    delta,
    forever,
    redirects,
)

from mindstream.clock import SystemClock
from mindstream.errors import (
    ModelDenied,
    ModelRefused,
    ModelSilent,
    ModelUnavailable,
    PromptTooLong,
    RateLimited,
    ReplyInvalid,
    SettingsError,
)
from mindstream.models.model import Call, Message, Piece, Usage
from mindstream.models.prompt import ask, speak
from mindstream.models.providers.address import address
from mindstream.models.providers.provider import Provider, provider
from mindstream.models.providers.wire import environment_proxy


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OLLAMA_BASE_URL", "OLLAMA_API_KEY")
    for name in (*names, "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


# Replies.


async def test_an_answer_is_streamed_with_its_usage(door: FakeEndpoint, model: Provider) -> None:
    await parts_of(model)  # the first text of an endpoint is held back briefly
    door.will(Says("Hello to you.", usage=(11, 4), pause_s=0.2))
    assert await parts_of(model) == [Piece("Hello "), Piece("to "), Piece("you."), Usage(11, 4, None)]


@pytest.mark.parametrize("decision", ["", "[ALONE]  ", "[WAIT] "])
async def test_the_first_word_is_not_gathered(
    door: FakeEndpoint, model: Provider, monkeypatch: pytest.MonkeyPatch, decision: str
) -> None:
    await parts_of(model)
    monkeypatch.setattr("mindstream.models.providers.provider.GAP_S", 1.5)
    door.will(Says(f"{decision}I hear you, and that does sound tiring.", pause_s=0.05))
    pieces = [part.text for part in await parts_of(model) if isinstance(part, Piece)]
    assert len(pieces) < 8 and "".join(pieces[: pieces.index("I ") + 1]) == f"{decision}I "


async def test_no_task_is_created_for_a_reply(door: FakeEndpoint, model: Provider) -> None:
    await parts_of(model)
    door.will(Says("Good morning to you, and to all who sleep.", pause_s=0.02))
    before = asyncio.all_tasks()
    async for _ in model.reply(talk()):
        assert asyncio.all_tasks() == before


SAID = ("Good morning. ", "How ", "did ", "you sleep?")


@pytest.mark.parametrize("done", [True, False])
async def test_text_before_a_broken_connection_is_delivered(door: FakeEndpoint, model: Provider, done: bool) -> None:
    """The connection breaks while its socket is not read, before the final chunk."""

    def chunks() -> Iterator[bytes]:
        events = [*(delta(content=each) for each in SAID), *([b"data: [DONE]\n\n"] if done else [])]
        return (f"{len(event):x}\r\n".encode() + event + b"\r\n" for event in events)

    await parts_of(model)
    door.will(Floods(chunks, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"}, pause_s=0.002))
    said = ""
    with contextlib.nullcontext() if done else pytest.raises(ModelUnavailable, match="broke off"):
        async for part in model.reply(talk()):
            said += part.text if isinstance(part, Piece) else ""
    assert said == "".join(SAID)


@pytest.mark.parametrize("form", ["{host}", '"http://{host}"', "http://{host}/\n", " http://{host}"])
async def test_a_proxy_is_used_without_its_scheme_or_in_quotation_marks(
    door: FakeEndpoint, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setenv("http_proxy", form.format(host=door.url.removeprefix("http://").removesuffix("/v1")))
    model = provider("http://quiet.invalid/v1#any")
    assert text_of(await parts_of(model)) == "ok"
    assert door.asked[-1].path == "http://quiet.invalid/v1/chat/completions"
    await model.aclose()


@pytest.mark.parametrize("given", ["socks5://127.0.0.1:1", "none", "http://127.0.0.1:abc", "http://"])
async def test_what_is_no_proxy_is_named(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("http_proxy", given)
    model = provider("http://quiet.invalid/v1#any")
    with pytest.raises(SettingsError, match=r"http_proxy is not the address of a proxy.*SOCKS"):
        await parts_of(model)
    await model.aclose()


@pytest.mark.parametrize("direct", ["", "127.0.0.0/8, 10.0.0.0/8", "127.0.0.1:{port}"])
async def test_this_machine_and_listed_networks_are_reached_without_the_proxy(
    door: FakeEndpoint, monkeypatch: pytest.MonkeyPatch, direct: str
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("no_proxy", direct.format(port=door.url.rpartition(":")[2].removesuffix("/v1")))
    for url in (door.url, door.url.replace("127.0.0.1", "localhost")):
        model = provider(f"{url}#any")
        assert text_of(await parts_of(model)) == "ok"
        await model.aclose()


@pytest.mark.parametrize(
    ("url", "listed", "is_direct"),
    [
        ("http://10.1.2.3/v1", "10.0.0.0/8", True),
        ("http://10.1.2.3:8000/v1", "10.1.2.3:8000", True),
        ("http://[fd00::1]/v1", "fd00::/8", True),
        ("http://11.1.2.3/v1", "10.0.0.0/8, x/y", False),
        ("http://10.1.2.3:8000/v1", "10.1.2.3:9000", False),
        ("http://models.invalid/v1", "10.0.0.0/8", False),
    ],
)
def test_networks_and_ports_in_no_proxy(
    monkeypatch: pytest.MonkeyPatch, url: str, listed: str, is_direct: bool
) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy.invalid:3128")
    monkeypatch.setenv("no_proxy", listed)
    assert environment_proxy(url) == (None if is_direct else "http://proxy.invalid:3128")


async def test_a_proxy_from_the_environment_is_used(door: FakeEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", door.url.removesuffix("/v1"))
    monkeypatch.setenv("no_proxy", "quiet.invalid")
    for host, asked in (("far.invalid", ["http://far.invalid/v1/chat/completions"]), ("quiet.invalid", [])):
        door.asked.clear()
        far = provider(f"http://{host}/v1#any")
        with contextlib.nullcontext() if asked else pytest.raises(ModelUnavailable):
            assert text_of(await parts_of(far)) == "ok"
        assert [each.path for each in door.asked] == asked
        await far.aclose()


async def test_headers_from_the_environment_go_only_to_openai(
    door: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in (("ORG_ID", "org-1"), ("PROJECT_ID", "proj-1"), ("CUSTOM_HEADERS", "x-team: sleep\nnone")):
        monkeypatch.setenv(f"OPENAI_{variable}", value)
    for name, sent in ((f"openai:any@{door.url}", ["org-1", "proj-1", "sleep"]), (f"{door.url}#any", ["", "", ""])):
        model = provider(name)
        await parts_of(model)
        headers = door.asked[-1].headers
        assert [headers.get(each, "") for each in ("openai-organization", "openai-project", "x-team")] == sent
        await model.aclose()


async def test_messages_and_tools_are_sent_in_openai_format(door: FakeEndpoint, model: Provider) -> None:
    turns = (
        Message("assistant", "Let me add.", (Call("add", '{"a":1,"b":2}', "c7"),)),
        Message("tool", "3", call_id="c7", tool="add"),
        Message("user", "And now?"),
    )
    await parts_of(model, talk("1 + 2?", *turns, tools=(ADD,)))
    body = door.chats[0].body
    assert [message["role"] for message in body["messages"]] == ["system", "user", "assistant", "tool", "user"]
    assert [message["content"] for message in body["messages"][1:4]] == ["1 + 2?", "Let me add.", "3"]
    call = body["messages"][2]["tool_calls"][0]
    assert (call["id"], call["function"]) == ("c7", {"name": "add", "arguments": '{"a":1,"b":2}'})
    assert body["messages"][3]["tool_call_id"] == "c7"
    assert body["model"] == "any"
    assert body["tools"][0]["function"]["name"] == "add"
    assert body["tools"][0]["function"]["parameters"]["required"] == ["a", "b"]


async def test_a_tool_call_and_its_result_are_exchanged(door: FakeEndpoint, model: Provider) -> None:
    door.will(Calls((("add", '{"a": 1, "b": 2}'), ("add", '{"a": 3, "b": 4}')), text="Adding."), Says("3 and 7"))
    request = talk("1 + 2? 3 + 4?", tools=(ADD,))
    first = await parts_of(model, request)
    calls = tuple(part for part in first if isinstance(part, Call))
    assert text_of(first) == "Adding."
    assert calls == (Call("add", '{"a": 1, "b": 2}', "call_0"), Call("add", '{"a": 3, "b": 4}', "call_1"))
    results = (Message("tool", str(n), call_id=call.id, tool=call.tool) for n, call in zip((3, 7), calls, strict=True))
    assert text_of(await parts_of(model, request.then(Message("assistant", "Adding.", calls), *results))) == "3 and 7"
    assert [message["role"] for message in door.chats[1].body["messages"][2:]] == ["assistant", "tool", "tool"]


async def test_thoughts_are_not_part_of_the_answer(door: FakeEndpoint, model: Provider) -> None:
    deltas = ({"reasoning_content": "Let me see."}, {"content": "<think>"}, {"content": "hm"}, {"content": "</think>"})
    chunks = [{"choices": [{"delta": delta}]} for delta in (*deltas, {"content": "Yes."})]
    end = {"choices": [{"delta": {}, "finish_reason": "stop"}]}
    door.will(Streams(tuple(f"data: {json.dumps(chunk)}" for chunk in (*chunks, end))))
    assert text_of(await parts_of(model)) == "Yes."


def chunks(*deltas: dict[str, Any], finish: str = "tool_calls", **more: Any) -> Streams:
    """Return a stream of these deltas."""
    choices = [{"delta": delta} for delta in deltas] + [{"delta": {}, "finish_reason": finish}]
    return Streams(tuple(f"data: {json.dumps({'choices': [choice]} | more)}" for choice in choices))


def call(id_: str | None, name: str | None, arguments: Any, index: int | None = 0) -> dict[str, Any]:
    return {"tool_calls": [{"index": index, "id": id_, "function": {"name": name, "arguments": arguments}}]}


ADDED = [Call("add", '{"a": 1}', "x"), Call("add", '{"b": 2}', "y")]


@pytest.mark.parametrize(
    "deltas",
    [
        (call("x", "add", '{"a"'), call(None, None, ": 1}"), call("y", "add", '{"b": 2}', 1)),
        (call("x", "add", '{"a": 1}'), call("y", "add", '{"b": 2}')),
        (call("x", "add", {"a": 1}, None), call("y", "add", {"b": 2}, None)),
        (call("x", "add", ""), call("y", "add", "", 1), call("", "", '{"a": 1}'), call("", None, '{"b": 2}', 1)),
        (call("x", "ad", '{"a": '), call("x", "d", "1}"), call("y", "add", '{"b": 2}')),
    ],
    ids=["by index", "all at index 0", "as objects, no index", "in turns", "a name in two"],
)
async def test_calls_are_read_in_every_streaming_form(
    door: FakeEndpoint, model: Provider, deltas: tuple[dict[str, Any], ...]
) -> None:
    door.will(chunks(*deltas))
    assert await parts_of(model, talk("?", tools=(ADD,))) == ADDED


async def test_a_call_without_an_id_is_given_one(door: FakeEndpoint, model: Provider) -> None:
    door.will(chunks(call(None, "add", "{}")))
    (only,) = await parts_of(model, talk("?", tools=(ADD,)))
    assert isinstance(only, Call)
    assert only.id


async def test_content_may_come_as_a_list_of_parts(door: FakeEndpoint, model: Provider) -> None:
    parts = [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo."}]
    door.will(chunks({"content": parts}, finish="stop"))
    assert text_of(await parts_of(model)) == "Hello."


@pytest.mark.parametrize("count", ["many", -1, None])
async def test_impossible_token_counts_are_ignored(door: FakeEndpoint, model: Provider, count: Any) -> None:
    usage = {"prompt_tokens": count, "completion_tokens": 5}
    door.will(chunks({"content": "Hi"}, finish="stop", usage=usage), Says("Hi", usage=(1, 2)))
    assert [part for part in await parts_of(model) if isinstance(part, Usage)] == [Usage(0, 5)]
    assert Usage(1, 2) in await parts_of(model)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"message": "slow down", "code": 429}, RateLimited),
        ({"message": "spent", "code": "insufficient_quota"}, ModelDenied),
        ({"message": "context_length_exceeded: too long", "code": "context_length_exceeded"}, PromptTooLong),
        ({"message": "boom"}, ModelUnavailable),
    ],
)
async def test_an_error_in_the_stream_is_raised_by_its_kind(
    door: FakeEndpoint, model: Provider, error: dict[str, Any], kind: type[Exception]
) -> None:
    door.will(Streams((f"data: {json.dumps({'error': error})}",)))
    with pytest.raises(kind) as caught:
        await parts_of(model)
    assert type(caught.value) is kind


async def test_a_cancelled_listener_closes_the_connection(door: FakeEndpoint, model: Provider) -> None:
    door.will(Stalls())
    listening = asyncio.create_task(parts_of(model))
    assert await asyncio.to_thread(door.was_asked.wait, 10)
    listening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await listening
    assert await asyncio.to_thread(door.hung_up.wait, 10)


# Faults.

FAULTS: list[tuple[Behaviour, type[Exception], str]] = [
    (NO_SUCH_MODEL, ModelDenied, "does not exist"),
    (WRONG_KEY, ModelDenied, "OPENAI_API_KEY"),
    (Fails(400, "temperature must be 1"), ModelRefused, "temperature must be 1"),
    (Fails(400, "too long", code="context_length_exceeded"), PromptTooLong, "too long"),
    (Fails(429, "no credit", code="insufficient_quota"), ModelDenied, "no credit left"),
    (Fails(429, "slow down"), RateLimited, "slow down"),
    (Fails(500, "oops"), ModelUnavailable, "oops"),
    (Breaks("half an "), ModelUnavailable, "broke off"),
    (Streams(('data: {"choices": [{"delta": {"content": "no end"}}]}',)), ModelUnavailable, "broke off"),
    (WRONG_SHAPE, ModelUnavailable, "protocol"),
    (GARBAGE, ModelUnavailable, "JSON"),
    (Streams(()), ModelUnavailable, "protocol"),
]


@pytest.mark.parametrize(("behaviour", "kind", "words"), FAULTS, ids=lambda value: str(value)[:40])
async def test_every_http_fault_has_its_error_class(
    door: FakeEndpoint, model: Provider, behaviour: Behaviour, kind: type[Exception], words: str
) -> None:
    door.will(behaviour)
    with pytest.raises(kind, match=words) as caught:
        await parts_of(model)
    assert type(caught.value) is kind
    assert model.name in str(caught.value)
    assert text_of(await parts_of(model)) == "ok", "the next request is as good as any"


async def test_an_empty_answer_is_an_error(door: FakeEndpoint, model: Provider) -> None:
    door.will(EMPTY, EMPTY)
    with pytest.raises(ReplyInvalid):
        await ask(model, Judge())
    with pytest.raises(ReplyInvalid):
        [piece async for piece in speak(model, talk().prompt)]


async def test_a_refusal_raises_with_its_text(door: FakeEndpoint, model: Provider) -> None:
    door.will(Streams(('data: {"choices": [{"delta": {"refusal": "I will not."}, "finish_reason": "stop"}]}',)))
    with pytest.raises(ModelRefused, match="I will not"):
        await parts_of(model)


async def test_retry_after_is_read_in_seconds_and_as_a_date(door: FakeEndpoint, model: Provider) -> None:
    date = formatdate(SystemClock().now() + 1000, usegmt=True)
    door.will(Fails(429, headers={"Retry-After": "7"}), Fails(429, headers={"Retry-After": date}), Fails(429))
    waits = []
    for _ in range(3):
        with pytest.raises(RateLimited) as caught:
            await parts_of(model)
        waits.append(caught.value.retry_after_s)
    assert waits[0] == 7.0
    assert waits[1] is not None
    assert 500 < waits[1] <= 1000
    assert waits[2] is None


@pytest.mark.parametrize("after", ["", "a word"])
async def test_a_silent_endpoint_is_unavailable(door: FakeEndpoint, after: str) -> None:
    model = provider(f"{door.url}#any", patience_s=0.2)
    await parts_of(model)  # the adapter is importable
    door.will(Stalls(after))
    with pytest.raises(ModelSilent, match=r"sent nothing for 0\.2 s"):
        await parts_of(model)
    assert await asyncio.to_thread(door.hung_up.wait, 10)
    await model.aclose()


async def test_a_slow_stream_may_exceed_the_silence_timeout(door: FakeEndpoint) -> None:
    model = provider(f"{door.url}#any", patience_s=1.0)
    await parts_of(model)
    door.will(Says("a b c d e f", pause_s=0.25))
    assert text_of(await parts_of(model)) == "a b c d e f"
    await model.aclose()


async def test_a_refused_connection_is_unavailable() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        model = provider(f"http://127.0.0.1:{free.getsockname()[1]}/v1")
        with pytest.raises(ModelUnavailable, match="cannot be reached"):
            await parts_of(model)
    await model.aclose()


# Names.


@pytest.mark.parametrize(
    ("name", "vendor", "model", "url"),
    [
        ("http://h:1/v1#m", "compatible", "m", "http://h:1/v1"),
        ("https://h/v1", "compatible", "default", "https://h/v1"),
        ("openai:gpt-5@http://h:1/v1", "compatible", "gpt-5", "http://h:1/v1"),
        ("ollama:llama3.2:1b", "ollama", "llama3.2:1b", "http://127.0.0.1:11434/v1"),
    ],
)
def test_a_model_name_gives_its_vendor_and_url(name: str, vendor: str, model: str, url: str) -> None:
    at = address(name)
    assert (at.vendor, at.model, at.url, at.name) == (vendor, model, url, name)


def test_the_openai_key_is_not_sent_to_other_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert address("http://stranger/v1#m").key != KEY
    assert address("ollama:m").key != KEY
    assert address("https://api.openai.com/v1#gpt-5").key == KEY
    monkeypatch.setenv("OPENAI_BASE_URL", "https://home:1/v1")
    assert address("https://home:1/v1#m").key == KEY
    assert address("http://home:1/v1#m").key != KEY


async def test_the_key_is_sent(door: FakeEndpoint, model: Provider) -> None:
    await parts_of(model)
    assert door.chats[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("openai:gpt-5", "OPENAI_API_KEY"),
        ("gpt-5", "openai:NAME"),
        ("mistral:large", "ollama:NAME"),
        ("http:///v1", "http://host:port/v1"),
        ("http://me:secret@h/v1#m", "password"),
    ],
)
def test_an_unusable_name_gives_instructions(name: str, words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        provider(name)


@pytest.mark.parametrize(("kind", "package"), [("anthropic", "anthropic"), ("google", "google.genai")])
async def test_other_vendors_are_opened_or_name_their_package(
    kind: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        __import__(package)
    except ImportError:
        with pytest.raises(SettingsError, match=rf"pip install 'mindstream\[{kind}\]'"):
            provider(f"{kind}:any")
        return
    with pytest.raises(SettingsError, match="_API_KEY"):
        provider(f"{kind}:any")
    monkeypatch.setenv(f"{kind.upper()}_API_KEY", KEY)
    with FakeEndpoint() as door, FakeEndpoint() as other:
        door.will(WRONG_KEY, redirects(f"{other.url}/elsewhere"), Floods(forever(b"x" * 65_536)))
        model = provider(f"{kind}:any", base_url=door.url.removesuffix("/v1"))
        with pytest.raises(ModelRefused, match=f"{kind.upper()}_API_KEY"):
            await parts_of(model)
        with pytest.raises(ModelUnavailable, match="redirects to"):
            await parts_of(model)
        assert other.asked == []
        with pytest.raises(ModelUnavailable, match="exceeds a size limit"):
            await parts_of(model)
        await model.aclose()
