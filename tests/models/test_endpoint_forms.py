"""What OpenAI-compatible servers really send: one row per case, with the server and the report.

Each row is sent by a local server as it stands; docs/models.md has the same kinds in short.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from asking import ADD, Judge, Talk, parts_of, talk, text_of
from fake_endpoint import Asked, Behaviour, Calls, Fails, FakeEndpoint, Floods, Says, Sends, Streams

from mindstream import Budget, Models
from mindstream.errors import (
    BudgetSpent,
    ModelDenied,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    PromptBlocked,
    PromptTooLong,
    RateLimited,
    ReplyInvalid,
    SettingsError,
)
from mindstream.models.fitting import fit
from mindstream.models.model import Call, Message, Piece, Request, Sampling, Usage
from mindstream.models.prompt import ask, speak
from mindstream.models.providers import provider as providing
from mindstream.models.providers.address import address
from mindstream.models.providers.provider import Provider, provider


def chunk(delta: Any = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


def sse(*chunks: Any, done: bool = True) -> Streams:
    return Streams((*(f"data: {json.dumps(each)}" for each in chunks), *(["data: [DONE]"] if done else [])))


def raw(text: str, kind: str = "text/event-stream") -> Floods:
    return Floods(lambda: [text.encode()], {"Content-Type": kind})


def deltas(*all_of: dict[str, Any], finish: str = "stop") -> Streams:
    return sse(*map(chunk, all_of), chunk({}, finish))


# Thoughts: never in the answer.

THOUGHTS: list[tuple[str, Behaviour]] = [
    ("DeepSeek, vLLM, SGLang --reasoning-parser", deltas({"reasoning_content": "hm"}, {"content": "Hi."})),
    ("Ollama, Groq, LM Studio", deltas({"reasoning": "hm"}, {"content": "Hi."})),
    ("Ollama's own field", deltas({"thinking": "hm", "content": ""}, {"content": "Hi."})),
    (
        "OpenRouter",
        deltas(
            {"reasoning": "hm", "reasoning_details": [{"type": "reasoning.text", "text": "hm"}]}, {"content": "Hi."}
        ),
    ),
    (
        "OpenRouter, details alone",
        deltas({"reasoning_details": [{"type": "reasoning.summary", "summary": "hm"}]}, {"content": "Hi."}),
    ),
    ("LiteLLM (Anthropic)", deltas({"thinking_blocks": [{"type": "thinking", "thinking": "hm"}]}, {"content": "Hi."})),
    (
        "Mistral, Magistral",
        deltas(
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]},
            {"content": [{"type": "text", "text": "Hi."}]},
        ),
    ),
    ("a content part of reasoning", deltas({"content": [{"type": "reasoning", "text": "hm"}]}, {"content": "Hi."})),
    ("Qwen, R1 without a parser", deltas({"content": "<think>\nhm"}, {"content": "\n</think>"}, {"content": "Hi."})),
    (
        "vLLM without a parser, the template opens",
        deltas({"content": "hm\n"}, {"content": "</thi"}, {"content": "nk>\n\nHi."}),
    ),
    ("SGLang: kimi", deltas({"content": "◁thi"}, {"content": "nk▷hm◁/think▷Hi."})),
    ("vLLM: mistral", deltas({"content": "[THINK]hm[/THINK]Hi."})),
    ("vLLM: seed_oss", deltas({"content": "<seed:think>hm</seed:think>Hi."})),
    (
        "Cohere Command A",
        deltas({"content": "<|START_THINKING|>hm<|END_THINKING|><|START_RESPONSE|>Hi.<|END_RESPONSE|>"}),
    ),
    (
        "gpt-oss, raw",
        deltas(
            {"content": "<|channel|>analysis<|message|>hm<|end|><|start|>assistant"},
            {"content": "<|channel|>final<|message|>Hi."},
        ),
    ),
    (
        "gpt-oss, special tokens skipped",
        deltas({"content": "analysisHm, they greet.assist"}, {"content": "antfinalHi."}),
    ),
    ("vLLM: granite", deltas({"content": "Here is my thought process: hm Here is my response: Hi."})),
    ("Hunyuan", deltas({"content": "<think>\nhm\n</think>\nHi."})),
    ("interleaved", deltas({"content": "<think>hm</think>"}, {"content": "H<thinking>hm</thinking>i."})),
]


@pytest.mark.parametrize(("server", "behaviour"), THOUGHTS, ids=[row[0] for row in THOUGHTS])
async def test_thoughts_are_not_part_of_the_answer_but_counted(
    door: FakeEndpoint, server: str, behaviour: Behaviour
) -> None:
    door.otherwise = behaviour
    budget = Budget(tokens=100_000)
    async with Models.named({"default": f"{door.url}#m"}, budget=budget) as models:
        said = "".join([piece async for piece in speak(models.of(""), Talk())])
    assert said.strip() == "Hi.", server
    plain = Budget(tokens=100_000)
    door.otherwise = Says("Hi.", usage=None)
    async with Models.named({"default": f"{door.url}#m"}, budget=plain) as models:
        assert [piece async for piece in speak(models.of(""), Talk())] == ["Hi."]
    assert budget.spent_tokens > plain.spent_tokens, "thoughts are charged"


async def test_thoughts_are_charged_when_no_usage_is_reported(door: FakeEndpoint) -> None:
    for thoughts in ({"reasoning_content": "hm, " * 900}, {"content": "<think>" + "hm, " * 900 + "</think>"}):
        door.otherwise = deltas(thoughts, {"content": "Hi."})
        async with Models.named({"default": f"{door.url}#m"}, budget=Budget(tokens=4_000)) as models:
            with pytest.raises(BudgetSpent):
                for _ in range(10):
                    _ = [piece async for piece in speak(models.of(""), Talk())]


@pytest.mark.parametrize(
    ("behaviour", "error"),
    [
        (deltas({"content": "<think>on and on"}, finish="length"), "still thinking"),
        (deltas({"reasoning_content": "on and on"}, finish="length"), "still thinking"),
        (deltas({"content": "<thinking>never closed"}), "without any visible text"),
    ],
)
async def test_a_reply_of_thoughts_only_is_an_error(door: FakeEndpoint, behaviour: Behaviour, error: str) -> None:
    door.otherwise = behaviour
    async with Models.named({"default": f"{door.url}#m"}, repair=0) as models:
        with pytest.raises(ReplyInvalid, match=error):
            _ = [piece async for piece in speak(models.of(""), Talk())]


async def test_an_endpoint_that_only_closes_thoughts_is_remembered(
    door: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slow reasoning of an unknown endpoint is shown once; later, text before the closing tag is held back."""
    monkeypatch.setattr(providing, "HOLD_S", 0.01)
    model = provider(f"{door.url}#any")
    await model.aclose()
    door.will(Says("They sound tired. </think> Hello you.", pause_s=0.05))
    first = text_of(await parts_of(model))
    assert Talk().parse(first) == "Hello you.", "the complete reply is read without thoughts"
    again = provider(f"{door.url}#any")
    for text in ("Still tired. </think> Good night to you.", "<think>x</think>Good night to you."):
        door.will(Says(text, pause_s=0.02))
        assert text_of(await parts_of(again)).strip() == "Good night to you."
    door.will(Says("A thought that was cut", finish="length"))
    assert text_of(await parts_of(again)) == ""
    door.will(Says("No thought today."))
    assert text_of(await parts_of(again)) == "No thought today."
    await model.aclose()
    await again.aclose()


