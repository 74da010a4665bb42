"""Endpoints that speak OpenAI's protocol, through OpenAI's own client.

The client's `post` sends a body as it is and gives what comes as plain data. Its typed way walks through every message
before it sends one (0.1 ms each) and builds a tree of objects for every piece: three times the work of all the rest.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from openai import APIConnectionError, APIError, APIStatusError, AsyncOpenAI, AsyncStream

from mindstream.chance import token
from mindstream.errors import ModelUnavailable
from mindstream.models.legible import legible
from mindstream.models.model import Call, JsonSchema, Logprobs, Message, Request, TextLogprobs, ToolSpec, Usage
from mindstream.models.providers.adapter import Arrival, Delta, Withheld
from mindstream.models.providers.address import Address
from mindstream.models.providers.failures import Fault, Kind, causes, failures, retry_after_s, words_of
from mindstream.models.providers.given_text import TextWeigher, Way, prompt_text
from mindstream.models.providers.limits import CALLS, all_tokens
from mindstream.models.providers.prices import price
from mindstream.models.providers.typed_calls import UNKNOWN_TOOLS, in_words, read_calls
from mindstream.models.providers.wire import BODY_ERRORS, http_client, kind_of
from mindstream.models.shorten import estimate_tokens

FIELDS = ("max_tokens", "max_completion_tokens", "")
"""How an endpoint is told how long a reply may get: nearly all know the old name, newest models only the new one."""
_ODD_FIELD = re.compile(
    r"(unsupported|not supported|unrecogni[sz]ed|unknown|unexpected|extra|not permitted|invalid (parameter|argument))"
    r".{0,80}max_(completion_)?tokens"
    r"|max_(completion_)?tokens.{0,80}(unsupported|not supported|unrecogni[sz]ed|unknown|unexpected|not permitted)",
    re.IGNORECASE,
)
_ODD_EXTRA = {
    "response_format": re.compile(r"response[ _]?format|json[ _]?schema|structured[ _]?output|grammar", re.IGNORECASE),
    "logprobs": re.compile(r"log[ _]?prob|max_(completion_)?tokens|output limit", re.IGNORECASE),
    "tools": UNKNOWN_TOOLS,
    "temperature": re.compile(r"temperature", re.IGNORECASE),
    "top_p": re.compile(r"top[ _]?p\b", re.IGNORECASE),
    "seed": re.compile(r"\bseed\b", re.IGNORECASE),
    "stop": re.compile(r"['\"`]stop['\"`]", re.IGNORECASE),
}
"""How an endpoint that refuses what nobody needs to know names it; a model that thinks cannot answer in one token."""
TOP = 20
"""How many tokens an endpoint says probabilities of: more it does not."""
THOUGHTS = ("reasoning_content", "reasoning")
"""Where thoughts come: DeepSeek's, Qwen's and vLLM's field, and that of Ollama and OpenRouter."""
SPENT = frozenset({
    "insufficient_quota", "billing_hard_limit_reached", "credit_balance_exhausted", "exceeded_current_quota_error",
    "organization_spend_limit_exceeded", "project_spend_limit_exceeded", "organization_usage_limit_exceeded",
})  # fmt: skip
"""Codes that say that no credit is left: they come with the status of a rate limit."""
STATUS = {
    "rate_limit_exceeded": 429, "rate_limit_error": 429, "too_many_requests": 429, "context_length_exceeded": 400,
    "service_unavailable": 503, "service_unavailable_error": 503, "server_is_overloaded": 503, "overloaded": 503,
    "server_error": 500, "invalid_api_key": 401, "model_not_found": 404,
}  # fmt: skip
"""The status of an error that comes without one, within a stream."""


def openai_client(at: Address, whole_bytes: int = 0) -> AsyncOpenAI:
    """Return a client that makes one attempt (see wire for its limits)."""
    http = http_client(whole_bytes, here=at.vendor == "gguf")
    return AsyncOpenAI(base_url=at.url, api_key=at.key, http_client=http, max_retries=0)


