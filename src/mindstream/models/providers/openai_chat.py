"""The adapter of endpoints with OpenAI's protocol; it writes requests and reads replies without a client library.

A client library, which builds objects for each chunk of a reply, would take three times the CPU of all other work.

Log-probabilities of a given text, token by token, are read in three ways; endpoints that offer only chat support none
of them:

- echo: `/completions` returns the prompt with its log-probabilities (vLLM, SGLang, OpenAI's base models).
- prompt_logprobs: a field of vLLM's own.
- grammar: for llama.cpp, in this process or behind a server. A grammar allows only the text's tokens, so that the model
  "writes" them and reports the probability that each had before the grammar was applied. A grammar can only name whole
  characters, so a text is refused if the model splits one of its characters into several tokens, as small models do
  with Chinese.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from itertools import accumulate, groupby
from typing import TYPE_CHECKING, Any, Literal

from mindstream.chance import token
from mindstream.errors import ModelError, ModelRefused, ModelUnavailable
from mindstream.models.fitting import match_name
from mindstream.models.model import Call, Logprobs, Message, Request, TextLogprobs, Usage, all_tokens, estimate_tokens
from mindstream.models.providers.adapter import (
    MAX_CALLS,
    Arrival,
    Arrivals,
    Delta,
    Truncated,
    Withheld,
    gathered,
    joined,
    one_by_one,
    price,
)
from mindstream.models.providers.address import Address
from mindstream.models.providers.failures import LIMITS, ROLES, capabilities_of, failures, refused_fields, words_of
from mindstream.models.providers.tool_calls import in_words, merge_turns, read_calls
from mindstream.models.providers.wire import DONE, ERROR_READERS, Client, EndpointError, EventReader, Response
from mindstream.models.schema import lean
from mindstream.models.untrusted import legible

MAX_ATTEMPTS = 8
"""Maximum number of requests for one reply, each without the fields that the endpoint refused before."""
TOP = 20
"""Number of token probabilities that are requested, the maximum that endpoints return."""
THOUGHTS = ["reasoning_content", "reasoning", "thinking", "reasoning_details", "thinking_blocks", "thought"]
"""Reply fields for thoughts. The servers that send these fields, in the same order: DeepSeek, Qwen and vLLM; Ollama,
OpenRouter and Groq; Ollama's own protocol; OpenRouter; LiteLLM; others."""
FILTERED = re.compile(
    r"content[_ -]?filter|safety|prohibited|blocklist|spii|recitation|sensitive|guardrail|moderation|violation",
    re.IGNORECASE,
)
"""Finish reasons of content filters of OpenAI, Azure, Mistral, Gemini (also after `content_filter:`) and Zhipu."""
CUT = ["length", "max_tokens", "model_length", "max_output_tokens", "token_limit"]
FAILED = ["error", "abort", "aborted", "cancelled", "insufficient_system_resource", "network_error"]
"""Finish reasons of replies that the server aborted."""
USUAL = {"id", "object", "created", "model", "choices", "system_fingerprint", "service_tier", "obfuscation"}
USUAL_IN_CHOICE, USUAL_IN_DELTA = {"index", "delta", "finish_reason", "logprobs"}, {"role", "content"}
"""Fields of a chunk that holds only text, as nearly all chunks do.

USUAL: fields of the chunk. USUAL_IN_CHOICE: fields of a choice in the chunk. USUAL_IN_DELTA: fields of the choice's
delta.
"""


if TYPE_CHECKING:
    from mindstream.models.providers.gguf import Engine

MAX_BYTES = 1_000_000
"""Maximum size, in bytes, of a response of llama.cpp about a given text (`GivenText`)."""
MAX_TOKENS = 64
"""Maximum number of tokens of a text whose log-probabilities are read."""
Method = Literal["echo", "prompt_logprobs", "grammar"]
METHODS: tuple[Method, ...] = ("echo", "prompt_logprobs", "grammar")
FIELDS: dict[Method, dict[str, Any]] = {
    "echo": {"echo": True, "logprobs": 1},
    "prompt_logprobs": {"prompt_logprobs": 0},
}


