"""Real models by name: `openai:…`, `anthropic:…`, `google:…`, `ollama:…`, or any OpenAI-compatible URL.

The adapter is pydantic-ai's `direct` interface, imported in a thread when the first request is made: that takes half a
second. One attempt per request; trying again is the wrapper `Retry`'s business alone.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

from mindstream.errors import ModelRefused, ModelSilent, ReplyInvalid
from mindstream.models.address import Address, address
from mindstream.models.failures import failures
from mindstream.models.limits import SILENCE_S, Tally, Waits, all_tokens, waits
from mindstream.models.model import Call, Message, Part, Piece, Request, Usage

if TYPE_CHECKING:
    from pydantic_ai import messages as pydantic
    from pydantic_ai.messages import ModelResponseStreamEvent as Event
    from pydantic_ai.models import Model as Adapter
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.providers import Provider as AdapterProvider
    from pydantic_ai.settings import ModelSettings

T = TypeVar("T")

FIELDS = ("max_tokens", "max_completion_tokens", "")
"""How OpenAI-compatible endpoints are told how long a reply may get: nearly all know the old name, newest models only
the new one."""
_ODD_FIELD = re.compile(
    r"(unsupported|not supported|unrecogni[sz]ed|unknown|unexpected|extra|not permitted|invalid (parameter|argument))"
    r".{0,80}max_(completion_)?tokens"
    r"|max_(completion_)?tokens.{0,80}(unsupported|not supported|unrecogni[sz]ed|unknown|unexpected|not permitted)",
    re.IGNORECASE,
)


def provider(
    name: str, *, base_url: str | None = None, api_key: str | None = None, silence_s: float = SILENCE_S
) -> Provider:
    """Return the model of this name; nothing is sent yet.

    Args:
        silence_s: how long an endpoint may say nothing before a reply begins; the talker waits less (see limits).

    Raises:
        SettingsError: no such form, no key, or a package that is not installed.
    """
    return Provider(address(name, base_url=base_url, api_key=api_key), silence_s)


class Provider:
    """A model behind an endpoint. A reply that goes beyond its limits ends there (see limits)."""

    def __init__(self, address: Address, silence_s: float = SILENCE_S) -> None:
        self.name = address.name
        self._address = address
        self._silence_s = silence_s
        self._fields = list(FIELDS[1:] if address.vendor == "openai" else FIELDS)
        self._connecting = threading.Lock()
        self._adapters: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[Adapter, Any]] = WeakKeyDictionary()

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        known = self._adapters.get(loop := asyncio.get_running_loop())
        adapter = known[0] if known else await asyncio.to_thread(self._adapter, loop)
        from pydantic_ai.direct import model_request_stream

        (asked, tools), tally = _written(request), Tally(request)
        watch = _Watch(self.name, waits(request.role, self._silence_s))
        settings = self._settings(request)
        with failures(self._address, self._ask_otherwise):
            async with AsyncExitStack() as connection:
                opening = model_request_stream(adapter, asked, model_request_parameters=tools, model_settings=settings)
                stream = await watch.wait(connection.enter_async_context(opening), tally)
                events = aiter(stream) if stream else None
                while events and not tally.full and (event := await watch.wait(anext(events, None), tally)):
                    part, carried = _taken(event, tally)
                    if part:
                        yield part
                    if carried:
                        watch.go_on()
                answer = stream.get() if stream else None
            self._check(request, answer, tally)
        if answer and (used := _usage(answer)):
            yield used

    async def aclose(self) -> None:
        """Let go of the connections that wait for the next request."""
        _, close = self._adapters.pop(asyncio.get_running_loop(), (None, None))
        if close is not None:
            await close()

    def _check(self, request: Request, answer: pydantic.ModelResponse | None, tally: Tally) -> None:
        """Let a reply pass that is whole, or free text that was cut where it became too much."""
        if tally.full and not tally.called and not (tally.said and request.schema is None):
            error = ModelSilent if tally.late else ReplyInvalid  # to ask again would take as long
            raise error(f"{self.name} {tally.full}: its reply to {request.prompt.label()!r} was not taken")
        if answer and not (tally.said or tally.called) and answer.finish_reason == "content_filter":
            why = (answer.provider_details or {}).get("refusal", "its filter found the request unfit")
            raise ModelRefused(f"{self.name} refuses to answer: {self._address.quoted(why)}")

    def _settings(self, request: Request) -> ModelSettings:
        """Say how long the reply may get, in the words that this endpoint knows."""
        most = all_tokens(request)
        if self._address.vendor in ("anthropic", "google"):
            return {"max_tokens": most}
        return {"extra_body": {self._fields[0]: most}} if self._fields[0] else {}

    def _ask_otherwise(self, words: str) -> str:
        """Take the next way to limit a reply where the endpoint does not know this one; say so, or return ""."""
        if len(self._fields) == 1 or not _ODD_FIELD.search(words):
            return ""
        return f"does not know {self._fields.pop(0)!r}; it will be asked without"

    def _adapter(self, loop: asyncio.AbstractEventLoop) -> Adapter:
        """Connections belong to one event loop."""
        with self._connecting:
            if loop not in self._adapters:
                self._adapters[loop] = _connected(self._address)
            return self._adapters[loop][0]


class _Watch:
    """Waits for what comes next, not longer than it may take; keep-alives and empty pieces are nothing."""

    def __init__(self, name: str, waits: Waits) -> None:
        self._name, self._waits = name, waits
        self._now = asyncio.get_running_loop().time
        self._end = self._now() + waits.whole_s
        self._patience_s = waits.first_s
        self._until = self._now() + waits.first_s

    def go_on(self) -> None:
        """Note that something came."""
        self._patience_s = self._waits.between_s
        self._until = self._now() + self._patience_s

    async def wait(self, coming: Awaitable[T], tally: Tally) -> T | None:
        """Return what comes, or None where the time for the whole reply is up."""
        try:
            async with asyncio.timeout_at(min(self._until, self._end)):
                return await coming
        except TimeoutError:
            if self._until > self._end:
                tally.late, tally.full = True, f"took longer than {self._waits.whole_s:g} s"
                return None
        raise ModelSilent(f"{self._name} said nothing for {self._patience_s:g} s. Is it busy, or still loading?")


def _connected(at: Address) -> tuple[Adapter, Callable[[], Awaitable[None]]]:
    """Return pydantic-ai's model for an address, and how to close its connections."""
    from mindstream.models.wire import http_client

    http = http_client()
    if at.vendor == "anthropic":
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        claude = AnthropicProvider(api_key=at.key, base_url=at.url, http_client=http)
        return AnthropicModel(at.model, provider=claude, settings={"max_retries": 0}), http.aclose
    if at.vendor == "google":
        from pydantic_ai.models.google import GoogleModel
        from pydantic_ai.providers.google import GoogleProvider

        gemini = GoogleProvider(api_key=at.key, base_url=at.url, http_client=http)
        return GoogleModel(at.model, provider=gemini), http.aclose
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile

    # A stream that ends without its finish reason was cut off.
    profile = OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)
    return OpenAIChatModel(at.model, provider=openai_like(at, http), profile=profile), http.aclose


