"""The REST routes and the OpenAPI document, built from the table of operations."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeAlias
from urllib.parse import quote

from fastapi import Body, FastAPI, Path, Query, Request, Response
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, BeforeValidator, ConfigDict, create_model
from pydantic.fields import FieldInfo

from mindstream.server.asgi import Scope, unescape_name
from mindstream.server.idempotency import Writes
from mindstream.server.problems import BY_STATUS, OPENAI, PROBLEMS, TYPE, Problem, Refusal
from mindstream.server.streams import answer_stream, wants_stream
from mindstream.service.operations.operation import Operation, Principal, operations
from mindstream.service.operations.runtime import Runtime

LeftS: TypeAlias = Callable[[], Awaitable[float]]
"""Returns the seconds for which a token is still valid; 0 or less if it expired or was revoked."""
METADATA = "/.well-known/oauth-protected-resource"
"""Beginning of the paths of the MCP server's metadata (RFC 9728), which clients read before they have a token."""
PREFIX = "/api/v1"


def challenge(error: str = "", scope: Scope | None = None, wanted: str = "") -> dict[str, str]:
    """Return the header WWW-Authenticate of a 401 response, or of a 403 response for a missing scope (`wanted`).

    For requests to the MCP server it contains the URL of the server's metadata (RFC 9728).
    """
    parts = [f'error="{error}"'] if error else []
    parts += [f'scope="{wanted}"'] if wanted else []
    if scope is not None and f"{scope['path']}/".startswith("/mcp/"):
        path = quote(scope["path"], safe="/")
        parts.append(f'resource_metadata="{base_url(scope)}{METADATA}{path}"')
    return {"WWW-Authenticate": " ".join(["Bearer", ", ".join(parts)]).strip()}


def base_url(scope: Scope) -> str:
    """Return the server's URL: the operator's public URL, or else the URL in the request, whose host was checked."""
    if public := scope.get("state", {}).get("public_url"):
        return f"{public}{scope.get('root_path', '')}"
    host = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"host"), "localhost")
    return f"{scope.get('scheme', 'http')}://{host}{scope.get('root_path', '')}"


def principal_of(scope: Scope) -> Principal:
    """Return the caller of a request, which AuthMiddleware stored in the scope.

    Raises:
        Refusal: no caller is stored there.
    """
    principal = scope.get("state", {}).get("principal")
    if not isinstance(principal, Principal):
        raise Refusal(
            "unauthenticated",
            "this request needs a token: send the header `Authorization: Bearer TOKEN`",
            challenge("", scope),
        )
    return principal


async def unlimited() -> float:
    """Return infinity: the validity in seconds of a caller that needs no token."""
    return math.inf


def left_of(scope: Scope) -> LeftS:
    """Return a function that computes the number of seconds for which the token of a request is still valid."""
    left: LeftS = scope.get("state", {}).get("left_s", unlimited)
    return left


READ_PROBLEMS = ("malformed", "invalid", "unauthenticated", "forbidden", "not-found", "too-many", "unavailable")
WRITE_PROBLEMS = (*READ_PROBLEMS, "conflict", "too-large", "media-type", "not-offered", "model")


def add_rest(api: FastAPI, runtime: Runtime, writes: Writes) -> None:
    """Add a route for each operation."""
    for each in operations():
        described = "The events of the answer, if the client accepts text/event-stream"
        streamed = {"description": described, "content": {"text/event-stream": {}}}
        api.add_api_route(
            PREFIX + each.path,
            _endpoint(each, runtime, writes),
            methods=[each.method],
            status_code=each.status,
            response_model=each.reply,
            name=each.name,
            operation_id=each.name,
            tags=[each.package],
            summary=each.name,
            description=each.summary,
            responses=problem_responses(*(READ_PROBLEMS if each.method == "GET" else WRITE_PROBLEMS))
            | ({200: streamed} if each.streams else {}),
        )


def problem_responses(*kinds: str) -> dict[int | str, dict[str, Any]]:
    """Return the error responses that the API description lists for a route."""
    return {PROBLEMS[kind][0]: {"description": PROBLEMS[kind][1]} for kind in kinds}