@dataclass(frozen=True)
class GivenText:
    """Reads the log-probabilities of a given text from a llama.cpp server.

    Every method raises ModelUnavailable if llama.cpp fails, and ModelRefused if llama.cpp refuses the request or cannot
    represent the text.
    """

    at: Address
    client: Client

    async def tokens(self, text: str, most: int) -> list[int]:
        """Return the ids of a text's first tokens, at most `most`.

        Raises:
            ModelError: the endpoint failed.
            ModelRefused: the model splits one of these characters into several tokens.
        """
        answer = await self._post("/tokenize", {"content": text, "with_pieces": True})
        with failures(self.at, {}):
            found = [(each["id"], each["piece"]) for each in answer["tokens"][:most]]
        if not all(isinstance(piece, str) for _, piece in found):
            raise ModelRefused(
                f"{self.at.name} cannot report log-probabilities of this text: the model splits some of its"
                " characters into several tokens"
            )
        return [id_ for id_, _ in found]

    async def logprobs(self, prompt: str, tokens: Sequence[int]) -> list[float]:
        """Return the log-probability of each token after a prompt.

        Raises:
            ModelError: the endpoint failed, or its response contains no log-probabilities.
        """
        grammar = "root ::= " + " ".join(f"<[{token}]>" for token in tokens)
        body = {"prompt": prompt, "grammar": grammar, "n_probs": 1, "n_predict": len(tokens), "temperature": 0}
        answer = await self._post("/completion", {**body, "cache_prompt": True})
        if not (found := answer.get("completion_probabilities")):
            raise ModelUnavailable(f"the response of {self.at.name} has no values in completion_probabilities")
        return [float(token["logprob"]) for token in found]

    async def _post(self, path: str, body: dict[str, Any]) -> Any:
        with failures(self.at, ERROR_READERS):
            base = (self.at.url or "").partition("?")[0].removesuffix("/v1")
            return await self.client.ask("POST", base + path, body)


class TextLogprobsReader:
    """Reads log-probabilities from an endpoint, by the first method that the endpoint supports."""

    def __init__(self, at: Address, client: Client, methods: Sequence[Method] = METHODS) -> None:
        self._at, self._client, self._methods = at, client, list(methods)

    async def read(self, prompt: str, text: str) -> list[float]:
        """Return the log-probabilities of the first tokens of `text`, as the continuation of a prompt.

        Raises:
            ModelRefused: the endpoint reports no log-probabilities of a given text.
            ModelUnavailable: the endpoint is down.
        """
        for method in list(self._methods):
            # an endpoint other than llama.cpp may answer a grammar with any error
            is_guess = method == "grammar" and len(self._methods) > 1
            with contextlib.suppress(ModelError if is_guess else ModelRefused):
                if found := await self._ask(method, prompt, text):
                    self._methods = [method]
                    return found[:MAX_TOKENS]
        raise ModelRefused(f"{self._at.name} reports no log-probabilities of a given text")

    async def _ask(self, method: Method, prompt: str, text: str) -> list[float]:
        if method == "grammar":
            given = GivenText(self._at, self._client)
            return await given.logprobs(prompt, await given.tokens(text, MAX_TOKENS))
        body = {"model": self._at.model, "prompt": prompt + text, "max_tokens": 1, "temperature": 0, **FIELDS[method]}
        with failures(self._at, ERROR_READERS):
            answer = await self._client.ask("POST", "/completions", body)
            tokens = _tokens_of(answer["choices"][0], method)
            begin = "".join(token for token, _ in tokens).rfind(text)
            starts = accumulate((len(token) for token, _ in tokens), initial=0)
            placed = zip(starts, tokens, strict=False)
            return [logprob for start, (_, logprob) in placed if 0 <= begin <= start < begin + len(text)]


def _tokens_of(choice: dict[str, Any], method: Method) -> list[tuple[str, float]]:
    """Return the tokens of the sent prompt, with their log-probabilities. A token without a log-probability, such as
    the first, has 0.0.

    With `echo`, the generated token follows.
    """
    if method == "echo":
        found = choice.get("logprobs") or {}
        pairs = zip(found.get("tokens") or (), found.get("token_logprobs") or (), strict=True)
        return [(str(token), float(logprob or 0.0)) for token, logprob in pairs]
    entries = [next(iter(each.values())) if each else None for each in choice.get("prompt_logprobs") or ()]
    return [(str(each["decoded_token"]), float(each["logprob"])) if each else ("", 0.0) for each in entries]


