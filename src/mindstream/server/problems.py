"""Errors as problem documents (application/problem+json, RFC 9457); below /v1 in the format of OpenAI's API.

Neither contains a stack trace.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, get_args

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Scope

from mindstream.errors import (
    BudgetSpent,
    Conflict,
    ErasedMeanwhile,
    ModelError,
    ModelResting,
    ModelUnavailable,
    PromptTooLong,
    RateLimited,
    SettingsError,
    StorageError,
    ToolError,
    UserError,
)
from mindstream.guidance import meant_by
from mindstream.service.operations.operation import Forbidden, NotFound, NotOffered

TYPE = "application/problem+json"
OPENAI = "/v1/"
"""Below this path, errors have the format of OpenAI's API."""
PREFIX = "/api/v1"
"""Prefix of the paths of the REST routes."""
RETRY_S = 5
"""Seconds in Retry-After if the model's endpoint names no time."""
NO_RETRY = {"x-should-retry": "false"}
"""The header that stops OpenAI's clients from retrying by themselves, for errors that a retry would not solve."""


class Problem(BaseModel):
    """An error. `type`: its kind (see docs/server.md). `detail`: the reason and, if known, what to do."""

    type: str
    title: str
    status: int
    detail: str = ""


class Refusal(Exception):  # noqa: N818
    """An exception that ends a request with a problem.

    Attributes:
        kind: a key of `PROBLEMS`.
        detail: the reason and what to do.
        headers: response headers to send with the problem.
    """

    def __init__(self, kind: str, detail: str = "", headers: Mapping[str, str] = MappingProxyType({})) -> None:
        super().__init__(kind, detail)
        self.kind, self.detail, self.headers = kind, detail, headers


PROBLEMS = {
    "invalid": (422, "The request is invalid"),
    "malformed": (400, "The request cannot be parsed"),
    "unauthenticated": (401, "A token is required"),
    "forbidden": (403, "Not allowed"),
    "not-found": (404, "Not found"),
    "method": (405, "Method not allowed"),
    "not-acceptable": (406, "This response format is not available"),
    "conflict": (409, "Conflict"),
    "too-large": (413, "The request is too large"),
    "media-type": (415, "This request format is not supported"),
    "misdirected": (421, "This host is not served here"),
    "too-many": (429, "A limit was exceeded"),
    "internal": (500, "Internal error"),
    "not-offered": (501, "Not set up by the operator"),
    "model": (502, "A model or tool failed"),
    "unavailable": (503, "Temporarily unavailable"),
}
"""The status and title of each kind of problem; the kind is the last part of its `type`."""
BY_STATUS = {status: kind for kind, (status, _) in PROBLEMS.items()}

PATHS = (
    "nothing is served here; /openapi.json lists the addresses, such as /api/v1/users and /v1/models (OpenAI's"
    " protocol); MCP clients send POST to /mcp"
)
KINDS: tuple[tuple[type[Exception], str], ...] = (
    (NotFound, "not-found"),
    (Forbidden, "forbidden"),
    (NotOffered, "not-offered"),
    (SettingsError, "not-offered"),
    (UserError, "invalid"),
    (Conflict, "conflict"),
    (ErasedMeanwhile, "conflict"),
    (StorageError, "unavailable"),
    (BudgetSpent, "too-many"),
    (ModelError, "model"),
    (ToolError, "model"),
)
OPENAI_CODES = {
    "unauthenticated": "invalid_api_key",
    "not-found": "model_not_found",
    "too-many": "rate_limit_exceeded",
    "too-long": "context_length_exceeded",
}


class ApiError(BaseModel):
    """An error in the format of OpenAI's API."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class ErrorBody(BaseModel):
    """The body of an error response of OpenAI's API."""

    error: ApiError


OPENAI_RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorBody, "description": PROBLEMS[BY_STATUS[status]][1]}
    for status in (400, 401, 403, 404, 405, 413, 421, 429, 500, 502, 503)
}
"""The error responses that the API description lists for each route below /v1."""


def problem(kind: str, detail: str = "") -> Problem:
    """Return a problem of a kind."""
    status, title = PROBLEMS[kind]
    return Problem(type=f"urn:mindstream:problem:{kind}", title=title, status=status, detail=detail)


READ_PROBLEMS = ("malformed", "invalid", "unauthenticated", "forbidden", "not-found", "too-many", "unavailable")
WRITE_PROBLEMS = (*READ_PROBLEMS, "conflict", "too-large", "media-type", "not-offered", "model")


def problem_responses(*kinds: str) -> dict[int | str, dict[str, Any]]:
    """Return the error responses that the API description lists for a route."""
    return {PROBLEMS[kind][0]: {"description": PROBLEMS[kind][1]} for kind in kinds}


DETAILS = {
    "not-found": PATHS,
    "malformed": "expected JSON in UTF-8, not nested deeply, and without numbers of thousands of digits",
}
"""Details of errors that FastAPI raises without a reason."""


