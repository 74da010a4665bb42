"""The tools of the MCP server, built from the table of operations: names, schemas, descriptions, hints."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, TypeAlias

from pydantic import BaseModel, JsonValue, ValidationError
from pydantic_core import ErrorDetails, from_json
from starlette.types import Message, Receive, Scope

from mindstream.errors import InputError
from mindstream.guidance import COUNTS
from mindstream.server.admission import challenge
from mindstream.server.problems import Refusal, describe_mistakes
from mindstream.service.operations.operation import EmptyRequest, Operation, Principal, operations

Schema: TypeAlias = dict[str, JsonValue]

USUAL = ("retain", "recall", "reflect", "forget", "list_memories", "get_memory", "get_operation")
"""The tools that are always listed, if the caller may call them. Others are listed on request, since each listed tool
costs a client tokens."""
SETS = {"memory": "care", "plans": "plan", "pools": "pool", "towns": "town"}
"""For each package of operations: the name of the set of its tools, except those in USUAL. Tools of other packages are
in the set `plan`."""
ABROAD = ("plans",)
"""Packages of operations whose long-running tools may access the world outside this server, such as the web."""


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller that is restricted to one user, with the sets of tools that it requested."""

    principal: Principal
    sets: frozenset[str]

    @classmethod
    def about(cls, principal: Principal, user: str, sets: frozenset[str]) -> Caller:
        """Return a caller that is restricted to a user, so that ids of other users' data are not found.

        Raises:
            Forbidden: the token is for another user only.
            InputError: the name is not valid.
        """
        principal = principal.of(user)
        return cls(replace(principal, only=principal.user, narrowed=not principal.bound_user, door="mcp"), sets)


A_MEMORY = {"id": "The id of a memory."}
ARGUMENTS: Mapping[str, Mapping[str, str]] = {
    "retain": {
        "text": "The text to remember, in whole sentences that can be understood alone.",
        "importance": "1 (everyday) to 10 (of great consequence); omit it if you do not know.",
        "keywords": "Additional words by which it should be found.",
    },
    "recall": {
        "query": "What you want to know, as a question or as keywords.",
        "k": "Maximum number of memories.",
        "kinds": "Only memories of these kinds.",
    },
    "forget": {
        "id": "The id of a memory, as `recall` or `list_memories` returned it.",
        "dry_run": "Only report what would be deleted.",
    },
    "get_memory": A_MEMORY,
    "correct": {**A_MEMORY, "text": "The correct text."},
    "memory_history": A_MEMORY,
    "memory_lineage": A_MEMORY,
    "get_operation": {"id": "The id that a long-running tool returned."},
    "cancel_operation": {"id": "The id of an operation."},
}
"""For each tool: the fields of the request that models see, with their descriptions. A description does not refer to
the REST path."""
NAMES = {"memory": {"id": "memory_id", "text": "content"}, "operations": {"id": "operation_id"}}
"""For each package of operations: the names of tool arguments that differ from the names of the request's fields, by
field. They apply only to tools with an entry in ARGUMENTS."""


@dataclass(frozen=True)
class MemoryTool:
    """An operation as an MCP tool.

    Attributes:
        input, output: JSON Schemas of the arguments and the result.
        names: for each field of the request, the name of the tool's argument.
    """

    operation: Operation
    input: Schema
    output: Schema
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.operation.mcp

    @property
    def description(self) -> str:
        """The summary of the operation; if its arguments have no descriptions, also the docstring of its request."""
        if self.name in ARGUMENTS or self.operation.request is EmptyRequest:
            return self.operation.summary
        return f"{self.operation.summary} {' '.join((self.operation.request.__doc__ or '').split())}"

    @property
    def title(self) -> str:
        """The name to show to people."""
        return self.name.replace("_", " ").capitalize()

    @property
    def is_read_only(self) -> bool:
        """Whether the tool changes no stored text."""
        return self.operation.scope == "read"

    @property
    def is_destructive(self) -> bool:
        """Whether the tool deletes data permanently."""
        return self.operation.method == "DELETE"

    @property
    def is_idempotent(self) -> bool:
        """Whether calling the tool twice has the same effect as calling it once."""
        return self.is_read_only or self.is_destructive

    @property
    def is_abroad(self) -> bool:
        """Whether the tool may access the world outside this server."""
        return self.operation.package in ABROAD and self.operation.long

    def is_allowed(self, principal: Principal) -> bool:
        """Return whether a principal has the scope that the tool requires."""
        return principal.may(self.operation.package, self.operation.scope)