def checked_gguf(at: Address) -> Address:
    """Return the address if it is that of a GGUF file.

    Raises:
        ModelRefused: the address is not that of a GGUF file.
    """
    if at.vendor != "gguf":
        raise ModelRefused(f"{at.name} reports no log-probabilities; use a model in this process (gguf:FILE)")
    return at


@contextlib.asynccontextmanager
async def open_given_text(at: Address, held: Engine | None = None) -> AsyncIterator[GivenText]:
    """Open a GGUF file's model for log-probabilities; `held` is the model if it is loaded already."""
    from mindstream.models.providers.gguf import engine

    loaded = held if held is not None else await asyncio.to_thread(engine, at)
    here = replace(at, url=loaded.url, key=loaded.key)
    async with Client(here, MAX_BYTES) as client:
        yield GivenText(here, client)


class OpenAIChat:
    """An endpoint's `/chat/completions`, and the log-probabilities that it reports of given texts."""

    methods: tuple[Method, ...] = METHODS

    def __init__(self, at: Address) -> None:
        self.at, self._client, self._known = at, Client(at), capabilities_of(at)
        self._logprobs = TextLogprobsReader(at, self._client, self.methods)

    def stream(self, request: Request) -> AbstractAsyncContextManager[Arrivals]:
        if request.continuation:
            return gathered(self._text_logprobs(request))
        return gathered(self._with_calls(request)) if request.tools else _Exchange(self, request)

    async def _text_logprobs(self, request: Request) -> AsyncGenerator[Arrival]:
        before = "\n\n".join(each.text for each in request.messages)
        yield TextLogprobs(tuple(await self._logprobs.read(before, request.continuation)))
        asked = estimate_tokens(before) + estimate_tokens(request.continuation)
        yield Usage(asked, 1, price(self.at.model, self.at, asked, 1))

    async def _with_calls(self, request: Request) -> AsyncGenerator[Arrival]:
        exchange = _Exchange(self, request)
        async for arrival in read_calls(one_by_one(exchange), request, await exchange.begin()):
            yield arrival

    async def ask(self, request: Request) -> tuple[Response, EventReader, list[Any], bool]:
        """Send a request; if the endpoint refuses an optional field or a role, send the request again without it.

        Return the response, its reader, its first events, and whether the tools are described in the text of the
        prompt. They are if the endpoint does not accept tools.
        """
        without: set[str] = set()
        for attempt in range(1, MAX_ATTEMPTS + 1):
            lacks = self._known.lacks | without
            typed = bool(request.tools) and "tools" in lacks
            body = self._body(in_words(request) if typed else request, lacks)
            try:
                response, reader, events = await self._open(body)
                break
            except EndpointError as error:
                refused = refused_fields(error.status, error.body, error.message, body) - lacks
                if not refused or attempt == MAX_ATTEMPTS:
                    raise
                without |= refused
        self._known.lacks |= without
        return response, reader, events, typed

    async def _open(self, body: dict[str, Any]) -> tuple[Response, EventReader, list[Any]]:
        """Send a request; return the response, its reader and its first events."""
        response, reader = await self._client.send("POST", "/chat/completions", body), EventReader()
        try:
            events: list[Any] = []
            while not events:
                data = await response.read()
                events = reader.feed(data) if data else reader.end()
                if not data and not events:
                    raise ValueError("expected server-sent events or JSON, found an empty response")
            _raise_error(events[0])
        except BaseException:
            response.close()
            raise
        return response, reader, events

    async def aclose(self) -> None:
        await self._client.aclose()

    def _body(self, request: Request, lacks: set[str]) -> dict[str, Any]:
        if request.options and "logprobs" in lacks:  # the model then answers in text, and may think first
            request = request.but(options=())
        tools, schema = request.tools, request.schema
        optional: dict[str, Any] = {"stream_options": {"include_usage": True}} if "stream" not in lacks else {}
        optional |= request.sampling.fields()
        if request.options:
            optional |= self._measured()
        elif not tools and schema is not None and schema.get("type") == "object" and "response_format" not in lacks:
            optional |= self._enforced(request)
        if tools:
            optional["tool_choice"] = "auto"
        body = {
            "model": self.at.model,
            "messages": [*map(_message, without_roles(request.messages) if ROLES in lacks else request.messages)],
            "stream": "stream" not in lacks,
            **{name: value for name, value in optional.items() if name not in lacks},
        }
        if tools:
            shown = ({"name": e.name, "description": e.description, "parameters": e.parameters} for e in tools)
            body["tools"] = [{"type": "function", "function": each} for each in shown]
        limit = next((name for name in LIMITS if name not in lacks), "")
        return body | ({limit: all_tokens(request)} if limit else {})

    def _measured(self) -> dict[str, Any]:
        """Return the fields that request the probabilities of the first token."""
        return {"logprobs": True, "top_logprobs": TOP, "temperature": 0}

    def _enforced(self, request: Request) -> dict[str, Any]:
        """Return the fields that enforce the reply's schema."""
        schema = request.schema or {}
        named = {"name": request.prompt.label()[:64], "schema": lean(schema), "strict": _is_strict(schema)}
        return {"response_format": {"type": "json_schema", "json_schema": named}}


