"""Decides which addresses tools may connect to: public ones, and hosts or addresses that are allowed by name.

The address of the connection is checked, not the URL. So the check cannot be evaded by an unusual notation, by a name
that resolves to another address a moment later, or by a redirect.
"""

from __future__ import annotations

from collections.abc import Collection
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

TRANSLATED = IPv6Network("64:ff9b::/96")
"""The prefix of IPv4 addresses in networks without IPv4 (NAT64): the last 32 bits are the IPv4 address."""


def may_reach(address: str, host: str, allow: Collection[str]) -> bool:
    """Return whether a tool may connect to a host at this IP address: it is public, or one of the two is in `allow`."""
    return is_public(address) or is_allowed(host, allow) or is_allowed(address, allow)


def is_allowed(host: str, allow: Collection[str]) -> bool:
    """Return whether a host name or an IP address is in `allow`, in any notation."""
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
    """Return a host in lower case without brackets and a final dot; an IP address in its usual short form."""
    bare = host.strip("[]").rstrip(".").lower()
    try:
        return str(ip_address(bare))
    except ValueError:
        return bare
