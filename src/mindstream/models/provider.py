"""Real models by name: `openai:…`, `anthropic:…`, `google:…`, `ollama:…`, or any OpenAI-compatible URL.

The adapter is pydantic-ai's `direct` interface, imported in a thread when the first request is made: that takes half a
second. One attempt per request; trying again is the wrapper `Retry`'s business alone.
"""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import groupby
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from mindstream.errors import ModelError, ModelRefused, ModelUnavailable, RateLimited, SettingsError
from mindstream.models.model import Call, Message, Part, Piece, Request, Usage

if TYPE_CHECKING:
    from pydantic_ai import messages as pydantic
    from pydantic_ai.exceptions import ModelAPIError
    from pydantic_ai.messages import ModelResponseStreamEvent as Event
    from pydantic_ai.models import Model as Adapter
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.providers import Provider as AdapterProvider

FORMS = "openai:NAME, anthropic:NAME, google:NAME, ollama:NAME, http://host:port/v1#NAME"
SILENCE_S = 30.0
CONNECT_S = 10.0

_NO_KEY = "no-key"
_KEYS = {
    "openai": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "ollama": ("OLLAMA_API_KEY",),
}
_HOMES = {"openai": "OPENAI_BASE_URL", "ollama": "OLLAMA_BASE_URL"}
_PACKAGES = {"openai": (), "anthropic": ("anthropic",), "google": ("google", "google.genai")}
_OPENAI = "api.openai.com"
KINDS = frozenset({*_KEYS, "http", "https"})
"""What a name may begin with."""


def provider(
    name: str, *, base_url: str | None = None, api_key: str | None = None, silence_s: float = SILENCE_S
) -> Provider:
    """Return the model of this name; nothing is sent yet.

    Args:
        silence_s: how long an endpoint may say nothing, before its first part and between two; the whole may last.

    Raises:
        SettingsError: no such form, no key, or a package that is not installed.
    """
    return Provider(address(name, base_url=base_url, api_key=api_key), silence_s)


@dataclass(frozen=True, slots=True)
class Address:
    """Where a name leads: to a vendor, or to what is OpenAI-`compatible`. `url` None: the vendor's own."""

    name: str
    vendor: str
    model: str
    url: str | None
    key: str = field(repr=False)

    def told(self, text: object) -> str:
        """Return what an endpoint said, in one short line, without the key."""
        line = " ".join(str(text).split())
        line = line if self.key == _NO_KEY else line.replace(self.key, "***")
        return line if len(line) <= 300 else line[:299] + "…"

    def hint(self) -> str:
        """Say what is mostly wrong with a typed address."""
        return ". Its address mostly ends in /v1" if self.vendor in ("compatible", "ollama") else ""

    def where_the_key_is(self) -> str:
        """Name the environment variable that holds the key."""
        own = _KEYS.get(self.name.partition(":")[0])
        return " or ".join(own) if own else "OPENAI_API_KEY, and name it openai:NAME@URL: a bare URL gets no key"


def address(name: str, *, base_url: str | None = None, api_key: str | None = None) -> Address:
    """Read a model's name. `OPENAI_API_KEY` goes to OpenAI, to `OPENAI_BASE_URL` and to `openai:NAME@URL`, no further.

    Raises:
        SettingsError: see `provider`.
    """
    kind, _, rest = name.partition(":")
    if kind in ("http", "https"):
        url, _, model = name.partition("#")
        home = _url(base_url or url)
        return Address(name, "compatible", model or "default", home, api_key or _key_sent_to(home))
    if not rest or kind not in _KEYS:
        raise SettingsError(f"{name!r} is not the name of a model; the forms are {FORMS}")
    at = re.fullmatch(r"(.+)@(https?://.+)", rest)
    model, given = (at[1], base_url or at[2]) if at else (rest, base_url or os.environ.get(_HOMES.get(kind, "")))
    given = _url(given) if given else None
    key = api_key or next(filter(None, map(os.environ.get, _KEYS[kind])), None)
    if kind == "openai" and given and urlsplit(given).hostname != _OPENAI:
        return Address(name, "compatible", model, given, key or _NO_KEY)
    if kind == "ollama":
        given = given or "http://127.0.0.1:11434"
        given = given if urlsplit(given).path.strip("/") else given.rstrip("/") + "/v1"
        return Address(name, "ollama", model, given, key or _NO_KEY)
    if not all(map(find_spec, _PACKAGES[kind])):
        raise SettingsError(f"{name!r} needs a package that is not installed: pip install 'mindstream[{kind}]'")
    if key is None:
        raise SettingsError(f"{name!r} needs a key: set {' or '.join(_KEYS[kind])}")
    return Address(name, kind, model, given, key)


def _url(url: str) -> str:
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fits = False
    if not fits:
        raise SettingsError(f"a model's address looks like http://host:port/v1, not like {url!r}")
    if parts.username or parts.password:
        raise SettingsError("a model's address must not hold a password: names are logged. Set OPENAI_API_KEY instead")
    return url


def _key_sent_to(url: str) -> str:
    homes = (f"https://{_OPENAI}", os.environ.get("OPENAI_BASE_URL", ""))
    known = any(urlsplit(home)[:2] == urlsplit(url)[:2] for home in homes)
    return (os.environ.get("OPENAI_API_KEY") if known else None) or _NO_KEY