class OpenAIChat:
    """An endpoint's `/chat/completions`; and how likely it finds a given text."""

    ways: tuple[Way, ...] = ("echo", "prompt_logprobs", "grammar")

    def __init__(self, at: Address) -> None:
        self._at = at
        self._client = openai_client(at)
        self._weigher = TextWeigher(at, self._client, self.ways)
        self._fields = list(FIELDS[1:] if at.vendor == "openai" else FIELDS)
        self._unknown: set[str] = set()
        """What the endpoint has said that it does not know, of what nobody needs to know."""

    def stream(self, request: Request) -> AsyncGenerator[Arrival]:
        if request.continuation:
            return self._weigh(request)
        if not request.tools:
            return self._ask(request)
        typed = "tools" in self._unknown
        return read_calls(self._ask(in_words(request) if typed else request), request, typed)

    async def _weigh(self, request: Request) -> AsyncGenerator[Arrival]:
        before = prompt_text(request.messages)
        yield TextLogprobs(tuple(await self._weigher.weigh(before, request.continuation)))
        asked = estimate_tokens(before) + estimate_tokens(request.continuation)
        yield Usage(asked, 1, price(self._at.model, self._at, asked, 1))

    async def _ask(self, request: Request) -> AsyncGenerator[Arrival]:
        body = self._body(request)
        with failures(self._at, TOLD, lambda words: self._ask_otherwise(words, body)):
            stream = await self._client.post(
                "/chat/completions", body=body, cast_to=object, stream=True, stream_cls=AsyncStream[object]
            )
            reply = _Reply(self._at)
            async with stream:
                async for chunk in stream:
                    for arrival in reply.read(chunk):
                        yield arrival
            for arrival in reply.end():
                yield arrival

    async def aclose(self) -> None:
        await self._client.close()

    def _body(self, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._at.model,
            "messages": [_message(message) for message in request.messages],
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        body |= {name: value for name, value in request.sampling.fields().items() if name not in self._unknown}
        if request.options and "logprobs" not in self._unknown:
            body |= self._measured()
        elif request.options:  # asked in words, it may think before it answers
            request = replace(request, options=())
        if request.tools:
            body |= {"tools": [_tool(tool) for tool in request.tools], "tool_choice": "auto"}
        elif not request.options and _is_object(request.schema) and "response_format" not in self._unknown:
            body |= self._enforced(request)
        return body | ({self._fields[0]: all_tokens(request)} if self._fields[0] else {})

    def _measured(self) -> dict[str, Any]:
        """Return how the probabilities of the first token are asked for."""
        return {"logprobs": True, "top_logprobs": TOP, "temperature": 0}

    def _enforced(self, request: Request) -> dict[str, Any]:
        """Return how a reply is held to its schema."""
        schema = request.schema or {}
        named = {"name": request.prompt.label()[:64], "schema": schema, "strict": _is_strict(schema)}
        return {"response_format": {"type": "json_schema", "json_schema": named}}

    def _ask_otherwise(self, words: str, asked: dict[str, Any]) -> str:
        """Ask for less, or limit a reply in the next way, where the endpoint does not know this one; say so, or ""."""
        for field, odd in _ODD_EXTRA.items():
            if field in asked and field not in self._unknown and odd.search(words):
                self._unknown.add(field)
                return f"does not know {field!r}; it will be asked without"
        if len(self._fields) == 1 or not _ODD_FIELD.search(words):
            return ""
        return f"does not know {self._fields.pop(0)!r}; it will be asked without"


class _Reply:
    """Reads a reply, chunk by chunk; whatever is not of the protocol ends in one of Python's own errors."""

    def __init__(self, at: Address) -> None:
        self._at = at
        self._calls: list[_Begun] = []
        self._came = self._finished = self._measured = False
        self._refusal = self._filtered = ""
        self._used: Any = None
        self._kept = 0
        self._model = at.model

    def read(self, chunk: Any) -> Iterator[Arrival]:
        """Give what a chunk brings."""
        self._came = True
        self._model = str(chunk.get("model") or self._model)
        self._used = chunk.get("usage") or self._used
        self._kept = read_count((chunk.get("timings") or {}).get("cache_n")) or self._kept
        if not (choices := chunk.get("choices")):
            return
        choice = choices[0]
        finish = choice.get("finish_reason")
        self._finished = self._finished or bool(finish)
        if finish == "content_filter":
            self._filtered = "its filter found the request unfit"
        if not (delta := choice.get("delta")):
            return
        self._refusal += delta.get("refusal") or ""
        thought = next(filter(None, map(delta.get, THOUGHTS)), "")
        if isinstance(thought, str) and thought:
            yield Delta("thought", thought)
        if text := _text(delta.get("content")):
            yield Delta("reply", text)
        if not self._measured and (first := _first_token(choice.get("logprobs"))):
            self._measured = True
            yield first
        for call in delta.get("tool_calls") or ():
            yield from self._argue(call)

    def end(self) -> Iterator[Arrival]:
        """Give what stands at a reply's end.

        Raises:
            ModelUnavailable: it was cut off.
        """
        if not self._came:
            raise ValueError("no event came")
        if not self._finished:
            raise ModelUnavailable(f"{self._at.name} broke off: there was no finish_reason. It may work later")
        yield from self._whole()
        if why := self._refusal or self._filtered:
            yield Withheld(why)
        if used := _usage(self._used, self._kept, self._model, self._at):
            yield used

    def _argue(self, delta: Any) -> Iterator[Arrival]:
        """Take some more of a call: of the one with its index, unless it brings another id and a name."""
        function = delta.get("function") or {}
        index, id_, name = delta.get("index"), delta.get("id") or "", function.get("name") or ""
        arguments = function.get("arguments") or ""
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments)
        call = next((call for call in reversed(self._calls) if call.index == index), None)
        if call is None or (name and id_ not in ("", call.id)):  # some endpoints give every call the index 0
            if len(self._calls) > CALLS:
                yield from self._whole()
            self._calls.append(call := _Begun(index, id_ or f"call_{token()}"))
        call.name += name
        call.arguments += arguments
        if more := arguments or name:
            yield Delta("arguments", more)

    def _whole(self) -> Iterator[Arrival]:
        for call in self._calls:
            yield Call(call.name, call.arguments, call.id)
        self._calls.clear()


