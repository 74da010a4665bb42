"""The transport of tools' requests: it reaches public addresses, and hosts or addresses that are allowed by name.

The address of the connection is checked, not the URL: so unusual notations, a name that resolves to another address a
moment later, and redirects make no difference.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Collection
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

import httpx2

TRANSLATED = IPv6Network("64:ff9b::/96")
"""IPv4 addresses in networks without IPv4: the last 32 bits are the real address."""


class PublicTransport(httpx2.AsyncHTTPTransport):
    """Connects to the very addresses that were checked, since a name could resolve to others a moment later.

    Args:
        allow: hosts or addresses that are reached although they are private.
    """

    def __init__(self, allow: Collection[str], verify: ssl.SSLContext | bool = True) -> None:
        super().__init__(verify=verify, trust_env=False)  # a proxy would resolve names itself
        self._allow = allow

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request.

        Raises:
            OSError: the host is unknown, or none of its addresses may be reached.
        """
        url = request.url
        found = await asyncio.get_running_loop().getaddrinfo(url.host, url.port or 443, type=socket.SOCK_STREAM)
        there = dict.fromkeys(str(entry[4][0]) for entry in found)
        addresses = [each for each in there if may_reach(each, url.host, self._allow)]
        if not addresses:
            raise OSError(f"{' and '.join(there)} is not a public address; allow the host by name")
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
        raise AssertionError("one of them answered, or was the last")


def may_reach(address: str, host: str, allow: Collection[str]) -> bool:
    """Return whether a host may be asked at one of its addresses."""
    return is_public(address) or is_allowed(host, allow) or is_allowed(address, allow)


def is_allowed(host: str, allow: Collection[str]) -> bool:
    """Return whether a host, or an address, is allowed by name."""
    return _plain(host) in map(_plain, allow)


def is_public(address: str) -> bool:
    """Return whether an address is public: not private, local or reserved, nor a translation of such an address."""
    try:
        found: IPv4Address | IPv6Address = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour
        if found in TRANSLATED:
            inner = IPv4Address(int(found) & 0xFFFF_FFFF)
        if inner is not None:
            return is_public(str(inner))
        if found.is_site_local:
            return False
    return found.is_global and not (found.is_multicast or found.is_reserved)


def _plain(host: str) -> str:
    """Return a host in its normal form."""
    bare = host.strip("[]").rstrip(".").lower()
    try:
        return str(ip_address(bare))
    except ValueError:
        return bare