@cache
def every_tool() -> Mapping[str, MemoryTool]:
    """Return all tools by name, in the order of the table, the usual ones first."""
    made = {each.mcp: _made(each) for each in operations() if each.mcp}
    return {name: made[name] for name in (*USUAL, *(name for name in made if name not in USUAL))}


def set_of(tool: MemoryTool) -> str:
    """Return the name of the set (see SETS) with which a client can request a tool.

    Return "" for a tool in USUAL, which is always listed.
    """
    return "" if tool.name in USUAL else SETS.get(tool.operation.package, "plan")


def every_set() -> tuple[str, ...]:
    """Return the names of all sets that can be requested."""
    return tuple(sorted({name for tool in every_tool().values() if (name := set_of(tool))}))


def checked_sets(names: str) -> frozenset[str]:
    """Parse names of sets that are separated by commas.

    Raises:
        InputError: a set does not exist.
    """
    chosen = frozenset(name.strip() for name in names.split(",") if name.strip())
    if unknown := sorted(chosen - set(every_set())):
        raise InputError(f"there is no set of tools {unknown[0][:50]!r}; the sets are {', '.join(every_set())}")
    return chosen


def shown_tools(principal: Principal, sets: Collection[str]) -> list[MemoryTool]:
    """Return the tools in USUAL and in these sets that a principal may call."""
    return [each for each in every_tool().values() if set_of(each) in ("", *sets) and each.is_allowed(principal)]


def _made(operation: Operation) -> MemoryTool:
    arguments = ARGUMENTS.get(operation.mcp, {})
    named = NAMES.get(operation.package, {}) if arguments else {}
    names = {name: named.get(name, name) for name in operation.request.model_fields}
    asked = _called(shorten(operation.request.model_json_schema()), arguments, names)
    answered = shorten(operation.reply.model_json_schema(mode="serialization"))
    return MemoryTool(operation, asked, answered, names)


def _called(schema: Schema, arguments: Mapping[str, str], names: Mapping[str, str]) -> Schema:
    """Return the schema of a tool's arguments; with an entry in ARGUMENTS, only of the arguments described there."""
    fields, wanted = schema.get("properties"), schema.get("required")
    properties: Schema = {}
    for name, about in fields.items() if isinstance(fields, dict) else ():
        if isinstance(about, dict) and (not arguments or name in arguments):
            words = {"description": arguments[name]} if name in arguments else {}
            properties[names[name]] = {**_may_be_left_out(about), **words}
    required: list[JsonValue] = [names[str(name)] for name in wanted] if isinstance(wanted, list) else []
    kept = {"$defs": schema["$defs"]} if "$defs" in schema and "$ref" in json.dumps(properties) else {}
    return {"type": "object", "properties": properties, "required": required, **kept}


def shorten(schema: Schema) -> Schema:
    """Return a schema without titles, without defaults of null and without `additionalProperties: false`."""
    kept: Schema = {}
    for key, value in schema.items():
        if key in ("properties", "$defs") and isinstance(value, dict):
            kept[key] = {name: _short(each) for name, each in value.items()}
        elif key == "description":
            kept[key] = " ".join(str(value).split())
        elif key != "title" and (key, value) not in (("additionalProperties", False), ("default", None)):
            kept[key] = _short(value)
    return kept


def _may_be_left_out(about: Schema) -> Schema:
    """Return the schema of an optional field without the alternative null."""
    forms = about.get("anyOf")
    real = [each for each in forms if each != {"type": "null"}] if isinstance(forms, list) else []
    if len(real) == 1 and isinstance(real[0], dict):
        return {**real[0], **{key: value for key, value in about.items() if key != "anyOf"}}
    return about