@dataclass
class _Begun:
    """A call that is not whole yet."""

    index: Any
    id: str
    name: str = ""
    arguments: str = ""


def _unheard(error: Exception) -> Fault:
    """Say what went wrong with the connection."""
    *_, cause = causes(error)
    return Fault(f"{type(cause).__name__}: {cause}", kind_of(error))


def _said(error: Any) -> Fault:
    """Read an error that the endpoint itself tells, before the stream or within it."""
    body = error.body.get("error", error.body) if isinstance(error.body, dict) else error.body
    codes = {str(body.get(key)) for key in ("code", "type")} if isinstance(body, dict) else set()
    words = words_of(error.body) or error.message
    status, wait_s = next(filter(None, map(_status, codes)), 0), None
    if isinstance(error, APIStatusError):
        status, wait_s = error.status_code, retry_after_s(error.response.headers)
    kind: Kind = "spent" if codes & SPENT or status == 402 else "answered"
    return Fault(words, "too_long" if "context_length_exceeded" in codes else kind, status, wait_s)


def _status(code: str) -> int:
    """Return the status that a code stands for; gateways send the status itself."""
    return int(code) if re.fullmatch("[45][0-9]{2}", code) else STATUS.get(code, 0)


TOLD: dict[type[Exception], Callable[[Exception], Fault]] = {
    APIConnectionError: _unheard,
    APIError: _said,
    **dict.fromkeys(BODY_ERRORS, _unheard),
}
"""How to read what OpenAI's client raises, or lets through."""


def _message(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.call_id, "content": message.text}
    if message.role != "assistant" or not message.calls:
        return {"role": message.role, "content": message.text}
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.tool, "arguments": call.arguments}}
        for call in message.calls
    ]
    return {"role": "assistant", "content": message.text or None, "tool_calls": calls}


def _tool(tool: ToolSpec) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def _text(content: Any) -> str:
    """Return a delta's text; some endpoints send it as a list of parts."""
    if isinstance(content, list):
        return "".join(part.get("text") or "" for part in content)
    if content is not None and not isinstance(content, str):
        raise TypeError(f"content is of the type {type(content).__name__}")
    return content or ""


def _first_token(logprobs: Any) -> Logprobs | None:
    """Return what could stand first in a reply; None where nothing is said of it."""
    if not logprobs or not (places := logprobs.get("content")):
        return None
    likely: dict[str, float] = {}
    for each in (*(places[0].get("top_logprobs") or ()), places[0]):
        likely.setdefault(legible(str(each["token"])), float(each["logprob"]))
    return Logprobs(tuple(sorted(likely.items(), key=lambda item: -item[1])))


def _is_object(schema: JsonSchema | None) -> bool:
    return schema is not None and schema.get("type") == "object"


def _is_strict(node: Any) -> bool:
    """Say whether every object in a schema is closed and needs all its fields: only such are taken as strict."""
    if isinstance(node, list):
        return all(map(_is_strict, node))
    if not isinstance(node, dict):
        return True
    if node.get("type") == "object":
        fields = node.get("properties", {})
        if node.get("additionalProperties") is not False or fields.keys() != set(node.get("required", ())):
            return False
    return all(map(_is_strict, node.values()))


def read_count(number: Any) -> int:
    """Return a count of tokens; 0 where an endpoint sends what is none."""
    return number if type(number) is int and 0 <= number < 2**53 else 0


def _usage(used: Any, kept: int, model: str, at: Address) -> Usage | None:
    """Return what the endpoint says that it took; None where it says nothing that can be."""
    if not isinstance(used, dict):
        return None
    asked, answered = (read_count(used.get(key)) for key in ("prompt_tokens", "completion_tokens"))
    if not asked and not answered:
        return None
    details = used.get("prompt_tokens_details")
    named = details.get("cached_tokens") if isinstance(details, dict) else used.get("prompt_cache_hit_tokens")
    cached = min(asked, read_count(named) or kept)
    return Usage(asked, answered, price(model, at, asked, answered, cached), cached)