async def test_only_the_first_reply_of_an_endpoint_is_held_back(
    door: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(providing, "HOLD_S", 0.01)
    model = provider(f"{door.url}#long")
    for _ in range(2):
        door.will(Says("The first reply takes longer than the hold.", pause_s=0.02))
        parts = await parts_of(model)
        assert text_of(parts) == "The first reply takes longer than the hold."
        monkeypatch.setattr(providing, "HOLD_S", 60.0)
    first = next(each.text for each in parts if isinstance(each, Piece))
    assert len(first) < len("The first reply takes")  # a busy machine reads several pieces at once
    await model.aclose()


@pytest.mark.parametrize("name", ["DeepSeek-R1-Distill", "org%2FQwQ-32B", "Qwen3-4B-Thinking-2507"])
async def test_text_of_a_model_with_a_thinking_name_is_held_until_the_thought_ends(
    door: FakeEndpoint, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(providing, "HOLD_S", 0.0)
    model = provider(f"{door.url}#{name}")
    door.will(Says("They sound tired. </think> Hello.", pause_s=0.02))
    assert text_of(await parts_of(model)).strip() == "Hello."
    await model.aclose()


async def test_quoted_thinking_tags_are_part_of_the_answer(door: FakeEndpoint, model: Provider) -> None:
    for text in ("Use it so:\n```html\n<think>a</think>\n```\nThat is all.", "The tag `<think>` ends with `</think>`."):
        door.will(Says(text))
        assert text_of(await parts_of(model)) == text
    door.will(Says('{"score": 3, "why": "a </think> b"}'))
    assert (await ask(model, Judge())).score == 3


# Refused fields and roles: repeated once without them.


def refusing(refuses: Callable[[Any], bool], status: int, body: Any) -> Callable[[Asked], Behaviour]:
    def answer(asked: Asked) -> Behaviour:
        if refuses(asked.body):
            text = json.dumps(body)
            return Floods(lambda: [text.encode()], {"Content-Type": "application/json"}, status=f"{status} No")
        return Calls((("add", '{"a": 1}'),)) if asked.body.get("tools") else Says('{"score": 1}')

    return answer


def has(name: str) -> Callable[[Any], bool]:
    return lambda body: name in body


def has_role(role: str) -> Callable[[Any], bool]:
    return lambda body: any(message["role"] == role for message in body["messages"])


def twice_in_a_row(body: Any) -> bool:
    roles = [message["role"] for message in body["messages"]]
    return roles[0] != "user" or any(one == other for one, other in pairwise(roles))


def openai(message: str, **more: Any) -> Any:
    return {"error": {"message": message, "type": "invalid_request_error", **more}}


def pydantic(*loc: Any) -> Any:
    return {
        "detail": [
            {
                "type": "extra_forbidden",
                "loc": list(loc),
                "msg": "Extra inputs are not permitted",
                "input": {"messages": "temperature tools system role"},
            }
        ]
    }


REFUSALS: list[tuple[str, Callable[[Any], bool], int, Any]] = [
    ("Mistral: stream_options ", has("stream_options"), 422, pydantic("body", "stream_options")),
    (
        "Azure: stream_options (semantic-kernel#10510)",
        has("stream_options"),
        400,
        openai("Validation error at #/stream_options: Extra inputs are not permitted"),
    ),
    (
        "gpustack#429: stream_options",
        has("stream_options"),
        400,
        {"object": "error", "message": "[{'type': 'extra_forbidden', 'loc': ('body', 'stream_options')}]", "code": 400},
    ),
    ("a gateway's own words", has("stream_options"), 501, {"code": 7, "msg": "stream_options?"}),
    ("DeepSeek: response_format", has("response_format"), 400, openai("This response_format type is unavailable now")),
    ("llama.cpp: grammar", has("response_format"), 500, openai("failed to parse grammar")),
    ("LM Studio: json_schema", has("response_format"), 400, {"error": "'response_format.type' must be 'text'"}),
    (
        "vLLM: tools (vllm#9986)",
        has("tools"),
        400,
        openai('"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
    ),
    ("Ollama: tools", has("tools"), 400, openai("registry.ollama.ai/library/gemma2:9b does not support tools")),
    ("OpenRouter: tools", has("tools"), 404, openai("No endpoints found that support tool use", code=404)),
    ("php-mistral#76: tools", has("tools"), 422, pydantic("body", "tools")),
    (
        "OpenAI: temperature",
        has("temperature"),
        400,
        openai("Unsupported value: 'temperature' does not support 0.2 with this model.", param="temperature"),
    ),
    (
        "Anthropic's compatible endpoint: top_p",
        has("top_p"),
        400,
        openai("`temperature` and `top_p` cannot both be set"),
    ),
    (
        "Gemini: seed",
        has("seed"),
        400,
        [{"error": {"code": 400, "message": 'Invalid JSON payload received. Unknown name "seed": Cannot find field.'}}],
    ),
    (
        "garak#748: several at once",
        lambda body: bool({"seed", "top_p"} & body.keys()),
        422,
        {
            "title": "Unprocessable Entity",
            "detail": "body -> seed\n  Extra inputs are not permitted\nbody -> top_p\n  Extra",
        },
    ),
    (
        "OpenAI: max_tokens",
        has("max_tokens"),
        400,
        openai(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
        ),
    ),
    ("FastAPI: max_tokens", has("max_tokens"), 422, pydantic("body", "max_tokens")),
    ("no streaming", lambda body: bool(body["stream"]), 400, openai("Streaming is not supported for this model")),
    ("stream must be false", lambda body: bool(body["stream"]), 501, {"detail": "stream must be False"}),
    (
        "vLLM: Gemma (vllm#2964)",
        has_role("system"),
        400,
        {"object": "error", "message": "System role not supported", "type": "BadRequestError", "code": 400},
    ),
    (
        "SGLang: Gemma (sglang#1342)",
        has_role("system"),
        500,
        openai("jinja2.exceptions.TemplateError: System role not supported"),
    ),
    (
        "o1-mini (forgecode#1177)",
        has_role("system"),
        400,
        openai(
            "Unsupported value: 'messages[0].role' does not support 'system' with this model.", param="messages[0].role"
        ),
    ),
    (
        "Google: Gemma",
        has_role("system"),
        400,
        [{"error": {"code": 400, "message": "Developer instruction is not enabled for models/gemma-3-27b-it"}}],
    ),
    (
        "LoRAX: Mixtral (lorax#215)",
        twice_in_a_row,
        424,
        {
            "error": "Request failed: Conversation roles must alternate user/assistant/user/assistant/...",
            "error_type": "x",
        },
    ),
    ("Mistral 7B: only two roles", has_role("system"), 500, openai("Only user and assistant roles are supported!")),
    (
        "vLLM (vllm#10463)",
        has_role("system"),
        400,
        {"object": "error", "message": "[{'loc': ('body', 'messages', 0, 'role'), 'msg': \"Input should be 'user'\"}]"},
    ),
]
ASKS = (
    Request(Judge(), "r", sampling=Sampling(temperature=0.2, top_p=0.9, seed=1)),
    talk("a", Message("user", "b"), Message("assistant", "c"), Message("user", "d")),
    talk("a", tools=(ADD,)),
)


@pytest.mark.parametrize(("server", "refuses", "status", "body"), REFUSALS, ids=[row[0] for row in REFUSALS])
async def test_a_refused_field_is_left_out(
    door: FakeEndpoint, server: str, refuses: Callable[[Any], bool], status: int, body: Any
) -> None:
    door.otherwise = refusing(refuses, status, body)
    for _ in range(2):
        model = provider(f"{door.url}#m")
        for request in ASKS:
            assert await parts_of(model, request)
        await model.aclose()
    refused = [refuses(asked.body) for asked in door.chats]
    assert 1 <= sum(refused) <= 3, f"{server}: the refusal is remembered, also by another provider"
    assert not any(refused[-len(ASKS) :])
    if refuses is twice_in_a_row or "ole" in str(body):
        words = "".join(message["content"] for message in door.chats[-2].body["messages"])
        assert "Be kind." in words, "the system prompt is not lost"


@pytest.mark.parametrize(
    ("status", "body", "kind", "words"),
    [
        (
            400,
            openai("max_tokens is too large: 9000. This model supports at most 4096 completion tokens"),
            PromptTooLong,
            "too large",
        ),
        (
            400,
            openai("tools[0].function.parameters: schema is invalid", param="tools[0].function.parameters"),
            ModelRefused,
            "schema is invalid",
        ),
        (400, openai("The model is overfed"), ModelRefused, "overfed"),
        (500, openai("CUDA out of memory"), ModelUnavailable, "CUDA"),
        (401, openai("temperature of your key is wrong"), ModelDenied, "OPENAI_API_KEY"),
        (429, openai("slow down your stream_options"), RateLimited, "slow down"),
        (422, pydantic("body", "messages", 0, "content"), ModelRefused, "Extra inputs"),
    ],
)
async def test_other_errors_are_reported_unchanged(
    door: FakeEndpoint, status: int, body: Any, kind: type[ModelError], words: str
) -> None:
    door.otherwise = refusing(lambda _: True, status, body)
    model = provider(f"{door.url}#m")
    with pytest.raises(kind, match=words) as caught:
        await parts_of(model, ASKS[2])
    assert type(caught.value) is kind
    assert len(door.chats) == 1
    await model.aclose()


async def test_an_endpoint_that_refuses_everything_is_asked_a_few_times(door: FakeEndpoint) -> None:
    door.otherwise = refusing(lambda _: True, 400, openai("unknown field: stream_options"))
    model = provider(f"{door.url}#m")
    with pytest.raises(ModelRefused, match="stream_options"):
        await parts_of(model)
    assert len(door.chats) == 2
    door.otherwise = Says("ok")
    await parts_of(model)
    assert "stream_options" in door.chats[-1].body
    await model.aclose()


# Tool calls: deltas in all orders and repetitions.

ONE = [("add", {"a": 1, "b": 2})]
TWO = [("add", {"a": 1}), ("add", {"b": 2})]


def part(index: Any = 0, id_: Any = None, name: Any = None, arguments: Any = None, **more: Any) -> dict[str, Any]:
    call: dict[str, Any] = {"id": id_, "function": {"name": name, "arguments": arguments}, **more}
    return {"tool_calls": [call if index == "none" else {"index": index, **call}]}


def both(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"tool_calls": [each for one in parts for each in one["tool_calls"]]}


TOOL_CALLS: list[tuple[str, list[tuple[str, Any]], list[dict[str, Any]]]] = [
    (
        "OpenAI",
        TWO,
        [
            part(0, "x", "add", ""),
            part(0, None, None, '{"a":'),
            part(0, None, None, " 1}"),
            part(1, "y", "add", ""),
            part(1, None, None, '{"b": 2}'),
        ],
    ),
    (
        "interleaved",
        TWO,
        [
            part(0, "x", "add"),
            part(1, "y", "add"),
            part(1, None, None, '{"b"'),
            part(0, None, None, '{"a": '),
            part(1, None, None, ": 2}"),
            part(0, None, None, "1}"),
        ],
    ),
    (
        "Gemini: no index (openai-python#2806)",
        TWO,
        [part("none", "x", "add", '{"a": 1}'), part("none", "y", "add", '{"b": 2}')],
    ),
    (
        "no index, in pieces (vercel/ai#15879)",
        ONE,
        [part("none", "x", None, ""), part("none", None, "add", '{"a": 1'), part("none", None, None, ', "b": 2}')],
    ),
    (
        "no index, two in one delta (term-llm#314)",
        TWO,
        [both(part("none", "", "add", '{"a": 1}'), part("none", "", "add", '{"b": 2}'))],
    ),
    ("Ollama: index 0 for all (maka#1995)", TWO, [part(0, "x", "add", '{"a": 1}'), part(0, "y", "add", '{"b": 2}')]),
    ("index 0 for all, no id", TWO, [part(0, None, "add", '{"a": 1}'), part(0, None, "add", '{"b": 2}')]),
    ("LiteLLM: index from 1 (pipecat#4987)", TWO, [part(1, "x", "add", '{"a": 1}'), part(2, "y", "add", '{"b": 2}')]),
    (
        "agno#8880: second head at index 0, its tail at 1",
        TWO,
        [part(0, "x", "add", '{"a": 1}'), part(0, "y", "add", ""), part(1, "y", "", '{"b": 2}')],
    ),
    (
        "dirac#215: arguments under the next index",
        ONE,
        [part(0, "x", "add", '{"a": 1,'), part(1, None, None, ' "b": 2}')],
    ),
    (
        "the id in each delta",
        ONE,
        [part(0, "x", "add", ""), part(0, "x", None, '{"a": 1,'), part(0, "x", "", ' "b": 2}')],
    ),
    ("id and name in each delta", ONE, [part(0, "x", "add", '{"a": 1,'), part(0, "x", "add", ' "b": 2}')]),
    ("a new id in each delta", ONE, [part(0, "x", "add", '{"a": 1,'), part(0, "y", None, ' "b": 2}')]),
    ("index null, empty strings", ONE, [part(None, "", "add", ""), part(None, "", "", '{"a": 1, "b": 2}')]),
    (
        "the name in pieces",
        ONE,
        [part(0, "x", "ad", None), part(0, None, "d", None), part(0, None, None, '{"a": 1, "b": 2}')],
    ),
    ("the name grows", ONE, [part(0, "x", "ad", None), part(0, "x", "add", '{"a": 1, "b": 2}')]),
    ("arguments as an object", ONE, [part(0, "x", "add", {"a": 1, "b": 2})]),
    ("an object, then again", ONE, [part(0, "x", "add", {"a": 1, "b": 2}), part(0, "x", "add", {"a": 1, "b": 2})]),
    (
        "arguments repeated at the end",
        ONE,
        [part(0, "x", "add", '{"a": 1,'), part(0, None, None, ' "b": 2}'), part(0, "x", "add", '{"a": 1, "b": 2}')],
    ),
    (
        "arguments that grow",
        ONE,
        [part(0, "x", "add", '{"a"'), part(0, None, None, '{"a": 1,'), part(0, None, None, '{"a": 1, "b": 2}')],
    ),
    ("{} first, then the arguments", ONE, [part(0, "x", "add", "{}"), part(0, None, None, '{"a": 1, "b": 2}')]),
    (
        "each delta twice",
        ONE,
        [each for each in (part(0, "x", "add", '{"a": 1'), part(0, "x", None, ', "b": 2}')) for _ in range(2)],
    ),
    ("JSON in a JSON string", ONE, [part(0, "x", "add", '"{\\"a\\": 1, \\"b\\": 2}"')]),
    (
        "function_call",
        ONE,
        [{"function_call": {"name": "add", "arguments": ""}}, {"function_call": {"arguments": '{"a": 1, "b": 2}'}}],
    ),
    (
        "in the content",
        ONE,
        [{"content": '<tool_call>{"name": "add", "arg'}, {"content": 'uments": {"a": 1, "b": 2}}</tool_call>'}],
    ),
    (
        "behind thoughts, in the content",
        ONE,
        [{"content": "<think>add {</think>\n"}, {"content": '{"name": "add", "arguments": {"a": 1, "b": 2}}'}],
    ),
]


TOOL_CALLS += [
    ("{} again at the end", ONE, [part(0, "x", "add", '{"a": 1, "b": 2}'), part(0, None, None, "{}")]),
    ("function null first", ONE, [part(0, "x", "add", None, function=None), part(0, None, "add", '{"a": 1, "b": 2}')]),
    (
        "null in the list",
        ONE,
        [{"tool_calls": [None]}, {"tool_calls": [None, *part(0, "x", "add", '{"a": 1, "b": 2}')["tool_calls"]]}],
    ),
    (
        "tool_use parts (LiteLLM)",
        ONE,
        [{"content": [{"type": "tool_use", "id": "x", "name": "add", "input": {"a": 1, "b": 2}}]}],
    ),
]
_JSON = '{"name": "add", "arguments": {"a": 1, "b": 2}}'
_XML = "<function=add>\n<parameter=a>\n1\n</parameter>\n<parameter=b>\n2\n</parameter>\n</function>"
TOOL_CALLS += [
    (f"without a parser: {server}", ONE, [{"content": text[:9]}, {"content": text[9:20]}, {"content": text[20:]}])
    for server, text in (
        ("Llama 3.1", '<function=add>{"a": 1, "b": 2}</function>'),
        ("Llama 3.2", '<|python_tag|>{"name": "add", "parameters": {"a": 1, "b": 2}}'),
        ("Llama 4", "[add(a=1, b=2)]"),
        ("Gemma", "```tool_code\nprint(default_api.add(a=1, b=2))\n```"),
        ("Mistral", f"[TOOL_CALLS][{_JSON}]"),
        ("Mistral, later", '[TOOL_CALLS]add[ARGS]{"a": 1, "b": 2}'),
        ("Granite", f"<|tool_call|>[{_JSON}]"),
        ("Phi 4", f"<|tool_call|>[{_JSON}]<|/tool_call|>"),
        ("Qwen 3 Coder", f"<tool_call>\n{_XML}\n</tool_call>"),
        (
            "GLM",
            "<tool_call>add\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n<arg_key>b</arg_key>\n<arg_value>2</arg_value>\n</tool_call>",
        ),
        (
            "Anthropic's",
            '<function_calls><invoke name="add"><parameter name="a">1</parameter>'
            '<parameter name="b">2</parameter></invoke></function_calls>',
        ),
        (
            "DeepSeek V3",
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>add\n"
            '```json\n{"a": 1, "b": 2}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        ),
        (
            "DeepSeek V3.1",
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>add"
            '<｜tool▁sep｜>{"a": 1, "b": 2}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        ),
        (
            "Kimi",
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.add:0"
            '<|tool_call_argument_begin|>{"a": 1, "b": 2}<|tool_call_end|><|tool_calls_section_end|>',
        ),
        ("gpt-oss", '<|channel|>commentary to=functions.add <|constrain|>json<|message|>{"a": 1, "b": 2}<|call|>'),
        (
            "gpt-oss, the channel later",
            '<|start|>assistant to=functions.add<|channel|>commentary json<|message|>{"a": 1, "b": 2}<|call|>',
        ),
    )
]


@pytest.mark.parametrize(("server", "calls", "all_of"), TOOL_CALLS, ids=[row[0] for row in TOOL_CALLS])
@pytest.mark.parametrize("finish", ["tool_calls", "stop"])
async def test_streamed_calls_are_assembled(
    door: FakeEndpoint, model: Provider, server: str, calls: Any, all_of: Any, finish: str
) -> None:
    door.will(deltas(*all_of, finish=finish))
    parts = await parts_of(model, talk("?", tools=(ADD,)))
    found = [part for part in parts if isinstance(part, Call)]
    assert [(call.tool, fit(json.loads(call.arguments), ADD.parameters)) for call in found] == calls, server
    assert all(call.id for call in found) and not text_of(parts).strip()


@pytest.mark.parametrize(
    "text",
    [
        "In Python you write [add(a=1, b=2)] for it.",
        "[subtract(a=1, b=2)]",
        "[add(a=x, b=2)]",
        "[see page 3 (end)]",
        "Use <parameter=a> in it (so).",
        "```python\nadd(a=1, b=2)\nadd(a=3, b=4)\n```",
    ],
)
async def test_text_that_only_looks_like_a_call_is_the_answer(door: FakeEndpoint, model: Provider, text: str) -> None:
    door.will(deltas({"content": text}))
    assert await parts_of(model, talk("?", tools=(ADD,))) == [Piece(text)]


async def test_calls_of_tools_with_a_common_prefix_are_kept_apart(door: FakeEndpoint, model: Provider) -> None:
    more = ADD.__class__("add_more", "", ADD.parameters)
    door.will(deltas(part(0, None, "add", '{"a": 1}'), part(0, None, "add_more", '{"b": 2}')))
    found = [each for each in await parts_of(model, talk("?", tools=(ADD, more))) if isinstance(each, Call)]
    assert [(call.tool, call.arguments) for call in found] == [("add", '{"a": 1}'), ("add_more", '{"b": 2}')]


# Streams: formats and endings.

HI = 'data: {"choices":[{"index":0,"delta":{"content":"Hi."},"finish_reason":null}]}'
STOP = 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}'
WHOLE = {
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 7, "completion_tokens": 3},
}
CHOICE = {"index": 0, "delta": {"content": "Hi."}}
OTHER = {"index": 1, "delta": {"content": "Hello!"}}
PLAIN = f"{HI}\n\n{STOP}\n\n".encode()


def packed(coding: str, data: bytes) -> Floods:
    headers = {"Content-Type": "text/event-stream", "Content-Encoding": coding}
    return Floods(lambda: [bytes([each]) for each in data], headers)


STREAMS: list[tuple[str, Behaviour]] = [
    ("no [DONE]", Streams((HI, STOP))),
    ("no finish_reason, but [DONE] (one-api)", Streams((HI, "data: [DONE]"))),
    ("\\r\\n", raw(f"{HI}\r\n\r\n{STOP}\r\n\r\ndata: [DONE]\r\n\r\n")),
    ("\\r", raw(f"{HI}\r\r{STOP}\r\rdata: [DONE]\r\r")),
    ("no blank after `data:`", raw(f"{HI.replace(': {', ':{', 1)}\n\n{STOP}\n\ndata:[DONE]\n\n")),
    ("one line end only", raw(f"{HI}\n{STOP}\ndata: [DONE]\n")),
    ("no line end at the end", raw(f"{HI}\n\n{STOP}")),
    ("a BOM", raw(f"\ufeff{HI}\n\n{STOP}\n\n")),
    ("OpenRouter's comments", raw(f": OPENROUTER PROCESSING\n\n{HI}\n\n: ping\n\n{STOP}\n\ndata: [DONE]\n\n")),
    ("events with names and ids", raw(f"event: message\nid: 1\nretry: 9\n{HI}\n\nevent: end\n{STOP}\n\n")),
    (
        "JSON over several lines",
        raw('data: {"choices":[{"delta":{"content":\ndata: "Hi."},\ndata: "finish_reason":"stop"}]}\n\n'),
    ),
    (
        "bytes one by one",
        Floods(
            lambda: [bytes([byte]) for byte in f"{HI}\r\n\r\n{STOP}\r\n\r\n".encode()],
            {"Content-Type": "text/event-stream"},
        ),
    ),
    ("a whole completion (LocalAI)", Sends(json.dumps(WHOLE))),
    ("a whole completion, indented, as a stream", Sends(json.dumps(WHOLE, indent=2), "text/event-stream")),
    ("a whole completion as one event", sse(WHOLE)),
    (
        "usage with choices null or empty",
        sse(
            chunk({"content": "Hi."}),
            chunk({}, "stop"),
            {"choices": None, "usage": {"prompt_tokens": 7, "completion_tokens": 3}},
            {"choices": [], "usage": None},
        ),
    ),
    (
        "Azure's first chunk",
        sse({"choices": [], "prompt_filter_results": []}, chunk({"content": "Hi."}), chunk({}, "stop")),
    ),
    (
        "null everywhere",
        sse(
            chunk(None),
            chunk({"content": None, "tool_calls": None, "reasoning_content": None}),
            chunk({"content": "Hi."}),
            chunk(None, "stop"),
        ),
    ),
    (
        "the whole content again at the end",
        sse(chunk({"content": "H"}), chunk({"content": "i."}), chunk({"content": "Hi."}, "stop")),
    ),
    ("the whole message at the end", sse(chunk({"content": "Hi."}), WHOLE)),
    ("all text so far in each delta", deltas(*({"content": "Hi."[:end]} for end in (1, 2, 3, 3)))),
    (
        "a second choice beside the first",
        sse({"choices": [None, CHOICE, OTHER]}, {"choices": [OTHER]}, chunk({}, "stop")),
    ),
    ("null and a ping before", raw(f"data: null\n\nevent: ping\ndata: 12:30\n\ndata: : hold\n\n{HI}\n\n{STOP}\n\n")),
    ("wrapped once more", raw(f"data: {HI}\n\ndata: {STOP}\n\ndata: data: [DONE]\n\n")),
    ("indented", raw(f"  {HI}\n\n  {STOP}\n\n  data: [DONE]\n\n")),
    ("[done]", raw(f"{HI}\n\ndata: [done]\n\n")),
    ("DONE", raw(f"{HI}\n\ndata: DONE\n\n")),
    ("a text with annotations", deltas({"content": [{"type": "text", "text": {"value": "Hi.", "annotations": []}}]})),
    ("`text` of a completion", sse({"choices": [{"text": "Hi.", "finish_reason": "stop"}]})),
    (
        "finish_reason '' in each chunk (SGLang#3912)",
        sse(chunk({"content": "H"}, ""), chunk({"content": "i."}, ""), chunk({}, "stop")),
    ),
    (
        "finish_reason first, then text",
        sse(chunk({"content": ""}, "stop"), chunk({"content": "Hi."}), chunk({}, "stop")),
    ),
    ("text in the last chunk (Mistral)", sse(chunk({"content": "H"}), chunk({"content": "i."}, "stop"))),
    (
        "index null, then 0, then a text",
        sse(
            {"choices": [{"index": None, "delta": {"content": "H"}}]},
            chunk({"content": "i"}),
            {"choices": [{"index": "0", "delta": {"content": "."}}]},
            chunk({}, "stop"),
        ),
    ),
    ("choices without a list", sse({"choices": {"index": 0, "delta": {"content": "Hi."}, "finish_reason": "stop"}})),
    ("delta as a text", sse({"choices": [{"index": 0, "delta": "Hi."}]}, chunk({}, "stop"))),
    ("null among the calls", sse(chunk({"content": "Hi.", "tool_calls": [None]}), chunk({}, "stop"))),
    ("in an envelope", sse({"code": 0, "data": {"choices": [{"delta": {"content": "Hi."}, "finish_reason": "stop"}]}})),
    ("two events on one line", raw(f"{HI}{STOP}\n\ndata: [DONE]\n\n")),
    ("two values on one line", raw(f"{HI}{STOP[6:]}\n\ndata: [DONE]\n\n")),
    ("more after [DONE]", raw(f"{HI}\n\n{STOP}\n\ndata: [DONE]\n\n{HI}\n\ndata: [DONE]\n\n")),
    (
        "usage in a last chunk of its own, neither finish_reason nor [DONE]",
        sse(
            chunk({"content": "Hi."}),
            {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}},
            done=False,
        ),
    ),
    ("gzip, although not asked for", packed("gzip", gzip.compress(PLAIN))),
    ("deflate", packed("deflate", zlib.compress(PLAIN))),
    ("gzip in two members", packed("GZIP", gzip.compress(PLAIN[:9]) + gzip.compress(PLAIN[9:]))),
    *(
        (f"the end token {each.strip()}", deltas({"content": "Hi." + each[:3]}, {"content": each[3:]}))
        for each in (
            "<|im_end|>",
            "<|eot_id|>",
            "<|endoftext|>",
            "<end_of_turn>",
            "<｜end▁of▁sentence｜>",
            "</s>",
            "</s>\n",
            "[/INST]",
            "<|user|>",
        )
    ),
    *(
        (f"the head {each.strip()}", deltas({"content": each[:7]}, {"content": each[7:] + "Hi."}))
        for each in (
            "<|im_start|>assistant\n",
            "<|start_header_id|>assistant<|end_header_id|>",
            "<start_of_turn>model\n",
        )
    ),
    *(
        (f"goes on as the user: {each[1:9]}", deltas({"content": f"Hi.{each}"}, {"content": "And you?"}))
        for each in (
            "<|im_end|>\n<|im_start|>user\n",
            "<|eot_id|><|start_header_id|>user<|end_header_id|>",
            "<end_of_turn>\n<start_of_turn>user\n",
        )
    ),
    *(
        (f"finish_reason {each}", deltas({"content": "Hi."}, finish=each))
        for each in ("eos", "eos_token", "end_turn", "stop_sequence", "STOP", "length", "MAX_TOKENS", "content_filter")
    ),
]


@pytest.mark.parametrize(("form", "behaviour"), STREAMS, ids=[row[0] for row in STREAMS])
async def test_streams_are_read_in_every_format(
    door: FakeEndpoint, model: Provider, form: str, behaviour: Behaviour
) -> None:
    door.will(behaviour)
    assert text_of(await parts_of(model)).strip() == "Hi.", form
    assert text_of(await parts_of(model)) == "ok"


@pytest.mark.parametrize(
    "text",
    [
        "The token `<|im_end|>` ends it.",
        "Old: <s>5</s>",
        "```\n<|im_start|>user\n```\nSo.",
        "Say <|im_start|>user first.",
    ],
)
async def test_template_marks_that_are_quoted_are_kept(door: FakeEndpoint, model: Provider, text: str) -> None:
    door.will(deltas({"content": text[:14]}, {"content": text[14:]}))
    assert text_of(await parts_of(model)) == text


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('{"model": "m", "message": {"content": "Hi"}, "done": false}\n{"done": true}', "Ollama's own.* ends in /v1"),
        ('{"candidates": [{"content": {"parts": [{"text": "Hi"}]}}]}', "Gemini's own.* /v1beta/openai"),
        ('[{"candidates": []}]', "Gemini's own"),
        ('data: {"type": "response.created", "response": {}}\n\n', "Responses protocol"),
        ('event: message_start\ndata: {"type": "message_start", "message": {}}\n\n', "Anthropic's own"),
    ],
)
async def test_another_protocol_is_named(door: FakeEndpoint, model: Provider, body: str, words: str) -> None:
    door.will(raw(body))
    with pytest.raises(ModelUnavailable, match=words):
        await parts_of(model)