def openai_like(at: Address, http: Any) -> AdapterProvider[Any]:
    """Return pydantic-ai's way to an endpoint that speaks OpenAI's protocol."""
    from pydantic_ai.providers.ollama import OllamaProvider
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    from mindstream.models.openai_client import openai_client

    client = openai_client(at.url, at.key, http)
    if at.vendor == "compatible":
        return OpenAICompatibleProvider("openai-compatible", openai_client=client)
    return (OllamaProvider if at.vendor == "ollama" else OpenAIProvider)(openai_client=client)


def _written(request: Request) -> tuple[list[pydantic.ModelMessage], ModelRequestParameters]:
    """Write messages and tools as pydantic-ai wants them: what is not the model's own, gathered into requests."""
    from pydantic_ai import messages as pydantic
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.tools import ToolDefinition

    def heard(message: Message) -> pydantic.ModelRequestPart:
        if message.role == "tool":
            return pydantic.ToolReturnPart(message.tool, message.text, message.call_id)
        return (pydantic.SystemPromptPart if message.role == "system" else pydantic.UserPromptPart)(message.text)

    def said(message: Message) -> pydantic.ModelResponse:
        words = [pydantic.TextPart(message.text)] if message.text else []
        calls = (pydantic.ToolCallPart(call.tool, call.arguments, call.id) for call in message.calls)
        return pydantic.ModelResponse([*words, *calls])

    written: list[pydantic.ModelMessage] = []
    for own, run in groupby(request.messages, key=lambda message: message.role == "assistant"):
        messages = list(run)
        written += map(said, messages) if own else [pydantic.ModelRequest([*map(heard, messages)])]
    tools = [
        ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=tool.parameters)
        for tool in request.tools
    ]
    return written, ModelRequestParameters(function_tools=tools)


def _taken(event: Event, tally: Tally) -> tuple[Part | None, bool]:
    """Return a part where one is there, and whether the event brought anything at all.

    Text comes as it comes, calls when they are whole; a model's thoughts stay its own.
    """
    if event.event_kind == "part_end" and event.part.part_kind == "tool-call":
        call = event.part
        tally.call()
        arguments = call.args if isinstance(call.args, str) else call.args_as_json_str()
        return Call(_sound(call.tool_name), _sound(arguments), _sound(call.tool_call_id)), True
    kind, text = _brought(event)
    if not text:
        return None, False
    if kind == "text":
        text = tally.clip(text)
        return (Piece(text) if text else None), True
    (tally.think if kind == "thinking" else tally.argue)(text)
    return None, True


def _sound(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def _brought(event: Event) -> tuple[str, str]:
    """Return what kind of text an event adds, and the text."""
    if event.event_kind == "part_start":
        if event.part.part_kind in ("text", "thinking"):
            return event.part.part_kind, event.part.content or ""
        if event.part.part_kind == "tool-call":
            return "call", str(event.part.args or event.part.tool_name)
    if event.event_kind == "part_delta":
        delta = event.delta
        if delta.part_delta_kind == "tool_call":
            return "call", str(delta.args_delta or delta.tool_name_delta or "")
        if delta.part_delta_kind in ("text", "thinking"):
            return delta.part_delta_kind, delta.content_delta or ""
    return "", ""


def _usage(answer: pydantic.ModelResponse) -> Usage | None:
    """What the endpoint says that it took, None where it says nothing; priced by genai-prices where that can."""
    used = answer.usage
    if used.unmeasured_requests or not (used.input_tokens or used.output_tokens):
        return None
    try:
        cost = float(answer.cost().total_price)
    except (LookupError, ValueError):
        return Usage(used.input_tokens, used.output_tokens)
    return Usage(used.input_tokens, used.output_tokens, cost)
