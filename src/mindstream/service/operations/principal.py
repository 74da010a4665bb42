"""Who asks: a tenant, what it may do, and of whose memory. It comes from a token and a path, never from a text."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, get_args

from mindstream.errors import InputError, UserError
from mindstream.identifiers import normal_name
from mindstream.log.names import StreamName, checked_tenant
from mindstream.models.wrappers.budget import Budget


class NotFound(InputError):  # noqa: N818 (what doors call it)
    """There is nothing of that name or id for whoever asks."""


class Forbidden(UserError):  # noqa: N818
    """Whoever asks may not do that."""


class NotOffered(UserError):  # noqa: N818
    """The operator of this server has not set up what is asked for."""


Scope: TypeAlias = Literal["read", "write", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
LOCAL = "local"
"""The tenant of this machine's own people: what it keeps is what the command line keeps."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Whoever asks something of a door.

    Attributes:
        tenant: a wall: nothing of another's is seen, by whatever name, id or cursor.
        scopes: what it may do: `read`, `write`, `admin` (all), or in one room alone, as `memory.read`.
        user: whose memory it is about, within the tenant; "" where it is about none.
        only: the one user that it may ask about; "": any of the tenant's.
        narrowed: `only` comes from the address (an MCP server is about one user), not from the token.
        door: by which it came.
        key: which token it has: limits and idempotency keys are counted by it.
        budget: what may be spent on models in its name; None: what the server may.
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
        for name in ("user", "only"):  # tokens of earlier versions hold an earlier normal form
            object.__setattr__(self, name, normal_name(getattr(self, name)))

    def of(self, user: str) -> Principal:
        """Return the same, asking about a user.

        Raises:
            Forbidden: it may ask about another user alone.
            InputError: nobody can be called so.
        """
        name = StreamName("user", user)
        if self.only and self.only != name.normal:
            raise Forbidden("this token is for another user")
        return replace(self, user=name.normal)

    @property
    def only_normal(self) -> str:
        """The one user that it may ask about, as streams are named; "": any of the tenant's."""
        return StreamName("user", self.only).normal if self.only else ""

    @property
    def bound_user(self) -> str:
        """The user for whom the caller's token was made; "": it is not for one user."""
        return "" if self.narrowed else self.only_normal

    def require_own(self, user: str) -> None:
        """Raise Forbidden where a request names another user than the one for whom the token was made."""
        if self.bound_user and StreamName("user", user).normal != self.bound_user:
            raise Forbidden(f"this token is for the user {self.bound_user!r}, and the request names {user!r:.99}")

    def may(self, room: str, scope: Scope) -> bool:
        """Tell whether it may do that in that room."""
        return bool({"admin", scope, f"{room}.admin", f"{room}.{scope}"} & self.scopes)

    def require(self, room: str, scope: Scope) -> None:
        """Raise Forbidden where it may not do that in that room."""
        if not self.may(room, scope):
            raise Forbidden(f"this token may not {scope} here: it wants the scope `{scope}`, or `{room}.{scope}`")

    @property
    def tenant_key(self) -> str:
        """The tenant as stores know it."""
        return tenant_key_of(self.tenant)

    @property
    def name(self) -> StreamName:
        """The name of the user's stream.

        Raises:
            InputError: it is about no user.
        """
        if not self.user:
            raise InputError("say whose memory it is about")
        return StreamName("user", self.user)


LOCAL_PRINCIPAL = Principal(LOCAL, frozenset({"admin"}), key=LOCAL)
"""Whoever asks from this machine, where no token is asked for."""


def tenant_key_of(tenant: str) -> str:
    """Return a tenant as stores know it: this machine's own people, LOCAL, are none's."""
    return "" if tenant == LOCAL else tenant


def checked_scopes(names: str) -> frozenset[str]:
    """Read scopes, with commas between.

    Raises:
        InputError: there is no such scope.
    """
    scopes = frozenset(name.strip() for name in names.split(",") if name.strip())
    if not scopes:
        raise InputError("name what the token may do, as read,write")
    for name in scopes:
        room, dot, scope = name.rpartition(".")
        if scope not in SCOPES or (dot and not room.isidentifier()):
            raise InputError(f"there is no scope {name!r}; they are read, write, admin, or of one room, as memory.read")
    return scopes


def checked_tenant_name(tenant: str) -> str:
    """Return a tenant's name.

    Raises:
        InputError: nobody can be called so.
    """
    if not tenant:
        raise InputError("name the tenant whom the token is for")
    return checked_tenant(tenant)
