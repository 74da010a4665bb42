"""The principal of a request: its tenant, its scopes, and the user that it is about.

All of it comes from a token and a path, never from a text.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, get_args

from mindstream.errors import InputError, UserError
from mindstream.identifiers import normal_name
from mindstream.log.names import MARK, StreamKey, StreamName, checked_tenant
from mindstream.models.wrappers.budget import Budget


class NotFound(InputError):  # noqa: N818 (public name)
    """There is nothing with this name or id that the principal may see."""


class Forbidden(UserError):  # noqa: N818
    """The principal may not do that."""


class NotOffered(UserError):  # noqa: N818
    """The operator of this server has not set this up."""


Scope: TypeAlias = Literal["read", "write", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
COMMAND = "command"
"""The interface (`Principal.door`) of the command line."""
LOCAL = "local"
"""The tenant of users on this machine: it shares its data with the command line."""
SERVER = StreamKey(f"{MARK}server")
"""The key under which a server stores its own state: it belongs to no user and no tenant."""
TOKEN = "token:"
"""Prefix of the names under which it stores tokens."""


@dataclass(frozen=True, slots=True)
class Principal:
    """The caller of an operation.

    Attributes:
        tenant: isolates it: nothing of another tenant is accessible, by whatever name, id or cursor.
        scopes: `read`, `write`, `admin` (all), or of one package alone, as `memory.read`.
        user: the user, within the tenant, that the request is about; "" if it is about none.
        only: the one user that it may ask about; "": any of the tenant's.
        narrowed: `only` comes from the address (an MCP server is about one user), not from the token.
        key: the id of its token: limits and idempotency keys are counted by it.
        door: the interface: `rest`, `mcp` or `command`.
        budget: what may be spent on models in its name; None: only the server's own limits apply.
    """

    tenant: str
    scopes: frozenset[str]
    user: str = ""
    only: str = ""
    narrowed: bool = False
    key: str = ""
    door: str = "rest"
    budget: Budget | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        for name in ("user", "only"):  # tokens of earlier versions contain an earlier normal form
            object.__setattr__(self, name, normal_name(getattr(self, name)))

    def of(self, user: str) -> Principal:
        """Return the same principal, asking about a user.

        Raises:
            Forbidden: it may ask about another user alone.
            InputError: the name cannot be used.
        """
        name = StreamName("user", user).normal
        if self.only and self.only != name:
            raise Forbidden("this token is for another user")
        return replace(self, user=name)

    @property
    def bound_user(self) -> str:
        """The only user of the caller's token; "": the token is for all users."""
        return "" if self.narrowed else self.only

    def require_own(self, user: str) -> None:
        """Raise Forbidden if the token is for one user, and the request names another."""
        if self.bound_user and StreamName("user", user).normal != self.bound_user:
            raise Forbidden(f"this token is for the user {self.bound_user!r}, and the request names {user!r:.99}")

    def may(self, package: str, scope: Scope) -> bool:
        """Return whether it has a scope in a package."""
        return bool({"admin", scope, f"{package}.admin", f"{package}.{scope}"} & self.scopes)

    def require(self, package: str, scope: Scope) -> None:
        """Raise Forbidden if it does not have a scope in a package."""
        if not self.may(package, scope):
            raise Forbidden(f"this token may not {scope} here: it needs the scope `{scope}`, or `{package}.{scope}`")

    @property
    def tenant_key(self) -> str:
        """The tenant as stores know it."""
        return tenant_key_of(self.tenant)

    @property
    def name(self) -> StreamName:
        """The name of the user's stream.

        Raises:
            InputError: the request is about no user.
        """
        if not self.user:
            raise InputError("say which user's memory this is about")
        return StreamName("user", self.user)


LOCAL_PRINCIPAL = Principal(LOCAL, frozenset({"admin"}), key=LOCAL)
"""A program on this machine, where no token is required."""


def tenant_key_of(tenant: str) -> str:
    """Return a tenant as stores know it: LOCAL is ""."""
    return "" if tenant == LOCAL else tenant


def operations_of(tenant_key: str) -> StreamKey:
    """Return the key under which operations are stored that belong to a tenant and to no user."""
    return StreamKey(f"{tenant_key}{MARK}operations")


def checked_scopes(names: str) -> frozenset[str]:
    """Parse scopes that are separated by commas.

    Raises:
        InputError: there is no such scope, or none is named.
    """
    scopes = frozenset(name.strip() for name in names.split(",") if name.strip())
    if not scopes:
        raise InputError("name the scopes of the token, as read,write")
    for name in scopes:
        package, dot, scope = name.rpartition(".")
        if scope not in SCOPES or (dot and not package.isidentifier()):
            raise InputError(
                f"there is no scope {name!r}; they are read, write, admin, or of one package, as memory.read"
            )
    return scopes


def checked_tenant_name(tenant: str) -> str:
    """Return a tenant's name.

    Raises:
        InputError: it is empty or cannot be used.
    """
    if not tenant:
        raise InputError("name the tenant that the token is for")
    return checked_tenant(tenant)