def _endpoint(each: Operation, runtime: Runtime, writes: Writes) -> Callable[..., Awaitable[Any]]:
    """Return the function for a route: it builds the request from path, query and body, and calls the operation."""

    async def endpoint(request: Request, **given: Any) -> Any:
        principal = principal_of(request.scope)
        user = given.pop("user", None)
        principal = principal if user is None else principal.of(user)
        rest: BaseModel | None = given.pop("rest", None)
        fields = rest.model_dump(exclude_unset=True) if rest is not None else {}
        asked = each.request.model_validate(fields | given)
        key = request.headers.get("idempotency-key")
        if each.streams is not None and wants_stream(request) and key is None:
            principal.require(each.package, each.scope)
            return await answer_stream(runtime, each.streams(runtime, principal, asked), request)
        if key is None or each.method == "GET":
            return await each.call(runtime, principal, asked)
        return await writes.once(key, principal, each, asked)

    parameters = [_parameter("request", Request)]
    fields = each.request.model_fields
    for name in each.path_names:
        info = fields.get(name)
        is_text = info is None or info.annotation is str
        text = Annotated[str, BeforeValidator(unescape_name), Path(min_length=1, max_length=100)]
        kind = text if is_text else _with(info, Path())
        parameters.append(_parameter(name, kind))
    rest = {name: (info.annotation, info) for name, info in fields.items() if name not in each.path_names}
    if rest:
        where = Query() if each.method in ("GET", "DELETE") else Body()
        parameters.append(_parameter("rest", Annotated[_model_of(each, rest), where]))
    endpoint.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    endpoint.__name__ = each.name.replace(".", "_")
    return endpoint


def _with(info: FieldInfo | None, place: Any) -> Any:
    assert info is not None
    return Annotated[(info.annotation, *info.metadata, place)]


def _model_of(each: Operation, rest: dict[str, Any]) -> type[BaseModel]:
    """Return a model of the fields of an operation's request that are not in the path."""
    if len(rest) == len(each.request.model_fields):
        return each.request
    config, name = ConfigDict(extra="forbid"), each.request.__name__ + "Rest"
    return create_model(name, __config__=config, __doc__=each.request.__doc__, **rest)


def _parameter(name: str, kind: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind)


OPENAI_ERROR = "openai-error"


def describe_api(api: FastAPI) -> None:
    """Add the route of the OpenAPI document.

    The document is encoded once, because encoding takes several milliseconds and clients need no token to request it.
    """
    encoded: dict[str, bytes] = {}

    async def answer(request: Request) -> Response:
        root = request.scope.get("root_path", "").rstrip("/")
        if root not in encoded:
            encoded.clear()  # an application is usually mounted at one path, so one document is cached
            servers = {"servers": [{"url": root}]} if root else {}
            encoded[root] = json.dumps({**openapi(), **servers}, ensure_ascii=False, separators=(",", ":")).encode()
        return Response(encoded[root], media_type="application/json")

    api.add_route("/openapi.json", answer, include_in_schema=False)

    def openapi() -> dict[str, Any]:
        if not api.openapi_schema:
            made = get_openapi(title=api.title, version=api.version, description=api.description, routes=api.routes)
            api.openapi_schema = _with_problems(made)
        return api.openapi_schema

    api.openapi = openapi  # type: ignore[method-assign]


def _with_problems(made: dict[str, Any]) -> dict[str, Any]:
    """Define each error response once, and replace the error responses of the routes by references."""
    parts = made.setdefault("components", {})
    parts.setdefault("schemas", {})["Problem"] = Problem.model_json_schema()
    parts["responses"] = {kind: _response(title, TYPE, "Problem") for kind, (_, title) in PROBLEMS.items()} | {
        OPENAI_ERROR: _response("An error in the format of OpenAI's API", "application/json", "ErrorBody")
    }
    parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    made["security"] = [{"token": []}, {}]
    for name, path in made.get("paths", {}).items():
        is_openai = name.startswith(OPENAI)
        for each in path.values():
            if is_openai:
                each["responses"].pop("422", None)  # below /v1 invalid requests get the status 400
            for status in each.get("responses", {}):
                if status.isdigit() and (kind := BY_STATUS.get(int(status))):
                    each["responses"][status] = {
                        "$ref": f"#/components/responses/{OPENAI_ERROR if is_openai else kind}"
                    }
    return made


def _response(description: str, media_type: str, schema: str) -> dict[str, Any]:
    return {"description": description, "content": {media_type: {"schema": {"$ref": f"#/components/schemas/{schema}"}}}}
