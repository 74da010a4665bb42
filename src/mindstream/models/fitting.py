"""Read the inexact JSON objects that models write, and fit them to the requested schema.

Servers and models send the arguments of a tool call as `null`, as JSON in a JSON string, in a code fence, as JSON5 or
as a Python literal; they wrap a typed reply in an outer key or list, write `"3"` for 3 and `Score` for `score`. Missing
values are not filled in, and an object that was cut off stays unreadable.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from mindstream.errors import ReplyInvalid
from mindstream.models.model import ToolSpec
from mindstream.models.reply import DECODER, MAX_DEPTH, broken_json, check_depth, whole_json
from mindstream.models.schema import JsonSchema, find_faults
from mindstream.models.untrusted import without_controls

NOTHING = frozenset(("", "null", "none", "undefined", "nil", "[]", '""', "''"))
"""Texts that mean "no arguments", in lower case."""
MAX_NESTING = 4
"""Maximum number of times that a text is decoded (JSON may be inside JSON strings), and maximum depth to which `fit`
changes a value."""
GIVEN = ("arguments", "parameters", "args", "input", "properties")
"""Keys that hold the answer if a model wraps it in a call or in a copy of its schema. WRAPPERS: all keys of such a call
or copy."""
WRAPPERS = frozenset((*GIVEN, "name", "type", "id", "title", "description", "$schema", "required", "function", "tool"))
NAMESPACES = frozenset(("functions", "function", "tools", "tool", "default_api"))
"""Prefixes that models write before a tool's name (gpt-oss, Kimi, Gemini)."""
UNREADABLE = (ValueError, RecursionError)
DESCRIBED = ("type", "properties", "anyOf", "oneOf", "enum")
"""Keywords that describe a value. A schema with one of these keywords next to an `allOf` says more than the `allOf`."""
MAX_MENDED = 100_000
"""Maximum length of a text that is read as JSON5 or as a Python literal, in characters."""


def read_object(text: str) -> dict[str, Any]:
    """Return the one JSON object in a text; {} if the text means "no arguments".

    Raises:
        ReplyInvalid: the text holds no object, a broken one, or several that differ.
    """
    value: Any = text
    for _ in range(MAX_NESTING):
        if not isinstance(value, str):
            break
        text = value.strip()
        if text.casefold() in NOTHING:
            return {}
        try:
            value = DECODER.decode(text)
        except UNREADABLE as error:
            return _read_inexact(value, error)
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, dict):
        raise ReplyInvalid(f"expected one JSON object, found {json.dumps(value, ensure_ascii=False)[:80]}")
    check_depth(value)
    return value


def _read_inexact(text: str, error: Exception) -> dict[str, Any]:
    """Read an object that is not strict JSON.

    The object may be JSON5 or a Python literal. Other text, a code fence or a copy of the object may surround it.

    Args:
        error: the error of strict parsing.

    Raises:
        ReplyInvalid: there is no object, or there are several different objects. The message is about `error`.
    """
    for attempt in (text, mend_json(text)):
        found: list[Any] = []
        with suppress(ReplyInvalid):
            found = whole_json(attempt, dict) if attempt else []
        found = [each for each in found if each] or found[:1]
        if found and all(each == found[0] for each in found):
            return dict(found[0])
    with suppress(*UNREADABLE, SyntaxError, TypeError, MemoryError):
        value = ast.literal_eval(text.strip()) if len(text) <= MAX_MENDED else None
        if isinstance(value, dict):
            value = DECODER.decode(json.dumps(value, allow_nan=False))
            check_depth(value)
            return dict(value)
    raise ReplyInvalid("the JSON is nested too deep" if isinstance(error, RecursionError) else str(error))


