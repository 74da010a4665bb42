"""Parse the input text of a planned call into the tool's arguments."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import pyjson5
from pydantic import JsonValue

from mindstream.errors import ReplyInvalid
from mindstream.models.fitting import named_tool
from mindstream.models.model import ToolSpec
from mindstream.models.reply import DECODER, MAX_DEPTH, check_depth
from mindstream.planning.plan import parse_part

Scan = Callable[[str], JsonValue]
"""Replaces the references in a text, written in the notation of one plan format."""
INPUT = "input"
"""Name of the only argument of an unknown tool."""
KEY = re.compile(r"\s*+[\"'`“]?(\w[\w-]{0,99})[\"'`”]?\s*+(?:=(?!=)|[:：＝])\s*+")
BARE = re.compile(r"(?<=[:\[,])(\s*+)([#＃]E\d{1,4}|\$\{?\d{1,4}\}?)(?=\s*+[,}\]])")
"""A reference in JSON that lacks its quotation marks."""
WORDS: dict[str, JsonValue] = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None}
ESCAPE, ESCAPED = re.compile(r"\\([\\\"'nt])"), {"n": "\n", "t": "\t"}
IN_THE_PAPER = {"google": "web_search", "wolframalpha": "wolfram", "searchsotu": "search_documents"}
"""Tool names of Xu 2023, with the names of our tools. (Wikipedia, LLM and Calculator differ in case only.)"""
OPENS, CLOSES, QUOTES = "([{", ")]}", "\"'"
PYTHON_PREFIXES = ("f", "F", "r", "R", "b", "u")
"""Letters before the quotation marks of texts in Python: f"{E1} * 2"."""
EMBRACING = {
    "“": "”",
    "„": "“”",
    "‘": "’",
    "「": "」",
    "『": "』",
    "«": "»",
    "《": "》",
    '"': '"',
    "'": "'",
    "`": "`",
    "＂": "＂",
}
"""Opening quotation marks, each with the marks that may close it."""
MOST_QUOTES = 3
"""Maximum number of equal quotation marks in a row, such as the three of a Markdown code block."""


def find_spec(name: str, tools: Sequence[ToolSpec]) -> ToolSpec | None:
    """Return the tool that a name in a plan means; None if none or several fit.

    In this order: the tool of exactly that name; one whose name differs only in case; the one for a name of the paper
    (IN_THE_PAPER); one whose name differs only in case, spaces, hyphens and underscores.
    """
    if exact := [spec for spec in tools if spec.name == name]:
        return exact[0]
    folded = name.casefold()
    alike = [spec for spec in tools if spec.name.casefold() == folded]
    alike = alike or [spec for spec in tools if spec.name == IN_THE_PAPER.get(folded)]
    return alike[0] if len(alike) == 1 else None if alike else named_tool(name, tools)


def unquoted(text: str) -> str:
    """Return a text without the quotation marks that enclose all of it, or unchanged if there are none.

    `"Harry Potter" author` and `"a" or "b"` are unchanged, because their first mark is closed before the end.
    """
    if text[:1] in PYTHON_PREFIXES and text[1:2] in QUOTES and (inner := unquoted(text[1:])) != text[1:]:
        return inner
    closing = EMBRACING.get(text[:1])
    if not closing:
        return text
    run = len(text) - len(text.lstrip(text[0])) if text[0] in closing else 1
    inner = text[run:-run]
    if not 1 <= run <= MOST_QUOTES or len(text) <= 2 * run or any(each not in closing for each in text[-run:]):
        return text
    marks = re.escape("".join({text[0], *closing}))
    if re.search(rf"(?<!\\)[{marks}](?<!\w.(?=\w))", inner):  # a mark between two letters is an apostrophe
        return text
    return ESCAPE.sub(lambda found: ESCAPED.get(found[1], found[1]), inner)


def properties(spec: ToolSpec | None) -> dict[str, Any]:
    """Return the schemas of a tool's arguments by name, in order."""
    found = spec.parameters.get("properties") if spec else None
    return found if isinstance(found, dict) else {}


def main_argument(spec: ToolSpec | None) -> str:
    """Return the name of the argument that an input without argument names belongs to.

    That is the only required argument of type string, otherwise the first argument.
    """
    known = properties(spec)
    required = spec.parameters.get("required") if spec else None
    texts = [
        name for name in known if isinstance(required, list) and name in required and "string" in _types(known[name])
    ]
    return texts[0] if len(texts) == 1 else next(iter(known), INPUT)


def read_input(text: str, spec: ToolSpec | None, scan: Scan) -> dict[str, JsonValue]:
    """Read the input in `Tool[…]`.

    The input is a JSON object; `name=value, …` with the tool's arguments; values in order, if the tool requires more
    than one; or a single value. Enclosing quotation marks are removed.
    """
    text = text.strip()
    known, main = properties(spec), main_argument(spec)
    inner = unquoted(text)
    if inner != text and not inner.lstrip().startswith("{"):
        return {main: scan(inner)}
    text = inner.strip()
    if not text:
        return {}
    if text.startswith("{") and isinstance(value := read_json(text), dict):
        return {main: value} if parse_part(value) else {name: scan_json(each, scan) for name, each in value.items()}
    if named := _read_named(text, known, scan) or _read_in_order(text, spec, scan):
        return named
    types = _types(known.get(main))
    if text[0] == "[" and isinstance(value := read_json(text), list) and len(value) == 1 and isinstance(value[0], str):
        return {main: scan(value[0]) if not types or "string" in types else scan_json(value, scan)}
    if text[0] == "[" and text[-1] == "]" and not set(text[1:-1]) & {"[", "]"} and read_json(text) is None:
        text = text[1:-1].strip()  # `Tool[[input]]`
    return {main: read_literal(text, scan) if types and "string" not in types else scan(text)}


