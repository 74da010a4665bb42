"""The key under which a server keeps what is its own: no stream's, and no tenant's."""

from __future__ import annotations

from mindstream.log.names import MARK, StreamKey

SERVER = StreamKey(f"{MARK}server")
TOKEN = "token:"
"""Begins the names under which it keeps tokens."""


def operations_of(tenant_key: str) -> StreamKey:
    """Return under which key operations are kept that are a tenant's, and no user's."""
    return StreamKey(f"{tenant_key}{MARK}operations")