def _short(value: JsonValue) -> JsonValue:
    if isinstance(value, list):
        return [_short(each) for each in value]
    return shorten(value) if isinstance(value, dict) else value


def read_arguments(tool: MemoryTool, given: Mapping[str, Any]) -> BaseModel:
    """Return a tool call's arguments as a request; unknown arguments are ignored.

    Any of the usual names of the maximum number of results (COUNTS) is read as the tool's own.

    Raises:
        InputError: an argument is invalid. The message names the argument and the reason, but does not repeat the
            value.
    """
    fields = {shown: name for name, shown in tool.names.items()}
    count = next((name for name in ("k", "limit") if name in tool.names), None)
    others = {**dict.fromkeys(COUNTS if count else (), count), **{name: name for name in tool.names}}
    values: dict[str, Any] = {}
    for name, value in given.items():
        if value is not None and (real := fields.get(name) or others.get(name)):
            values[real] = value if name in fields or real not in values else values[real]
    try:
        return _validated(tool.operation.request, values)
    except ValidationError as error:
        raise InputError(describe_mistakes([_as_called(tool, each) for each in error.errors()])) from None


def _validated(request: type[BaseModel], values: dict[str, Any]) -> BaseModel:
    """Validate the fields of a request; try an invalid field also in the other forms in which models send it.

    Raises:
        ValidationError: a field is invalid in every form.
    """
    try:
        return request.model_validate(values)
    except ValidationError as error:
        first, wrong = error, _wrong(error)
    for name in wrong & values.keys():
        for form in _other_forms(values[name]):
            try:
                return request.model_validate(values | {name: form})
            except ValidationError as error:
                if name not in _wrong(error):
                    values = values | {name: form}
                    break
    raise first


def _wrong(error: ValidationError) -> set[str]:
    return {str(each["loc"][0]) for each in error.errors() if each["loc"]}


def _other_forms(value: Any) -> Iterator[Any]:
    """Yield other readings of a value: a string as JSON or as a list, a list as a string, a number as a string."""
    if isinstance(value, str):
        try:
            yield from_json(value)
        except ValueError:
            yield [part.strip() for part in value.split(",") if part.strip()]
    elif isinstance(value, list) and all(isinstance(each, str) for each in value):
        yield ",".join(value)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)


def _as_called(tool: MemoryTool, mistake: ErrorDetails) -> dict[str, Any]:
    """Return a validation error with the tool's name for the argument in place of the field's name."""
    first, *more = mistake["loc"] or ("",)
    return {**mistake, "loc": (tool.names.get(str(first), first), *more)}


ENOUGH = frozenset({"read", "write"})


def has_all(principal: Principal) -> bool:
    """Return whether a principal may call every tool, so that its request need not be read in advance."""
    return "admin" in principal.scopes or principal.scopes >= ENOUGH


async def require_scope(scope: Scope, receive: Receive, caller: Caller) -> Receive:
    """Refuse a call of a tool that the token does not allow. Return a `receive` that delivers the body again.

    Raises:
        Refusal: the token lacks the scope. The response is 403 with `insufficient_scope` and the missing scope (RFC
            6750, section 3.1).
    """
    if has_all(caller.principal):
        return receive
    messages, body = list[Message](), b""
    while not messages or messages[-1].get("more_body"):
        messages.append(await receive())
        body += messages[-1].get("body", b"")
    tool = every_tool().get(called_in(body))
    if tool is not None and set_of(tool) in ("", *caller.sets) and not tool.is_allowed(caller.principal):
        wanted = f"{tool.operation.package}.{tool.operation.scope}"
        reason = f"this token may not call {tool.name}: it needs the scope `{tool.operation.scope}` or `{wanted}`"
        raise Refusal("forbidden", reason, challenge("insufficient_scope", scope, wanted))

    async def again() -> Message:
        return messages.pop(0) if messages else await receive()

    return again


def called_in(body: bytes) -> str:
    """Return the name of the tool that a request calls; "" if it calls none, or cannot be parsed."""
    try:
        asked = json.loads(body)
        name = asked["params"]["name"] if asked["method"] == "tools/call" else ""
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    return name if isinstance(name, str) else ""
