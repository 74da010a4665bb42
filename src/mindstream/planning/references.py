"""References to the evidence of steps in the arguments of a plan, and their replacement by that evidence.

A reference is a JSON object, `{"$ref": "E1", "path": ["price", 0]}` (written `#E1` in text). It can be part of a text,
`{"$text": ["What is the capital of ", {"$ref": "E1"}, "?"]}`. Inserted evidence is never searched for references.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from pydantic import JsonValue

from mindstream.errors import InputError
from mindstream.json_values import JsonObject
from mindstream.models.reply import DECODER

STEP_ID = re.compile(r"E[1-9][0-9]{0,3}")
REF, PATH, TEXT = "$ref", "path", "$text"
SHOWN = 60
NESTED = (dict, list)
Keys: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference to the evidence of the step with the id `step`.

    If the evidence is JSON, `path` has the keys and indexes that lead to a part of it; (): the whole evidence.
    """

    step: str
    path: Keys = ()

    def as_json(self) -> JsonObject:
        path: JsonObject = {PATH: list(self.path)} if self.path else {}
        return {REF: self.step, **path}

    def __str__(self) -> str:
        keys = (f"[{key}]" if isinstance(key, int) else f".{key}" for key in self.path)
        return f"#{self.step}{''.join(keys)}"


@dataclass(frozen=True, slots=True)
class Text:
    """A text with references, as pieces in order. Adjacent pieces of text are joined, and empty ones are removed."""

    pieces: tuple[str | Reference, ...]

    def __post_init__(self) -> None:
        joined: list[str | Reference] = []
        for piece in self.pieces:
            if isinstance(piece, Reference):
                joined.append(piece)
            elif joined and isinstance(last := joined[-1], str):
                joined[-1] = last + piece
            elif piece:
                joined.append(piece)
        object.__setattr__(self, "pieces", tuple(joined))

    def as_json(self) -> JsonValue:
        """Return the text as JSON: a plain string if it has no reference, otherwise an object with its pieces."""
        if not any(isinstance(piece, Reference) for piece in self.pieces):
            return "".join(str(piece) for piece in self.pieces)
        return {TEXT: [piece if isinstance(piece, str) else piece.as_json() for piece in self.pieces]}

    def __str__(self) -> str:
        return "".join(str(piece) for piece in self.pieces)


def parse_part(value: JsonValue) -> Reference | Text | None:
    """Return the reference, or the text with references, that a JSON value represents; None if it is neither."""
    if not isinstance(value, dict) or not (REF in value or TEXT in value):
        return None
    if len(value) == 1 and isinstance(given := value.get(TEXT), list):
        pieces: list[str | Reference] = []
        for each in given:
            if (piece := each if isinstance(each, str) else _parse_reference(each)) is None:
                return None
            pieces.append(piece)
        return Text(tuple(pieces))
    return _parse_reference(value)


def _parse_reference(value: JsonValue) -> Reference | None:
    if not isinstance(value, dict) or not isinstance(step := value.get(REF), str) or not STEP_ID.fullmatch(step):
        return None
    if len(value) == 1:
        return Reference(step)
    path = value.get(PATH)
    if len(value) > 2 or not isinstance(path, list):
        return None
    keys = [key for key in path if isinstance(key, str) or (isinstance(key, int) and not isinstance(key, bool))]
    return Reference(step, tuple(keys)) if len(keys) == len(path) else None


def fill(
    value: JsonValue,
    part: Callable[[Reference | Text], JsonValue],
    text: Callable[[str], JsonValue] | None = None,
) -> JsonValue:
    """Return a copy of a JSON value in which `part` replaces each reference and each text with references.

    Other texts are replaced by the result of `text`, if it is given. The results are not searched for references.
    """
    if isinstance(value, dict):
        if (found := parse_part(value)) is not None:
            return part(found)
        return {
            key: fill(each, part, text) if text or isinstance(each, NESTED) else each for key, each in value.items()
        }
    if isinstance(value, list):
        return [fill(each, part, text) for each in value]
    return text(value) if text and isinstance(value, str) else value


def find_parts(value: JsonValue, at: Keys = ()) -> Iterator[tuple[Keys, Reference | Text | None]]:
    """Yield each reference and each text with references, with the keys and indexes that lead to it.

    For an object that has the key `$ref` or `$text` but is neither a reference nor such a text, yield None in its
    place.
    """
    if isinstance(value, dict):
        if REF in value or TEXT in value:
            yield at, (found := parse_part(value))
            if found is not None:
                return
        items: Iterator[tuple[str | int, JsonValue]] = iter(value.items())
    elif isinstance(value, list):
        items = enumerate(value)
    else:
        return
    for key, each in items:
        if isinstance(each, NESTED):
            yield from find_parts(each, (*at, key))


def bind(arguments: Mapping[str, JsonValue], evidence: Mapping[str, JsonValue]) -> JsonObject:
    """Return arguments with evidence in place of references; raises as `insert` does."""
    return {name: fill(value, lambda part: insert(part, evidence)) for name, value in arguments.items()}


def insert(part: Reference | Text, evidence: Mapping[str, JsonValue]) -> JsonValue:
    """Return the evidence for a reference, or a text with evidence in place of its references.

    A reference that is a whole value is replaced by the evidence itself. A reference inside a text is replaced by the
    evidence as text; if that has several lines, it is placed on lines of its own.

    Raises:
        InputError: a step has no evidence, or its evidence has no part at a path.
    """
    if isinstance(part, Reference):
        return _look_up(part, evidence)
    return "".join(piece if isinstance(piece, str) else _as_piece(_look_up(piece, evidence)) for piece in part.pieces)


def _as_piece(value: JsonValue) -> str:
    """Return evidence as a piece of a text; if it has several lines, it begins and ends with a line break."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"\n{text.strip()}\n" if "\n" in text.strip() else text


def _look_up(reference: Reference, evidence: Mapping[str, JsonValue]) -> JsonValue:
    if reference.step not in evidence:
        there = ", ".join(evidence) or "none"
        raise InputError(
            f"there is no evidence of #{reference.step} yet (so far: {there}); run #{reference.step} first"
        )
    value = evidence[reference.step]
    if reference.path and isinstance(value, str):
        value = _read_json(value, reference)
    for depth, key in enumerate(reference.path):
        try:
            value = _part(value, key)
        except LookupError:
            here = Reference(reference.step, reference.path[:depth])
            raise InputError(
                f"{reference} does not exist: {here} is {_describe_value(value)}; correct the path"
            ) from None
    return value


def _part(value: JsonValue, key: str | int) -> JsonValue:
    if isinstance(value, dict) and isinstance(key, str):
        return value[key]
    if isinstance(value, list) and isinstance(key, int):
        return value[key]
    raise KeyError(key)


def _read_json(text: str, reference: Reference) -> JsonValue:
    try:
        return DECODER.decode(text.strip())  # type: ignore[no-any-return]
    except (ValueError, RecursionError):
        raise InputError(
            f"{reference} has a path, but the evidence of #{reference.step} is not JSON: {text[:SHOWN]!r}; "
            f"remove the path, or let #{reference.step} return JSON"
        ) from None


def _describe_value(value: JsonValue) -> str:
    if isinstance(value, dict):
        return f"an object with {', '.join(map(repr, value))[:SHOWN] or 'nothing'}"
    return f"a list of {len(value)}" if isinstance(value, list) else json.dumps(value, ensure_ascii=False)[:SHOWN]
