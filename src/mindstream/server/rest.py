"""REST routes, made from the table of operations."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import Body, FastAPI, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, create_model
from pydantic.fields import FieldInfo

from mindstream.server.asking import who_of
from mindstream.server.idempotency import Writes
from mindstream.server.problems import PROBLEMS
from mindstream.server.streams import answer_stream, wants_stream
from mindstream.service.operations.house import House
from mindstream.service.operations.table import Operation, operations

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


def add_rest(api: FastAPI, house: House, writes: Writes) -> None:
    """Add a route for each operation."""
    for each in operations():
        api.add_api_route(
            PREFIX + each.path,
            _endpoint(each, house, writes),
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


def _endpoint(each: Operation, house: House, writes: Writes) -> Callable[..., Awaitable[Any]]:
    """Return the function behind a route: it puts path, query and body together, and asks the operation."""

    async def endpoint(request: Request, **given: Any) -> Any:
        who = who_of(request.scope)
        user = given.pop("user", None)
        who = who if user is None else who.of(user)
        rest: BaseModel | None = given.pop("rest", None)
        told = {**(rest.model_dump(exclude_unset=True) if rest is not None else {}), **given}
        ask = each.request.model_validate(told)
        key = request.headers.get("idempotency-key")
        if each.streams is not None and wants_stream(request) and key is None:
            who.require(each.room, each.scope)
            return await answer_stream(house, each.streams(house, who, ask), request)
        if key is None or each.method == "GET":
            return await each.ask(house, who, ask)
        return await writes.once(key, who, each, ask, lambda: each.ask(house, who, ask))

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
