"""/mcp and /mcp/{user}: the MCP server over streamable HTTP, for clients of both eras of the protocol.

It keeps no sessions: clients of 2025 are answered request by request, as those of 2026 are. So nothing is kept for a
client that disconnected, and a restart of the server ends no session.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from mindstream.server.asgi import Receive, Scope, Send
from mindstream.server.mcp.tools import Caller, checked_sets, require_scope
from mindstream.server.problems import Refusal
from mindstream.server.rest import METADATA, base_url, principal_of
from mindstream.service.operations.runtime import Runtime

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from mindstream.server.mcp.server import Context

LARGEST = 2_000_000
"""Maximum bytes of a request: the longest text of a memory fits, even if every character is escaped."""
SCOPES = ("read", "write")


class McpEndpoint:
    """The application behind the routes. The SDK is imported at the first request: that takes a second."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._wanted = asyncio.Event()
        self._manager: asyncio.Future[StreamableHTTPSessionManager] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._manager is None:
            raise Refusal("unavailable", "the server has not started: pass the application's lifespan on")
        caller = caller_of_request(self._runtime, scope)  # a wrong name or set is refused before the SDK sees it
        receive = await require_scope(scope, receive, caller)
        self._wanted.set()
        manager = await asyncio.shield(self._manager)
        await manager.handle_request(scope, receive, send)

    @contextlib.asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Answer while the block runs."""
        self._manager = asyncio.get_running_loop().create_future()
        answering = asyncio.ensure_future(self._answer(self._manager))
        try:
            yield
        finally:
            answering.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await answering
            self._manager = None

    async def _answer(self, begun: asyncio.Future[StreamableHTTPSessionManager]) -> None:
        await self._wanted.wait()
        try:
            manager = await asyncio.to_thread(make_manager, self._runtime)
        except Exception as error:
            begun.set_exception(error)
            raise
        async with manager.run():
            begun.set_result(manager)
            await asyncio.Event().wait()


def make_manager(runtime: Runtime) -> StreamableHTTPSessionManager:
    """Return the SDK's implementation of the protocol."""
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from mcp.server.transport_security import TransportSecuritySettings

    from mindstream.server.mcp.server import make_server

    def caller_of(context: Context) -> Caller:
        assert context.request is not None  # over HTTP there is one
        return caller_of_request(runtime, context.request.scope)

    return StreamableHTTPSessionManager(
        make_server(runtime, caller_of),
        stateless=True,
        max_request_body_size=LARGEST,
        security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # AuthMiddleware does it
    )


def caller_of_request(runtime: Runtime, scope: Scope) -> Caller:
    """Return the caller: the token's tenant; the user in the path, or the token's own, or the operator's.

    No argument of a tool names a user, so that a manipulated model reaches no other memory.

    Raises:
        Refusal, MindstreamError: the caller may not do this, or there is no such user or set of tools.
    """
    principal = principal_of(scope)
    user = scope.get("path_params", {}).get("user") or principal.only or runtime.settings.user
    return Caller.about(principal, user, checked_sets(Request(scope).query_params.get("tools", "")[:200]))


def add_mcp(api: FastAPI, runtime: Runtime, issuers: Sequence[str] = ()) -> AbstractAsyncContextManager[object]:
    """Add the MCP server; return the context in which it runs. `issuers` issue tokens for it."""
    endpoint: Any = McpEndpoint(runtime)
    describe = _describer(list(issuers))
    for path in ("/mcp", "/mcp/{user}"):
        api.router.routes.append(Route(path, endpoint, methods=["POST"]))
        api.router.routes.append(Route(METADATA + path, describe, methods=["GET"]))
    api.router.routes.append(Route(METADATA, describe, methods=["GET"]))
    return endpoint.run()  # type: ignore[no-any-return]


def _describer(issuers: list[str]) -> Callable[[Request], Awaitable[JSONResponse]]:
    named = {"authorization_servers": issuers} if issuers else {}

    async def describe_resource(request: Request) -> JSONResponse:
        """Return how the MCP server is reached with a token (RFC 9728)."""
        path = request.scope["path"].partition(METADATA)[2] or "/mcp"
        return JSONResponse(
            {
                "resource": base_url(request.scope) + path,
                "resource_name": "mindstream",
                **named,
                "bearer_methods_supported": ["header"],
                "scopes_supported": list(SCOPES),
            }
        )

    return describe_resource
