"""What is wrong with a pack as it was read, each fault with the place where it stands, in plain words."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from mindstream.coach.packs.dangling import Fault, dangling, suggest
from mindstream.coach.packs.pack import Alarm, Field_, Pack, Phase, Resource, Step, Topic

PARTS: dict[str, type[BaseModel]] = {
    "phases": Phase,
    "fields": Field_,
    "topics": Topic,
    "steps": Step,
    "resources": Resource,
    "alarms": Alarm,
}
"""What the lists and mappings of a pack hold."""
ADVISED = 50
"""For so many faults it is looked for what was meant: comparing words takes its time."""
PLAIN = {
    "missing": "is missing",
    "string_type": "should be a text",
    "list_type": "should be a list (lines that start with '- ', or [a, b])",
    "tuple_type": "should be a list (lines that start with '- ', or [a, b])",
    "dict_type": "should be a mapping (name: …)",
    "model_type": "should be a mapping (name: …)",
    "bool_type": "should be true or false",
    "bool_parsing": "should be true or false",
}


def faults(data: Any) -> tuple[Pack | None, list[Fault]]:
    """Read a pack from what its files hold; return it, or what is wrong with it."""
    unknown = list(dangling(data))
    try:
        pack = Pack.model_validate(data)
    except ValidationError as error:
        errors = [each for each in error.errors() if each["loc"] or not unknown]
        found = [_told(each, advise=number < ADVISED) for number, each in enumerate(errors)]
        return None, [*found, *unknown]
    return (None, unknown) if unknown else (pack, [])


def _told(error: ErrorDetails, *, advise: bool) -> Fault:
    where = tuple(part for part in error["loc"] if part != "[key]")
    if error["type"] == "extra_forbidden":
        model = PARTS.get(str(where[0]), Pack) if len(where) > 1 else Pack
        return where, "is not known here" + (suggest(str(where[-1]), set(model.model_fields)) if advise else "")
    return where, PLAIN.get(error["type"]) or error["msg"].removeprefix("Value error, ")
