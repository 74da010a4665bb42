"""Check values against untrusted JSON Schemas, with `jsonschema_rs`, in bounded time, and with messages for models.

`bound_schema` limits a schema so that its longest reply fits a number of characters; a grammar made from it ends a
reply before the token limit does.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

MAX_SCHEMA = 200_000
"""Maximum length of a schema in characters. Values are not checked against a longer one."""
MAX_VISITS = 100_000
"""Maximum number of checks of a value's parts against parts of a schema; each nested `anyOf` can double the number."""
MAX_BACKTRACKS = 10_000
"""Maximum number of backtracking steps of a pattern with a look-around; other patterns take linear time."""
LONG_TEXT = 1_000
"""A text counts as one more part of a value for each LONG_TEXT characters."""
MAX_FAULTS, MAX_SHOWN = 5, 80
"""Maximum number of messages, and maximum number of characters of a value in a message."""
SAME_VALUE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "$ref", "dependentSchemas")
"""Keywords whose schemas apply to the same value."""
INNER_VALUES = (
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
"""Keywords whose schemas apply to the value's parts."""
SHAPE = ("type", "required", "additionalProperties", "maxItems", "minItems", "maxProperties", "minProperties")
"""Keywords whose faults concern a list or object itself, whatever the values of its parts are."""
UNREADABLE = (ValueError, TypeError, RecursionError)
JsonSchema: TypeAlias = dict[str, Any]
"""A JSON Schema as plain data."""
Path: TypeAlias = tuple[str | int, ...]


def find_faults(value: Any, schema: JsonSchema) -> list[str]:
    """Return at most five messages about the parts of a JSON value that do not fit a schema; [] if no fault is known.

    Nothing is fetched: a `$ref` must lead into the schema itself. An invalid schema, or a schema that would take too
    long for this value, yields no fault. The receiver of the value checks it again.
    """
    return SchemaChecker(schema).find_faults(value)


class SchemaChecker:
    """Checks many values against one schema, which is compiled once."""

    def __init__(self, schema: JsonSchema) -> None:
        self._schema = schema
        try:
            self._checker: _Checker | None = _checker(json.dumps(schema, sort_keys=True))
        except UNREADABLE:
            self._checker = None

    def __reduce__(self) -> tuple[Any, ...]:
        return SchemaChecker, (self._schema,)  # a compiled schema cannot be sent to another process

    def find_faults(self, value: Any, unknown: Collection[Path] = ()) -> list[str]:
        """Return messages about the parts of a JSON value that do not fit the schema; [] if the schema cannot be used.

        Args:
            unknown: paths of values that are not known yet. There, null stands for any value, and any other value
                stands for any value of the same type.
        """
        try:
            return self._checker.find_faults(value, unknown) if self._checker else []
        except UNREADABLE:
            return []


class _Checker:
    """A compiled schema."""

    def __init__(self, schema: Any) -> None:
        import jsonschema_rs  # imported late: it takes 30 ms, and conversations without tools do not need it

        patterns = jsonschema_rs.FancyRegexOptions(backtrack_limit=MAX_BACKTRACKS)
        self._validator = jsonschema_rs.validator_for(schema, pattern_options=patterns, offline=True)
        self._schema = schema
        self._visits: dict[tuple[int, int], int] = {}

    def find_faults(self, value: Any, unknown: Collection[Path]) -> list[str]:
        parts, depth = _measure(value)
        if parts * self._count_visits(self._schema, depth) > MAX_VISITS or self._validator.is_valid(value):
            return []
        errors = (error for error in self._validator.iter_errors(value) if not _is_open(error, unknown))
        found = islice(errors, MAX_FAULTS)
        return list(islice((words for error in found for words in _messages(error)), MAX_FAULTS))

    def _count_visits(self, schema: Any, depth: int) -> int:
        """Return an upper bound of the number of subschemas that are checked for a value.

        Checks of the values on one path into the value, `depth` levels deep, are included.
        """
        if not isinstance(schema, dict):
            return 1
        key = id(schema), depth
        if key not in self._visits:
            self._visits[key] = 1  # ends a cycle of $ref, which jsonschema_rs stops at too
            found = 1 + sum(
                self._count_visits(inner, depth) for name in SAME_VALUE for inner in self._inner(schema, name)
            )
            for name in INNER_VALUES if depth else ():
                counts = [self._count_visits(inner, depth - 1) for inner in self._inner(schema, name)]
                found += sum(counts) if name == "patternProperties" else max(counts, default=0)
            self._visits[key] = found
        return self._visits[key]

    def _inner(self, schema: JsonSchema, name: str) -> Collection[Any]:
        inner = schema.get(name)
        if name == "$ref" and inner is not None:
            return [self._target(inner)]
        if isinstance(inner, dict):
            return inner.values() if name in ("properties", "patternProperties", "dependentSchemas") else [inner]
        return inner if isinstance(inner, list) else []

    def _target(self, reference: str) -> Any:
        """Return the part of this schema that a `$ref` names.

        Raises:
            ValueError: the reference leads out of this schema.
        """
        head, *steps = reference.split("/")
        if head != "#":
            raise ValueError(f"expected a reference within the schema, found {reference!r}")
        found = self._schema
        for step in steps:
            name = step.replace("~1", "/").replace("~0", "~")
            found = found[int(name)] if isinstance(found, list) else found.get(name)
        return found


@lru_cache(200)
def _checker(schema: str) -> _Checker:
    if len(schema) > MAX_SCHEMA:
        raise ValueError(f"the schema has {len(schema):,} characters, and at most {MAX_SCHEMA:,} are read")
    return _Checker(json.loads(schema))


def _is_open(error: ValidationError, unknown: Collection[Path]) -> bool:
    """Return whether an error may disappear when the unknown values become known."""
    at, name = tuple(error.instance_path), error.kind.name
    for path in unknown:
        if at == path and name == "type" and error.instance is not None:
            continue
        if at[: len(path)] == path or (path[: len(at)] == at and name not in SHAPE):
            return True
    return False


def _measure(value: Any) -> tuple[int, int]:
    """Return the number of a value's parts, and the depth of their nesting.

    A text counts as one part, plus one for each LONG_TEXT characters.
    """
    parts, depth, level = 0, -1, [value]
    while level:
        inner: list[Any] = []
        for each in level:
            if isinstance(each, str):
                parts += len(each) // LONG_TEXT
            elif isinstance(each, dict):
                inner += each.values()
            elif isinstance(each, list):
                inner += each
        parts, depth, level = parts + len(level), depth + 1, inner
    return parts, depth


def _messages(error: ValidationError) -> Iterator[str]:
    """Yield the messages of an error, each with the path of the wrong part."""
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step[:MAX_SHOWN]}" for step in error.instance_path)
    path, name, facts = path.removeprefix("."), error.kind.name, error.kind.as_dict()
    where, inside = path or "the value", f"{path}." if path else ""
    match name:
        case "pattern" if "pattern" not in facts:
            return  # the pattern exceeded MAX_BACKTRACKS: it is not known whether the text fits
        case "anyOf" | "oneOf" if all(facts["context"]):
            yield from _messages_of_branches(facts["context"], error, where)
        case "required":
            yield f"{inside}{facts['property']} is missing"
        case "additionalProperties" | "unevaluatedProperties":
            yield from (f"{inside}{each[:MAX_SHOWN]} is not known" for each in facts["unexpected"])
        case "type":
            yield _type_message(where, facts["types"], error)
        case "enum":
            yield f"{where} should be one of {_shorten(facts['options'], 4 * MAX_SHOWN)}"
        case _:
            expected = next(iter(facts.values()), "")
            limit = "" if name == "oneOf" or expected == "" else f" {_shorten(expected)}"
            yield f"{where}: {_shorten(error.instance)} does not fit {name}{limit}"


