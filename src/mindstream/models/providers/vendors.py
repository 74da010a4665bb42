"""Anthropic's and Google's endpoints, through pydantic-ai's `direct` interface."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from itertools import groupby
from typing import Any, Literal, cast

import httpx2
from pydantic_ai import exceptions
from pydantic_ai import messages as pydantic
from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import ModelResponseStreamEvent as Event
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from mindstream.models.model import Call, Message, Request, Usage, all_tokens
from mindstream.models.providers.adapter import Arrival, Arrivals, Delta, Withheld, gathered, price
from mindstream.models.providers.address import Address
from mindstream.models.providers.failures import Fault, Kind, causes, failures, words_of
from mindstream.models.providers.wire import CONNECT_S, Allowance, Refusal, certificates, check_response

HTTP_ERRORS = (httpx2.HTTPError, httpx2.InvalidURL)
FLOOD_BYTES = 4_096
DISCONNECTED = ("disconnected", "closed connection", "incomplete", "reset")


class Vendor:
    """An endpoint for which pydantic-ai has a model class."""

    def __init__(self, at: Address) -> None:
        self._at = at
        self._http = httpx2.AsyncClient(
            timeout=httpx2.Timeout(None, connect=CONNECT_S),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=100),
            follow_redirects=False,
            verify=certificates(),
            event_hooks={"request": [_ask_plain], "response": [_check]},
        )
        self._model = _model(at, self._http)

    def stream(self, request: Request) -> AbstractAsyncContextManager[Arrivals]:
        return gathered(self._ask(request))

    async def _ask(self, request: Request) -> AsyncGenerator[Arrival]:
        messages = _messages(request)
        tools = [
            ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=tool.parameters)
            for tool in request.tools
        ]
        parameters = ModelRequestParameters(function_tools=tools)
        with failures(self._at, ERROR_READERS):
            async with model_request_stream(
                self._model, messages, model_request_parameters=parameters, model_settings=_settings(request)
            ) as stream:
                async for event in stream:
                    if arrival := _arrival(event):
                        yield arrival
                answer = stream.get()
            if answer.finish_reason == "content_filter":
                yield Withheld((answer.provider_details or {}).get("refusal", "its content filter refused the request"))
            used = answer.usage
            if not used.unmeasured_requests and (used.input_tokens or used.output_tokens):
                tokens = used.input_tokens, used.output_tokens
                cost = price(answer.model_name or self._at.model, self._at, *tokens, used.cache_read_tokens)
                yield Usage(*tokens, cost, used.cache_read_tokens)

    async def aclose(self) -> None:
        await self._http.aclose()


async def _ask_plain(request: httpx2.Request) -> None:
    request.headers["accept-encoding"] = "identity"


async def _check(response: httpx2.Response) -> None:
    headers = response.headers
    check_response(response.status_code, headers.get("location", ""), headers.get("content-encoding", ""))
    response.stream = _BoundedStream(response.stream)


class _BoundedStream(httpx2.AsyncByteStream):
    """Passes bytes on, up to the limits of `wire.Allowance`."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        allowance = Allowance(0)
        async for data in self._stream:
            allowance.take(data)
            if len(data) >= FLOOD_BYTES:  # reading buffered data never waits, so let other tasks run
                await asyncio.sleep(0)
            yield data

    async def aclose(self) -> None:
        await self._stream.aclose()


def _model(at: Address, http: Any) -> Model:
    if at.vendor == "anthropic":
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        claude = AnthropicProvider(api_key=at.key, base_url=at.url, http_client=http)
        return AnthropicModel(at.model, provider=claude, settings={"max_retries": 0})
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    return GoogleModel(at.model, provider=GoogleProvider(api_key=at.key, base_url=at.url, http_client=http))