class Provider:
    """A model behind an endpoint."""

    def __init__(self, address: Address, silence_s: float = SILENCE_S) -> None:
        self.name = address.name
        self._address = address
        self._silence_s = silence_s
        self._connecting = threading.Lock()
        self._adapters: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[Adapter, Any]] = WeakKeyDictionary()

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        known = self._adapters.get(loop := asyncio.get_running_loop())
        adapter = known[0] if known else await asyncio.to_thread(self._adapter, loop)
        from pydantic_ai.direct import model_request_stream

        (asked, tools), said = _written(request), False
        with failures(self._address, self._silence_s):
            async with AsyncExitStack() as connection:
                async with asyncio.timeout(self._silence_s):
                    stream = await connection.enter_async_context(
                        model_request_stream(adapter, asked, model_request_parameters=tools)
                    )
                events = aiter(stream)
                while event := await self._next(events):
                    if part := _part(event):
                        said = True
                        yield part
                answer = stream.get()
            if not said and answer.finish_reason == "content_filter":
                why = (answer.provider_details or {}).get("refusal", "its filter found the request unfit")
                raise ModelRefused(f"{self.name} refuses to answer: {self._address.told(why)}")
        if used := _usage(answer):
            yield used

    async def aclose(self) -> None:
        """Let go of the connections that wait for the next request."""
        _, close = self._adapters.pop(asyncio.get_running_loop(), (None, None))
        if close is not None:
            await close()

    async def _next(self, events: AsyncIterator[Event]) -> Event | None:
        async with asyncio.timeout(self._silence_s):
            return await anext(events, None)

    def _adapter(self, loop: asyncio.AbstractEventLoop) -> Adapter:
        """Connections belong to one event loop."""
        with self._connecting:
            if loop not in self._adapters:
                self._adapters[loop] = _connected(self._address)
            return self._adapters[loop][0]


def _connected(at: Address) -> tuple[Adapter, Callable[[], Awaitable[None]]]:
    """Return pydantic-ai's model for an address, and how to close its connections."""
    from openai import DefaultAsyncHttpxClient, Timeout

    http = DefaultAsyncHttpxClient(timeout=Timeout(None, connect=CONNECT_S))
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


def _part(event: Event) -> Part | None:
    """Text as it comes, calls when they are whole; a model's thoughts stay its own."""
    if event.event_kind == "part_start" and event.part.part_kind == "text" and event.part.content:
        return Piece(event.part.content)
    if event.event_kind == "part_delta" and event.delta.part_delta_kind == "text" and event.delta.content_delta:
        return Piece(event.delta.content_delta)
    if event.event_kind == "part_end" and event.part.part_kind == "tool-call":
        call = event.part
        return Call(
            call.tool_name, call.args if isinstance(call.args, str) else call.args_as_json_str(), call.tool_call_id
        )
    return None


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


@contextmanager
def failures(at: Address, silence_s: float) -> Iterator[None]:
    """Turn whatever an endpoint does wrong into a `ModelError`."""
    from pydantic_ai.exceptions import ModelAPIError, UnexpectedModelBehavior

    try:
        yield
    except TimeoutError:
        raise ModelUnavailable(f"{at.name} said nothing for {silence_s:g} s. Is it busy, or still loading?") from None
    except ModelAPIError as error:
        raise _failure(at, error) from None
    except (UnexpectedModelBehavior, AttributeError, TypeError, ValueError, LookupError) as error:
        what = f"{type(error).__name__}: {at.told(error)}"
        raise ModelUnavailable(f"{at.name} answered what is not of its protocol ({what}){at.hint()}") from None


def _failure(at: Address, error: ModelAPIError) -> ModelError:
    from pydantic_ai import exceptions as pydantic

    status = error.status_code if isinstance(error, pydantic.ModelHTTPError) else 0
    what = f"HTTP {status}: {at.told(_words(error))}" if status else at.told(_words(error))
    if isinstance(error, pydantic.ModelConnectionError):
        where = at.url or "its address"
        return ModelUnavailable(f"{at.name} cannot be reached, or broke off ({what}). Is it running at {where}?")
    if isinstance(error, pydantic.ModelQuotaExceededError):
        return ModelRefused(f"{at.name} has no credit left ({what}). Asking again will not help")
    if status == 429:
        return RateLimited(f"{at.name} asks to wait ({what})", error.retry_after)
    if status in (401, 403):
        return ModelRefused(f"{at.name} refuses the key ({what}). Check {at.where_the_key_is()}")
    if status == 404:
        return ModelRefused(f"{at.name} is not there ({what}). Check the model's name{at.hint()}")
    passing = status in (408, 409, 425) or not 400 <= status < 500
    if passing and not isinstance(error, pydantic.ModelRequestRejectedError):
        return ModelUnavailable(f"{at.name} failed, or broke off ({what}). It may work later")
    return ModelRefused(f"{at.name} refuses the request ({what})")


def _words(error: ModelAPIError) -> str:
    """The words of an error's body, in any of the usual shapes; without a body, those of whatever caused it."""
    body = error.body.get("error", error.body) if isinstance(error.body, dict) else error.body
    if body:
        return str(body.get("message") or body) if isinstance(body, dict) else str(body)
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    return f"{type(cause).__name__}: {cause}"
