"""The HTTP transport for tools (web, MCP over HTTP), which checks addresses; imported only when a request is made."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Collection

import httpx2

from mindstream.tools.web.addresses import may_reach


class PublicTransport(httpx2.AsyncHTTPTransport):
    """Resolves a host name once, and connects only to permitted addresses among those found, because the name could
    resolve to other addresses a moment later.

    Args:
        allow: hosts or addresses to which it connects although they are private.
    """

    def __init__(self, allow: Collection[str], verify: ssl.SSLContext | bool = True) -> None:
        super().__init__(verify=verify, trust_env=False)  # a proxy would resolve names itself
        self._allow = allow

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request to the first permitted address of its host that accepts a connection.

        Raises:
            OSError: the host is unknown, or none of its addresses is permitted (`may_reach`).
        """
        url = request.url
        found = await asyncio.get_running_loop().getaddrinfo(url.host, url.port or 443, type=socket.SOCK_STREAM)
        there = dict.fromkeys(str(entry[4][0]) for entry in found)
        addresses = [each for each in there if may_reach(each, url.host, self._allow)]
        if not addresses:
            raise OSError(f"{url.host} has no public address ({', '.join(there)}); allow the host by name")
        for address in addresses:
            asked = httpx2.Request(
                request.method,
                url.copy_with(host=address),
                headers=request.headers,
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": url.host},
            )
            try:
                return await super().handle_async_request(asked)
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                if address == addresses[-1]:
                    raise
        raise AssertionError("one of the addresses has answered, or the error of the last one was raised")
