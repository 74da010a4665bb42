"""Declare which fields of an event contain users' words. The erasure of words follows these declarations.

    class Thought(Event):
        slot: Name
        text: Quotes[str]

`Name` and `Names` are short for `NoWords[str]` and `NoWords[tuple[str, ...]]`. Numbers, booleans, `Literal`s and nested
models need no declaration: the fields of a nested model are checked by their own declarations. A text field without a
declaration is searched as if it were declared `Quotes`, and tests/log/test_declared.py fails with its name.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from enum import Enum
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel

T = TypeVar("T")


class Holds(Enum):
    """What a text field contains."""

    OWN = "the words of the record that was written with the row: they are erased with it, else unchanged"
    QUOTES = "words that may be of any user: those of an erased record are removed from them; JSON in a text is parsed"
    NO_WORDS = "none: ids, names of models and tools, kinds, digests"
    PERSON = "the name of a person, alone or after other words"
    RECORD = "the id of the record that the row is about: if that record is erased, the row loses all its words"


Own = Annotated[T, Holds.OWN]
Quotes = Annotated[T, Holds.QUOTES]
NoWords = Annotated[T, Holds.NO_WORDS]
Person = Annotated[T, Holds.PERSON]
RecordId = Annotated[T, Holds.RECORD]
Name = NoWords[str]
"""An id, a name, a kind or a digest."""
Names = NoWords[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Declared:
    """The declaration of a field. `model` is set if the field contains a model, which has its own declarations."""

    holds: frozenset[Holds] = frozenset()
    model: type[BaseModel] | None = None

    @property
    def is_searched(self) -> bool:
        """Whether the field itself is searched for erased words: it is declared `Quotes`, or it has no declaration and
        contains no model."""
        return Holds.QUOTES in self.holds or (not self.holds and self.model is None)


UNKNOWN = Declared()


@cache
def declared(shape: type[BaseModel]) -> Mapping[str, Declared]:
    """Return the declarations of a class by field name; numbers, booleans and `Literal`s count as `NO_WORDS`."""
    return {name: _declared(each.annotation, each.metadata) for name, each in shape.model_fields.items()}


def undeclared(shape: type[BaseModel]) -> Iterator[str]:
    """Yield the names of text fields without a declaration, also those of nested models."""
    for name, each in declared(shape).items():
        if each.model is not None:
            yield from (f"{name}.{inner}" for inner in undeclared(each.model))
        elif not each.holds:
            yield name


def _declared(annotation: Any, metadata: list[Any]) -> Declared:
    if holds := frozenset(each for each in metadata if isinstance(each, Holds)):
        return Declared(holds)
    parts = frozenset(_parts(annotation))
    models = [each for each in parts if isinstance(each, type) and issubclass(each, BaseModel)]
    if models:
        return Declared(model=models[0]) if len(models) == 1 and not parts - {*models, None} else UNKNOWN
    return UNKNOWN if parts else Declared(frozenset({Holds.NO_WORDS}))


def _parts(annotation: Any) -> Iterator[Any]:
    """Yield the types in an annotation that may contain texts, including models."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Literal or annotation in (int, float, bool, None, type(None), ...):
        return
    if origin is Annotated:
        yield from _parts(inner[0])
    elif origin in (tuple, list, dict, set, frozenset, Union, types.UnionType):
        for each in inner:
            yield from _parts(each)
    elif is_dataclass(annotation):
        for each in get_type_hints(annotation).values():
            yield from _parts(each)
    else:
        yield annotation
