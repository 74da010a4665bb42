"""The forms by name; what reads one is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Literal, TypeAlias, cast

from mindstream.service.importing.items import Item, Tally
from mindstream.service.importing.reading import Source

Form: TypeAlias = Literal["mem0", "letta", "zep", "langmem", "chatgpt", "claude", "jsonl"]
Reader: TypeAlias = Callable[[Source, Tally], Iterator[Item]]
MODULES: Mapping[Form, str] = {
    "mem0": "mem0", "letta": "letta", "zep": "zep", "langmem": "langmem", "chatgpt": "chatgpt", "claude": "claude",
    "jsonl": "json_lines",
}  # fmt: skip


def reader(form: Form) -> Reader:
    """Return what reads a form."""
    return cast(Reader, import_module(f"mindstream.service.importing.{MODULES[form]}").read)