@pytest.mark.parametrize(
    ("pieces", "said"),
    [
        (("\ud83d", "\ude00 ok"), "😀 ok"),
        (("a\ud83d", "", "\ude00"), "a😀"),
        (("\ud83c", "\udf0d\ud83c", "\udf0e"), "🌍🌎"),
        (("ha", "haha"), "hahaha"),
        (("New ", "New York", " is"), "New New York is"),
        (("1", "10", "5"), "1105"),
    ],
)
async def test_streamed_text_is_neither_lost_nor_repeated(
    door: FakeEndpoint, model: Provider, pieces: tuple[str, ...], said: str
) -> None:
    door.will(deltas(*({"content": piece} for piece in pieces)))
    assert text_of(await parts_of(model)) == said


BROKEN: list[tuple[str, Behaviour, type[ModelError], str]] = [
    ("a refusal as a part", deltas({"content": [{"type": "refusal", "refusal": "No, sorry."}]}), ModelRefused, "sorry"),
    ("an error that is no JSON", raw("event: error\ndata: out of memory\n\n"), ModelUnavailable, "out of memory"),
    ("neither finish_reason nor [DONE]", Streams((HI,)), ModelUnavailable, "broke off"),
    ("abort (SGLang)", deltas({"content": "Hi"}, finish="abort"), ModelUnavailable, "abort"),
    (
        "finish_reason error (OpenRouter)",
        sse(chunk({"content": "Hi"}), chunk({"content": ""}, "error")),
        ModelUnavailable,
        "error",
    ),
    (
        "an error in a choice (OpenRouter)",
        sse({"choices": [{"error": {"code": 502, "message": "upstream"}}]}),
        ModelUnavailable,
        "upstream",
    ),
    ("an error with 200", sse({"error": {"message": "boom", "code": 500}}), ModelUnavailable, "boom"),
    (
        "an error as a text (Ollama)",
        sse(chunk({"content": "H"}), {"error": "model runner has stopped"}),
        ModelUnavailable,
        "runner",
    ),
    ("event: error", raw('event: error\ndata: {"message": "too many", "code": 429}\n\n'), RateLimited, "too many"),
    ("vLLM's error object", sse({"object": "error", "message": "no room", "code": 400}), ModelError, "no room"),
    (
        "an error body as a stream",
        Sends('{"error": {"message": "boom"}}', "text/event-stream"),
        ModelUnavailable,
        "boom",
    ),
    ("an error body", Sends('{"error": {"message": "slow", "code": "rate_limit_exceeded"}}'), RateLimited, "slow"),
    (
        "Gemini's list",
        Sends('[{"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}}]'),
        ModelUnavailable,
        "overloaded",
    ),
    ("HTML", Sends("<html>Sign in</html>", "text/html"), ModelUnavailable, "expected server-sent events or JSON"),
    (
        "content_filter: PROHIBITED_CONTENT (Gemini)",
        deltas(finish="content_filter: PROHIBITED_CONTENT"),
        PromptBlocked,
        "PROHIBITED",
    ),
    (
        "blocked, no choices (Gemini)",
        sse({"promptFeedback": {"blockReason": "SAFETY"}, "choices": []}),
        PromptBlocked,
        "SAFETY",
    ),
    (
        "400 content_policy_violation",
        Fails(400, "no", code="content_policy_violation"),
        PromptBlocked,
        "content filter",
    ),
    (
        "403 flagged (OpenRouter)",
        Fails(403, "Your chosen model requires moderation and your input was flagged"),
        PromptBlocked,
        "flagged",
    ),
]


