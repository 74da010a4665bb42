"""The ASGI application of the server: its REST routes, built from the table of operations, and all other endpoints.

Run it, or mount it in your own application.
"""

from __future__ import annotations

import contextlib
import inspect
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import unquote

from fastapi import Body, FastAPI, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, create_model
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

import mindstream as package
from mindstream.errors import MindstreamError
from mindstream.guidance import explained
from mindstream.location import AnyData
from mindstream.memory.opening import open_everyone
from mindstream.minds.chat_bot import BotFactory
from mindstream.models.roles import AnyModels, build_models
from mindstream.server.admission import Admission, AuthMiddleware, Budgets, Limits, checked_public_url, principal_of
from mindstream.server.chat import add_chat
from mindstream.server.events import add_events
from mindstream.server.health import Metrics, add_health
from mindstream.server.idempotency import PATIENCE_S, Writes
from mindstream.server.mcp.http import add_mcp
from mindstream.server.problems import (
    BY_STATUS,
    OPENAI,
    PREFIX,
    PROBLEMS,
    READ_PROBLEMS,
    TYPE,
    WRITE_PROBLEMS,
    Problem,
    Refusal,
    problem_response,
    problem_responses,
)
from mindstream.server.server_state import ServerState
from mindstream.server.streams import answer_stream, wants_stream
from mindstream.server.tokens import Tokens
from mindstream.service.operations.offered import Offered
from mindstream.service.operations.operation import Operation, operations
from mindstream.service.operations.orphaned_work import OrphanedWork
from mindstream.service.operations.runtime import MAX_AT_ONCE, Runtime, runtime_for
from mindstream.settings import Settings

if TYPE_CHECKING:
    from mindstream.server.issuer import Issuer
    from mindstream.server.webhook import Receiver


class ApiApp:
    """The ASGI application with all endpoints of a runtime.

    Its lifespan opens and closes the runtime. An application that mounts it must use this lifespan:
    `FastAPI(lifespan=api_app.lifespan)`.

    Attributes:
        runtime: executes the requests.
        admission: which requests are accepted.
        api: the FastAPI application; AuthMiddleware checks each request before its routes see it.
        writes: executes each write with an Idempotency-Key once.
        metrics: the counters of the server.
    """

    def __init__(self, runtime: Runtime, admission: Admission, receiver: Receiver | None = None) -> None:
        self.runtime, self.admission = runtime, admission
        self.api = FastAPI(
            title="mindstream",
            version=package.__version__,
            lifespan=self.lifespan,
            docs_url=None,
            redoc_url=None,
            openapi_url=None,  # the schema is served by `describe_api`
            description="Memory, minds, plans, lives, pools and towns: see docs/server.md.",
        )
        self._state = ServerState(runtime.server_store, runtime.clock)
        is_shared = runtime.settings.data.folder is None  # a folder has one server, a database may have several
        issuer = admission.issuer
        issued = issuer.limits if issuer else None
        self._budgets = Budgets(self._state, runtime.clock, admission.tokens, issued, is_shared=is_shared)
        self.writes = Writes(runtime, self._state, PATIENCE_S if is_shared else 0.0)
        runtime.on_forget.append(self.writes.check)
        self.metrics = Metrics(runtime)
        self._receiver = receiver
        describe_api(self.api)
        add_health(self.api, runtime, self.metrics)
        add_rest(self.api, runtime, self.writes)
        add_events(self.api, runtime)
        add_chat(self.api, runtime)
        if issuer is not None:
            issuer.digest = lambda text: runtime.server_store().digest(text)
        self._more = [add_mcp(self.api, runtime, [issuer.url] if issuer else [])]
        add_problems(self.api)
        limits = Limits(runtime.clock, self._state if is_shared else None)
        self._app: ASGIApp = AuthMiddleware(self._route, admission, limits, self._budgets, self.metrics)
        if admission.origins:
            self._app = CORSMiddleware(
                self._app,
                allow_origins=admission.origins,
                allow_methods=["GET", "POST", "DELETE"],
                allow_headers=["*"],
                expose_headers=["retry-after", "www-authenticate"],
            )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.api(escape_names(scope, f"{PREFIX}/"), receive, send)

    def keep_open(self, more: contextlib.AbstractAsyncContextManager[Any]) -> None:
        """Open a context with the runtime, and close it before the runtime. Call this before the server runs."""
        self._more.append(more)

    @contextlib.asynccontextmanager
    async def lifespan(self, _: object = None) -> AsyncIterator[None]:
        """Open the runtime, the MCP server and all background work during the `with` block."""
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(self.runtime)
            for each in self._more:
                await stack.enter_async_context(each)
            await stack.enter_async_context(self._budgets.running())
            if self._receiver is not None:
                await stack.enter_async_context(self._webhook(self._receiver))
            for answers in (True, False)[: 1 if self.runtime.part == "talks" else 2]:
                orphaned = OrphanedWork(self.runtime, answers=answers, at_once=MAX_AT_ONCE, budgets=self._budgets.of_id)
                await stack.enter_async_context(orphaned.running())
            yield

    def _webhook(self, receiver: Receiver) -> contextlib.AbstractAsyncContextManager[None]:
        from mindstream.server.webhook import Webhook

        log = open_everyone(self.runtime.settings.data)
        alone = self.runtime.settings.data.folder is not None
        return Webhook(receiver, log, self._state, self.runtime.clock, self.metrics, is_alone=alone).run()


