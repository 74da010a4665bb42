"""What goes wrong below /v1, in OpenAI's form: {"error": {"message", "type", "param", "code"}}."""

from __future__ import annotations

import json
import math
from typing import Any

from fastapi.responses import JSONResponse
from pydantic import BaseModel

from mindstream.errors import BudgetSpent, ModelResting, ModelUnavailable, PromptTooLong, RateLimited
from mindstream.server.asgi import App, Message, Receive, Scope, Send
from mindstream.server.problems import TYPE, Refusal, problem_of

PREFIX = "/v1/"
AGAIN_S = 5
NO_USE = {"x-should-retry": "false"}
"""OpenAI's clients ask again by themselves after most errors; here that is of no use."""
CODES = {
    "unauthenticated": "invalid_api_key",
    "not-found": "model_not_found",
    "too-many": "rate_limit_exceeded",
    "too-long": "context_length_exceeded",
}


class ApiError(BaseModel):
    """What went wrong."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class ErrorBody(BaseModel):
    """An answer that says what went wrong."""

    error: ApiError


ANSWERS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorBody, "description": words}
    for status, words in {
        400: "It does not fit",
        401: "A token is wanted",
        403: "That is not allowed",
        404: "There is no such model",
        405: "That cannot be done here",
        413: "It is too large",
        421: "This host is not served here",
        429: "Too much was asked for",
        500: "It is our fault",
        502: "The model did not answer as asked",
        503: "It cannot be done just now",
    }.items()
}


def refusal_of(error: BaseException) -> BaseException:
    """Return an error of a model as what a client of OpenAI's can act upon; any other as it is."""
    match error:
        case RateLimited():
            return Refusal("too-many", str(error), _after(error.retry_after_s))
        case ModelResting():
            return Refusal("unavailable", str(error), _after(error.rest_s))
        case BudgetSpent():
            return Refusal("too-many", str(error), NO_USE)
        case PromptTooLong():
            return Refusal("invalid", str(error))
        case ModelUnavailable():
            return Refusal("unavailable", str(error), _after(None))
    return error


def _after(seconds: float | None) -> dict[str, str]:
    return {"Retry-After": str(max(1, math.ceil(seconds or AGAIN_S)))}


def error_body(kind: str, status: int, message: str) -> ErrorBody:
    """Return an error in OpenAI's form; `kind` is that of a problem."""
    of = "rate_limit_error" if status == 429 else "server_error" if status >= 500 else "invalid_request_error"
    return ErrorBody(error=ApiError(message=message, type=of, code=CODES.get(kind, kind.replace("-", "_"))))


def told_in_stream(error: BaseException) -> ErrorBody:
    """Return what is told of an error after a stream has begun."""
    found, _ = problem_of(refusal_of(error))
    return error_body(found.type.rpartition(":")[2], found.status, found.detail or found.title)


class OpenAIErrors:
    """Stands around all doors: a problem that is told of a path below /v1 is told in OpenAI's form."""

    def __init__(self, inner: App) -> None:
        self._inner = inner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(PREFIX):
            await self._inner(scope, receive, send)
            return
        head: Message | None = None
        told = b""

        async def sending(message: Message) -> None:
            nonlocal head, told
            if message["type"] == "http.response.start" and _is_problem(message):
                head = message
            elif head is None:
                await send(message)
            else:
                told += message.get("body", b"")
                if not message.get("more_body"):
                    for each in rewritten(head, told):
                        await send(each)

        await self._inner(scope, receive, sending)


def _is_problem(head: Message) -> bool:
    return any(name.lower() == b"content-type" and value == TYPE.encode() for name, value in head["headers"])


def rewritten(head: Message, told: bytes) -> tuple[Message, Message]:
    """Return a problem's messages in OpenAI's form."""
    problem = json.loads(told)
    status = 400 if head["status"] == 422 else head["status"]
    kind = problem["type"].rpartition(":")[2]
    body = JSONResponse(error_body(kind, status, problem["detail"] or problem["title"]).model_dump())
    dropped = (b"content-type", b"content-length")
    headers = [*body.raw_headers, *(each for each in head["headers"] if each[0].lower() not in dropped)]
    start = {"type": "http.response.start", "status": status, "headers": headers}
    return start, {"type": "http.response.body", "body": bytes(body.body)}
