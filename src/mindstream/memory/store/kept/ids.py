"""The ids of a stream's records, and where each stands: arrays of what was kept, and a dictionary of the rest."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import index
from typing import Any, SupportsIndex, overload

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class RecordIds(Sequence[str]):
    """The ids of a stream's records, in the order of writing.

    Attributes:
        position: where each stands that was not erased.
    """

    def __init__(self) -> None:
        self._kept: NDArray[np.bytes_] = np.empty(0, "S1")
        self._new: list[str] = []
        self.position = Positions()

    def __len__(self) -> int:
        return len(self._kept) + len(self._new)

    @overload
    def __getitem__(self, at: SupportsIndex) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: SupportsIndex | slice) -> str | list[str]:
        if isinstance(at, slice):
            return [self[each] for each in range(*at.indices(len(self)))]
        place, kept = index(at), len(self._kept)
        place += len(self) if place < 0 else 0
        return self._new[place - kept] if place >= kept else bytes(self._kept[place]).decode()

    def __iter__(self) -> Iterator[str]:
        yield from (bytes(id_).decode() for id_ in self._kept)
        yield from self._new

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RecordIds | list) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def append(self, id_: str) -> int:
        """Add an id; return where it stands."""
        at = self.position.new[id_] = len(self)
        self._new.append(id_)
        return at

    def among(self, ids: Sequence[str]) -> NDArray[np.bool_]:
        """Mark the records that have one of these ids."""
        mask = np.zeros(len(self), np.bool_)
        mask[[at for id_ in ids if (at := self.position.get(id_)) is not None]] = True
        return mask

    def without(self, rows: NDArray[np.int64]) -> RecordIds:
        """Return a copy without the ids at some places, in order."""
        fresh, count = RecordIds(), len(self._kept)
        kept_rows, gone = rows[rows < count], set((rows[rows >= count] - count).tolist())
        fresh._kept = fresh.position.kept = np.delete(self._kept, kept_rows)
        order = self.position.order[~np.isin(self.position.order, kept_rows)]
        fresh.position.order = (order - np.searchsorted(kept_rows, order)).astype(np.int32)
        fresh._new = [id_ for at, id_ in enumerate(self._new) if at not in gone]
        fresh.position.new = {id_: at for at, id_ in enumerate(fresh._new, len(fresh._kept))}
        return fresh

    def copying(self, count: int, found: dict[str, Array]) -> Callable[[], None]:
        """Return what gathers the first so many as arrays, in whatever thread."""
        kept, new = self._kept[:count], self._new[: max(0, count - len(self._kept))]

        def gather() -> None:
            ids = np.concatenate((kept, np.array([id_.encode() for id_ in new], "S"))) if new else kept
            found["ids"], found["order"] = ids, np.argsort(ids, kind="stable").astype(np.int32)

        return gather

    def adopt(self, arrays: Mapping[str, Array]) -> None:
        """Begin with what was copied."""
        self._kept = self.position.kept = arrays["ids"]
        self.position.order = arrays["order"]


class Positions:
    """Where records stand, by id."""

    def __init__(self) -> None:
        self.new: dict[str, int] = {}
        self.kept: NDArray[np.bytes_] = np.empty(0, "S1")
        self.order: NDArray[np.int32] = np.empty(0, np.int32)
        self._erased: set[str] = set()

    def get(self, id_: str) -> int | None:
        """Return where a record stands; None: nowhere."""
        at = self.new.get(id_)
        return self._kept_at(id_) if at is None and len(self.kept) else at

    def _kept_at(self, id_: str) -> int | None:
        wanted, kept, order = id_.encode("utf-8", "surrogatepass"), self.kept, self.order
        place = bisect_left(range(len(order)), wanted, key=lambda each: bytes(kept[order[each]]))
        if place == len(order) or kept[at := int(order[place])] != wanted or id_ in self._erased:
            return None
        return at

    def __contains__(self, id_: str) -> bool:
        return self.get(id_) is not None

    def __getitem__(self, id_: str) -> int:
        at = self.get(id_)
        if at is None:
            raise KeyError(id_)
        return at

    def erase(self, id_: str) -> int | None:
        """Know a record no more; return where it stood."""
        at = self.get(id_)
        if self.new.pop(id_, None) is None:
            self._erased.add(id_)
        return at
