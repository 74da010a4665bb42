"""Whose streams a store sees: one tenant's, or those that are no tenant's; each key and each list is asked here."""

from __future__ import annotations

from mindstream.errors import InputError
from mindstream.log.names import MARK, StreamKey, checked_tenant, shown_name, tenant_of

EVERYONE = "*"
"""Stands for all tenants together, whose rows a server's operator may read; no key is its own, so it writes nothing."""


class Tenant:
    """One that a store is open for; "" stands for none."""

    def __init__(self, name: str) -> None:
        self.name = name if name == EVERYONE else str(checked_tenant(name))

    def own(self, key: StreamKey) -> StreamKey:
        """Return the key of a stream of this tenant's.

        Raises:
            InputError: it is another's.
        """
        if tenant_of(key) != self.name:
            raise InputError(f"{shown_name(key)!r} is another tenant's")
        return key

    def owned(self, column: str) -> str:
        """Return the condition (SQL) that a column holds the key of a stream of this tenant's."""
        if self.name == EVERYONE:
            return "1 = 1"
        if not self.name:
            return f"instr({column}, '{MARK}') <= 1"
        first = f"{self.name}{MARK}"  # of letters, digits, . _ and -
        return f"({column} >= '{first}' AND {column} < '{first[:-1]}{chr(ord(MARK) + 1)}')"