def fit(value: Any, schema: JsonSchema) -> Any:
    """Return a value in the form that its schema requires; the value itself if this is not possible.

    A value that fits is not changed. Otherwise these changes are tried:

    - an outer key or list is removed;
    - keys and enumerated values get the schema's letter case;
    - texts become the numbers, booleans, lists or objects that they hold; numbers become texts;
    - null is removed from optional fields.
    """
    if not find_faults(value, schema):
        return value
    for candidate in (value, *_inner(value, schema)):
        fitted = _fit(candidate, schema, schema)
        if isinstance(fitted, dict) and fitted and not fitted.keys() & schema.get("properties", fitted).keys():
            continue  # without required fields, an object with only unknown keys would fit
        if isinstance(fitted, dict | list) and not find_faults(fitted, schema):
            return fitted
    return value


def _inner(value: Any, schema: JsonSchema) -> list[Any]:
    """Return the values that may be the answer inside a wrapped value; [] if the value is not wrapped.

    An answer can be wrapped in a list of one item, or in a key that the schema lacks.
    """
    if isinstance(value, list):
        return value if len(value) == 1 else []
    if not isinstance(value, dict) or value.keys() & schema.get("properties", {}).keys():
        return []
    if len(value) > 1 and not value.keys() <= WRAPPERS:  # it has keys that neither a call nor a copied schema has
        return []
    key = next((key for key in GIVEN if key in value), "") if len(value) > 1 else next(iter(value), "")
    inner = value.get(key)
    if isinstance(inner, str):
        inner = _parsed(inner)
    return [inner, *(inner if isinstance(inner, list) and len(inner) == 1 else [])]


def _fit(value: Any, schema: Any, root: JsonSchema, depth: int = 0) -> Any:
    schema = _resolved(schema, root)
    if not isinstance(schema, dict) or depth > MAX_NESTING:
        return value
    types = _types(schema, root)
    if isinstance(value, str):
        options = schema.get("enum")
        if isinstance(options, list) and value not in options:
            texts = [each for each in options if isinstance(each, str)]
            alike = [each for each in texts if each.casefold() == value.strip().casefold()]
            for said in (value, value.rpartition(".")[2]):  # `"Good"`, `Good.`, `Mood.GOOD`
                alike = alike or [each for each in texts if bare_name(each) == bare_name(said) != ""]
            value = alike[0] if len(alike) == 1 else value
        if types and "string" not in types:
            parsed = _parsed(value)
            value = value if parsed is None or isinstance(parsed, str) else parsed
    elif types - {"null"} == {"string"} and type(value) in (int, float):
        value = json.dumps(value)
    if isinstance(value, list):
        return [_fit(each, schema.get("items"), root, depth + 1) for each in value]
    if not isinstance(value, dict) or not isinstance(known := schema.get("properties"), dict):
        return value
    required, fitted = schema.get("required", ()), dict[str, Any]()
    for key, each in value.items():
        name = key if key in known else _only_alike(key, [*(known.keys() - value.keys())]) or key
        allowed = _types(known.get(name), root)
        if each is not None or name in required or not allowed or "null" in allowed:
            fitted[name] = _fit(each, known.get(name), root, depth + 1)
    return fitted


def _only_alike(key: str, names: Sequence[str]) -> str | None:
    """Return the only name that equals `key` except for letter case and punctuation; None: none or several do."""
    bare = bare_name(key)
    alike = [name for name in names if bare and bare_name(name) == bare]
    return alike[0] if len(alike) == 1 else None


def bare_name(name: str) -> str:
    """Return the letters and digits of a name, without letter case."""
    return "".join(filter(str.isalnum, name)).casefold()


def _parsed(text: str) -> Any:
    """Return the value of a text that is JSON, or an object similar to JSON, such as a Python dict; else None."""
    text = text.strip()
    with suppress(*UNREADABLE):
        return DECODER.decode(text.casefold() if text.casefold() in ("true", "false") else text)
    with suppress(ReplyInvalid):
        return read_object(text) if text[:1] == "{" else None
    return None


def _types(schema: Any, root: JsonSchema) -> set[str]:
    """Return the types that a schema allows; an empty set if it does not restrict them."""
    schema = _resolved(schema, root)
    if not isinstance(schema, dict):
        return set()
    named, inner = schema.get("type"), schema.get("anyOf", schema.get("oneOf"))
    found = {named} if isinstance(named, str) else {each for each in named or () if isinstance(each, str)}
    if isinstance(inner, list):
        each_of = [_types(each, root) for each in inner if each is not schema]
        found = found.union(*each_of) if all(each_of) else set()
    return found


