"""Operations of the API: their caller (`Principal`), the base classes of requests and replies, and their table. Each
operation is declared once, on its function; REST, MCP and the studio are built from the table.

    @operation("memory.recall", "read", "POST /users/{user}/memories/recall", mcp="recall")
    async def recall(runtime: Runtime, principal: Principal, request: RecallRequest) -> RecallResult:
        \"\"\"Find what answers a question.\"\"\"

A request is a pydantic model. Its fields are filled from the names in the path (except `user`, which becomes
`principal.user`) and from the query or the body. A principal's tenant, scopes and user come from the token and the
request path, never from the text of a message.
"""

from __future__ import annotations

import base64
import binascii
import importlib
import inspect
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Annotated, Any, Literal, Self, TypeAlias, TypeVar, get_args, get_type_hints

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, PrivateAttr, WithJsonSchema

from mindstream.clock import EARLIEST, LATEST, Moment, moment, out_of_range
from mindstream.errors import InputError, UserError
from mindstream.identifiers import MARK, StreamKey, StreamName, checked_tenant, normal_name
from mindstream.json_values import JsonObject
from mindstream.log.events import Logged
from mindstream.models.wrappers.meter import Budget
from mindstream.plugins import registered


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
        tenant: the caller's tenant; no name, id or cursor gives access to the data of another tenant.
        scopes: `read`, `write` or `admin` (all), or a scope of one package, such as `memory.read`.
        user: the user, within the tenant, that the request is about; "": none.
        only: the only user whose data the caller may access; "": all users of the tenant.
        narrowed: `only` comes from the URL (an MCP server is for one user), not from the token.
        key: the id of the caller's token. Limits are counted per token, and idempotency keys of different tokens are
            independent.
        door: the interface that the caller uses: `rest`, `mcp` or `command`.
        budget: the limits of spending on models for the caller's requests; None: only the server's own limits apply.
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


CALLER = "caller"
"""Marks a field of a request that names the caller's user. With a token for one user, it may name only that user."""
MAX_PAGE = 200
"""Maximum number of entries on a page."""


def _apart(names: object) -> object:
    given = [names] if isinstance(names, str) else names
    if not isinstance(given, list | tuple):
        return given
    parts = [part for each in given for part in (each.split(",") if isinstance(each, str) else [each])]
    return [part.strip() if isinstance(part, str) else part for part in parts if part != ""]


Short: TypeAlias = Annotated[str, Field(max_length=100)]
"""A name or an id; "" means none."""
NotBlank: TypeAlias = Annotated[str, Field(min_length=1, max_length=100)]
Seq: TypeAlias = Annotated[int, Field(ge=0, le=2**62)]
"""The number of a row of the log, or 0 for the time before the first row."""
RowNumber: TypeAlias = Annotated[int, Field(ge=1, le=2**62)]
Names: TypeAlias = Annotated[list[str], BeforeValidator(_apart), Field(max_length=100)]
"""A list of names; each given text may contain several names, separated by commas."""


def _reading(*, whole_day: bool = False) -> BeforeValidator:
    def read(when: object) -> object:
        if isinstance(when, bool):
            raise ValueError("a time is a number of seconds since 1970 or an ISO 8601 text, not true or false")
        is_date = isinstance(when, str) and len(when.strip()) in (len("2026"), len("20261120"))
        if isinstance(when, str) and (is_date or not SECONDS.fullmatch(when)):
            try:
                return moment(when, whole_day=whole_day)
            except InputError as error:
                raise ValueError(str(error).removeprefix("a time: ")) from None
        at = float(when) if isinstance(when, str | int | float) else 0.0
        if not EARLIEST <= at <= LATEST:
            raise ValueError(out_of_range(at))
        return when

    return BeforeValidator(read)


SECONDS = re.compile(r"\d+(\.\d*)?")
BOUNDS = Field(ge=EARLIEST, le=LATEST, allow_inf_nan=False)
SHOWN = WithJsonSchema(
    {
        "anyOf": [
            {"type": "number", "minimum": EARLIEST, "maximum": LATEST},
            {"type": "string", "examples": ["2026-11-20T21:30Z"]},
        ]
    }
)
At: TypeAlias = Annotated[Moment, _reading(), BOUNDS, SHOWN]
"""A time: seconds since 1970, or ISO 8601 text (UTC if it has no time zone)."""
Until: TypeAlias = Annotated[Moment, _reading(whole_day=True), BOUNDS, SHOWN]
"""The last moment of a time span; a date without a time means the end of that day."""


class Ask(BaseModel):
    """The base class of requests; a request with an unknown field is rejected."""

    model_config = ConfigDict(frozen=True, extra="forbid")


