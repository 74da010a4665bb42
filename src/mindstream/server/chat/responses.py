"""POST /v1/responses: the same talks in OpenAI's newer form; `previous_response_id` goes on where that one ended."""

from __future__ import annotations

import base64
import binascii
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any, Literal

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, JsonValue
from starlette.responses import Response

from mindstream.chance import token
from mindstream.errors import InputError
from mindstream.models.model import Sampling
from mindstream.server.chat.completions import encode
from mindstream.server.chat.errors import ANSWERS, told_in_stream
from mindstream.server.chat.listing import COMPANION, MAY_BE_WORDS
from mindstream.server.chat.turns import ChatMessage, Turn, read_turn
from mindstream.server.rest import principal_of
from mindstream.server.streams import PING, PING_S, EventStream
from mindstream.service.operations.runtime import Runtime

if TYPE_CHECKING:
    from mindstream.server.chat.answers import PageAnswer, Spent

ID = "resp_"


class ResponseRequest(BaseModel):
    """Something to be answered: words, or a talk whose last message is new. What is not listed is not read."""

    model_config = ConfigDict(extra="ignore")

    model: str = Field(min_length=1, max_length=100)
    input: str | list[ChatMessage] = Field(min_length=1, max_length=1_000_000)
    instructions: str | None = None
    previous_response_id: str | None = Field(None, max_length=300)
    stream: bool | None = None
    user: str | None = None
    safety_identifier: str | None = None
    metadata: dict[str, JsonValue] | None = None
    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, ge=0, le=1)
    tools: list[dict[str, JsonValue]] | None = None
    tool_choice: str | dict[str, JsonValue] | None = None
    max_output_tokens: int | None = Field(None, ge=1, le=1_000_000)


class ResponseShape(BaseModel):
    """What was answered, as OpenAI's API has it."""

    model_config = ConfigDict(extra="allow")

    id: str
    object: Literal["response"] = "response"
    status: str
    model: str
    output: list[dict[str, JsonValue]]


def add_responses(api: FastAPI, runtime: Runtime) -> None:
    """Add the route."""

    @api.post(
        "/v1/responses",
        tags=["chat"],
        operation_id="chat.responses",
        response_model=ResponseShape,
        responses=ANSWERS | {200: {"content": {"text/event-stream": {}}}},
    )
    async def responses(request: Request, ask: ResponseRequest) -> Response:
        """Say something to a model: a pack, the companion, a life. With `stream`, the answer comes as events."""
        from mindstream.server.chat.answers import BEGINS_S, begin

        answer = await begin(runtime, _turn(runtime, request, ask))
        writer = ResponseWriter(answer.turn, ask, int(runtime.clock.now()))
        if not ask.stream:
            said = await answer.whole()
            return JSONResponse(writer.shape("completed", said, answer.spent))
        try:
            first = await answer.next(BEGINS_S)
        except BaseException:
            answer.close()
            raise
        return EventStream(_events(writer, answer, first))


def _turn(runtime: Runtime, request: Request, ask: ResponseRequest) -> Turn:
    if ask.tools and ask.tool_choice not in MAY_BE_WORDS and ask.model == COMPANION:
        raise InputError("tool_choice: the companion answers in words, and calls no tools of its client's")
    messages = [ChatMessage(role="user", content=ask.input)] if isinstance(ask.input, str) else ask.input
    if ask.instructions:
        messages = [ChatMessage(role="system", content=ask.instructions), *messages]
    return read_turn(
        runtime,
        principal_of(request.scope),
        request,
        model=ask.model,
        messages=messages,
        named=ask.user or ask.safety_identifier,
        metadata=ask.metadata,
        longest_reply=ask.max_output_tokens or 0,
        sampling=Sampling(ask.temperature, ask.top_p),
        goes_on=session_in(ask.previous_response_id, ask.model) if ask.previous_response_id else "",
    )


