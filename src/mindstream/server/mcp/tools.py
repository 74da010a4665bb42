"""Tools of the MCP server, made from the table of operations: names, schemas, words, hints."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TypeAlias

from pydantic import JsonValue

from mindstream.errors import InputError
from mindstream.service.operations.shapes import NoQuestion
from mindstream.service.operations.table import Operation, operations
from mindstream.service.operations.who import Who

Schema: TypeAlias = dict[str, JsonValue]

USUAL = ("retain", "recall", "reflect", "forget", "list_memories", "get_memory", "get_operation")
"""Few tools are shown unless more are asked for: each costs its words in every turn of whoever has them."""
SETS = {"memory": "care", "plans": "plan", "pools": "pool", "towns": "town"}
"""By room: the set to which its other tools belong."""
ABROAD = ("plans",)
"""Rooms whose tools may reach the world beyond this server."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, about one memory alone, and which sets of tools they have asked for."""

    who: Who
    sets: frozenset[str]

    @classmethod
    def about(cls, who: Who, user: str, sets: frozenset[str]) -> Caller:
        """Return who calls about a user: nothing that is asked for by an id is another's.

        Raises:
            Forbidden: they may ask about another user alone.
            InputError: nobody can be called so.
        """
        asking = who.of(user)
        return cls(replace(asking, only=asking.user, narrowed=not asking.bound_user, door="mcp"), sets)


@dataclass(frozen=True, slots=True)
class Argument:
    """What a tool calls a field of its operation's request, and what is said of it; without words it is not shown."""

    name: str
    words: str = ""


ARGUMENTS: Mapping[str, Mapping[str, Argument]] = {
    "retain": {
        "text": Argument("content", "What is to be remembered, in whole sentences that can be understood alone."),
        "importance": Argument("importance", "1 (everyday) to 10 (decides much); leave it out if you do not know."),
        "keywords": Argument("keywords", "Words by which it should be found, beside its own."),
    },
    "recall": {
        "query": Argument("query", "What you want to know, as a question or in words."),
        "k": Argument("k", "How many memories at most."),
        "kinds": Argument("kinds", "Only memories of these kinds."),
    },
    "forget": {
        "id": Argument("memory_id", "The id of a memory, as `recall` or `list_memories` gave it."),
        "dry_run": Argument("dry_run", "Only say what would go."),
    },
    "get_memory": {"id": Argument("memory_id", "The id of a memory.")},
    "correct": {
        "id": Argument("memory_id", "The id of a memory."),
        "text": Argument("content", "The words that are true."),
    },
    "memory_history": {"id": Argument("memory_id", "The id of a memory.")},
    "memory_lineage": {"id": Argument("memory_id", "The id of a memory.")},
    "get_operation": {"id": Argument("operation_id", "The id that a tool gave because its work takes long.")},
    "cancel_operation": {"id": Argument("operation_id", "The id of an operation.")},
}
"""By tool: what is called otherwise than in REST, where a path says what an id is of; what models need words for."""


@dataclass(frozen=True)
class MemoryTool:
    """An operation as a tool.

    Attributes:
        names: what the fields of the request are called here.
        input, output: JSON Schemas of what is asked and answered.
    """

    operation: Operation
    input: Schema
    output: Schema
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What it is called."""
        return self.operation.mcp

    @property
    def description(self) -> str:
        """What it does; what its arguments are, where they have no words of their own."""
        if self.name in ARGUMENTS or self.operation.request is NoQuestion:
            return self.operation.summary
        return f"{self.operation.summary} {' '.join((self.operation.request.__doc__ or '').split())}"

    @property
    def title(self) -> str:
        """Its name, for people."""
        return self.name.replace("_", " ").capitalize()

    @property
    def is_read_only(self) -> bool:
        """It changes nothing that anybody has said."""
        return self.operation.scope == "read"

    @property
    def is_destructive(self) -> bool:
        """What it takes away does not come back."""
        return self.operation.method == "DELETE"

    @property
    def is_idempotent(self) -> bool:
        """To call it twice does no more than to call it once."""
        return self.is_read_only or self.is_destructive

    @property
    def is_abroad(self) -> bool:
        """It may reach the world beyond this server."""
        return self.operation.room in ABROAD and self.operation.long

    def is_allowed(self, who: Who) -> bool:
        """Tell whether whoever asks may call it."""
        return who.may(self.operation.room, self.operation.scope)


@cache
def every_tool() -> Mapping[str, MemoryTool]:
    """Return all tools by name, in the order of the table, the usual ones first."""
    made = {each.mcp: _made(each) for each in operations() if each.mcp}
    return {name: made[name] for name in (*USUAL, *(name for name in made if name not in USUAL))}


def set_of(tool: MemoryTool) -> str:
    """Return the set to which a tool belongs; "" for the usual ones."""
    return "" if tool.name in USUAL else SETS.get(tool.operation.room, "plan")


def every_set() -> tuple[str, ...]:
    """Return the names of all sets that can be asked for."""
    return tuple(sorted({name for tool in every_tool().values() if (name := set_of(tool))}))


def checked_sets(names: str) -> frozenset[str]:
    """Read names of sets, with commas between.

    Raises:
        InputError: there is no such set.
    """
    chosen = frozenset(name.strip() for name in names.split(",") if name.strip())
    if unknown := sorted(chosen - set(every_set())):
        raise InputError(f"there is no set of tools {unknown[0][:50]!r}; there are {', '.join(every_set())}")
    return chosen


def shown_tools(who: Who, sets: Collection[str]) -> list[MemoryTool]:
    """Return the tools of some sets that whoever asks may call."""
    return [each for each in every_tool().values() if set_of(each) in ("", *sets) and each.is_allowed(who)]


def _made(operation: Operation) -> MemoryTool:
    told = ARGUMENTS.get(operation.mcp, {})
    names = {name: told[name].name if name in told else name for name in operation.request.model_fields}
    asked = _called(shorten(operation.request.model_json_schema()), told, names)
    answered = shorten(operation.reply.model_json_schema(mode="serialization"))
    return MemoryTool(operation, asked, answered, names)


def _called(schema: Schema, told: Mapping[str, Argument], names: Mapping[str, str]) -> Schema:
    """Return a request's schema with the names that are used here; where words were found for some, these are shown."""
    fields, wanted = schema.get("properties"), schema.get("required")
    properties: Schema = {}
    for name, about in fields.items() if isinstance(fields, dict) else ():
        if isinstance(about, dict) and (not told or (name in told and told[name].words)):
            words = {"description": told[name].words} if name in told else {}
            properties[names[name]] = {**_may_be_left_out(about), **words}
    required: list[JsonValue] = [names[str(name)] for name in wanted] if isinstance(wanted, list) else []
    kept = {"$defs": schema["$defs"]} if "$defs" in schema and "$ref" in json.dumps(properties) else {}
    return {"type": "object", "properties": properties, "required": required, **kept}


def shorten(schema: Schema) -> Schema:
    """Return a schema without words that say nothing: titles that repeat names, defaults of nothing."""
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
    """Return a field's schema without null, where that means that it is left out."""
    forms = about.get("anyOf")
    real = [each for each in forms if each != {"type": "null"}] if isinstance(forms, list) else []
    if len(real) == 1 and isinstance(real[0], dict):
        return {**real[0], **{key: value for key, value in about.items() if key != "anyOf"}}
    return about


def _short(value: JsonValue) -> JsonValue:
    if isinstance(value, list):
        return [_short(each) for each in value]
    return shorten(value) if isinstance(value, dict) else value
