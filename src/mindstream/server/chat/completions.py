"""POST /v1/chat/completions: an answer, whole or as it comes."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, JsonValue
from starlette.responses import Response

from mindstream.chance import token
from mindstream.errors import InputError
from mindstream.models.model import Sampling
from mindstream.server.chat.errors import ANSWERS, told_in_stream
from mindstream.server.chat.listing import COMPANION, MAY_BE_WORDS
from mindstream.server.chat.turns import ChatMessage, Turn, read_turn
from mindstream.server.rest import principal_of
from mindstream.server.streams import PING, PING_S, EventStream
from mindstream.service.operations.runtime import Runtime

if TYPE_CHECKING:
    from mindstream.server.chat.answers import PageAnswer, Spent

DONE = b"data: [DONE]\n\n"


class StreamOptions(BaseModel):
    """What a stream holds beside the words."""

    model_config = ConfigDict(extra="ignore")

    include_usage: bool | None = None


StopText: TypeAlias = Annotated[str, Field(min_length=1, max_length=200)]


class CompletionRequest(BaseModel):
    """A talk whose last message is to be answered. What else OpenAI's API knows is not read: the model is ours."""

    model_config = ConfigDict(extra="ignore")

    model: str = Field(min_length=1, max_length=100)
    messages: list[ChatMessage] = Field(min_length=1, max_length=5_000)
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    user: str | dict[str, JsonValue] | None = None
    metadata: dict[str, JsonValue] | None = None
    max_tokens: int | None = Field(None, ge=1, le=1_000_000)
    max_completion_tokens: int | None = Field(None, ge=1, le=1_000_000)
    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, ge=0, le=1)
    seed: int | None = Field(None, ge=-(2**63), lt=2**63)
    stop: str | list[StopText] | None = Field(None, max_length=200)
    tools: list[dict[str, JsonValue]] | None = None
    tool_choice: str | dict[str, JsonValue] | None = None
    n: int | None = None
    response_format: dict[str, JsonValue] | None = None


class Usage(BaseModel):
    """What an answer took, in tokens."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: dict[str, int]
    completion_tokens_details: dict[str, int] = {"reasoning_tokens": 0}

    @classmethod
    def of(cls, spent: Spent) -> Usage:
        """Return it as OpenAI's API tells it."""
        return cls(
            prompt_tokens=spent.input,
            completion_tokens=spent.output,
            total_tokens=spent.input + spent.output,
            prompt_tokens_details={"cached_tokens": spent.cached},
        )


class AssistantMessage(BaseModel):
    """What was answered."""

    role: str = "assistant"
    content: str
    refusal: str | None = None


class Choice(BaseModel):
    """The one answer."""

    index: int = 0
    message: AssistantMessage
    logprobs: None = None
    finish_reason: str


class Completion(BaseModel):
    """An answer, whole."""

    id: str
    object: str = "chat.completion"
    created: int
    model: str
    choices: list[Choice]
    usage: Usage
    system_fingerprint: None = None


def add_completions(api: FastAPI, runtime: Runtime) -> None:
    """Add the route."""

    @api.post(
        "/v1/chat/completions",
        tags=["chat"],
        operation_id="chat.completions",
        response_model=Completion,
        responses=ANSWERS | {200: {"content": {"text/event-stream": {}}}},
    )
    async def completions(request: Request, ask: CompletionRequest) -> Response:
        """Say something to a model: a pack, the companion, a life. With `stream`, the answer comes in pieces."""
        from mindstream.server.chat.answers import BEGINS_S, begin

        answer = await begin(runtime, _turn(runtime, request, ask))
        id_, created = f"chatcmpl-{token(24)}", int(runtime.clock.now())
        if not ask.stream:
            message = AssistantMessage(content=await answer.whole())
            choice = Choice(message=message, finish_reason=answer.finish)
            done = Completion(id=id_, created=created, model=ask.model, choices=[choice], usage=Usage.of(answer.spent))
            return JSONResponse(done.model_dump())
        head = {"id": id_, "object": "chat.completion.chunk", "created": created, "model": ask.model}
        wants_usage = bool(ask.stream_options and ask.stream_options.include_usage)
        try:
            first = await answer.next(BEGINS_S)
        except BaseException:
            answer.close()
            raise
        return EventStream(_chunks(answer, first, head, wants_usage))


def _turn(runtime: Runtime, request: Request, ask: CompletionRequest) -> Turn:
    if (ask.n or 1) != 1:
        raise InputError("n: one answer is given to an utterance")
    if ask.response_format and ask.response_format.get("type") != "text":
        raise InputError("response_format: answers are words; JSON cannot be had here")
    if ask.tools and ask.tool_choice not in MAY_BE_WORDS and ask.model == COMPANION:
        raise InputError("tool_choice: the companion answers in words, and calls no tools of its client's")
    stop = (ask.stop,) if isinstance(ask.stop, str) else tuple(ask.stop or ())
    sampling = Sampling(ask.temperature, ask.top_p, ask.seed, tuple(filter(None, stop)))
    return read_turn(
        runtime,
        principal_of(request.scope),
        request,
        model=ask.model,
        messages=ask.messages,
        named=ask.user,
        sampling=sampling,
        metadata=ask.metadata,
        longest_reply=ask.max_completion_tokens or ask.max_tokens or 0,
    )


async def _chunks(
    answer: PageAnswer, first: str | None, head: dict[str, Any], wants_usage: bool
) -> AsyncGenerator[bytes]:
    """Write an answer as OpenAI's chunks."""

    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return encode(
            {**head, "system_fingerprint": None, "choices": [choice], **({"usage": None} if wants_usage else {})}
        )

    try:
        yield chunk({"role": "assistant", "content": "", "refusal": None})
        if first:
            yield chunk({"content": first})
        while (piece := await answer.next(PING_S)) is not None:
            yield chunk({"content": piece}) if piece else PING
        yield chunk({}, answer.finish)
        if wants_usage:
            usage = Usage.of(answer.spent).model_dump()
            yield encode({**head, "system_fingerprint": None, "choices": [], "usage": usage})
        yield DONE
    except Exception as error:  # noqa: BLE001 (the outermost edge: it is told within the stream)
        yield encode(told_in_stream(error).model_dump())
    finally:
        answer.close()


def encode(told: object) -> bytes:
    """Return something as a server-sent event."""
    return b"data: " + json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n\n"
