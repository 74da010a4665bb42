"""The principal of a request: the caller's tenant and scopes, and the user that the request is about.

These values come from the token and the request path, never from the text of a message.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, get_args

from mindstream.errors import InputError, UserError
from mindstream.identifiers import MARK, StreamKey, StreamName, checked_tenant, normal_name
from mindstream.models.wrappers.meter import Budget


class NotFound(InputError):  # noqa: N818 (public name)
    """No object with this name or id exists that the principal may see."""


class Forbidden(UserError):  # noqa: N818
    """The principal is not allowed to do this."""


class NotOffered(UserError):  # noqa: N818
    """The operator of this server has not configured this feature."""


Scope: TypeAlias = Literal["read", "write", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
COMMAND = "command"
"""The value of `Principal.door` for the command line."""
LOCAL = "local"
"""The tenant of the users on this machine, which shares its data with the command line."""
SERVER = StreamKey(f"{MARK}server")
"""The key under which a server stores its own state: it belongs to no user and no tenant."""
TOKEN = "token:"
"""Prefix of the names under which a server stores tokens."""


@dataclass(frozen=True, slots=True)
class Principal:
    """The caller of an operation.

    Attributes:
        tenant: its tenant; no name, id or cursor gives access to the data of another tenant.
        scopes: `read`, `write` or `admin` (all), or a scope of one package, such as `memory.read`.
        user: the user, within the tenant, that the request is about; "": none.
        only: the only user whose data it may access; "": all users of the tenant.
        narrowed: `only` comes from the URL (an MCP server is for one user), not from the token.
        key: the id of its token, by which limits are counted and idempotency keys are kept apart.
        door: the interface that it uses: `rest`, `mcp` or `command`.
        budget: the limits of spending on models for its calls; None: only the server's own limits apply.
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
        """Return this principal with the user that a request is about.

        Raises:
            Forbidden: the token is for another user only.
            InputError: the name is not valid.
        """
        name = StreamName("user", user).normal
        if self.only and self.only != name:
            raise Forbidden("this token is for another user than the one in the request")
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
        """Return whether the principal has a scope in a package of operations."""
        return bool({"admin", scope, f"{package}.admin", f"{package}.{scope}"} & self.scopes)

    def require(self, package: str, scope: Scope) -> None:
        """Raise Forbidden if the principal does not have a scope in a package of operations."""
        if not self.may(package, scope):
            raise Forbidden(f"this token needs the scope `{scope}` or `{package}.{scope}` for this request")

    @property
    def tenant_key(self) -> str:
        """The tenant's key in stores; "" for LOCAL."""
        return tenant_key_of(self.tenant)

    @property
    def name(self) -> StreamName:
        """The name of the user's stream.

        Raises:
            InputError: the request is about no user.
        """
        if not self.user:
            raise InputError("the request names no user, and this operation is about a user's memory: name the user")
        return StreamName("user", self.user)


LOCAL_PRINCIPAL = Principal(LOCAL, frozenset({"admin"}), key=LOCAL)
"""The principal of a program on this machine, where no token is required."""


def tenant_key_of(tenant: str) -> str:
    """Return a tenant's key in stores; "" for LOCAL."""
    return "" if tenant == LOCAL else tenant


def operations_of(tenant_key: str) -> StreamKey:
    """Return the stream key of a tenant's long-running operations that are about no user."""
    return StreamKey(f"{tenant_key}{MARK}operations")


def checked_scopes(names: str) -> frozenset[str]:
    """Parse scopes that are separated by commas.

    Raises:
        InputError: a scope does not exist, or the text names none.
    """
    scopes = frozenset(name.strip() for name in names.split(",") if name.strip())
    if not scopes:
        raise InputError("name at least one scope of the token, such as read,write")
    for name in scopes:
        package, dot, scope = name.rpartition(".")
        if scope not in SCOPES or (dot and not package.isidentifier()):
            raise InputError(
                f"there is no scope {name!r}; the scopes are read, write, admin, or of one package, such as memory.read"
            )
    return scopes


def checked_tenant_name(tenant: str) -> str:
    """Return a tenant's name if it is valid.

    Raises:
        InputError: the name is empty or not valid.
    """
    if not tenant:
        raise InputError("name the tenant that the token is for")
    return checked_tenant(tenant)
