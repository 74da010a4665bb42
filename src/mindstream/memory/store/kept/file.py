"""A file of arrays: a header that says where each begins, sums to know damage by, and room behind each to grow into.

It is mapped, not read: pages come when they are looked at, and go when the machine needs them. What is written to a
mapped array stays in the process. A file is never changed: a new one takes its place.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import mmap
import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
MAGIC = b"MINDCOL1"
ROOM = 65_536
"""The header's bytes."""
PAGE = 4_096
AT_ONCE = 1 << 23
"""So many bytes are written, or summed, at once."""
SPARE = 8
"""Behind each array is room for an eighth more."""


class DamagedFileError(Exception):
    """A file is not what it should be; it is built anew."""


class Live(NamedTuple):
    """An array that goes on changing while it is written, and the rows that changed, as they were."""

    rows: Array
    before: Mapping[int, Array]


class ArrayFile:
    """A file that is mapped.

    Attributes:
        meta: what was said of the whole.
    """

    def __init__(self, path: Path) -> None:
        """Map a file.

        Raises:
            DamagedFileError: it is torn, or not of this form.
            OSError: it cannot be read.
        """
        with path.open("rb") as file:
            head = file.read(ROOM)
            size = os.fstat(file.fileno()).st_size
            try:
                length, total = int.from_bytes(head[8:12]), int.from_bytes(head[12:16])
                if head[:8] != MAGIC or zlib.crc32(head[16 : 16 + length]) != total:
                    raise DamagedFileError(f"{path} has no sound header")
                header = json.loads(head[16 : 16 + length])
                if size != header["size"]:
                    raise DamagedFileError(f"{path} is torn")
            except (ValueError, KeyError) as error:
                raise DamagedFileError(f"{path} has no sound header") from error
            self._mapped = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY)
            self._as_written = memoryview(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ))
        self.meta: dict[str, Any] = header["meta"]
        self._parts: dict[str, dict[str, Any]] = header["parts"]

    def check(self, which: Callable[[str], bool] = lambda _: True) -> None:
        """Sum those parts, as they stand in the file.

        Raises:
            DamagedFileError: bytes are not as they were written.
        """
        for name, part in self._parts.items():
            if which(name) and summed(self._as_written, part["at"], part["bytes"]) != part["sum"]:
                raise DamagedFileError(f"{name} is damaged")
        _drop_pages(self._as_written)

    def array(self, name: str, whole: bool = False) -> Array:
        """Return an array, `whole` with the room behind it; what is written to it stays in this process."""
        part = self._parts[name]
        shape, dtype = tuple(part["shape"]), np.dtype(part["dtype"])
        shape = (part["room"], *shape[1:]) if whole else shape
        flat = np.frombuffer(self._mapped, dtype, int(np.prod(shape)), part["at"])
        return flat.reshape(shape)

    def count(self, name: str) -> int:
        """Return how many rows an array has."""
        return int(self._parts[name]["shape"][0])


def writing(path: Path, meta: Mapping[str, Any], arrays: Mapping[str, Array | Live]) -> Iterator[Callable[[], object]]:
    """Write a file in steps, each to be called in whatever thread, one after the other; the last puts it in its place.

    It may be read by its owner alone. Broken off, nothing of it stays.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.new")
    with _alone(new) as file:
        parts, size = _laid_out(arrays)
        yield lambda: file.truncate(size)
        for each, part in parts.items():
            array = arrays[each]
            rows = np.ascontiguousarray(array.rows if isinstance(array, Live) else array)
            for start in range(0, len(rows), step := max(1, AT_ONCE // max(1, rows[:1].nbytes))):
                place = part["at"] + start * rows[:1].nbytes
                yield lambda place=place, some=rows[start : start + step]: _put(file, place, some)  # type: ignore[misc]
        for each, array in arrays.items():
            if isinstance(array, Live):
                for at, row in array.before.items():
                    if at < len(array.rows):
                        _put(file, parts[each]["at"] + at * row.nbytes, row)
        yield file.flush
        yield from _summing(file, parts)
        header = json.dumps({"meta": dict(meta), "parts": parts, "size": size}).encode()
        _put(file, 0, MAGIC + len(header).to_bytes(4) + zlib.crc32(header).to_bytes(4) + header)
        file.flush()
        new.replace(path)


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[Any]:
    """Open a file that nobody else writes meanwhile; what is left of it in the end is deleted.

    Raises:
        OSError: somebody does.
    """
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not _is_at(file, path):  # it has just been put in its place by whoever wrote it
            raise FileExistsError(f"{path} is being written")
        try:
            file.truncate(0)
            yield file
        finally:
            if _is_at(file, path):
                path.unlink()


def _is_at(file: Any, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except OSError:
        return False


def _laid_out(arrays: Mapping[str, Array | Live]) -> tuple[dict[str, dict[str, Any]], int]:
    parts, at = dict[str, dict[str, Any]](), ROOM
    for name, array in arrays.items():
        rows = array.rows if isinstance(array, Live) else array
        room = len(rows) + len(rows) // SPARE + 16
        parts[name] = {
            "dtype": rows.dtype.str,
            "shape": list(rows.shape),
            "room": room,
            "at": at,
            "bytes": rows.nbytes,
        }
        each = rows.dtype.itemsize * int(np.prod(rows.shape[1:]))
        at += (room * each + PAGE - 1) // PAGE * PAGE
    return parts, at


def _put(file: Any, place: int, what: Array | bytes) -> None:
    file.seek(place)
    file.write(what if isinstance(what, bytes) else np.ascontiguousarray(what).reshape(-1).view(np.uint8))


def _summing(file: Any, parts: dict[str, dict[str, Any]]) -> Iterator[Callable[[], None]]:
    view = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    for part in parts.values():
        yield lambda part=part: part.update(sum=summed(view, part["at"], part["bytes"]))  # type: ignore[misc]


def _drop_pages(view: memoryview) -> None:
    """Take the pages of a mapping that is only read out of this process's memory; they are read again when needed."""
    if hasattr(mmap, "MADV_DONTNEED"):
        view.obj.madvise(mmap.MADV_DONTNEED)  # type: ignore[attr-defined]


def summed(view: memoryview, at: int, length: int) -> int:
    """Return the sum of a stretch of bytes."""
    total = 0
    for start in range(at, at + length, AT_ONCE):
        total = zlib.crc32(view[start : min(start + AT_ONCE, at + length)], total)
    return total