@pytest.mark.parametrize(("form", "behaviour", "kind", "words"), BROKEN, ids=[row[0] for row in BROKEN])
async def test_a_failed_reply_reports_the_reason(
    door: FakeEndpoint, model: Provider, form: str, behaviour: Behaviour, kind: type[ModelError], words: str
) -> None:
    door.will(behaviour)
    with pytest.raises(kind, match=words):
        await parts_of(model)
    assert text_of(await parts_of(model)) == "ok", form


async def test_usage_is_found_in_every_place(door: FakeEndpoint, model: Provider) -> None:
    used = {"prompt_tokens": 7, "completion_tokens": 3}
    forms = (
        {"usage": used, "choices": None},
        chunk({}, None, usage=used),
        chunk({}, None, x_groq={"usage": used}),
        {"choices": [{"delta": {}, "usage": used}]},
    )
    for form in forms:
        door.will(sse(chunk({"content": "Hi."}), chunk({}, "stop"), form))
        assert Usage(7, 3) in await parts_of(model)


@pytest.mark.parametrize(
    "counts",
    [
        [{"prompt_tokens": "7", "completion_tokens": "3"}],
        [{"prompt_tokens": 7.0, "completion_tokens": 3.0}],
        [{"input_tokens": 7, "output_tokens": 3}],
        [{"prompt_tokens": 7, "total_tokens": 10}],
        [{"prompt_tokens": 7, "completion_tokens": 1, "total_tokens": 10}],
        [{"prompt_tokens": 7, "completion_tokens": 3}, {"prompt_tokens": 0, "completion_tokens": 0}],
        [{"prompt_tokens": 7, "completion_tokens": 1}, {"prompt_tokens": 7, "completion_tokens": 3}],
    ],
)
async def test_usage_is_read_in_every_form(door: FakeEndpoint, model: Provider, counts: list[Any]) -> None:
    """Thoughts that an endpoint counts in the total alone are part of the reply; zeros replace no count."""
    door.will(sse(chunk({"content": "Hi."}), chunk({}, "stop"), *({"choices": [], "usage": each} for each in counts)))
    assert Usage(7, 3) in await parts_of(model)


