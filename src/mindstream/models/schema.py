"""Hold a value to a JSON Schema that somebody else wrote: by `jsonschema_rs`, in bounded time, in words for a model."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

LARGEST = 200_000
"""A schema of more characters is not read."""
MOST_VISITS = 100_000
"""So often at most a value's parts are held to parts of a schema; `anyOf` in `anyOf` doubles them at each step."""
BACKTRACKS = 10_000
"""So often a pattern with a look-around may step back; all others are linear in the text."""
LONG = 1_000
"""A text of so many characters counts as a part more."""
COMPLAINTS, SHOWN = 5, 80
HERE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "$ref", "dependentSchemas")
"""Keywords whose schemas are held to the same value again …"""
WITHIN = (
    "properties",
    "patternProperties",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "items",
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "contains",
)
"""… and those that are held to what is in it."""
SHAPE = ("type", "required", "additionalProperties", "maxItems", "minItems", "maxProperties", "minProperties")
"""Faults of a list or object that are there whatever its parts may be."""
UNREADABLE = (ValueError, TypeError, RecursionError)
JsonSchema: TypeAlias = dict[str, Any]
"""A JSON Schema as plain data."""
Path: TypeAlias = tuple[str | int, ...]


def find_faults(value: Any, schema: JsonSchema, unknown: Collection[Path] = ()) -> list[str]:
    """Say what in a JSON value does not fit a schema, at most five things; [] where nothing is known to be wrong.

    At the paths `unknown` stands what is not known yet: null for any value, or a value whose type alone is known.

    Nothing is fetched: a `$ref` leads into the schema itself. A schema that cannot be read, or that would take too long
    for this value, finds no fault: whoever takes the value looks at it again.
    """
    return SchemaChecker(schema).find_faults(value, unknown)


class SchemaChecker:
    """Holds values to one schema, as `find_faults` does, for whoever has many of them."""

    def __init__(self, schema: JsonSchema) -> None:
        try:
            self._checker: _Checker | None = _checker(json.dumps(schema, sort_keys=True))
        except UNREADABLE:
            self._checker = None

    def find_faults(self, value: Any, unknown: Collection[Path] = ()) -> list[str]:
        """Say what in a JSON value does not fit the schema."""
        try:
            return self._checker.find_faults(value, unknown) if self._checker else []
        except UNREADABLE:
            return []


class _Checker:
    """A schema, made ready once."""

    def __init__(self, schema: Any) -> None:
        import jsonschema_rs  # 30 milliseconds that a talk without tools does not need

        patterns = jsonschema_rs.FancyRegexOptions(backtrack_limit=BACKTRACKS)
        self._validator = jsonschema_rs.validator_for(schema, pattern_options=patterns, offline=True)
        self._schema = schema
        self._visits: dict[tuple[int, int], int] = {}

    def find_faults(self, value: Any, unknown: Collection[Path]) -> list[str]:
        parts, depth = _measure(value)
        if parts * self._count_visits(self._schema, depth) > MOST_VISITS or self._validator.is_valid(value):
            return []
        errors = (error for error in self._validator.iter_errors(value) if not _is_open(error, unknown))
        found = islice(errors, COMPLAINTS)
        return list(islice((words for error in found for words in _complain(error)), COMPLAINTS))

    def _count_visits(self, schema: Any, depth: int) -> int:
        """Return how many schemas at most are held to a part of a value and to what it stands in, `depth` deep."""
        if not isinstance(schema, dict):
            return 1
        key = id(schema), depth
        if key not in self._visits:
            self._visits[key] = 1  # where it leads back to itself with the same value, the library stops
            here = sum(self._count_visits(inner, depth) for name in HERE for inner in self._inner(schema, name))
            within = 0
            if depth:
                for name in WITHIN:
                    counts = [self._count_visits(inner, depth - 1) for inner in self._inner(schema, name)]
                    within += max(counts, default=0) if name != "patternProperties" else sum(counts)
            self._visits[key] = 1 + here + within
        return self._visits[key]

    def _inner(self, schema: JsonSchema, name: str) -> Iterator[Any]:
        inner = schema.get(name)
        if name == "$ref" and inner is not None:
            yield self._target(inner)
        elif isinstance(inner, list):
            yield from inner
        elif isinstance(inner, dict):
            yield from inner.values() if name in ("properties", "patternProperties", "dependentSchemas") else (inner,)

    def _target(self, reference: str) -> Any:
        """Return the schema that a reference within this one names.

        Raises:
            ValueError: it leads elsewhere.
        """
        head, *steps = reference.split("/")
        if head != "#":
            raise ValueError(f"{reference!r} is followed nowhere")
        found = self._schema
        for step in steps:
            name = step.replace("~1", "/").replace("~0", "~")
            found = found[int(name)] if isinstance(found, list) else found.get(name)
        return found