class _Exchange:
    """One request and its reply, read without a task or a generator of its own."""

    def __init__(self, chat: OpenAIChat, request: Request) -> None:
        self.at, self._chat, self._request = chat.at, chat, request
        typed = request.schema is not None and not request.options
        self._reply = _Reply(chat.at, [each.name for each in request.tools], typed=typed)
        self._response: Response | None = None
        self._error: ModelError | None = None
        self._ended = self._done = False

    async def begin(self) -> bool:
        """Send the request; return whether the tools were described in the prompt's text, because the endpoint does not
        accept tools."""
        with failures(self.at, ERROR_READERS):
            self._response, self._reader, self._events, typed = await self._chat.ask(self._request)
        return typed

    async def next(self, gap_s: float = 0.0) -> list[Arrival]:
        if self._error is not None:
            raise self._error
        came: list[Arrival] = []
        try:
            if self._response is None:
                await self.begin()
            with failures(self.at, ERROR_READERS):
                while not came and not self._ended:
                    await self._read(came, gap_s)
        except ModelError as error:
            if not came:
                raise
            self._error = error
        return joined(came)

    async def _read(self, came: list[Arrival], gap_s: float) -> None:
        """Read what has arrived, or wait for it, and add it to `came`."""
        assert self._response is not None
        events, self._events = self._events, []
        if not events:
            if gap_s:
                await self._response.pause(gap_s)
            data = await self._response.read()
            events = self._reader.feed(data) if data else self._reader.end()
            self._ended = not data
        for event in events:
            if event == DONE:
                self._ended = self._done = True
                break
            _raise_error(event)
            came.extend(self._reply.read(event))
        if self._ended:
            came.extend(self._reply.end(done=self._done))

    async def __aenter__(self) -> _Exchange:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._response is not None:
            try:
                if self._done:
                    await self._response.drain()
            finally:
                self._response.close()


def _raise_error(event: Any) -> None:
    """Raise if an event is an error, in the forms of OpenAI, vLLM, Gemini, Ollama, OpenRouter and FastAPI.

    Raises:
        EndpointError: the event is an error.
    """
    found = event[0] if isinstance(event, list) and event else event
    if not isinstance(found, dict):
        return
    body, choices = found.get("error"), found.get("choices")
    if not body and isinstance(choices, list) and choices and isinstance(choices[0], dict):
        body = choices[0].get("error")
    elif (
        not body and not {"choices", "usage", "done", "type"} & found.keys() and found.get("object") in (None, "error")
    ):
        body = found if any(found.get(key) for key in ("message", "detail", "error_code")) else None
    if body:
        raise EndpointError(words_of(body) or "the endpoint reported an error without a message", body)


def _unwrapped(chunk: Any) -> dict[str, Any]:
    """Return the chunk inside a gateway's envelope, or the chunk itself.

    Raises:
        ValueError: the chunk is of another protocol; the message names the address to use instead.
    """
    chunk = chunk[0] if isinstance(chunk, list) and chunk else chunk
    kind = str(chunk.get("type") or "")
    if "candidates" in chunk:
        raise ValueError("this is Gemini's own protocol: use google:NAME, or an address that ends in /v1beta/openai")
    if "done" in chunk and {"message", "response"} & chunk.keys():
        raise ValueError("this is Ollama's own protocol: use ollama:NAME, or an address that ends in /v1")
    if kind.startswith(("response.", "content_block", "message_")):
        other = "the Responses protocol" if kind.startswith("response.") else "Anthropic's own protocol"
        raise ValueError(f"this is {other}: use an address at which /chat/completions exists")
    inner = chunk.get("data")
    return inner if isinstance(inner, dict) else chunk