@pytest.mark.parametrize(
    "behaviour",
    [
        deltas({"reasoning_content": '{"score"'}, {"reasoning_content": ": 3}"}, {"content": ""}),
        deltas({"reasoning": '\n{"score": 3}\n', "content": None}),
        Sends(
            json.dumps(
                {
                    "choices": [
                        {"message": {"content": "", "reasoning_content": '{"score": 3}'}, "finish_reason": "stop"}
                    ]
                }
            )
        ),
    ],
)
async def test_an_answer_that_a_server_takes_for_thoughts_is_read(
    door: FakeEndpoint, model: Provider, behaviour: Behaviour
) -> None:
    door.will(behaviour)
    assert (await ask(model, Judge())).score == 3


async def test_json_in_thoughts_is_no_answer_beside_one_or_before_a_cut(door: FakeEndpoint, model: Provider) -> None:
    door.will(deltas({"reasoning": '{"score": 3}'}, {"content": '{"score": 5}'}))
    assert (await ask(model, Judge())).score == 5
    door.will(deltas({"reasoning": '{"score": 3}'}, finish="length"))
    with pytest.raises(ReplyInvalid):
        await parts_of(model, Request(Judge(), "r"))


@pytest.mark.parametrize("call", [f"<tool_call>\n{_XML}\n</tool_call>", f"<tool_call>{_JSON}</tool_call>", _JSON])
async def test_calls_that_a_server_takes_for_thoughts_are_made(door: FakeEndpoint, model: Provider, call: str) -> None:
    door.will(deltas({"reasoning_content": f"I need the sum.\n{call}"}, {"content": ""}))
    found = [part for part in await parts_of(model, talk("?", tools=(ADD,))) if isinstance(part, Call)]
    assert [(each.tool, fit(json.loads(each.arguments), ADD.parameters)) for each in found] == ONE
    door.will(deltas({"reasoning_content": f"I could write {call}"}, {"content": "It is 3."}))
    assert await parts_of(model, talk("?", tools=(ADD,))) == [Piece("It is 3.")]