def response_id(session: str) -> str:
    """Return the id of a response, by which its talk is found again."""
    return f"{ID}{token(8)}{base64.urlsafe_b64encode(session.encode()).decode().rstrip('=')}"


def session_in(id_: str, model: str) -> str:
    """Return the talk that a response is part of.

    Raises:
        InputError: no response of this model has that id.
    """
    held = id_.removeprefix(ID)[8:]
    try:
        session = base64.b64decode(held + "=" * (-len(held) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        session = ""
    if not session.startswith(f"{model[:30]}:"):
        raise InputError("previous_response_id: no answer of this model has that id")
    return session


class ResponseWriter:
    """Writes one response, and the events of its stream."""

    def __init__(self, turn: Turn, ask: ResponseRequest, created: int) -> None:
        self._ask, self._created, self._message = ask, created, f"msg_{token(24)}"
        self._id, self._count = response_id(turn.session), -1

    def shape(self, status: str, said: str = "", spent: Spent | None = None) -> dict[str, Any]:
        """Return it as it stands."""
        usage = spent and {
            "input_tokens": spent.input,
            "input_tokens_details": {"cached_tokens": spent.cached},
            "output_tokens": spent.output,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": spent.input + spent.output,
        }
        return {
            "id": self._id,
            "object": "response",
            "created_at": self._created,
            "status": status,
            "error": None,
            "incomplete_details": None,
            "instructions": self._ask.instructions,
            "metadata": self._ask.metadata or {},
            "model": self._ask.model,
            "output": [self.item(status, said)] if said else [],
            "parallel_tool_calls": False,
            "temperature": self._ask.temperature,
            "tool_choice": "none",
            "tools": [],
            "top_p": self._ask.top_p,
            "max_output_tokens": self._ask.max_output_tokens,
            "previous_response_id": self._ask.previous_response_id,
            "text": {"format": {"type": "text"}},
            "truncation": "disabled",
            "usage": usage,
        }

    def item(self, status: str, said: str | None) -> dict[str, Any]:
        """Return the message in it."""
        content = [] if said is None else [self.part(said)]
        return {"type": "message", "id": self._message, "status": status, "role": "assistant", "content": content}

    def part(self, said: str) -> dict[str, Any]:
        """Return the words in it."""
        return {"type": "output_text", "text": said, "annotations": [], "logprobs": []}

    def event(self, kind: str, **fields: Any) -> bytes:
        """Return an event of its stream."""
        self._count += 1
        told = {"type": kind, "sequence_number": self._count, **fields}
        return f"event: {kind}\n".encode() + encode(told)

    def of_text(self, kind: str, **fields: Any) -> bytes:
        """Return an event of its words."""
        return self.event(kind, item_id=self._message, output_index=0, content_index=0, **fields)


async def _events(writer: ResponseWriter, answer: PageAnswer, first: str | None) -> AsyncGenerator[bytes]:
    """Write an answer as the events of a response."""
    try:
        for kind in ("response.created", "response.in_progress"):
            yield writer.event(kind, response=writer.shape("in_progress"))
        yield writer.event("response.output_item.added", output_index=0, item=writer.item("in_progress", None))
        yield writer.of_text("response.content_part.added", part=writer.part(""))
        piece = first
        while piece is not None:
            yield writer.of_text("response.output_text.delta", delta=piece, logprobs=[]) if piece else PING
            piece = await answer.next(PING_S)
        yield writer.of_text("response.output_text.done", text=answer.said, logprobs=[])
        yield writer.of_text("response.content_part.done", part=writer.part(answer.said))
        yield writer.event("response.output_item.done", output_index=0, item=writer.item("completed", answer.said))
        yield writer.event("response.completed", response=writer.shape("completed", answer.said, answer.spent))
    except Exception as error:  # noqa: BLE001 (the outermost edge: it is told within the stream)
        told = told_in_stream(error).error
        yield writer.event("error", code=told.code, message=told.message, param=None)
    finally:
        answer.close()