def _messages_of_branches(branches: list[list[ValidationError]], error: ValidationError, where: str) -> Iterator[str]:
    """Yield the messages of the alternative schema that was most likely meant.

    This is the schema with the fewest errors among the schemas that allow the value's type. If no schema allows the
    type, yield one message with all allowed types.
    """
    wrong_types = [
        [each for each in branch if each.kind.name == "type" and each.instance_path == error.instance_path]
        for branch in branches
    ]
    meant = [branch for branch, wrong in zip(branches, wrong_types, strict=True) if not wrong]
    if meant:
        yield from (words for each in min(meant, key=len) for words in _messages(each))
    else:
        types = [each for branch in wrong_types for wrong in branch for each in wrong.kind.as_dict()["types"]]
        yield _type_message(where, types, error)


def _type_message(where: str, types: Collection[str], error: ValidationError) -> str:
    return f"{where} should be {' or '.join(dict.fromkeys(types))}, not {_shorten(error.instance)}"


def _shorten(value: Any, longest: int = MAX_SHOWN) -> str:
    return json.dumps(value, ensure_ascii=False)[:longest]


MIN_TEXT, MIN_ITEM = 24, 90
"""Minimum number of characters that `bound_schema` allows for each text, and for each item of a list."""
MAX_ITEMS, MAX_KEYS, MAX_DEPTH = 8, 3, 8
MAX_NUMBER = 999_999
WEIGHTS = {"array": 3, "object": 3, "string": 2}
DROPPED = ("title", "description", "default", "examples", "items", "properties", "additionalProperties", "$defs")


def bound_schema(schema: JsonSchema, characters: int) -> JsonSchema:
    """Return the schema with limits on texts, lists, numbers, and untyped values.

    The characters of an object are divided among its fields; narrower limits of the schema stay.
    """
    limited = _limit(schema, characters, schema.get("$defs", {}), 0)
    return {key: value for key, value in limited.items() if key != "$defs"}


