"""The tenant of a store: isolates its streams from those of other tenants."""

from __future__ import annotations

from mindstream.errors import InputError
from mindstream.log.names import MARK, StreamKey, checked_tenant, shown_name, tenant_of

EVERYONE = "*"
"""All tenants together, whose rows a server's operator may read; it owns no key, so it writes nothing."""


class Tenant:
    """The tenant of a store; "": no tenant."""

    def __init__(self, name: str) -> None:
        self.name = name if name == EVERYONE else str(checked_tenant(name))

    def own(self, key: StreamKey) -> StreamKey:
        """Return a key that belongs to this tenant.

        Raises:
            InputError: it belongs to another.
        """
        if tenant_of(key) != self.name:
            raise InputError(f"{shown_name(key)!r} is another tenant's")
        return key

    def owned(self, column: str) -> str:
        """Return the SQL condition that a column contains the key of a stream of this tenant."""
        if self.name == EVERYONE:
            return "1 = 1"
        if not self.name:
            return f"instr({column}, '{MARK}') <= 1"
        first = f"{self.name}{MARK}"  # of letters, digits, . _ and -
        return f"({column} >= '{first}' AND {column} < '{first[:-1]}{chr(ord(MARK) + 1)}')"