CallerName: TypeAlias = Annotated[str, CALLER]
"""The type of a field that names the caller's user (see CALLER)."""


class Reply(BaseModel):
    """The base class of replies."""

    model_config = ConfigDict(frozen=True)
    _local: Any = PrivateAttr(None)

    @property
    def local(self) -> Any:
        """The object that the reply was made from, for callers in this process, such as the command line.

        It is not sent to clients.
        """
        return self._local

    def made_from(self, local: object) -> Self:
        """Attach the object that the reply was made from (see `local`)."""
        self._local = local
        return self

    @classmethod
    def from_object(cls, source: object, /, **values: Any) -> Self:
        """Return a reply whose fields are copied from the attributes of `source`, except those given in `values`."""
        names = [name for name in cls.model_fields if name not in values and hasattr(source, name)]
        return cls(**{name: getattr(source, name) for name in names}, **values).made_from(source)


class EmptyRequest(Ask):
    """A request without parameters."""


class Page(Ask):
    """Which page of a list to return.

    `limit`: the maximum number of entries. `cursor`: the `next` of the previous page, "": the first page.
    """

    limit: int = Field(50, ge=1, le=MAX_PAGE)
    cursor: str = Field("", max_length=200)


State: TypeAlias = Literal["running", "waiting", "done", "failed", "cancelled", "interrupted"]


class Note(Reply):
    """A line of progress."""

    at: Moment
    text: str


class Wanted(Reply):
    """A plan or a tool call that waits for an approval; `text`: the plan as JSON, or why the call needs approval."""

    id: str
    what: Literal["plan", "call"]
    text: str
    data: JsonObject = Field({})


class OperationShape(Reply):
    """A long-running operation.

    `state`: `interrupted` means that the server ended before the operation did, or that words of the user were
    forgotten meanwhile; `problem` says how to continue. `run`: the name of the plan's run, if the operation runs a
    plan. `waits_for`: pending approvals. `result`: the operation's own reply, once its state is `done`. `problem`: why
    it failed, or why its result is not kept.
    """

    id: str
    operation: str
    user: str = ""
    run: str = ""
    state: State
    began: Moment
    ended: Moment | None = None
    progress: list[Note] = Field([])
    waits_for: list[Wanted] = Field([])
    result: JsonValue = None
    problem: str = ""


MODULES = tuple(
    f"mindstream.service.operations.{name}"
    for name in (
        "minds",
        "memory",
        "care",
        "plans",
        "life",
        "pools",
        "lessons",
        "logs",
        "operation_status",
    )
)
"""The modules of the core that declare operations, in the order of the API description; plugins add their own."""


Run: TypeAlias = Callable[..., Awaitable[BaseModel]]
"""Takes the runtime, the caller and the request; for a long operation, also its RunningOperation. Returns a result."""
Stream: TypeAlias = Callable[[Any, Principal, Any], AsyncGenerator[Logged]]
Complete: TypeAlias = Callable[[Any, Principal, Any], Awaitable[BaseModel]]
"""Takes the runtime, the caller and a stored reply without its `leaves_out` fields; returns the complete reply."""
R = TypeVar("R", bound=Run)