@pytest.mark.parametrize(
    ("headers", "error", "wait_s"),
    [
        ({"retry-after-ms": "1500"}, {"message": "slow down"}, 1.5),
        ({}, {"message": "Quota exceeded", "details": [{"reason": "x"}, {"retryDelay": "17s"}]}, 17.0),
        ({}, {"message": "Limit reached. Please try again in 6.5s. Visit us."}, 6.5),
        ({}, {"message": "Limit reached. Please try again in 312ms."}, 0.312),
        ({}, {"message": "Limit reached. Please try again in 1m26.4s"}, 86.4),
        ({}, {"message": "Please retry after 26 seconds."}, 26.0),
        ({}, {"message": "Limit reached", "retry_after": 4}, 4.0),
        ({"Retry-After": "2"}, {"message": "Please try again in 9s"}, 2.0),
        ({}, {"message": "Try again in a while"}, None),
        ({}, {"message": "x", "details": [{"retryDelay": "soon"}], "retry_after": "inf"}, None),
    ],
)
async def test_the_pause_that_a_rate_limit_names_is_read(
    door: FakeEndpoint, model: Provider, headers: dict[str, str], error: dict[str, Any], wait_s: float | None
) -> None:
    body = json.dumps({"error": {**error, "code": 429}}).encode()
    door.will(Floods(lambda: [body], headers, status="429 Too Many"))
    with pytest.raises(RateLimited) as caught:
        await parts_of(model)
    assert caught.value.retry_after_s == wait_s