@lru_cache(200)
def _checker(schema: str) -> _Checker:
    if len(schema) > LARGEST:
        raise ValueError("the schema is too long")
    return _Checker(json.loads(schema))


def _is_open(error: ValidationError, unknown: Collection[Path]) -> bool:
    """Tell whether an error may go when what is unknown becomes known."""
    at, name = tuple(error.instance_path), error.kind.name
    for path in unknown:
        if at == path and name == "type" and error.instance is not None:
            continue
        if at[: len(path)] == path or (path[: len(at)] == at and name not in SHAPE):
            return True
    return False


def _measure(value: Any) -> tuple[int, int]:
    """Return of how many parts a value consists, and how deep they stand in each other."""
    parts, depth, level = 0, -1, [value]
    while level:
        parts += sum(1 + len(each) // LONG if isinstance(each, str) else 1 for each in level)
        depth += 1
        level = [part for each in level for part in _parts(each)]
    return parts, depth


def _parts(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []


# Words.


def _complain(error: ValidationError) -> Iterator[str]:
    """Say in a model's words what the library found."""
    where, kind = _path(error.instance_path), error.kind
    dot = f"{where}." if where else ""
    facts = kind.as_dict()
    match kind.name:
        case "pattern" if "pattern" not in facts:
            return  # the search was given up: it is not known whether it fits
        case "required":
            yield f"{dot}{facts['property']} is missing"
        case "additionalProperties" | "unevaluatedProperties":
            yield from (f"{dot}{each[:SHOWN]} is not known" for each in facts["unexpected"])
        case "enum":
            yield f"{where or 'the whole'} should be one of {_shorten(facts['options'], 4 * SHOWN)}"
        case "const":
            yield f"{where or 'the whole'} should be {_shorten(facts['expected_value'])}"
        case "type":
            yield f"{where or 'the whole'} should be {' or '.join(facts['types'])}, not {_shorten(error.instance)}"
        case "anyOf" | "oneOf" if all(facts["context"]):
            yield from _complain_of_branches(facts["context"], error)
        case "oneOf":
            yield f"{where or 'the whole'} fits more than one of the schemas of which it should fit one"
        case _:
            yield f"{where or 'the whole'}: {_shorten(error.instance)} does not fit {_keyword(error)}"


def _complain_of_branches(branches: list[list[ValidationError]], error: ValidationError) -> Iterator[str]:
    """Say what is wrong where one of several schemas must fit: the faults of the one that was most likely meant."""
    meant = [branch for branch in branches if not any(_is_another_type(each, error) for each in branch)]
    if meant:
        yield from (words for each in min(meant, key=len) for words in _complain(each))
        return
    wrong = [each.kind for branch in branches for each in branch if each.kind.name == "type"]
    types = dict.fromkeys(name for kind in wrong for name in kind.as_dict()["types"])
    where = _path(error.instance_path) or "the whole"
    yield f"{where} should be {' or '.join(types)}, not {_shorten(error.instance)}"


def _is_another_type(inner: ValidationError, error: ValidationError) -> bool:
    return inner.kind.name == "type" and inner.instance_path == error.instance_path


def _keyword(error: ValidationError) -> str:
    facts = error.kind.as_dict()
    wanted = next(iter(facts.values()), "") if facts else ""
    return f"{error.kind.name} {_shorten(wanted)}" if wanted != "" else error.kind.name


def _path(steps: list[str | int]) -> str:
    """Write where something stands, as a model would: `when.days[1]`."""
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step[:SHOWN]}" for step in steps)
    return path.removeprefix(".")


def _shorten(value: Any, longest: int = SHOWN) -> str:
    return json.dumps(value, ensure_ascii=False)[:longest]
