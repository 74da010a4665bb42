"""POST /v1/responses: OpenAI's newer chat API. `previous_response_id` continues the conversation of that response."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, Literal

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.responses import Response

from mindstream.chance import token
from mindstream.errors import InputError
from mindstream.json_values import JsonObject
from mindstream.models.model import Sampling
from mindstream.server.chat.answers import PageAnswer, Spent, begin
from mindstream.server.chat.completions import encode
from mindstream.server.chat.turns import ChatMessage, ChatRequest, Turn, read_turn
from mindstream.server.problems import OPENAI_RESPONSES, openai_stream_error
from mindstream.server.streams import PING, PING_S, EventStream
from mindstream.service.operations.operation import read_cursor, write_cursor
from mindstream.service.operations.runtime import Runtime

ID = "resp_"


class ResponseRequest(ChatRequest):
    """A text to answer, or a conversation whose last message is answered. Fields that are not listed are ignored.

    `previous_response_id`: continue the conversation of that response. `user`, else `safety_identifier`: the user whose
    memory is used (see docs/server.md).
    """

    input: str | list[ChatMessage] = Field(min_length=1, max_length=1_000_000)
    instructions: str | None = None
    previous_response_id: str | None = Field(None, max_length=300)
    user: str | None = None
    safety_identifier: str | None = None
    max_output_tokens: int | None = Field(None, ge=1, le=1_000_000)


class ResponseShape(BaseModel, extra="allow"):
    """An answer in the format of OpenAI's API."""

    id: str
    object: Literal["response"] = "response"
    status: str
    model: str
    output: list[JsonObject]


def add_responses(api: FastAPI, runtime: Runtime) -> None:
    """Add the route /v1/responses."""

    @api.post(
        "/v1/responses",
        tags=["chat"],
        operation_id="chat.responses",
        response_model=ResponseShape,
        responses=OPENAI_RESPONSES | {200: {"content": {"text/event-stream": {}}}},
    )
    async def responses(request: Request, ask: ResponseRequest) -> Response:
        """Send a message to a model: a pack, a bot, the companion, or the user's life (see /v1/models).

        With `stream`, the answer is sent as events as it is generated.
        """
        messages = [ChatMessage(role="user", content=ask.input)] if isinstance(ask.input, str) else ask.input
        if ask.instructions:
            messages = [ChatMessage(role="system", content=ask.instructions), *messages]
        session = session_in(ask.previous_response_id, ask.model) if ask.previous_response_id else ""
        sampling, named = Sampling(ask.temperature, ask.top_p), ask.user or ask.safety_identifier
        turn = read_turn(runtime, request, ask, messages, named, ask.max_output_tokens, sampling, session)
        answer = await begin(runtime, turn)
        writer = ResponseWriter(answer.turn, ask, int(runtime.clock.now()))
        if ask.stream:
            return EventStream(_events(writer, answer, await answer.first()))
        said = await answer.whole()
        return JSONResponse(writer.shape("completed", said, answer.spent))


def response_id(session: str) -> str:
    """Return a new id of a response; it contains the name of the conversation."""
    return f"{ID}{token(8)}{write_cursor(session)}"


def session_in(id_: str, model: str) -> str:
    """Return the conversation that is encoded in the id of a response.

    Raises:
        InputError: the id is not the id of a response of this model.
    """
    try:
        session = read_cursor(id_.removeprefix(ID)[8:])
    except InputError:
        session = ""
    if not session.startswith(f"{model[:30]}:"):
        raise InputError(f"previous_response_id: this is not the id of a response of the model {model[:100]!r}")
    return session


class ResponseWriter:
    """Writes one response and the events of its stream."""

    def __init__(self, turn: Turn, ask: ResponseRequest, created: int) -> None:
        self._ask, self._created, self._message = ask, created, f"msg_{token(24)}"
        self._id, self._count = response_id(turn.session), -1

    def shape(self, status: str, said: str = "", spent: Spent | None = None) -> dict[str, Any]:
        """Return the response object with a status, and the text so far."""
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
        """Return the message item of the response; `said` None: it has no content yet."""
        content = [] if said is None else [self.part(said)]
        return {"type": "message", "id": self._message, "status": status, "role": "assistant", "content": content}

    def part(self, said: str) -> dict[str, Any]:
        """Return the content part with the text of the answer."""
        return {"type": "output_text", "text": said, "annotations": [], "logprobs": []}

    def event(self, kind: str, **fields: Any) -> bytes:
        """Return an event of the stream, with the next sequence number."""
        self._count += 1
        event = {"type": kind, "sequence_number": self._count, **fields}
        return f"event: {kind}\n".encode() + encode(event)

    def of_text(self, kind: str, **fields: Any) -> bytes:
        """Return an event of the stream about the content part."""
        return self.event(kind, item_id=self._message, output_index=0, content_index=0, **fields)


async def _events(writer: ResponseWriter, answer: PageAnswer, words: str | None) -> AsyncGenerator[bytes]:
    """Yield an answer as the events of a response; `words`: its first words."""
    try:
        for kind in ("response.created", "response.in_progress"):
            yield writer.event(kind, response=writer.shape("in_progress"))
        yield writer.event("response.output_item.added", output_index=0, item=writer.item("in_progress", None))
        yield writer.of_text("response.content_part.added", part=writer.part(""))
        while words is not None:
            yield writer.of_text("response.output_text.delta", delta=words, logprobs=[]) if words else PING
            words = await answer.next(PING_S)
        yield writer.of_text("response.output_text.done", text=answer.said, logprobs=[])
        yield writer.of_text("response.content_part.done", part=writer.part(answer.said))
        yield writer.event("response.output_item.done", output_index=0, item=writer.item("completed", answer.said))
        yield writer.event("response.completed", response=writer.shape("completed", answer.said, answer.spent))
    except Exception as error:  # noqa: BLE001 (the response has begun, so every error is sent within the stream)
        found = openai_stream_error(error).error
        yield writer.event("error", code=found.code, message=found.message, param=None)
    finally:
        answer.close()