# Addresses and keys.


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("{url}?api-version=2024-10-21#m", "/v1/chat/completions?api-version=2024-10-21"),
        ("{url}/?api-version=2024-10-21&x=%20y#org%2Fm", "/v1/chat/completions?api-version=2024-10-21&x=+y"),
        ("{url}///#m", "/v1/chat/completions"),
        ("{url}/chat/completions/#m", "/v1/chat/completions"),
        ("  '{url}/chat/completions?a=b'".replace("'", "") + "#m ", "/v1/chat/completions?a=b"),
        (
            "openai:m@{url}/openai/deployments/d/chat/completions?api-version=1",
            "/v1/openai/deployments/d/chat/completions?api-version=1",
        ),
    ],
)
async def test_query_parameters_are_sent_with_each_request(
    door: FakeEndpoint, monkeypatch: pytest.MonkeyPatch, name: str, path: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-azure-123456")
    model = provider(name.format(url=door.url))
    assert text_of(await parts_of(model)) == "ok"
    asked = door.asked[-1]
    assert asked.path == path
    assert asked.headers.get("api-key", "") == ("sk-of-azure-123456" if "deployments" in path else "")
    await model.aclose()


KEY = "sk-abcdef0123456789"
COPIED = (
    f" {KEY}\n",
    f"{KEY}\r\n",
    f'"{KEY}"',
    f"“{KEY}”",
    f"\ufeff{KEY}",
    f"Bearer {KEY}",
    f"OPENAI_API_KEY={KEY}",
    f"export OPENAI_API_KEY='{KEY}'",
    f"Authorization: Bearer {KEY}",
    f"\u00a0{KEY}\u200b",
)


@pytest.mark.parametrize("copied", COPIED, ids=map(str, range(len(COPIED))))
def test_quotes_and_spaces_around_a_key_are_removed(monkeypatch: pytest.MonkeyPatch, copied: str) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", copied)
    assert address("openai:gpt-5").key == KEY
    assert address("openai:gpt-5", api_key=copied).key == KEY


@pytest.mark.parametrize(
    ("key", "what"),
    [
        ("sk-abc\ndef-012345", "a line break"),
        ("sk-äbcdef012345", r"U\+00E4"),
        ("sk-abc def012345", "a blank"),
        ("sk-abc\u2026345678", r"U\+2026"),
    ],
)
def test_a_key_invalid_in_a_header_is_reported_without_its_value(
    monkeypatch: pytest.MonkeyPatch, key: str, what: str
) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", key)
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(SettingsError, match=f"^OPENAI_API_KEY is not a key: .*{what}") as caught:
        address("openai:gpt-5@http://h/v1")
    assert "abc" not in str(caught.value) and "345" not in str(caught.value)


def test_a_key_in_a_url_is_refused() -> None:
    for query in ("key=abc", "api-version=1&api_key=abc", "subscription-key=abc"):
        with pytest.raises(SettingsError, match="must not contain a key") as caught:
            address(f"https://h/v1?{query}#m")
        assert "abc" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("ollama:m@http://me:pw@h", "OLLAMA_API_KEY"),
        ("anthropic:m@https://h?key=abc", "ANTHROPIC_API_KEY"),
        ("openai:m@https://h?key=abc", "OPENAI_API_KEY"),
        ("https://h?key=abc#m", "OPENAI_BASE_URL and OPENAI_API_KEY"),
    ],
)
def test_the_refusal_of_a_key_in_a_url_names_the_variable_that_is_read_instead(name: str, variable: str) -> None:
    with pytest.raises(SettingsError, match=f"Set {variable} instead$"):
        address(name)
