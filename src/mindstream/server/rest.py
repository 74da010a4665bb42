"""REST routes, made from the table of operations."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeAlias
from urllib.parse import quote

from fastapi import Body, FastAPI, Path, Query, Request, Response
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, ConfigDict, create_model
from pydantic.fields import FieldInfo

from mindstream.server.asgi import Scope
from mindstream.server.idempotency import Writes
from mindstream.server.problems import PROBLEMS, TYPE, Problem, Refusal
from mindstream.server.streams import answer_stream, wants_stream
from mindstream.service.operations.principal import Principal
from mindstream.service.operations.runtime import Runtime
from mindstream.service.operations.table import Operation, operations

LeftS: TypeAlias = Callable[[], Awaitable[float]]
"""Says how many seconds a token still holds; none where it has ended or was revoked."""
METADATA = "/.well-known/oauth-protected-resource"
"""Below it stands how the MCP server is reached with a token: whoever has none must be able to read that."""


def challenge(error: str = "", scope: Scope | None = None, wanted: str = "") -> dict[str, str]:
    """Return the header of a 401, or of a 403 for want of a scope (`wanted`).

    At the MCP server it names what says how that is reached (RFC 9728).
    """
    told = [f'error="{error}"'] if error else []
    told += [f'scope="{wanted}"'] if wanted else []
    if scope is not None and f"{scope['path']}/".startswith("/mcp/"):
        path = quote(scope["path"], safe="/")
        told.append(f'resource_metadata="{base_url(scope)}{METADATA}{path}"')
    return {"WWW-Authenticate": " ".join(["Bearer", ", ".join(told)]).strip()}


def base_url(scope: Scope) -> str:
    """Return the URL by which the server is called: the operator's, else the request's, whose host was checked."""
    if public := scope.get("state", {}).get("public_url"):
        return f"{public}{scope.get('root_path', '')}"
    host = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"host"), "localhost")
    return f"{scope.get('scheme', 'http')}://{host}{scope.get('root_path', '')}"


def principal_of(scope: Scope) -> Principal:
    """Return whom a request is from; the entrance has said so."""
    principal = scope.get("state", {}).get("who")
    if not isinstance(principal, Principal):
        raise Refusal("unauthenticated", "send a token: Authorization: Bearer …", challenge("", scope))
    return principal


async def unending() -> float:
    """Say how long somebody is let in who needs no token."""
    return math.inf


def left_of(scope: Scope) -> LeftS:
    """Return what says how long the token of a request still holds."""
    left: LeftS = scope.get("state", {}).get("left_s", unending)
    return left


PREFIX = "/api/v1"
ANSWERS = {
    "GET": ("malformed", "invalid", "unauthenticated", "forbidden", "not-found", "too-many", "unavailable"),
    "POST": (
        "malformed",
        "invalid",
        "unauthenticated",
        "forbidden",
        "not-found",
        "conflict",
        "too-large",
        "media-type",
        "too-many",
        "not-offered",
        "model",
        "unavailable",
    ),
    "READY": ("too-many", "unavailable"),
    "NEED": ("unauthenticated", "too-many"),
}
"""The problems that are documented of every route, by method; DELETE is as POST."""


def add_rest(api: FastAPI, runtime: Runtime, writes: Writes) -> None:
    """Add a route for each operation."""
    for each in operations():
        api.add_api_route(
            PREFIX + each.path,
            _endpoint(each, runtime, writes),
            methods=[each.method],
            status_code=each.status,
            response_model=each.reply,
            name=each.name,
            operation_id=each.name,
            tags=[each.room],
            summary=each.name,
            description=each.summary,
            responses=problems_of(each.method) | _streamed(each),
        )


def problems_of(method: str) -> dict[int | str, dict[str, Any]]:
    """Return the answers to document beside the one that is hoped for."""
    kinds = ANSWERS.get(method, ANSWERS["POST"])
    return {PROBLEMS[kind][0]: {"description": PROBLEMS[kind][1]} for kind in kinds}


def _streamed(each: Operation) -> dict[int | str, dict[str, Any]]:
    if each.streams is None:
        return {}
    return {200: {"description": "Its events, where they are accepted", "content": {"text/event-stream": {}}}}


def _endpoint(each: Operation, runtime: Runtime, writes: Writes) -> Callable[..., Awaitable[Any]]:
    """Return the function behind a route: it puts path, query and body together, and asks the operation."""

    async def endpoint(request: Request, **given: Any) -> Any:
        principal = principal_of(request.scope)
        user = given.pop("user", None)
        principal = principal if user is None else principal.of(user)
        rest: BaseModel | None = given.pop("rest", None)
        told = {**(rest.model_dump(exclude_unset=True) if rest is not None else {}), **given}
        ask = each.request.model_validate(told)
        key = request.headers.get("idempotency-key")
        if each.streams is not None and wants_stream(request) and key is None:
            principal.require(each.room, each.scope)
            return await answer_stream(runtime, each.streams(runtime, principal, ask), request)
        if key is None or each.method == "GET":
            return await each.call(runtime, principal, ask)
        return await writes.once(key, principal, each, ask, lambda: each.call(runtime, principal, ask))

    endpoint.__signature__ = inspect.Signature(_parameters(each))  # type: ignore[attr-defined]
    endpoint.__name__ = each.name.replace(".", "_")
    return endpoint


def _parameters(each: Operation) -> list[inspect.Parameter]:
    made = [_parameter("request", Request)]
    fields = each.request.model_fields
    for name in each.path_names:
        made.append(_parameter(name, _path_kind(fields.get(name))))
    rest = {name: (info.annotation, info) for name, info in fields.items() if name not in each.path_names}
    if rest:
        model = _rest_of(each, rest)
        made.append(_parameter("rest", Annotated[model, Query() if each.method in ("GET", "DELETE") else Body()]))
    return made


def _path_kind(info: FieldInfo | None) -> Any:
    """Return the type of a name in a path."""
    if info is None or info.annotation is str:
        return Annotated[str, Path(min_length=1, max_length=100)]
    return Annotated[(info.annotation, *info.metadata, Path())]


def _rest_of(each: Operation, rest: dict[str, tuple[Any, FieldInfo]]) -> type[BaseModel]:
    """Return what a request is without the names in its path."""
    if len(rest) == len(each.request.model_fields):
        return each.request
    fields: dict[str, Any] = rest
    return create_model(
        each.request.__name__ + "Rest", __config__=ConfigDict(extra="forbid"), __doc__=each.request.__doc__, **fields
    )


def _parameter(name: str, kind: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind)


__all__ = ["PREFIX", "Response", "add_rest", "problems_of"]


OPENAI = "/v1/"
"""Below this, errors have OpenAI's form (server/chat/errors)."""
ERROR = "openai-error"
BY_STATUS = {str(status): kind for kind, (status, _) in PROBLEMS.items()}


