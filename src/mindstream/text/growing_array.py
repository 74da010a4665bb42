"""An array that grows at its end."""

from __future__ import annotations

from typing import Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

T = TypeVar("T", bound=np.generic)


class GrowingArray(Generic[T]):
    """Rows of one type; adding one costs the same however many there are."""

    def __init__(self, dtype: type[T], width: int | None = None) -> None:
        self._width = width
        self._rows: NDArray[T] = self._empty(16, dtype)
        self._count = 0

    def _empty(self, rows: int, dtype: DTypeLike) -> NDArray[T]:
        return np.zeros(rows if self._width is None else (rows, self._width), dtype)

    def __len__(self) -> int:
        return self._count

    def reserve(self, rows: int) -> None:
        """Make room for so many in all, so that growing does not copy what is there again and again."""
        if rows > len(self._rows):
            grown = self._empty(rows, self._rows.dtype)
            grown[: self._count] = self.values
            self._rows = grown

    def adopt(self, rows: NDArray[T], count: int) -> None:
        """Begin with the first rows of an array, and grow into the others."""
        self._rows, self._count = rows, count

    def append(self, row: ArrayLike) -> None:
        if self._count == len(self._rows):
            self.reserve(self._count + max(16, self._count // 4))
        self._rows[self._count] = row
        self._count += 1

    def without(self, rows: NDArray[np.int64]) -> GrowingArray[T]:
        """Return a copy without some rows."""
        fresh = GrowingArray(self._rows.dtype.type, self._width)
        fresh._rows, fresh._count = np.delete(self.values, rows, axis=0), self._count - len(rows)
        return fresh

    @property
    def values(self) -> NDArray[T]:
        """Return what is there: a view, not to be kept across an append."""
        return self._rows[: self._count]