def _read_named(text: str, known: dict[str, Any], scan: Scan) -> dict[str, JsonValue]:
    """Read `name=value, …`; a comma that no argument name follows is part of the value before it."""
    if not KEY.match(text):
        return {}
    parts: list[tuple[str, str]] = []
    for part in split_arguments(text, 0)[0]:
        key = KEY.match(part)
        if key and key[1] in known:
            parts.append((key[1], part[key.end() :]))
        elif parts:
            parts[-1] = parts[-1][0], f"{parts[-1][1]},{part}"
        else:
            return {}
    return {name: read_typed(value, known[name], scan) for name, value in parts}


def _read_in_order(text: str, spec: ToolSpec | None, scan: Scan) -> dict[str, JsonValue]:
    """Read `value, value, …` for a tool with several required arguments; return {} if the number does not fit."""
    known, required = properties(spec), spec.parameters.get("required") if spec else None
    if not isinstance(required, list) or len(required) < 2:
        return {}
    parts, end = split_arguments(text, 0)
    if not len(required) <= len(parts) <= len(known) or end < len(text):
        return {}
    given: dict[str, str] = {}
    for name, part in zip(known, parts, strict=False):
        key = KEY.match(part)
        given |= {key[1]: part[key.end() :]} if key and key[1] in known else {name: part}
    is_whole = len(given) == len(parts) and given.keys() >= {*required}
    return {name: read_typed(part, known[name], scan) for name, part in given.items()} if is_whole else {}


def read_typed(text: str, schema: Any, scan: Scan) -> JsonValue:
    """Read a value as a literal, or as text if the argument must be a string and the literal is none."""
    value = read_literal(text, scan)
    is_text = isinstance(value, str) or parse_part(value) is not None
    return value if is_text or _types(schema) != {"string"} else scan(text.strip())


def read_literal(text: str, scan: Scan) -> JsonValue:
    """Read a number, a quoted text, a list, an object, or a word such as `None`; anything else is plain text."""
    text = text.strip()
    if text in WORDS:
        return WORDS[text]
    if (inner := unquoted(text)) != text:
        return scan(inner)
    if text[:1] and text[:1] in QUOTES:
        inner = text[1:-1] if text[-1] == text[0] and len(text) > 1 else text[1:]
        return scan(ESCAPE.sub(lambda found: ESCAPED.get(found[1], found[1]), inner))
    if text[:1] in ("[", "{") or text[:1].isdecimal() or text[:1] == "-":
        value = read_json(text)
        return scan(text) if value is None else scan_json(value, scan)
    return scan(text)


def read_json(text: str) -> JsonValue:
    """Read JSON or JSON5, in which references may lack quotation marks; None if the text is neither."""
    for attempt in (text, BARE.sub(r'\1"\2"', text)):
        for decode in (DECODER.decode, _decode_json5):
            try:
                value: JsonValue = decode(attempt)
                check_depth([value])
            except (ValueError, RecursionError, ReplyInvalid):
                continue
            return value
    return None


def _decode_json5(text: str) -> JsonValue:
    try:
        value = pyjson5.decode(text, maxdepth=MAX_DEPTH)
    except pyjson5.Json5Exception as error:
        raise ValueError(str(error)[:200]) from None
    return DECODER.decode(json.dumps(value, allow_nan=False))  # type: ignore[no-any-return]


def scan_json(value: JsonValue, scan: Scan) -> JsonValue:
    """Return a JSON value with the references in its texts replaced by `scan`; values that are references stay."""
    if (part := parse_part(value)) is not None:
        return part.as_json()
    if isinstance(value, str):
        return scan(value)
    if isinstance(value, list):
        return [scan_json(each, scan) for each in value]
    return {key: scan_json(each, scan) for key, each in value.items()} if isinstance(value, dict) else value


def _types(schema: Any) -> set[str]:
    """Return the JSON types that a schema names, empty if it names none."""
    if not isinstance(schema, dict):
        return set()
    named = schema.get("type", [])
    inner = schema.get("anyOf")
    found = {named} if isinstance(named, str) else {each for each in named if isinstance(each, str)}
    return found.union(*map(_types, inner)) if isinstance(inner, list) else found


def split_arguments(text: str, start: int, stop: re.Pattern[str] | None = None) -> tuple[list[str], int]:
    """Split the arguments of a call at commas; return the parts and the position of their end.

    The end is the closing bracket, a match of `stop`, or the end of the text.

    A quotation ends before a comma, a colon, a closing bracket or the end of the text. Brackets, commas and matches of
    `stop` within a quotation are text.
    """
    parts: list[str] = []
    begin, at, depth = start, start, 0
    hopeless: set[str] = set()  # quotation marks that are never closed
    before = ","
    while at < len(text):
        char = text[at]
        if stop and stop.match(text, at):
            break
        if char in QUOTES and before in "([{,=:" and char not in hopeless:
            closing = _CLOSING[char].search(text, at + 1)
            if closing:
                at, before = closing.end(), char
                continue
            hopeless.add(char)
        if char in OPENS:
            depth += 1
        elif char in CLOSES and depth:
            depth -= 1
        elif char == ")":
            return _parts(parts, text[begin:at]), at
        elif char == "," and not depth:
            parts.append(text[begin:at])
            begin = at + 1
        before = before if char.isspace() else char
        at += 1
    return _parts(parts, text[begin:at]), at


_CLOSING = {
    quote: re.compile(rf"(?:\\.|[^\\{quote}]|{quote}(?!\s*(?:[,)\]}}:]|$)))*+{quote}", re.DOTALL) for quote in QUOTES
}


def _parts(parts: list[str], last: str) -> list[str]:
    return [*parts, last] if parts or last.strip() else []
