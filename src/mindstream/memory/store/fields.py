"""What `where` asks for: which records have an entry in their data, or a slot, without reading them again."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from mindstream.memory.store.record import Record

Positions = NDArray[np.int64]
LONGEST = 100
"""Longer texts, and what holds values of its own, are compared in the store."""


class Fields:
    """For each value of each entry, the positions of the records that have it; positions only grow."""

    def __init__(self) -> None:
        self._places: dict[str, dict[JsonValue, int | array[int]]] = {}
        self._large: dict[str, array[int]] = {}

    def add(self, at: int, record: Record) -> None:
        """Take in a record."""
        if record.data or record.slot is not None:
            for name, value in entries(record):
                if is_plain(value):
                    self._place(name, value, at)
                else:
                    self._large.setdefault(name, array("I")).append(at)

    def _place(self, name: str, value: JsonValue, at: int) -> None:
        places = self._places.setdefault(name, {})
        there = places.get(value)
        if there is None:
            places[value] = at
        elif isinstance(there, int):
            places[value] = array("I", (there, at))
        else:
            there.append(at)

    def having(self, name: str, value: JsonValue, count: int) -> NDArray[np.bool_]:
        """Mark which of so many records have a plain value there; None: or nothing at all."""
        if value is not None:
            return _mask(count, [self._places.get(name, {}).get(value, array("I"))])
        others = [places for each, places in self._places.get(name, {}).items() if each is not None]
        return ~_mask(count, [*others, self._large.get(name, array("I"))])

    def large(self, name: str) -> list[int]:
        """Return the positions of the records whose value there has to be compared in the store."""
        return list(self._large.get(name, ()))


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


def _mask(count: int, places: list[int | array[int]]) -> NDArray[np.bool_]:
    mask = np.zeros(count, np.bool_)
    for each in places:
        mask[each if isinstance(each, int) else np.frombuffer(each, np.uint32) if each else []] = True
    return mask