class _Reply:
    """Reads a reply, chunk by chunk; a violation of the protocol raises a built-in error, which `failures` converts."""

    def __init__(self, at: Address, tools: Sequence[str], *, typed: bool) -> None:
        self._at, self._typed = at, typed
        self._calls = ToolCalls(tools, MAX_CALLS)
        self._finish = self._refusal = self._blocked = ""
        self._measured = self._counted = False
        """`_counted`: the usage came in a chunk of its own, which is the last one."""
        self._index: Any = None
        self._text, self._thoughts = list[str](), list[str]()
        self._grown, self._grows = "", False
        self._used: Any = None
        self._cached = 0
        self._model = at.model

    def read(self, chunk: Any) -> list[Arrival]:
        """Return the content of a chunk. Store what the chunk says about the model, the usage and the reply's end.

        Raises:
            ValueError: the chunk belongs to another protocol.
        """
        if "choices" not in chunk:
            chunk = _unwrapped(chunk)
        self._model = str(chunk.get("model") or self._model)
        choice = self._choice(chunk.get("choices"))
        if not (chunk.keys() <= USUAL and choice.keys() <= USUAL_IN_CHOICE):
            self._read_totals(chunk, choice)
        if not choice:
            return []
        self._finish = str(choice.get("finish_reason") or self._finish)
        delta = choice.get("delta")
        if isinstance(delta, dict) and delta.keys() <= USUAL_IN_DELTA and isinstance(delta.get("content"), str):
            text = self._added(delta["content"])
            found: list[Arrival] = [Delta("reply", text)] if text else []
        else:
            found = [*self._say(choice)]
        if not self._measured and (first := _first_token(choice.get("logprobs"))):
            self._measured = True
            found.append(first)
        return found

    def _read_totals(self, chunk: dict[str, Any], choice: dict[str, Any]) -> None:
        """Store the usage, and the reason if the prompt was blocked; few chunks have these fields."""
        self._cached = read_count((chunk.get("timings") or {}).get("cache_n")) or self._cached
        groq = chunk.get("x_groq")
        used = chunk.get("usage") or choice.get("usage") or (isinstance(groq, dict) and groq.get("usage"))
        if any(_counts(used)):  # some servers send zeros before or after the real counts
            self._used = used
            self._counted = self._counted or (not choice and _counts(used)[1] > 0)
        blocked = chunk.get("promptFeedback") or chunk.get("prompt_feedback")
        if isinstance(blocked, dict) and (why := blocked.get("blockReason") or blocked.get("block_reason")):
            self._blocked = str(why)

    def _choice(self, choices: Any) -> dict[str, Any]:
        """Return the part of a chunk that belongs to the choice that is read; {}: there is no such part.

        A reply may have several choices (answers). Only the choice that began first is read.
        """
        for each in [choices] if isinstance(choices, dict) else choices or ():
            if each is None:
                continue
            index = each.get("index")
            if self._index is None and index is not None:
                self._index = str(index)
            if index is None or str(index) == self._index:
                return each
        return {}

    def _say(self, choice: dict[str, Any]) -> Iterator[Arrival]:
        """Yield the text and the calls of a choice, from its delta or its complete message; collect a refusal."""
        delta, whole = choice.get("delta"), choice.get("message")
        if not delta and isinstance(whole, dict):
            delta = {} if self._text or self._calls.began else whole
        if isinstance(delta, str):
            delta = {"content": delta}
        delta = delta or {"content": choice.get("text")}
        content = delta.get("content")
        parts = content if isinstance(content, list) else ()
        refused = (str(part.get("refusal") or "") for part in parts if isinstance(part, dict))
        self._refusal += delta.get("refusal") or "".join(refused)
        thought = next(filter(None, (_thought(delta[name]) for name in THOUGHTS if name in delta)), "")
        more_thought, text = _content(content)
        if thought := thought + more_thought:
            self._thoughts.append(thought)
            yield Delta("thought", thought)
        if text := self._added(text):
            yield Delta("reply", text)
        legacy = delta.get("function_call")
        calls = delta.get("tool_calls") or ([{"function": legacy}] if legacy else [])
        calls = [each for each in ([calls] if isinstance(calls, dict) else calls) if each]
        calls += [part for part in parts if isinstance(part, dict) and part.get("type") == "tool_use"]
        for place, call in enumerate(calls):
            if more := self._calls.take(call, place if len(calls) > 1 else None):
                yield Delta("arguments", more)
        if self._calls.full:
            yield from self._calls.whole()

    def _added(self, text: str) -> str:
        """Return and store the text that a delta adds. Some servers repeat all previous text in each delta.

        Such a server is recognised when two deltas in a row begin with all the text before them. The first of the two
        deltas is held back until the second arrives; the result for the first is "".
        """
        waiting, before = self._grown, self._text
        if not text or (self._finish and len(before) > 1 and text == "".join(before)):
            return ""
        if waiting and (self._grows or text.startswith(waiting)):
            self._grows, self._grown = True, max(waiting, text, key=len)
            so_far = "".join(before)
            text = text[len(so_far) :] if text.startswith(so_far) else ""
        elif not waiting and len(before) == 1 and len(text) > len(before[0]) and text.startswith(before[0]):
            self._grown = text
            return ""
        else:
            text, self._grown = waiting + text, ""
        if text:
            before.append(text)
        return text

    def end(self, *, done: bool) -> Iterator[Arrival]:
        """Yield the content that is complete only at the end of the reply.

        Args:
            done: the stream announced its end.

        Raises:
            ModelUnavailable: the reply broke off: the server aborted it, or its end is missing.
        """
        finish = self._finish.casefold()
        filtered = self._blocked or (self._finish if FILTERED.search(finish) else "")
        ended = finish or done or filtered or (self._counted and (self._text or self._calls.began))
        if finish in FAILED or not ended:
            why = (
                f"its finish_reason is {self._finish[:40]!r}" if finish else f"there was no finish_reason and no {DONE}"
            )
            raise ModelUnavailable(f"the reply of {self._at.name} broke off: {why}. It may work later")
        if self._grown and not self._grows:
            yield Delta("reply", self._grown)
        calls = [*self._calls.whole()]
        yield from calls
        if self._typed and not (self._text or self._grown or calls or finish in CUT):
            whole = "".join(self._thoughts).strip()
            if whole.startswith("{") and whole.endswith("}"):  # a server took the answer for thoughts (LM Studio, vLLM)
                yield Delta("reply", whole)
        if self._refusal:
            yield Withheld(self._refusal)
        elif filtered:
            yield Withheld(f"its content filter refused the request ({filtered[:80]})", filtered=True)
        if finish in CUT:
            yield Truncated()
        if used := _usage(self._used, self._cached, self._model, self._at):
            yield used


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


