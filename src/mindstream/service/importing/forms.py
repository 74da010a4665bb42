"""The forms by name, a module each; what reads one is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import chain
from typing import Literal, TypeAlias, cast, get_args

from mindstream.service.importing.items import Item, Tally
from mindstream.service.importing.reading import Source

Form: TypeAlias = Literal["mem0", "letta", "zep", "langmem", "chatgpt", "claude", "jsonl"]
Reader: TypeAlias = Callable[[Source, Tally], Iterator[Item]]
FORMS: tuple[Form, ...] = get_args(Form)


def reader(form: Form) -> Reader:
    """Return what reads a form."""
    read = cast(Reader, import_module(f"mindstream.service.importing.{form}").read)
    if form in ("chatgpt", "claude"):  # they choose among the files of an archive themselves
        return read
    return lambda source, tally: chain.from_iterable(read(each, tally) for each in source.members(_is_data, tally))


def _is_data(name: str) -> bool:
    return name.casefold().endswith((".json", ".jsonl", ".ndjson", ".af"))