def _resolved(schema: Any, root: JsonSchema) -> Any:
    """Return the schema that a `$ref` to `$defs` or `definitions` names; without such a `$ref`, the schema itself.

    The `$ref` may also be the only entry of an `allOf`.
    """
    if not isinstance(schema, dict):
        return schema
    if isinstance(whole := schema.get("allOf"), list) and len(whole) == 1 and schema.keys().isdisjoint(DESCRIBED):
        schema = whole[0] if isinstance(whole[0], dict) else schema
    reference = schema.get("$ref")
    head, _, name = reference.rpartition("/") if isinstance(reference, str) else ("", "", "")
    shared = root.get(head[2:]) if head in ("#/$defs", "#/definitions") else None
    return shared.get(name, schema) if isinstance(shared, dict) else schema


def named_tool(name: str, tools: Sequence[ToolSpec]) -> ToolSpec | None:
    """Return the tool that a call names, in any spelling that `match_name` accepts; None: no such tool."""
    found = match_name(name, [tool.name for tool in tools])
    return next((tool for tool in tools if tool.name == found), None)


def match_name(name: str, names: Sequence[str]) -> str | None:
    """Return the item of `names` that a model means by a name; None: no item.

    The model's name may differ in letter case, have a prefix (`functions.`), and end in a number (`:0`) or a special
    token.
    """
    if name in names:
        return name
    plain = name.partition("<|")[0].strip(" \t\n\"'`")
    head, colon, number = plain.rpartition(":")
    plain = head if colon and number.isdecimal() else plain
    namespace, dot, rest = plain.partition(".")
    return _only_alike(rest if dot and namespace.casefold() in NAMESPACES else plain, names)


def mend_json(text: str) -> str | None:
    """Return a text with its JSON5 objects and lists replaced by JSON.

    The result is None if the text has no such objects or lists, if one has other errors, or if the text is too long.

    JSON5 has comments, trailing commas, single quotes, and names without quotes. Python's literals, typographic
    quotation marks and full-width punctuation are read, too. A backslash that escapes nothing stays, as in a path.
    Other errors, such as a missing value, a quote within a text, or a missing end, are not corrected: a correction
    would be a guess.
    """
    if len(text) > MAX_MENDED:
        return None
    text = without_controls(text)
    parts, at = [], 0
    try:
        for start, end in broken_json(text):
            parts += [text[at:start], _read_json5(text[start:end])]
            at = end
    except (ReplyInvalid, ValueError):
        return None
    return "".join([*parts, text[at:]]) if parts else None


_ESCAPE = re.compile(r"\\(?:[\"\\/bfnrt'\n]|u[0-9a-fA-F]{4})|\\")
_OUTSIDE = re.compile(r"\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+'|“[^”\"]*+”|[：，]|[A-Za-z]++", re.DOTALL)
"""Matches texts in quotation marks, and the punctuation and words outside of them that _PLAIN may replace."""
_PLAIN = {"：": ":", "，": ",", "True": "true", "False": "false", "None": "null"}


def _read_json5(text: str) -> str:
    """Return JSON for JSON5.

    Raises:
        ValueError: the text is not JSON5, or holds a number that JSON does not have, such as NaN.
    """
    import pyjson5  # imported late: needed only for text that is not valid JSON

    def plain(found: re.Match[str]) -> str:
        return f'"{found[0][1:-1]}"' if found[0][0] == "“" else _PLAIN.get(found[0], found[0])

    text = _ESCAPE.sub(lambda found: found[0] if len(found[0]) > 1 else "\\\\", text)
    for attempt in (text, _OUTSIDE.sub(plain, text)):
        try:
            value = pyjson5.decode(attempt, maxdepth=MAX_DEPTH)
        except pyjson5.Json5Exception as error:
            fault = str(error)[:200]
        else:
            return json.dumps(value, ensure_ascii=False, allow_nan=False)
    raise ValueError(fault)
