"""Which addresses tools reach: those of the open network, and hosts or addresses that are allowed by name.

It is the address that a connection is made to, not what stands in a URL: so a number written oddly, a name that leads
elsewhere the next moment, and a redirect make no difference.
"""

from __future__ import annotations

from collections.abc import Collection
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

TRANSLATED = IPv6Network("64:ff9b::/96")
"""Where networks without IPv4 reach it: the last 32 bits are the real address."""


def may_reach(address: str, host: str, allow: Collection[str]) -> bool:
    """Tell whether a host may be asked at one of its addresses."""
    return is_public(address) or is_allowed(host, allow) or is_allowed(address, allow)


def is_allowed(host: str, allow: Collection[str]) -> bool:
    """Tell whether a host, or an address, is allowed by name."""
    return _plain(host) in map(_plain, allow)


def is_public(address: str) -> bool:
    """Tell whether an address is one of the open network: not private, local, reserved, nor a way round to such."""
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
    """Return a host in the one form of it that is compared."""
    bare = host.strip("[]").rstrip(".").lower()
    try:
        return str(ip_address(bare))
    except ValueError:
        return bare
