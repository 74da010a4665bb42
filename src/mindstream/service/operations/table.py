"""The table of operations. Each is declared once, on its function; REST, MCP and the studio are built from the table.

    @operation("memory.recall", "read", "POST /users/{user}/memories/recall", mcp="recall")
    async def recall(runtime: Runtime, principal: Principal, request: RecallRequest) -> RecallResult:
        \"\"\"Find what answers a question.\"\"\"

A request is a pydantic model. Its fields are filled from the names in the path (except `user`, which becomes
`principal.user`) and from the query or the body.
"""

from __future__ import annotations

import base64
import binascii
import importlib
import inspect
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeAlias, TypeVar, get_type_hints

from pydantic import BaseModel

from mindstream.errors import InputError
from mindstream.log.events import Logged
from mindstream.plugins import registered
from mindstream.service.operations.long_running import OperationShape
from mindstream.service.operations.principal import Forbidden, Principal, Scope
from mindstream.service.operations.runtime import Runtime
from mindstream.service.operations.shapes import CALLER

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
"""Takes the runtime, the caller, the request and, for a long operation, its RunningOperation; returns the result."""
Stream: TypeAlias = Callable[[Runtime, Principal, Any], AsyncGenerator[Logged]]
Complete: TypeAlias = Callable[[Runtime, Principal, Any], Awaitable[BaseModel]]
"""Takes the runtime, the caller and a stored reply without its `leaves_out` fields; returns the complete reply."""
R = TypeVar("R", bound=Run)


@dataclass(frozen=True)
class Operation:
    """An operation of the API.

    Attributes:
        name: its package and its verb, such as `memory.recall`.
        scope: the scope that a caller needs.
        method, path: its REST route, below /api/v1.
        run: the function that executes it.
        request, result: the types of its request and its result.
        summary: its description.
        long: it takes long: the reply contains the id of a long-running operation, with which the result is fetched.
        mcp: the name of its MCP tool; "": it has none.
        cli: the command that does the same; "": there is none.
        status: the status code of the REST response.
        streams: executes it and yields the events of its result as rows of the log; None: it cannot be streamed.
        wordless: its reply contains only ids and numbers, except for the fields `leaves_out`.
        is_once: the operation itself ensures that it is executed only once per idempotency key (`minds.ONCE`), in any
            process. So it may be started again if it is not known whether it was executed.
        tenant_wide: it changes data that all users of a tenant share; a token for one user cannot call it.
        leaves_out: fields of its reply that are not stored for repeated requests (see server/idempotency).
        complete: fills in these fields again for a repeated request.
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
        """The parameter names in its path."""
        return tuple(re.findall(r"{(\w+)}", self.path))

    @cached_property
    def _caller_fields(self) -> list[str]:
        return [name for name, field in self.request.model_fields.items() if CALLER in field.metadata]

    async def call(self, runtime: Runtime, principal: Principal, request: BaseModel) -> Any:
        """Execute the operation if the caller has the required scope; all interfaces use this method.

        Raises:
            Forbidden: the caller does not have the scope, or its token is for another user.
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