@dataclass(frozen=True)
class Operation:
    """An operation of the API.

    Attributes:
        name: the package and the verb, such as `memory.recall`.
        scope: the scope that a caller needs.
        method, path: the REST route, below /api/v1.
        run: the function that executes the operation.
        request, result: the types of the request and the result.
        summary: the description.
        long: the operation takes long: the reply contains the id of a long-running operation, with which the result is
            fetched.
        mcp: the name of the MCP tool; "": there is none.
        cli: the command that does the same; "": there is none.
        status: the status code of the REST response.
        streams: executes the operation and yields the events of the result as rows of the log; None: the operation
            cannot be streamed.
        wordless: the reply contains only ids and numbers, except for the fields in `leaves_out`.
        is_once: the operation itself ensures that it is executed only once per idempotency key (`minds.ONCE`), in any
            process. The operation may be started again if it is not known whether it was executed.
        tenant_wide: the operation changes data that all users of a tenant share; a token for one user cannot call it.
        leaves_out: fields of the reply that are not stored for repeated requests (see server/idempotency).
        complete: fills in the fields of `leaves_out` again for a repeated request.
    """

    name: str
    scope: Scope
    method: str
    path: str
    run: Run
    request: type[BaseModel]
    result: type[BaseModel]
    summary: str
    long: bool = False
    mcp: str = ""
    cli: str = ""
    status: int = 200
    streams: Stream | None = None
    wordless: bool = False
    is_once: bool = False
    tenant_wide: bool = False
    leaves_out: tuple[str, ...] = ()
    complete: Complete | None = None

    @cached_property
    def package(self) -> str:
        """The package of the operation: the first part of its name."""
        return self.name.partition(".")[0]

    @cached_property
    def path_names(self) -> tuple[str, ...]:
        """The names of the parameters in the operation's path."""
        return tuple(re.findall(r"{(\w+)}", self.path))

    @cached_property
    def _caller_fields(self) -> list[str]:
        return [name for name, field in self.request.model_fields.items() if CALLER in field.metadata]

    async def call(self, runtime: Any, principal: Principal, request: BaseModel) -> Any:
        """Execute the operation if the caller has the required scope; all interfaces use this method.

        Args:
            runtime: a `Runtime` (see runtime.py, which imports this module).

        Raises:
            Forbidden: the caller does not have the scope; its token is for another user; or the operation is
                `tenant_wide`, and the token is for one user.
            MindstreamError: see the operation.
        """
        principal.require(self.package, self.scope)
        if self.tenant_wide and principal.bound_user:
            raise Forbidden(
                "this request changes data that all users of the tenant share, and this token is for the user"
                f" {principal.bound_user!r}: use a token without a user (`mindstream token new` without --user)"
            )
        for name in self._caller_fields:
            if name in request.model_fields_set and (named := getattr(request, name)):
                principal.require_own(named)
        if self.long:
            job = partial(self.run, runtime, principal, request)
            return (await runtime.running.begin(self.name, principal, job, runtime.begin)).shape()
        return await self.run(runtime, principal, request)

    @property
    def reply(self) -> type[BaseModel]:
        """The type of the reply: the result, or for a long operation the running operation that will have it."""
        return OperationShape if self.long else self.result


_table: dict[str, Operation] = {}


def operation(name: str, scope: Scope, rest: str, **options: Any) -> Callable[[R], R]:
    """Declare a function as an operation.

    Args:
        rest: the HTTP method and the path, separated by a space.
        options: further fields of `Operation`.
    """

    def declare(run: R) -> R:
        method, _, path = rest.partition(" ")
        hints = get_type_hints(run)
        request, result = hints[list(inspect.signature(run).parameters)[2]], hints["return"]
        summary = " ".join((inspect.getdoc(run) or "").split())
        status = {"status": 202} if options.get("long") else {}
        made = Operation(name, scope, method, path, run, request, result, summary, **options | status)
        if _table.setdefault(name, made) is not made:
            raise ValueError(f"two operations have the name {name!r}: rename one")
        return run

    return declare


def operations() -> tuple[Operation, ...]:
    """Import the modules of the core and of all plugins, and return all operations in the order of these modules."""
    modules = (*MODULES, *(each for plugin in registered() for each in plugin.operations))
    for module in modules:
        importlib.import_module(module)
    places = {module: place for place, module in enumerate(modules)}
    return tuple(sorted(_table.values(), key=lambda each: places.get(each.run.__module__, len(places))))


def find_operation(name: str) -> Operation:
    """Return an operation by its name; modules are imported only until it is found."""
    group = name.partition(".")[0]
    for module in sorted(MODULES, key=lambda module: group not in module):
        importlib.import_module(module)
        if name in _table:
            return _table[name]
    operations()
    return _table[name]


def write_cursor(at: str) -> str:
    """Return the cursor of a position in a list."""
    return base64.urlsafe_b64encode(at.encode()).decode().rstrip("=")


def read_cursor(cursor: str) -> str:
    """Return the position that a cursor contains; "" at the beginning of the list.

    Raises:
        InputError: the text is not a cursor of this API.
    """
    try:
        return base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise InputError("the cursor is not valid: request the first page without one, then pass its `next`") from None


def read_number(cursor: str) -> int:
    """Return the number that a cursor contains; 0 at the beginning of the list.

    Raises:
        InputError: the text is not a cursor of this API, or belongs to another list.
    """
    return read_place(cursor)[0]


def read_place(cursor: str) -> tuple[int, str]:
    """Return the number that a cursor contains, and the key of the last shown entry, if the cursor has one.

    The key finds the place again if entries before it were added or removed since.

    Raises:
        InputError: the text is not a cursor of this API, or belongs to another list.
    """
    text, _, key = read_cursor(cursor).partition(":")
    if text and not (text.isascii() and text.isdigit() and len(text) < 19):
        raise InputError("the cursor belongs to another list: request the first page without one, then pass its `next`")
    return int(text or 0), key