def _content(content: Any) -> tuple[str, str]:
    """Return the thoughts and the text of a message's content; some endpoints send it as a list of typed parts."""
    if isinstance(content, list):
        found = [_content(part) for part in content]
        return "".join(thought for thought, _ in found), "".join(text for _, text in found)
    if isinstance(content, dict):
        if any(word in str(content.get("type")) for word in ("think", "thought", "reason")):
            return _thought(content), ""
        if content.get("type") == "tool_use":
            return "", ""
        if content and not {"type", "text"} & content.keys():
            return "", json.dumps(content, ensure_ascii=False)  # a typed reply that was parsed already
        text = content.get("text")
        return "", str(text.get("value") or "") if isinstance(text, dict) else str(text or "")
    if isinstance(content, bool | int | float):
        content = json.dumps(content)  # a server parsed the model's text
    if content is not None and not isinstance(content, str):
        raise TypeError(f"expected text as the content of a message, found {type(content).__name__}")
    return "", content or ""


def _thought(value: Any) -> str:
    """Return the text of thoughts, which arrive as a text or as parts of several shapes; "": an unknown shape."""
    if isinstance(value, list):
        return "".join(map(_thought, value))
    if isinstance(value, dict):
        return next(filter(None, (_thought(value.get(key)) for key in ("text", "thinking", "content", "summary"))), "")
    return value if isinstance(value, str) else ""