def _messages(request: Request) -> list[pydantic.ModelMessage]:
    """Return messages in pydantic-ai's form: adjacent messages that the model did not write become one request."""

    def heard(message: Message) -> pydantic.ModelRequestPart:
        if message.role == "tool":
            return pydantic.ToolReturnPart(message.tool, message.text, message.call_id)
        return (pydantic.SystemPromptPart if message.role == "system" else pydantic.UserPromptPart)(message.text)

    def said(message: Message) -> pydantic.ModelResponse:
        words = [pydantic.TextPart(message.text)] if message.text else []
        calls = (pydantic.ToolCallPart(call.tool, call.arguments, call.id) for call in message.calls)
        return pydantic.ModelResponse([*words, *calls])

    found: list[pydantic.ModelMessage] = []
    for own, run in groupby(request.messages, key=lambda message: message.role == "assistant"):
        messages = list(run)
        found += map(said, messages) if own else [pydantic.ModelRequest([*map(heard, messages)])]
    return found


def _arrival(event: Event) -> Arrival | None:
    """Return the content of an event as an arrival; None if it has none. A call is returned when it is complete."""
    part = getattr(event, "delta", None) or getattr(event, "part", None)
    of: Literal["reply", "thought", "arguments"]
    match part:
        case pydantic.ToolCallPart() as call if event.event_kind == "part_end":
            arguments = call.args if isinstance(call.args, str) else call.args_as_json_str()
            return Call(call.tool_name, arguments, call.tool_call_id)
        case pydantic.ToolCallPart(args=given, tool_name=name):
            of, text = "arguments", str(given or name)
        case pydantic.ToolCallPartDelta(args_delta=given, tool_name_delta=name):
            of, text = "arguments", str(given or name or "")
        case pydantic.TextPart(content=text) | pydantic.TextPartDelta(content_delta=text):
            of = "reply"
        case pydantic.ThinkingPart(content=text) | pydantic.ThinkingPartDelta(content_delta=text):
            of = "thought"
        case _:
            return None
    return Delta(of, text) if text and event.event_kind != "part_end" else None


KINDS: dict[type[Exception], Kind] = {
    exceptions.ModelQuotaExceededError: "spent",
    exceptions.ModelContextWindowExceededError: "too_long",
    exceptions.ModelRequestRejectedError: "rejected",
    exceptions.ModelHTTPError: "answered",
}


def _fault(error: Exception) -> Fault:
    """Convert an error of pydantic-ai to a `Fault`."""
    found = list(causes(error))
    words = words_of(getattr(error, "body", None)) or f"{type(found[-1]).__name__}: {found[-1]}"
    if any(isinstance(cause, Refusal) for cause in found):
        return Fault(words, "not_taken")
    if isinstance(error, exceptions.ModelConnectionError):
        protocol = type(found[-1]).__name__ == "RemoteProtocolError" and not any(map(words.lower().count, DISCONNECTED))
        return Fault(words, "unreachable" if error.phase == "connect" else "odd" if protocol else "broken")
    if kind := next((kind for each, kind in KINDS.items() if isinstance(error, each)), None):
        return Fault(words, kind, getattr(error, "status_code", 0), getattr(error, "retry_after", None))
    is_api = isinstance(error, exceptions.ModelAPIError) and not any(isinstance(each, ValueError) for each in found)
    return Fault(words, "answered" if is_api else "odd")


def _broken(error: Exception) -> Fault:
    """Convert a connection error that pydantic-ai did not wrap into a `Fault`."""
    return Fault(f"{type(error).__name__}: {error}", "not_taken" if isinstance(error, Refusal) else "broken")


ERROR_READERS: dict[type[Exception], Callable[[Exception], Fault]] = {
    exceptions.ModelAPIError: _fault,
    exceptions.UnexpectedModelBehavior: _fault,
    **dict.fromkeys((Refusal, *HTTP_ERRORS), _broken),
}
"""Functions that convert pydantic-ai's errors to faults, for `failures`."""


def _settings(request: Request) -> ModelSettings:
    """Return a request's settings in pydantic-ai's form: the maximum number of tokens, and the sampling parameters."""
    sampling = request.sampling.fields()
    if stop := sampling.pop("stop", None):
        sampling["stop_sequences"] = stop
    return cast("ModelSettings", {"max_tokens": all_tokens(request), **sampling})
