"""A plan written as JSON, with the keys that models use: a list of steps, or an object that holds one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from pydantic import JsonValue

from mindstream.errors import InputError, ReplyInvalid
from mindstream.models.fitting import bare_name
from mindstream.models.model import ToolSpec
from mindstream.models.reply import whole_json
from mindstream.planning.formats.inputs import find_spec, read_input, read_json, scan_json
from mindstream.planning.formats.rewoo import scan_text
from mindstream.planning.plan import Plan, PlannedStep

STEPS = ("steps", "plan", "tasks", "actions", "calls", "tool_calls")
ID = ("id", "step", "step_id", "number", "index", "variable")
TOOL = ("tool", "tool_name", "action", "function", "name")
ARGUMENTS = ("arguments", "args", "input", "tool_input", "action_input", "parameters", "params")
WHY = ("why", "reason", "thought", "description", "rationale", "plan")
AFTER = ("after", "depends_on", "dependencies", "deps", "requires")
NUMBER = re.compile(r"[#$]?\s?(?:[Ee]|step[ _-]?)?([1-9][0-9]{0,3})", re.IGNORECASE)


def read_json_plan(text: str, tools: Sequence[ToolSpec] = ()) -> Plan:
    """Read a plan that is written as JSON.

    Raises:
        InputError: it is none; the message says which step lacks what.
    """
    value: Any = read_json(text.strip())
    for kind in (dict, list) if value is None else ():
        with suppress(ReplyInvalid):
            values = whole_json(text, kind)
            value = values if kind is dict and len(values) > 1 else values[0]
            break
    steps = _steps(value)
    if not steps:
        raise InputError(f"expected JSON with a list of steps under one of {', '.join(STEPS[:3])}, found none")
    found = tuple(_read_step(each, number, tools) for number, each in enumerate(steps, 1))
    task = value.get("task") if isinstance(value, Mapping) else ""
    return Plan(task=task if isinstance(task, str) else "", steps=found)


def _steps(value: Any) -> list[Any]:
    """Return the steps: of a list, under one of the keys for it, one by one under their ids, or a single one."""
    if isinstance(value, list):
        return value
    if not isinstance(value, Mapping):
        return []
    if _first(value, TOOL) is not None:
        return [value]
    if (inner := _first(value, STEPS)) is not None:
        return _steps(inner)
    if value and all(NUMBER.fullmatch(key.strip()) and isinstance(each, Mapping) for key, each in value.items()):
        return [{"id": key, **each} for key, each in value.items()]
    return []


def _read_step(given: Any, number: int, tools: Sequence[ToolSpec]) -> PlannedStep:
    if not isinstance(given, Mapping):
        raise InputError(f"step {number}: expected an object, found {str(given)[:40]!r}")
    called = _first(given, TOOL)
    call = called if isinstance(called, Mapping) else given  # {"function": {"name": …, "arguments": …}}
    name = _first(call, ("name", *TOOL)) if call is called else called
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"step {number}: expected the name of a tool under one of {', '.join(TOOL)}, found none")
    spec, input_ = find_spec(name, tools), _first(call, ARGUMENTS)
    arguments = read_input(input_, spec, scan_text) if isinstance(input_, str) else scan_json(input_ or {}, scan_text)
    if not isinstance(arguments, dict):
        raise InputError(f"step {number}: expected the arguments of {name} as an object or a text")
    after, why = _first(given, AFTER), _first(given, WHY)
    return PlannedStep(
        id=_id(_first(given, ID), number),
        tool=spec.name if spec else name.strip().replace(" ", "_"),
        arguments=arguments,
        why=why if isinstance(why, str) else "",
        after=tuple(_id(each, number) for each in (after if isinstance(after, list) else [])),
    )


def _id(given: JsonValue, number: int) -> str:
    if given is None:
        return f"E{number}"
    found = NUMBER.fullmatch(str(given).strip())
    if not found:
        raise InputError(f"step {number}: expected a number or an id such as E1, found {str(given)[:40]!r}")
    return f"E{int(found[1])}"


def _first(given: Mapping[str, Any], names: Sequence[str]) -> Any:
    """Return what stands under the first of these names, whatever their letter case and separators."""
    found = {bare_name(key): each for key, each in given.items() if each is not None}
    return next((found[bare_name(name)] for name in names if bare_name(name) in found), None)