def without_roles(messages: Sequence[Message]) -> list[Message]:
    """Return messages for templates that need alternating user and assistant messages without a system message."""
    system = "\n\n".join(each.text for each in messages if each.role == "system" and each.text)
    first = [Message("user", system)] if system else []
    return [*merge_turns([*first, *(each for each in messages if each.role != "system")])]


def _first_token(logprobs: Any) -> Logprobs | None:
    """Return the probabilities of a reply's first token; None if there are none."""
    if not logprobs or not (places := logprobs.get("content")):
        return None
    likely: dict[str, float] = {}
    for each in (*(places[0].get("top_logprobs") or ()), places[0]):
        likely.setdefault(legible(str(each["token"])), float(each["logprob"]))
    return Logprobs(tuple(sorted(likely.items(), key=lambda item: -item[1])))


def _is_strict(node: Any) -> bool:
    """Return whether every object in a schema is closed and requires all its fields, as `strict` demands."""
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
    """Return a count of tokens, also from `10.0` and `"10"`; 0 if an endpoint sends something else."""
    with contextlib.suppress(ValueError, TypeError, OverflowError):
        if type(number) in (int, float, str) and (count := float(number)).is_integer() and 0 <= count < 2**53:
            return int(count)
    return 0


def _counts(used: Any) -> tuple[int, int]:
    """Return the tokens of the prompt and of the reply that an endpoint reports; 0 for a missing or impossible count.

    Some endpoints (xAI, Gemini) count the tokens of thoughts only in the total. So the reply counts at least the total
    minus the prompt.
    """
    if not isinstance(used, dict):
        return 0, 0
    asked, answered, total = (
        next(filter(None, (read_count(used.get(name)) for name in names)), 0)
        for names in (("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens"), ("total_tokens",))
    )
    return asked, max(answered, total - asked) if asked else answered


def _usage(used: Any, cached: int, model: str, at: Address) -> Usage | None:
    """Return the usage that the endpoint reports; None if it reports none or an impossible one."""
    asked, answered = _counts(used)
    if not asked and not answered:
        return None
    details = used.get("prompt_tokens_details")
    named = details.get("cached_tokens") if isinstance(details, dict) else used.get("prompt_cache_hit_tokens")
    cached = min(asked, read_count(named) or cached)
    return Usage(asked, answered, price(model, at, asked, answered, cached), cached)


EMPTY = frozenset(("", "{}", "null", '""'))
"""Arguments that endpoints send as a placeholder before the real arguments, or once more after them."""


@dataclass
class _PartialCall:
    """A call that is not complete yet."""

    index: Any
    id: str
    name: str = ""
    pieces: list[str] = field(default_factory=list)

    @property
    def arguments(self) -> str:
        """The joined arguments.

        If the joined pieces are no JSON object, the endpoint may have repeated pieces. The result is then the first of
        these that is an object:
        - the last piece that is an object alone;
        - the pieces joined without neighbouring repetitions.
        If neither is an object, the result is all pieces joined.
        """
        pieces = self.pieces
        while len(pieces) > 1 and pieces[0].strip() in EMPTY:
            pieces = pieces[1:]
        while len(pieces) > 1 and pieces[-1].strip() in EMPTY and _object("".join(pieces[:-1])):
            pieces = pieces[:-1]
        whole, once = "".join(pieces), "".join(piece for piece, _ in groupby(pieces))
        return next(filter(None, map(_object, (whole, *reversed(pieces), once))), whole)

    @property
    def ends(self) -> bool:
        """Whether the last piece ends an object."""
        return bool(self.pieces) and self.pieces[-1].rstrip().endswith("}")

    @property
    def is_complete(self) -> bool:
        return self.ends and _object(self.arguments) is not None