def problem_of(error: BaseException, known: Collection[str] = ()) -> tuple[Problem, Mapping[str, str]]:
    """Return the problem and the response headers for an error; internal errors have no detail.

    Args:
        known: the fields of the request, to suggest one in place of an unknown field.
    """
    match error:
        case Refusal():
            return problem(error.kind, error.detail), error.headers
        case HTTPException():
            kind = BY_STATUS.get(error.status_code, "malformed")
            headers = error.headers or {}
            detail = f"this address accepts {headers.get('Allow', 'other methods')}" if kind == "method" else ""
            return problem(kind, DETAILS.get(kind, detail)), headers
        case RequestValidationError():
            mistakes = error.errors()
            kind = "malformed" if any(each["type"] == "json_invalid" for each in mistakes) else "invalid"
            return problem(kind, describe_mistakes(mistakes, is_rest=True, known=known)), {}
        case ValidationError():
            return problem("invalid", describe_mistakes(error.errors())), {}
        case RecursionError():
            return problem("malformed", "the JSON of the request is nested too deeply"), {}
    for shape, kind in KINDS:
        if isinstance(error, shape):
            if kind == "unavailable":
                return problem(kind, "the data cannot be read or written at the moment: try again"), {
                    "Retry-After": "2"
                }
            return problem(kind, str(error)[:2_000]), {}
    return problem("internal"), {}


def problem_response(error: BaseException, scope: Scope) -> Response:
    """Return the response for an error, as a problem document or (below /v1) in the format of OpenAI's API."""
    found, headers = problem_of(error, _fields_of(scope))
    path = scope.get("state", {}).get("path", scope["path"])  # AuthMiddleware stores the path below the mount
    if not path.startswith(OPENAI):
        return Response(found.model_dump_json(ensure_ascii=True), found.status, dict(headers), TYPE)
    body = openai_error(found).model_dump_json(ensure_ascii=True)
    return Response(body, 400 if found.status == 422 else found.status, dict(headers), "application/json")


def _fields_of(scope: Scope) -> Collection[str]:
    """Return the names of the fields in the body or query of a REST request."""
    endpoint = scope.get("endpoint")
    rest = inspect.signature(endpoint).parameters.get("rest") if inspect.isfunction(endpoint) else None
    return () if rest is None else get_args(rest.annotation)[0].model_fields


def openai_error(found: Problem) -> ErrorBody:
    """Return a problem in the format of OpenAI's API."""
    kind, status = found.type.rpartition(":")[2], found.status
    of = "rate_limit_error" if status == 429 else "server_error" if status >= 500 else "invalid_request_error"
    code = OPENAI_CODES.get(kind, kind.replace("-", "_"))
    return ErrorBody(error=ApiError(message=found.detail or found.title, type=of, code=code))


def openai_stream_error(error: BaseException) -> ErrorBody:
    """Return an error that occurred after a stream began, in the format of OpenAI's API."""
    return openai_error(problem_of(model_refusal(error))[0])


def model_refusal(error: BaseException) -> BaseException:
    """Return a model's error with the status and headers that OpenAI's clients expect; other errors unchanged."""
    match error:
        case RateLimited():
            return Refusal("too-many", str(error), _retry_after(error.retry_after_s))
        case ModelResting():
            return Refusal("unavailable", str(error), _retry_after(error.rest_s))
        case BudgetSpent():
            return Refusal("too-many", str(error), NO_RETRY)
        case PromptTooLong():
            return Refusal("invalid", str(error))
        case ModelUnavailable():
            return Refusal("unavailable", str(error), _retry_after(None))
    return error


def _retry_after(seconds: float | None) -> dict[str, str]:
    return {"Retry-After": str(max(1, math.ceil(seconds or RETRY_S)))}


PLACES = ("body", "query", "path", "header")
"""The possible first parts of the location of a validation error in a REST request."""


def describe_mistakes(mistakes: object, *, is_rest: bool = False, known: Collection[str] = ()) -> str:
    """Return a description of up to ten validation errors, each with the field, the reason and, if it helps, the type.

    Values are never quoted. `known`: the fields of the request, to suggest one in place of an unknown field.
    """
    described = []
    for each in list(mistakes)[:10] if isinstance(mistakes, list | tuple) else []:
        parts = list(each["loc"])
        if is_rest and len(parts) > 1 and parts[0] in PLACES:
            del parts[0]
        where = ".".join(map(str, parts))[:100]
        found = f", found {_type(each['input'])}" if each.get("type") != "missing" and "input" in each else ""
        said = f"{where}: {each['msg']}{found}" if where else f"{each['msg']}{found}"
        if each.get("type") == "extra_forbidden":
            meant = meant_by(where, known)
            said = f"{where}: there is no such field" + (f"; did you mean {meant!r}?" if meant else "")
        if each.get("type") == "json_invalid":
            said = f"the body is not JSON: {each.get('ctx', {}).get('error', 'an error')} at character {parts[-1]}"
        if is_rest and list(each["loc"]) == ["body"] and isinstance(each.get("input"), str | bytes):
            said = "expected a JSON object in the body, with the header `content-type: application/json`"
        described.append(said)
    return "; ".join(described)


def _type(value: object) -> str:
    names = {str: "a text", bool: "a boolean", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return "null" if value is None else names.get(type(value), "something else")
