"""Arguments of planned steps: JSON in which references to other steps' evidence may occur anywhere.

A reference is structure: `{"$ref": "E1", "path": ["price", 0]}`, or a piece of a text,
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
from mindstream.models.reply import DECODER

STEP_ID = re.compile(r"E[1-9][0-9]{0,3}")
REF, PATH, TEXT = "$ref", "path", "$text"
SHOWN = 60
Keys: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference to a step's evidence; the keys and indexes of `path` lead to a part of its JSON."""

    step: str
    path: Keys = ()

    def as_json(self) -> dict[str, JsonValue]:
        path: dict[str, JsonValue] = {PATH: list(self.path)} if self.path else {}
        return {REF: self.step, **path}

    def __str__(self) -> str:
        keys = (f"[{key}]" if isinstance(key, int) else f".{key}" for key in self.path)
        return f"#{self.step}{''.join(keys)}"


@dataclass(frozen=True, slots=True)
class Text:
    """A text with references; adjacent text pieces are joined, and none is empty."""

    pieces: tuple[str | Reference, ...]

    def __post_init__(self) -> None:
        joined: list[str | Reference] = []
        for piece in self.pieces:
            if isinstance(piece, str) and joined and isinstance(last := joined[-1], str):
                joined[-1] = last + piece
            elif piece != "":
                joined.append(piece)
        object.__setattr__(self, "pieces", tuple(joined))

    def as_json(self) -> JsonValue:
        """Return the pieces as JSON; a plain text if there is no reference."""
        if not any(isinstance(piece, Reference) for piece in self.pieces):
            return "".join(str(piece) for piece in self.pieces)
        return {TEXT: [piece if isinstance(piece, str) else piece.as_json() for piece in self.pieces]}

    def __str__(self) -> str:
        return "".join(str(piece) for piece in self.pieces)


def parse_part(value: JsonValue) -> Reference | Text | None:
    """Return the reference or text that a JSON value represents; None if it is neither."""
    if not isinstance(value, dict) or not (REF in value or TEXT in value):
        return None
    if len(value) == 1 and isinstance(given := value.get(TEXT), list):
        read = (each if isinstance(each, str) else _parse_reference(each) for each in given)
        pieces = tuple(piece for piece in read if piece is not None)
        return Text(pieces) if len(pieces) == len(given) else None
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


def fill(value: JsonValue, part: Callable[[Reference | Text], JsonValue]) -> JsonValue:
    """Return a copy with `part` applied to each reference and text; its results are not searched again."""
    if isinstance(value, dict):
        found = parse_part(value)
        if found is not None:
            return part(found)
        return {key: fill(each, part) if isinstance(each, dict | list) else each for key, each in value.items()}
    return [fill(each, part) for each in value] if isinstance(value, list) else value


def find_parts(value: JsonValue, at: Keys = ()) -> Iterator[tuple[Keys, Reference | Text]]:
    """Yield each reference and text with the keys and indexes that lead to it."""
    if not isinstance(value, dict | list):
        return
    if (found := parse_part(value)) is not None:
        yield at, found
    else:
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            if isinstance(each, dict | list):
                yield from find_parts(each, (*at, key))


def find_references(value: JsonValue) -> Iterator[Reference]:
    """Yield the references in a value, in their order."""
    for _, part in find_parts(value):
        yield from [part] if isinstance(part, Reference) else (p for p in part.pieces if isinstance(p, Reference))


def bind(arguments: Mapping[str, JsonValue], evidence: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return arguments with evidence in place of references.

    A reference by itself becomes the evidence unchanged; in a text it becomes text, on separate lines if it has
    several.

    Raises:
        InputError: a step has no evidence, or a path leads nowhere.
    """

    def found(part: Reference | Text) -> JsonValue:
        if isinstance(part, Reference):
            return _look_up(part, evidence)
        return "".join(
            piece if isinstance(piece, str) else _as_piece(_look_up(piece, evidence)) for piece in part.pieces
        )

    return {name: fill(value, found) for name, value in arguments.items()}


def _as_piece(value: JsonValue) -> str:
    """Return evidence as a piece of a text; if it has several lines, it gets lines of its own."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"\n{text.strip()}\n" if "\n" in text.strip() else text


def _look_up(reference: Reference, evidence: Mapping[str, JsonValue]) -> JsonValue:
    if reference.step not in evidence:
        there = ", ".join(evidence) or "none"
        raise InputError(f"#{reference.step} has found nothing yet, there is evidence of: {there}; run it first")
    value = evidence[reference.step]
    if reference.path and isinstance(value, str):
        value = _read_json(value, reference)
    for depth, key in enumerate(reference.path):
        try:
            value = _part(value, key)
        except LookupError:
            here = Reference(reference.step, reference.path[:depth])
            raise InputError(f"{reference} is not there: {here} is {_describe(value)}; correct the path") from None
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
            f"{reference} leads into JSON, and #{reference.step} found the text {text[:SHOWN]!r}; "
            f"take the path away, or let a step before it give JSON"
        ) from None


def _describe(value: JsonValue) -> str:
    if isinstance(value, dict):
        return f"an object with {', '.join(map(repr, value))[:SHOWN] or 'nothing'}"
    return f"a list of {len(value)}" if isinstance(value, list) else json.dumps(value, ensure_ascii=False)[:SHOWN]