class ToolCalls:
    """The calls of one reply.

    A delta's `index` should name the call that the delta continues. But some servers omit the index, use the same index
    for all calls, or begin at 1. The `id` is in the first delta, in every delta, new in every delta, or missing.

    Therefore a delta continues the first of these calls that exists, unless the delta begins another call:
    - the call with the same id;
    - the last call with the same index (if the delta has no index: the last call);
    - the last call, if the delta has neither an id nor a name.

    Args:
        names: the tools that were offered.
        most: maximum number of calls; with more, the reply is `full`.
    """

    def __init__(self, names: Sequence[str], most: int) -> None:
        self._names, self._most = names, most
        self._calls: list[_PartialCall] = []

    @property
    def began(self) -> bool:
        return bool(self._calls)

    @property
    def full(self) -> bool:
        return len(self._calls) > self._most

    def take(self, delta: Any, place: int | None) -> str:
        """Add a delta of a tool call. Return the piece of the arguments in the delta; without such a piece, the tool's
        name in the delta; without both, "".

        Args:
            place: the position of this call in a chunk with several calls, used if the server sends no index.
        """
        function = delta.get("function") or delta.get("custom") or {}
        if not isinstance(function, dict):
            function = {"name": function}
        places = (
            (function, "arguments"),
            (delta, "arguments"),
            (function, "parameters"),
            (function, "input"),
            (delta, "input"),
        )
        given = next((where[key] for where, key in places if key in where), None)
        name = function.get("name") or delta.get("name") or ""
        name = match_name(name, self._names) or name
        id_, index = str(delta.get("id") or ""), delta.get("index")
        index = place if index is None else index
        piece = given if isinstance(given, str) else "" if given is None else json.dumps(given, ensure_ascii=False)
        call = self._continued(index, id_, name, piece)
        if call is None:
            self._calls.append(call := _PartialCall(index, id_))
        call.id = call.id or id_
        if name and name != call.name and not self._are_both_offered(call, name):
            call.name = name if name.startswith(call.name) else call.name + name
        if piece:
            call.pieces.append(piece)
        return piece or name

    def whole(self) -> Iterator[Call]:
        """Yield all calls that have a name or arguments, each with an id of its own, and remove all from this
        object."""
        calls, self._calls = self._calls, []
        ids: set[str] = set()
        for call in calls:
            arguments = call.arguments
            if call.name or arguments.strip():
                id_ = call.id if call.id and call.id not in ids else f"call_{token()}"
                ids.add(id_)
                yield Call(call.name, arguments, id_)

    def _continued(self, index: Any, id_: str, name: str, piece: str) -> _PartialCall | None:
        """Return the call that a delta continues; None if the delta begins a new call."""
        if id_ and (same := [call for call in self._calls if call.id == id_]):
            return self._with_id(same, index, name, piece)
        at = [call for call in self._calls if index in (None, call.index)]
        if not at:
            orphan = not name and not id_ and self._calls  # arguments under another index than their call's
            return self._calls[-1] if orphan else None
        call = at[-1]
        if not name or not call.name or (self._is_part(call, name) and not call.pieces):
            return call
        # a new id with a name begins another call, unless the server sends a new id with each delta
        if id_ and call.id:
            return None if call.is_complete or not call.pieces or name != call.name else call
        return call if name == call.name and (not call.is_complete or _object(piece) == call.arguments) else None

    def _with_id(self, same: list[_PartialCall], index: Any, name: str, piece: str) -> _PartialCall | None:
        """Return the call in `same` (the calls with the delta's id) that the delta continues. None: the delta begins a
        new call.

        Several calls may have the same id, because some servers give one id to all calls.
        """
        call = next((each for each in reversed(same) if each.index == index), same[-1])
        if not name or not call.name or self._is_part(call, name):
            return call
        is_other = None not in (index, call.index) and index != call.index
        if (name != call.name and self._are_both_offered(call, name)) or (is_other and call.ends):
            return None
        if call.is_complete and call.arguments.strip() not in EMPTY and (found := _object(piece)) is not None:
            return call if json.loads(found) == json.loads(call.arguments) else None
        return call

    def _are_both_offered(self, call: _PartialCall, name: str) -> bool:
        return call.name in self._names and name in self._names

    def _is_part(self, call: _PartialCall, name: str) -> bool:
        """Return whether a name in a delta continues the incomplete name of a call, or repeats it from its start."""
        if call.name in self._names:
            return False
        return any(offered.startswith(call.name + name) for offered in self._names) or name.startswith(call.name)


def _object(text: str) -> str | None:
    """Return arguments that are one complete JSON object, also from inside a JSON string; None for other texts."""
    try:
        value = json.loads(text)
        if isinstance(value, str):
            text, value = value, json.loads(value)
    except (ValueError, RecursionError):
        return None
    return text if isinstance(value, dict) else None
