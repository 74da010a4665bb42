"""/mcp and /mcp/{user}: the MCP server over streamable HTTP, for clients of the 2025 and 2026 versions of the protocol.

The server keeps no sessions: it answers each request independently of others, also for 2025 clients, whose version of
the protocol has sessions. So it keeps nothing for a disconnected client, and a restart ends no session.
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
from starlette.types import Receive, Scope, Send

from mindstream.server.admission import METADATA, base_url, principal_of
from mindstream.server.mcp.tools import Caller, checked_sets, require_scope
from mindstream.server.problems import Refusal
from mindstream.service.operations.runtime import Runtime
from mindstream.together import background

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from mindstream.server.mcp.server import Context

LARGEST = 2_000_000
"""Maximum bytes of a request; the longest text of a memory fits in it, even if every character is escaped."""
SCOPES = ("read", "write")
"""The scopes that MCP clients are told to request."""


class McpEndpoint:
    """The ASGI application of the MCP routes. It imports the SDK at the first request, because this takes a second."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._wanted = asyncio.Event()
        self._manager: asyncio.Future[StreamableHTTPSessionManager] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._manager is None:
            raise Refusal(
                "unavailable",
                "the MCP server has not started: the application that mounts this one must use its `lifespan`",
            )
        caller = caller_of_request(self._runtime, scope)  # refuses a wrong user or `?tools=`, before the SDK runs
        receive = await require_scope(scope, receive, caller)
        self._wanted.set()
        manager = await asyncio.shield(self._manager)
        await manager.handle_request(scope, receive, send)

    @contextlib.asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Answer requests during the `with` block."""
        self._manager = asyncio.get_running_loop().create_future()
        try:
            async with background(self._answer(self._manager)):
                yield
        finally:
            self._manager = None

    async def _answer(self, begun: asyncio.Future[StreamableHTTPSessionManager]) -> None:
        await self._wanted.wait()
        try:
            manager = await asyncio.to_thread(make_manager, self._runtime)
            async with manager.run():
                begun.set_result(manager)
                await asyncio.Event().wait()
        except Exception as error:
            if not begun.done():
                begun.set_exception(error)  # the answer to each request
            raise


def make_manager(runtime: Runtime) -> StreamableHTTPSessionManager:
    """Return the MCP SDK's request handler for this server."""
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from mcp.server.transport_security import TransportSecuritySettings

    from mindstream.server.mcp.server import make_server

    def caller_of(context: Context) -> Caller:
        assert context.request is not None  # always set over HTTP
        return caller_of_request(runtime, context.request.scope)

    return StreamableHTTPSessionManager(
        make_server(runtime, caller_of),
        stateless=True,
        max_request_body_size=LARGEST,
        # AuthMiddleware checks the host
        security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )


def caller_of_request(runtime: Runtime, scope: Scope) -> Caller:
    """Return the caller of a request, restricted to one user.

    The user is the one in the path, else the only user of the token, else the user in the server's settings. No tool
    has an argument that names a user, so a manipulated model cannot reach the memory of another user.

    Raises:
        Refusal, MindstreamError: the caller may not access the user, or the user or the set of tools is not valid.
    """
    principal = principal_of(scope)
    user = scope.get("path_params", {}).get("user") or principal.only or runtime.settings.user
    return Caller.about(principal, user, checked_sets(Request(scope).query_params.get("tools", "")[:200]))


def add_mcp(api: FastAPI, runtime: Runtime, issuers: Sequence[str] = ()) -> AbstractAsyncContextManager[object]:
    """Add the routes of the MCP server; return the context in which it runs.

    Args:
        issuers: URLs of the OIDC issuers whose tokens it accepts.
    """
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
        """Return the metadata that tells MCP clients which tokens the server accepts (RFC 9728)."""
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
