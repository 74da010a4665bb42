"""The table of operations: each is declared once, on the function that does it; doors are made from the table.

@operation("memory.recall", "read", "POST /users/{user}/memories/recall", mcp="recall")
    async def recall(house: House, who: Who, ask: RecallRequest) -> RecallResult:
        \"\"\"Find what answers a question.\"\"\"

A request is a pydantic model whose fields are the rest of the path's names, the query or the body; `user` is never one
of them: it is `who.user`.
"""

from __future__ import annotations

import base64
import binascii
import importlib
import inspect
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, TypeVar, get_type_hints

from pydantic import BaseModel

from mindstream.errors import InputError
from mindstream.log.events import Logged
from mindstream.plugins import registered
from mindstream.service.operations.house import House
from mindstream.service.operations.lasting import OperationShape
from mindstream.service.operations.shapes import CALLER
from mindstream.service.operations.who import Forbidden, Scope, Who

MODULES = tuple(
    f"mindstream.service.operations.{name}"
    for name in ("minds", "memories.memory", "memories.care", "plans", "life", "pools", "logs", "errands")
)
"""The core's modules that declare operations, in the order in which REST and MCP list them; plugins add theirs."""


Run: TypeAlias = Callable[..., Awaitable[BaseModel]]
"""Takes the house, who asks, the request, and, where it is long, the running operation; gives the result."""
Stream: TypeAlias = Callable[[House, Who, Any], AsyncGenerator[Logged]]
Complete: TypeAlias = Callable[[House, Who, Any], Awaitable[BaseModel]]
"""Takes the house, who asks and an answer; gives the answer as it was."""
R = TypeVar("R", bound=Run)


@dataclass(frozen=True, slots=True)
class Operation:
    """Something that can be asked for.

    Attributes:
        name: its room and its verb.
        scope: what whoever asks must be allowed.
        method, path: where REST has it, below /api/v1.
        long: it takes its time: a door returns an operation's id, and the result is fetched by that.
        mcp: what the tool of the MCP server is called; "": there is none.
        cli: the command that does the same; "": there is none.
        status: REST's answer where it is done.
        streams: gives the same as rows of the log, as they come.
        wordless: its answer holds no words or names, ids and numbers alone, but for the fields `leaves_out`.
        tenant_wide: it changes what all users of a tenant share: a token for one user may not do it.
        leaves_out: fields of its answer that are not kept for a request that comes again (see server/idempotency).
        complete: fills them in again for such a request.
        is_once: it sees to it that it is done once under a key (`minds.ONCE`), in whatever process: so it may be begun
            again where nobody knows whether it was done.
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

    @property
    def room(self) -> str:
        """The room whose it is."""
        return self.name.partition(".")[0]

    @property
    def path_names(self) -> tuple[str, ...]:
        """The names that stand in its path."""
        return tuple(re.findall(r"{(\w+)}", self.path))

    async def ask(self, house: House, who: Who, request: BaseModel) -> Any:
        """Do it, if whoever asks may; every door comes through here.

        Raises:
            Forbidden: they may not.
            MindstreamError: see the operation.
        """
        who.require(self.room, self.scope)
        if self.tenant_wide and who.bound_user:
            raise Forbidden(
                f"this changes what all users of the tenant share, and this token is for the user {who.bound_user!r}:"
                " use a token without a user (`mindstream token new` without --user)"
            )
        for name, field in type(request).model_fields.items():
            if CALLER in field.metadata and name in request.model_fields_set and (named := getattr(request, name)):
                who.require_own(named)
        if self.long:
            job = partial(self.run, house, who, request)
            return (await house.running.begin(self.name, who, job, house.begin)).shape()
        return await self.run(house, who, request)

    @property
    def reply(self) -> type[BaseModel]:
        """What a door answers with: the result, or the operation that will have it."""
        return OperationShape if self.long else self.result


_table: dict[str, Operation] = {}


def operation(
    name: str,
    scope: Scope,
    rest: str,
    *,
    long: bool = False,
    mcp: str = "",
    cli: str = "",
    status: int = 200,
    streams: Stream | None = None,
    wordless: bool = False,
    is_once: bool = False,
    tenant_wide: bool = False,
    leaves_out: tuple[str, ...] = (),
    complete: Complete | None = None,
) -> Callable[[R], R]:
    """Declare a function an operation; `rest` is its method and path."""

    def declare(run: R) -> R:
        method, _, path = rest.partition(" ")
        hints = get_type_hints(run)
        kind, result = hints[list(inspect.signature(run).parameters)[2]], hints["return"]
        made = Operation(
            name,
            scope,
            method,
            path,
            run,
            kind,
            result,
            " ".join((inspect.getdoc(run) or "").split()),
            long,
            mcp,
            cli,
            202 if long else status,
            streams,
            wordless,
            is_once,
            tenant_wide,
            leaves_out,
            complete,
        )
        if _table.setdefault(name, made) is not made:
            raise ValueError(f"two operations are called {name!r}")
        return run

    return declare


def operations() -> tuple[Operation, ...]:
    """Return all operations, room by room."""
    for module in (*MODULES, *(each for plugin in registered() for each in plugin.operations)):
        importlib.import_module(module)
    return tuple(_table.values())


def find_operation(name: str) -> Operation:
    """Return an operation by its name."""
    operations()
    return _table[name]


def write_cursor(at: str) -> str:
    """Return a cursor that says where a list goes on."""
    return base64.urlsafe_b64encode(at.encode()).decode().rstrip("=")


def read_cursor(cursor: str) -> str:
    """Return where a list goes on; "" at its beginning.

    Raises:
        InputError: no list of ours gave it.
    """
    try:
        return base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise InputError("this cursor was given by no list: ask for the first page without one") from None


def read_number(cursor: str) -> int:
    """Return where a list that is counted goes on; 0 at its beginning.

    Raises:
        InputError: no list of ours gave it.
    """
    text = read_cursor(cursor)
    if text and not (text.isascii() and text.isdigit() and len(text) < 19):
        raise InputError("this cursor was given by another list: ask for the first page without one")
    return int(text or 0)