def describe_api(api: FastAPI) -> None:
    """Let an application describe itself so.

    The document is encoded once: to encode it takes several milliseconds, and anybody may request it.
    """
    encoded: dict[str, bytes] = {}

    async def answer(request: Request) -> Response:
        root = request.scope.get("root_path", "").rstrip("/")
        if root not in encoded:
            encoded.clear()  # an application is mounted at one path
            servers = {"servers": [{"url": root}]} if root else {}
            document = {**openapi(), **servers}
            encoded[root] = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
        return Response(encoded[root], media_type="application/json")

    api.add_route("/openapi.json", answer, include_in_schema=False)

    def openapi() -> dict[str, Any]:
        if not api.openapi_schema:
            made = get_openapi(title=api.title, version=api.version, description=api.description, routes=api.routes)
            api.openapi_schema = _shortened(made)
        return api.openapi_schema

    api.openapi = openapi  # type: ignore[method-assign]


def _shortened(made: dict[str, Any]) -> dict[str, Any]:
    parts = made.setdefault("components", {})
    parts.setdefault("schemas", {})["Problem"] = Problem.model_json_schema()
    parts["responses"] = {
        kind: {
            "description": title,
            "content": {TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        for kind, (_, title) in PROBLEMS.items()
    }
    parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    made["security"] = [{"token": []}, {}]
    parts["responses"][ERROR] = {
        "description": "It went wrong, as OpenAI's API tells it",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorBody"}}},
    }
    for name, path in made.get("paths", {}).items():
        is_openai = name.startswith(OPENAI)
        for each in path.values():
            if is_openai:
                each["responses"].pop("422", None)  # it is told as 400
            for status in each.get("responses", {}):
                if status in BY_STATUS and int(status) >= 400:
                    told = ERROR if is_openai else BY_STATUS[status]
                    each["responses"][status] = {"$ref": f"#/components/responses/{told}"}
    return made
