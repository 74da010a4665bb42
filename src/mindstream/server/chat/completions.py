"""POST /v1/chat/completions: an answer in OpenAI's format, whole or as a stream."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Annotated, Any, Literal, TypeAlias

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.responses import Response

from mindstream.chance import token
from mindstream.errors import InputError
from mindstream.json_values import JsonObject
from mindstream.life.state import read_state
from mindstream.models.model import Sampling
from mindstream.server.admission import principal_of
from mindstream.server.chat.answers import PageAnswer, Spent, begin
from mindstream.server.chat.turns import LIFE, ChatMessage, ChatRequest, read_turn, user_of
from mindstream.server.problems import OPENAI_RESPONSES, openai_stream_error
from mindstream.server.streams import PING, PING_S, EventStream
from mindstream.service.operations.operation import NotFound
from mindstream.service.operations.runtime import Runtime

DONE = b"data: [DONE]\n\n"


class StreamOptions(BaseModel, extra="ignore"):
    """Options of a stream; `include_usage`: send the numbers of tokens at its end."""

    include_usage: bool | None = None


StopText: TypeAlias = Annotated[str, Field(min_length=1, max_length=200)]


class CompletionRequest(ChatRequest):
    """A conversation whose last message is answered. Fields of OpenAI's API that are not listed here are ignored.

    `user`: the user whose memory is used (see docs/server.md). `n`: only 1. `response_format`: only text.
    """

    messages: list[ChatMessage] = Field(min_length=1, max_length=5_000)
    stream_options: StreamOptions | None = None
    user: str | JsonObject | None = None
    max_tokens: int | None = Field(None, ge=1, le=1_000_000)
    max_completion_tokens: int | None = Field(None, ge=1, le=1_000_000)
    seed: int | None = Field(None, ge=-(2**63), lt=2**63)
    stop: str | list[StopText] | None = Field(None, max_length=200)
    n: int | None = None
    response_format: JsonObject | None = None


class Usage(BaseModel):
    """The numbers of tokens of an answer."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: dict[str, int]
    completion_tokens_details: dict[str, int] = {"reasoning_tokens": 0}

    @classmethod
    def of(cls, spent: Spent) -> Usage:
        """Return the numbers of tokens in the format of OpenAI's API."""
        return cls(
            prompt_tokens=spent.input,
            completion_tokens=spent.output,
            total_tokens=spent.input + spent.output,
            prompt_tokens_details={"cached_tokens": spent.cached},
        )


class AssistantMessage(BaseModel):
    """The message with the answer."""

    role: str = "assistant"
    content: str
    refusal: str | None = None


class Choice(BaseModel):
    """The only choice of a completion; `finish_reason`: `stop`, or `length` if the limit of tokens was reached."""

    index: int = 0
    message: AssistantMessage
    logprobs: None = None
    finish_reason: str


class Completion(BaseModel):
    """A complete answer."""

    id: str
    object: str = "chat.completion"
    created: int
    model: str
    choices: list[Choice]
    usage: Usage
    system_fingerprint: None = None


def add_completions(api: FastAPI, runtime: Runtime) -> None:
    """Add the route /v1/chat/completions."""

    @api.post(
        "/v1/chat/completions",
        tags=["chat"],
        operation_id="chat.completions",
        response_model=Completion,
        responses=OPENAI_RESPONSES | {200: {"content": {"text/event-stream": {}}}},
    )
    async def completions(request: Request, ask: CompletionRequest) -> Response:
        """Send a message to a model: a pack, a bot, the companion, or the user's life (see /v1/models).

        With `stream`, the answer is sent in chunks as it is generated.
        """
        if (ask.n or 1) != 1:
            raise InputError(f"n: only 1 answer per request is supported, not {ask.n}")
        if ask.response_format and ask.response_format.get("type") != "text":
            raise InputError("response_format: only the type `text` is supported")
        stop = (ask.stop,) if isinstance(ask.stop, str) else tuple(ask.stop or ())
        sampling = Sampling(ask.temperature, ask.top_p, ask.seed, tuple(filter(None, stop)))
        longest = ask.max_completion_tokens or ask.max_tokens
        answer = await begin(runtime, read_turn(runtime, request, ask, ask.messages, ask.user, longest, sampling))
        id_, created = f"chatcmpl-{token(24)}", int(runtime.clock.now())
        if ask.stream:
            head = {"id": id_, "object": "chat.completion.chunk", "created": created, "model": ask.model}
            wants_usage = bool(ask.stream_options and ask.stream_options.include_usage)
            return EventStream(_chunks(answer, await answer.first(), head, wants_usage))
        message = AssistantMessage(content=await answer.whole())
        choice = Choice(message=message, finish_reason=answer.finish)
        done = Completion(id=id_, created=created, model=ask.model, choices=[choice], usage=Usage.of(answer.spent))
        return JSONResponse(done.model_dump())


async def _chunks(
    answer: PageAnswer, words: str | None, head: dict[str, Any], wants_usage: bool
) -> AsyncGenerator[bytes]:
    """Yield an answer as the chunks of OpenAI's API; `words`: its first words."""
    usage: dict[str, Any] = {"usage": None} if wants_usage else {}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return encode({**head, "system_fingerprint": None, "choices": [choice], **usage})

    try:
        first = chunk({"role": "assistant", "content": "", "refusal": None})
        while words is not None:
            yield first + (chunk({"content": words}) if words else b"" if first else PING)
            first = b""
            words = await answer.next(PING_S)
        last = chunk({}, answer.finish)
        if wants_usage:
            usage["usage"] = Usage.of(answer.spent).model_dump()
            last += encode({**head, "system_fingerprint": None, "choices": [], **usage})
        yield last + DONE
    except Exception as error:  # noqa: BLE001 (the response has begun, so every error is sent within the stream)
        yield encode(openai_stream_error(error).model_dump())
    finally:
        answer.close()


def encode(value: object) -> bytes:
    """Return a value as a server-sent event."""
    return b"data: " + json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n\n"


CREATED = 1_767_225_600
"""The creation time that is given for all models, because OpenAI's API requires one: the beginning of 2026."""


class Model(BaseModel):
    """A model that answers chat messages; `id`: its name."""

    id: str
    object: Literal["model"] = "model"
    created: int = CREATED
    owned_by: str = "mindstream"


class ModelList(BaseModel):
    """The models that answer chat messages."""

    object: Literal["list"] = "list"
    data: list[Model]


def add_models(api: FastAPI, runtime: Runtime) -> None:
    """Add the routes /v1/models and /v1/models/{model}."""

    async def names_for(request: Request) -> list[str]:
        principal = principal_of(request.scope)
        principal.require("minds", "read")
        state = await read_state(await runtime.memory(user_of(runtime, principal, request)))
        return [*runtime.listed_names(), *([LIFE] if state.goal else [])]

    @api.get("/v1/models", tags=["chat"], operation_id="chat.models", responses=OPENAI_RESPONSES)
    async def models(request: Request) -> ModelList:
        """List the models: packs, bots, the companion, and `life` if the user's life has a goal."""
        return ModelList(data=[Model(id=name) for name in await names_for(request)])

    @api.get("/v1/models/{model:path}", tags=["chat"], operation_id="chat.model", responses=OPENAI_RESPONSES)
    async def model(request: Request, model: str) -> Model:
        """Return one of the models."""
        if model not in await names_for(request):
            raise NotFound(f"there is no model {model[:100]!r}; GET /v1/models lists the models")
        return Model(id=model)
