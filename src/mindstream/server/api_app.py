"""The ASGI application: run it, or mount it in one of your own."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

import mindstream as package
from mindstream.errors import MindstreamError
from mindstream.location import AnyData
from mindstream.memory.opening import open_everyone
from mindstream.models.roles import Models
from mindstream.server.asgi import Receive, Scope, Send
from mindstream.server.auth import Admission, AuthMiddleware, checked_public_url
from mindstream.server.chat import add_chat
from mindstream.server.chat.errors import OpenAIErrors
from mindstream.server.events import add_events
from mindstream.server.health import Metrics, add_health
from mindstream.server.idempotency import PATIENCE_S, Writes
from mindstream.server.ledger import Budgets, Ledger
from mindstream.server.limits import Limits
from mindstream.server.mcp.http import add_mcp
from mindstream.server.old_files import take_in
from mindstream.server.problems import PROBLEMS, TYPE, Refusal, body_of, describe_mistakes, problem, problem_of
from mindstream.server.rest import add_rest, describe_api
from mindstream.server.tokens import Tokens
from mindstream.service.operations.offered import Offered
from mindstream.service.operations.orphaned_work import OrphanedWork
from mindstream.service.operations.runtime import AT_ONCE, Runtime, runtime_for
from mindstream.settings import Settings

if TYPE_CHECKING:
    from mindstream.server.issuer import Issuer
    from mindstream.server.webhook import Receiver

BY_STATUS = {status: kind for kind, (status, _) in PROBLEMS.items()}


class ApiApp:
    """All doors of a house, as one ASGI application.

    Its lifespan opens and closes the house; whoever mounts it in an application of their own gives that one its
    lifespan: `FastAPI(lifespan=doors.lifespan)`.

    Attributes:
        house: what is behind the doors.
        api: the FastAPI application; its routes are checked by the entrance, which stands before it.
    """

    def __init__(self, runtime: Runtime, admission: Admission, receiver: Receiver | None = None) -> None:
        self.runtime, self.admission = runtime, admission
        self.api = FastAPI(
            title="mindstream",
            version=package.__version__,
            lifespan=self.lifespan,
            docs_url=None,
            redoc_url=None,
            openapi_url=None,  # see describe_api
            description="Memory, minds, plans, lives, pools and towns: see docs/server.md.",
        )
        self._ledger = Ledger(runtime.server_store, runtime.clock)
        is_shared = runtime.settings.data.folder is None  # a folder has one server
        issued = admission.issuer.limits if admission.issuer else None
        self._budgets = Budgets(self._ledger, runtime.clock, admission.tokens, issued, is_shared=is_shared)
        self.writes = Writes(runtime, self._ledger, PATIENCE_S if is_shared else 0.0)
        runtime.on_forget.append(self.writes.check)
        self._more: list[contextlib.AbstractAsyncContextManager[Any]] = []
        self.metrics = Metrics(runtime)
        self._receiver = receiver
        describe_api(self.api)
        add_health(self.api, runtime, self.metrics)
        add_rest(self.api, runtime, self.writes)
        add_events(self.api, runtime)
        add_chat(self.api, runtime)
        if admission.issuer is not None:
            admission.issuer.digest = lambda text: runtime.server_store().digest(text)
        servers = (admission.issuer.url,) if admission.issuer is not None else ()
        self._more.append(add_mcp(self.api, runtime, servers))
        add_problems(self.api)
        limits = Limits(runtime.clock, self._ledger if is_shared else None)
        entrance = AuthMiddleware(self.api, admission, limits, self._budgets, self.metrics)
        self._entrance = OpenAIErrors(entrance)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._entrance(scope, receive, send)

    def keep_open(self, more: contextlib.AbstractAsyncContextManager[Any]) -> None:
        """Open something more with the house, and close it before that; to be said before the server runs."""
        self._more.append(more)

    @contextlib.asynccontextmanager
    async def lifespan(self, _: object = None) -> AsyncIterator[None]:
        """Open the house, and what its doors need, until the block ends."""
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(self.runtime)
            await take_in(self.runtime.settings.data, self.runtime.server_store(), self.runtime.clock)
            for each in self._more:
                await stack.enter_async_context(each)
            await stack.enter_async_context(self._budgets.running())
            if self._receiver is not None:
                await stack.enter_async_context(self._webhook(self._receiver))
            for answers in (True, False)[: 1 if self.runtime.part == "talks" else 2]:
                orphaned_work = OrphanedWork(
                    self.runtime, answers=answers, at_once=AT_ONCE, budgets=self._budgets.of_id
                )
                await stack.enter_async_context(orphaned_work.running())
            yield

    def _webhook(self, receiver: Receiver) -> contextlib.AbstractAsyncContextManager[None]:
        from mindstream.server.webhook import Webhook

        log = open_everyone(self.runtime.settings.data)
        alone = self.runtime.settings.data.folder is not None
        return Webhook(receiver, log, self._ledger, self.runtime.clock, self.metrics, is_alone=alone).run()


def app(
    data: AnyData | Runtime = "data",
    *,
    model: str | Models | None = None,
    require_token: bool = False,
    hosts: tuple[str, ...] = (),
    origins: tuple[str, ...] = (),
    settings: Settings | None = None,
    offered: Offered | None = None,
    at_once: int = AT_ONCE,
    issuer: Issuer | None = None,
    webhook: Receiver | None = None,
    public_url: str = "",
    thinks: bool = True,
) -> ApiApp:
    """Make the application.

    Args:
        data: a data folder, the URL of a PostgreSQL database, or a house.
        model: who answers in all roles, by name or as `Models`; None: as the settings say.
        require_token: every request needs a token. Otherwise only those of programs on this machine are accepted
            without one: see `entrance.is_local`. Set it if the application is mounted behind a proxy.
        hosts: names under which it is served, beside localhost.
        origins: pages that may call it from a browser.
        offered: tools, documents and towns for whoever asks; None: a calculator, and memory itself.
        at_once: so many calls of each model go on at a time.
        issuer: whose tokens open, too.
        webhook: who is told what minds add after their answers.
        public_url: the URL by which a proxy publishes the server, as https://mind.example.org; with it every request
            needs a token.
        thinks: thoughts are thought here; else others do (`mindstream work`).

    Raises:
        SettingsError: there is no such model.
        InputError: `public_url` is none.
    """
    if isinstance(model, str):
        settings = (settings or Settings()).model_copy(update={"model": model, "roles": {}})
    runtime = runtime_for(
        data, settings, model if isinstance(model, Models) else None, offered, at_once, "whole" if thinks else "talks"
    )
    kept = Tokens(runtime.server_store, runtime.clock)
    public = checked_public_url(public_url) if public_url else ""
    return ApiApp(runtime, Admission(kept, require_token, tuple(hosts), tuple(origins), issuer, public), webhook)


def add_problems(api: FastAPI) -> None:
    """Answer whatever goes wrong with a problem."""

    async def tell(_: Request, error: Exception) -> Response:
        found, headers = problem_of(error)
        return Response(body_of(found), found.status, dict(headers), TYPE)

    async def tell_mistakes(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        mistakes = error.errors()
        kind = "malformed" if any(each["type"] == "json_invalid" for each in mistakes) else "invalid"
        found = problem(kind, describe_mistakes(mistakes, is_rest=True))
        return Response(body_of(found), found.status, None, TYPE)

    async def tell_http(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        found = problem(BY_STATUS.get(error.status_code, "malformed"))
        return Response(body_of(found), found.status, dict(error.headers or {}), TYPE)

    async def tell_deep(_: Request, error: Exception) -> Response:  # noqa: ARG001
        found = problem("malformed", "it is nested too deeply")
        return Response(body_of(found), found.status, None, TYPE)

    api.add_exception_handler(RecursionError, tell_deep)
    api.add_exception_handler(MindstreamError, tell)
    api.add_exception_handler(Refusal, tell)
    api.add_exception_handler(ValidationError, tell)
    api.add_exception_handler(RequestValidationError, tell_mistakes)
    api.add_exception_handler(HTTPException, tell_http)
    api.add_exception_handler(Exception, tell)
