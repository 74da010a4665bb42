"""What is wrong with what a person wrote by keys, in words: which key, what is wanted, which keys there are."""

from __future__ import annotations

import difflib
from typing import Any, TypeAlias, get_args

from pydantic import BaseModel, ValidationError

WANTED = {
    "missing": "is missing",
    "string_type": "text in quotes is wanted",
    "int_type": "a whole number is wanted",
    "int_parsing": "a whole number is wanted",
    "int_from_float": "a whole number is wanted",
    "float_type": "a number is wanted",
    "float_parsing": "a number is wanted",
    "bool_type": "true or false is wanted",
    "bool_parsing": "true or false is wanted",
    "list_type": "a list in [ ] is wanted",
    "dict_type": "a table of keys is wanted",
    "model_type": "a table of keys is wanted",
    "model_attributes_type": "a table of keys is wanted",
    "datetime_type": "a moment is wanted, as in 2023-02-13T00:00:00",
    "string_too_short": "at least {min_length} characters are wanted",
    "string_too_long": "at most {max_length} characters are wanted",
    "too_long": "at most {max_length} are wanted",
    "greater_than": "more than {gt} is wanted",
    "greater_than_equal": "at least {ge} is wanted",
    "less_than": "less than {lt} is wanted",
    "less_than_equal": "at most {le} is wanted",
}
"""By the kind of a mistake."""


Place: TypeAlias = tuple[int | str, ...]
"""Where a key is: names of tables and keys, and numbers in lists, from 0."""


def describe_mistake(model: type[BaseModel], error: ValidationError) -> str:
    """Say the first mistake in a sentence that begins with the place of its key: `residents.2.age: …`."""
    return describe_mistakes(model, error)[0][1]


def describe_mistakes(model: type[BaseModel], error: ValidationError) -> list[tuple[Place, str]]:
    """Say each mistake, with its place."""
    return [(tuple(each["loc"]), _describe(model, each)) for each in error.errors(include_url=False)]


def find_line(text: str, place: Place) -> int:
    """Return the line of the deepest part of a place that a TOML text has as a table or a key; 0: of none."""
    header, count, quoted, section, found = "", dict[str, int](), False, "", 0
    names = [part for part in place if isinstance(part, str)]
    number = next((part for part in place[1:2] if isinstance(part, int)), 0)
    for at, line in enumerate(text.splitlines(), 1):
        bare, is_inside = line.strip(), quoted
        quoted ^= (line.count('"""') + line.count("'''")) % 2 == 1
        if is_inside:
            continue
        if bare.startswith("["):
            section = bare.partition("#")[0].strip().strip("[]").strip()
            top = section.partition(".")[0]
            if bare.startswith("[[") and section == top:
                count[top] = count.get(top, -1) + 1
            header = top if names[:1] == [top] and count.get(top, 0) == number else ""
            if header and (section == top or names[:2] == section.split(".")):
                found = at
        elif header and "=" in bare:
            key = bare.partition("=")[0].strip().strip("\"'")
            inner = names[1:] if section == header else names[2:]
            if inner and key == inner[0]:
                return at
    return found


def _describe(model: type[BaseModel], first: Any) -> str:
    place = ".".join(str(part + 1) if isinstance(part, int) else part for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return f"{place}: there is no such key{_keys(model, first['loc'])}"
    wanted = WANTED.get(first["type"])
    if wanted is None:
        return f"{place}: {first['msg'].lower()}, not {first['input']!r:.60}"
    said = wanted.format(**first.get("ctx", {}))
    return f"{place}: {said}" if first["type"] == "missing" else f"{place}: {said}, not {first['input']!r:.60}"


def _keys(model: type[BaseModel], place: Place) -> str:
    """Say which key was meant, and which there are."""
    holder: type[BaseModel] | None = model
    for part in place[:-1]:
        if isinstance(part, str) and holder is not None:
            holder = _table_of(holder, part)
    if holder is None:
        return ""
    known = [field.alias or name for name, field in holder.model_fields.items()]
    near = difflib.get_close_matches(str(place[-1]), known, 1)
    meant = f", did you mean {near[0]!r}?" if near else ";"
    return f"{meant} there are {', '.join(known)}"


def _table_of(model: type[BaseModel], key: str) -> type[BaseModel] | None:
    """Return the table that stands under a key, also in a list or where it may be missing."""
    field = next((each for name, each in model.model_fields.items() if (each.alias or name) == key), None)
    found: Any = field.annotation if field is not None else None
    kinds = [found, *get_args(found)]
    return next((each for each in kinds if isinstance(each, type) and issubclass(each, BaseModel)), None)