@explained
def app(
    data: AnyData | Runtime = "data",
    *,
    model: AnyModels | None = None,
    bots: Mapping[str, BotFactory] = MappingProxyType({}),
    require_token: bool = False,
    hosts: tuple[str, ...] = (),
    origins: tuple[str, ...] = (),
    settings: Settings | None = None,
    offered: Offered | None = None,
    at_once: int = MAX_AT_ONCE,
    issuer: Issuer | None = None,
    webhook: Receiver | None = None,
    public_url: str = "",
    thinks: bool = True,
) -> ApiApp:
    """Return the server as an ASGI application.

    Args:
        data: a data folder, the URL of a PostgreSQL database, or a runtime.
        model: the model for all roles (a name or an object), a table of names or objects by role, or `Models`; None:
            the models in the settings.
        bots: chat bots by name, such as `{"support": ChatBot.using(model=…, instructions=…)}`; each is listed at
            /v1/models and answers at /v1/chat/completions. A bot without a model uses the models of the server. If the
            settings name no pack, the packs and the companion are not listed at /v1/models, and the first bot answers
            messages that name no bot (`POST …/send`).
        require_token: True: every request needs a token; set this if the application is mounted behind a proxy. False:
            requests of programs on this machine need no token (see `admission.is_local`).
        hosts: accepted names in the Host header, in addition to localhost.
        origins: other origins whose pages may call the server from a browser.
        offered: the tools, documents, MCP servers and towns that callers may use; None: the tools calculator and
            recall.
        at_once: maximum number of simultaneous calls of each model.
        issuer: an OIDC issuer whose tokens are accepted in addition to the server's own.
        webhook: the receiver of the follow-ups that minds add after their answers.
        public_url: the URL by which a proxy publishes the server, such as https://mind.example.org; if it is set, every
            request needs a token.
        thinks: background reasoning runs in this process; False: only in processes of `mindstream work`.

    Raises:
        SettingsError: the model of the server or of a bot does not exist, or its key is missing.
        InputError: `public_url` or the name of a bot is not valid.
    """
    if isinstance(model, str):
        settings = (settings or Settings()).model_copy(update={"model": model, "roles": {}})
    models = None if model is None or isinstance(model, str) else build_models(model)
    runtime = runtime_for(data, settings, models, offered, at_once, "whole" if thinks else "talks")
    runtime.add_bots(bots)
    tokens = Tokens(runtime.server_store, runtime.clock)
    public = checked_public_url(public_url) if public_url else ""
    return ApiApp(runtime, Admission(tokens, require_token, tuple(hosts), tuple(origins), issuer, public), webhook)


def add_problems(api: FastAPI) -> None:
    """Make the application answer every error with a problem document (RFC 9457)."""

    async def respond(request: Request, error: Exception) -> Response:
        return problem_response(error, request.scope)

    kinds = (
        RecursionError,
        MindstreamError,
        Refusal,
        ValidationError,
        RequestValidationError,
        HTTPException,
        Exception,
    )
    for kind in kinds:
        api.add_exception_handler(kind, respond)


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
        kind: Any = Annotated[str, BeforeValidator(unescape_name), Path(min_length=1, max_length=100)]
        if info is not None and info.annotation is not str:
            kind = Annotated[(info.annotation, *info.metadata, Path())]
        parameters.append(_parameter(name, kind))
    rest = {name: (info.annotation, info) for name, info in fields.items() if name not in each.path_names}
    if rest:
        where = Query() if each.method in ("GET", "DELETE") else Body()
        parameters.append(_parameter("rest", Annotated[_model_of(each, rest), where]))
    endpoint.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    endpoint.__name__ = each.name.replace(".", "_")
    return endpoint


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


def escape_names(scope: Scope, prefix: str) -> Scope:
    """Return a request in whose path %2F stays escaped below `prefix`, so that names in a path may contain a slash.

    Servers decode the whole path; a router would then split `team%2Fann` into two parts. Routes read the names with
    `unescape_name`. The path is changed only if it contains a percent sign.
    """
    raw, path = scope.get("raw_path") or b"", str(scope["path"])
    if b"%" not in raw and "%" not in path:
        return scope
    head, found, rest = path.partition(prefix)
    sent = raw.decode("latin-1").partition(prefix)[2]
    names = map(unquote, sent.split("/")) if unquote(sent) == rest else rest.split("/")
    escaped = "/".join(each.replace("%", "%25").replace("/", "%2F") for each in names)
    return {**scope, "path": head + found + escaped} if found else scope


def unescape_name(text: str) -> str:
    """Return the name from a part of a path in which `escape_names` has escaped it."""
    return text.replace("%2F", "/").replace("%25", "%")
