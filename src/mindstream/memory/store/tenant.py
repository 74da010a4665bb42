"""The tenant of a store, which isolates its streams from those of other tenants."""

from __future__ import annotations

from mindstream.errors import InputError
from mindstream.log.names import MARK, StreamKey, checked_tenant, shown_name, tenant_of

EVERYONE = "*"
"""Stands for all tenants together. A server's operator uses it to read the rows of all tenants. No stream's key belongs
to it, so nothing can be written with it."""


class Tenant:
    """The tenant of a store; "": no tenant."""

    def __init__(self, name: str) -> None:
        self.name = name if name == EVERYONE else str(checked_tenant(name))

    def own(self, key: StreamKey) -> StreamKey:
        """Return a key if it belongs to this tenant.

        Raises:
            InputError: it belongs to another tenant.
        """
        if tenant_of(key) != self.name:
            raise InputError(f"{shown_name(key)!r} belongs to another tenant: open the store of that tenant")
        return key

    def owned(self, column: str) -> str:
        """Return the SQL condition that a column contains the key of a stream of this tenant."""
        if self.name == EVERYONE:
            return "1 = 1"
        if not self.name:
            return f"instr({column}, '{MARK}') <= 1"
        first = f"{self.name}{MARK}"  # safe in SQL: the name has only letters, digits, . _ and -
        return f"({column} >= '{first}' AND {column} < '{first[:-1]}{chr(ord(MARK) + 1)}')"
