"""What is in records' data, and their slots: for each value of each entry, the records that have it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from mindstream.memory.store.record import Record
from mindstream.text.lexical import Postings

LONGEST = 100
"""Longer texts, and what holds values of its own, are compared in the store."""
IS, IS_SOMETHING, IS_LARGE = "\0=", "\0+", "\0#"


class Fields:
    """For each value of each entry, the positions of the records that have it; positions only grow."""

    def __init__(self) -> None:
        self.postings = Postings()

    def add(self, at: int, record: Record) -> None:
        """Take in a record."""
        for key in keys(record):
            self.postings.add(key, at)

    def having(self, name: str, value: JsonValue, count: int) -> NDArray[np.bool_]:
        """Mark which of so many records have a plain value there; None: or nothing at all."""
        mask = np.zeros(count, np.bool_)
        mask[self.postings.of(name + IS_SOMETHING if value is None else _key(name, value))] = True
        return ~mask if value is None else mask

    def rows(self, name: str, value: str) -> list[int] | None:
        """Return the positions of the records that have this text there; None: it is too long to be looked up."""
        return self.postings.of(_key(name, value)).tolist() if is_plain(value) else None

    def large(self, name: str) -> list[int]:
        """Return the positions of the records whose value there has to be compared in the store."""
        return [int(at) for at in self.postings.of(name + IS_LARGE)]


def keys(record: Record) -> Iterator[str]:
    """Yield the keys under which a record is found, each as often as it is added."""
    if record.data or record.slot is not None:
        for name, value in entries(record):
            if value is not None:
                yield _key(name, value) if is_plain(value) else name + IS_LARGE
                yield name + IS_SOMETHING


def entries(record: Record) -> Iterator[tuple[str, JsonValue]]:
    """Yield what `where` may ask for, besides who said it and in which episode."""
    if record.slot is not None:
        yield "slot", record.slot
    for name, value in record.data.items():
        if name != "slot":
            yield name, value


def is_plain(value: JsonValue) -> bool:
    """Tell whether a value is looked up in the columns."""
    return len(value) <= LONGEST if isinstance(value, str) else not isinstance(value, list | dict)


def _key(name: str, value: JsonValue) -> str:
    """Return what stands for a plain value: the same for 1, 1.0 and true, as they are equal."""
    if isinstance(value, str):
        return f"{name}{IS}s{value}"
    whole = int(value) if isinstance(value, int | float) and value == value // 1 else value
    return f"{name}{IS}{whole}"