def _limit(node: Any, room: int, shared: Mapping[str, JsonSchema], depth: int) -> JsonSchema:
    node = _resolved(node, shared)
    if depth > MAX_DEPTH:
        return {"type": "null"}
    if alternatives := node.get("anyOf", node.get("oneOf")):
        return {"anyOf": [_limit(each, room, shared, depth + 1) for each in alternatives]}
    if fixed := {key: node[key] for key in ("enum", "const") if key in node}:
        return fixed
    plain = {key: value for key, value in node.items() if key not in DROPPED}
    match node.get("type"):
        case "string":
            return _limit_text(plain, max(MIN_TEXT, room))
        case "integer" | "number":
            exclusive = {"exclusiveMinimum", "exclusiveMaximum"} & node.keys()
            return plain if exclusive else {"minimum": -MAX_NUMBER, "maximum": MAX_NUMBER, **plain}
        case "array":
            items = max(1, node.get("minItems", 0), min(node.get("maxItems", MAX_ITEMS), room // MIN_ITEM))
            inner = _limit(node.get("items", {}), room // items, shared, depth + 1)
            return {**plain, "items": inner, "maxItems": items}
        case "object":
            return plain | _limit_object(node, room, shared, depth)
        case "boolean" | "null" as kind:
            return {"type": kind}
    return {"anyOf": [_limit_text({}, max(MIN_TEXT, room)), {"type": "boolean"}, {"type": "null"}]}


def _limit_text(plain: JsonSchema, longest: int) -> JsonSchema:
    """Limit a text's length, and exclude `<` unless the schema has a pattern or format.

    `<` begins the tags of a prompt, which small models tend to repeat.
    """
    longest = min(plain.get("maxLength", longest), longest)
    if "pattern" in plain or "format" in plain:
        return {**plain, "maxLength": longest}
    return {"type": "string", "pattern": f"^[^<]{{{min(plain.get('minLength', 0), longest)},{longest}}}$"}


def _limit_object(node: JsonSchema, room: int, shared: Mapping[str, JsonSchema], depth: int) -> JsonSchema:
    """Return the keywords that limit an object to about `room` characters; {} for an object that allows no properties.

    The characters are divided among the object's properties by weight.
    """
    fields: dict[str, JsonSchema] = node.get("properties", {})
    others = node.get("additionalProperties")
    if fields:
        weights = {name: _weight(each, shared) for name, each in fields.items()}
        share = max(0, room - sum(len(name) + 6 for name in fields)) / sum(weights.values())
        limited = {n: _limit(each, int(weights[n] * share), shared, depth + 1) for n, each in fields.items()}
        return {"properties": limited, "additionalProperties": False}
    if others is False:
        return {}
    value = _limit(others if isinstance(others, dict) else {}, room // MAX_KEYS // 2, shared, depth + 1)
    return {"additionalProperties": value, "maxProperties": MAX_KEYS}


def _weight(node: JsonSchema, shared: Mapping[str, JsonSchema]) -> int:
    node = _resolved(node, shared)
    if "anyOf" in node:
        return max(_weight(each, shared) for each in node["anyOf"])
    return 1 if "enum" in node else WEIGHTS.get(str(node.get("type")), 1)


def _resolved(node: JsonSchema, shared: Mapping[str, JsonSchema]) -> JsonSchema:
    return shared.get(str(node["$ref"]).rpartition("/")[2], {}) if "$ref" in node else node


AT_DEFS = "#/$defs/"
NAMES = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "mapping")
"""Keywords whose value is an object. The keys of the object are names, such as names of properties, not keywords."""


def lean(schema: Any, drop: Collection[str] = ("title", "default"), *, named: bool = False) -> Any:
    """Return a schema without keywords that Pydantic adds and that a model does not need. This saves tokens.

    Removed are the keywords in `drop`, and the descriptions of objects (the docstrings of their classes). A definition
    that is used only once replaces its reference.

    Args:
        drop: the keywords to remove.
        named: whether the keys of `schema` are names, such as names of properties (`NAMES`), not keywords. Names are
            kept.
    """
    if isinstance(schema, Mapping) and "$defs" in schema and not named:
        schema = _inlined(schema)
    if isinstance(schema, Mapping):
        unsaid = () if named else {*drop, *(("description",) if "properties" in schema else ())}
        kept = {key: each for key, each in schema.items() if key not in unsaid}
        values = () if named else ("enum", "const")
        return {
            key: each if key in values else lean(each, drop, named=not named and key in NAMES)
            for key, each in kept.items()
        }
    return [lean(each, drop) for each in schema] if isinstance(schema, list) else schema


def _inlined(schema: Mapping[str, Any]) -> JsonSchema:
    """Return a schema with each definition in the place of its reference, if nothing else refers to it."""
    text = json.dumps(schema)
    once = {name: each for name, each in schema["$defs"].items() if text.count(json.dumps(f"{AT_DEFS}{name}")) == 1}

    def put(node: Any) -> Any:
        if isinstance(node, Mapping):
            name = str(node.get("$ref")).removeprefix(AT_DEFS)
            beside = {key: put(each) for key, each in node.items() if key != "$ref" or name not in once}
            return put(once[name]) | beside if name in once else beside
        return [put(each) for each in node] if isinstance(node, list) else node

    left = {name: put(each) for name, each in schema["$defs"].items() if name not in once}
    rest = {key: put(each) for key, each in schema.items() if key != "$defs"}
    return ({"$defs": left} if left else {}) | rest
