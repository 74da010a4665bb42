"""The forms by name, a module each; what reads one is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Literal, TypeAlias, cast, get_args

from mindstream.service.importing.items import Item, Tally
from mindstream.service.importing.reading import Source

Form: TypeAlias = Literal["mem0", "letta", "zep", "langmem", "chatgpt", "claude", "jsonl"]
Reader: TypeAlias = Callable[[Source, Tally], Iterator[Item]]
FORMS: tuple[Form, ...] = get_args(Form)


def reader(form: Form) -> Reader:
    """Return what reads a form."""
    return cast(Reader, import_module(f"mindstream.service.importing.{form}").read)
