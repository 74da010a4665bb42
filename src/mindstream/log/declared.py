"""Declarations of which fields of an event contain users' words; by these, words are erased.

    class Thought(Event):
        slot: NoWords[str]
        text: Quotes[str]

Numbers, booleans, `Literal`s and nested models need no declaration: a model's own fields are checked. A text field
without a declaration is searched as if it quoted; a test names it (tests/log/test_declared.py).
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
    """The content of a text field."""

    OWN = "the words of the record that the row wrote: they are erased with it, and otherwise unchanged"
    QUOTES = "words that may be of any user: those of an erased record are removed from them; JSON in a text is parsed"
    NO_WORDS = "none: ids, names of models and tools, kinds, digests"
    PERSON = "the name of a person, alone or after other words"
    RECORD = "the id of the record that the row is about: with it, the row loses all words"


Own = Annotated[T, Holds.OWN]
Quotes = Annotated[T, Holds.QUOTES]
NoWords = Annotated[T, Holds.NO_WORDS]
Person = Annotated[T, Holds.PERSON]
RecordId = Annotated[T, Holds.RECORD]


@dataclass(frozen=True, slots=True)
class Declared:
    """The declaration of a field; `model`: the class of its content, which has its own declarations."""

    holds: frozenset[Holds] = frozenset()
    model: type[BaseModel] | None = None

    @property
    def is_searched(self) -> bool:
        """Whether it is searched for erased words: it quotes, or has no declaration."""
        return Holds.QUOTES in self.holds or (not self.holds and self.model is None)


UNKNOWN = Declared()


@cache
def declared(shape: type[BaseModel]) -> Mapping[str, Declared]:
    """Return the declarations of a class; numbers and the like are `NO_WORDS`."""
    return {name: _declared(each.annotation, each.metadata) for name, each in shape.model_fields.items()}


def undeclared(shape: type[BaseModel]) -> Iterator[str]:
    """Yield the names of text fields without a declaration."""
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
