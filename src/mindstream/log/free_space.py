"""Overwrite the unused bytes of a database's pages, which may contain copies of deleted rows.

With `secure_delete` SQLite overwrites deleted rows. But when SQLite moves rows to another page, copies of them stay in
the old page, between the cell pointers and the cells: bytes that SQLite never reads. This module overwrites these bytes
directly in the file, while no process can write and the write-ahead log is empty. The first time it reads all pages.
Later it reads only the pages that were written since the last time; the write-ahead log lists these pages. If the log
has begun anew more than once in the meantime, it reads all pages again.

While a process has a file open through SQLite, other code of the process must not close another descriptor of the file:
that would release SQLite's locks on it (POSIX). So the descriptor used here stays open until all parts of the process
that use the database have closed it.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

Key = tuple[int, int]
CHUNK = 1 << 20
"""Number of bytes read at once."""
HEADER, FRAME = 32, 24
"""Number of bytes of the header of a write-ahead log, and of the header before each of its pages."""
INTERIOR, LEAVES = (2, 5), (10, 13)
"""First byte of a B-tree page of an index, and of a table. INTERIOR: interior pages. LEAVES: leaf pages. SQLite itself
overwrites all other kinds of pages when it frees them."""

_users: Counter[Key] = Counter()
_descriptors: dict[Key, int] = {}
_salts: dict[Key, int] = {}
"""By database: the salt of the write-ahead log that begins after the last `overwrite`."""
_changing = threading.Lock()


def use(path: Path) -> Key:
    """Count one more use of a database in this process; return the key for `leave`, which ends that use."""
    there = path.stat()
    with _changing:
        _users[there.st_dev, there.st_ino] += 1
    return there.st_dev, there.st_ino


def leave(key: Key) -> None:
    """End a use of a database, after all connections of that use were closed."""
    with _changing:
        _users[key] -= 1
        if _users[key] <= 0:
            del _users[key]
            _salts.pop(key, None)
            if (descriptor := _descriptors.pop(key, None)) is not None:
                os.close(descriptor)


@contextlib.contextmanager
def in_use(path: Path) -> Iterator[None]:
    """Count a use of a database by this process until the block ends; a file that does not exist is not counted."""
    key = use(path) if path.exists() else None
    try:
        yield
    finally:
        if key is not None:
            leave(key)


def changed_pages(path: Path) -> tuple[int | None, set[int] | None]:
    """Return the first salt of the write-ahead log, and the numbers of all pages written since the last `overwrite`.

    When the log is truncated, or after a checkpoint, it begins anew with a salt that is higher by 1. `_salts` holds
    the salt of the last `overwrite` plus 1. A log with this salt has begun anew only once since, and so contains all
    pages written since.
    No process deletes the log in between, because the caller keeps the database open.

    Returns:
        The salt; None: the log is empty. And the numbers; None: they are unknown, and any page may have been written.
    """
    there, pages, beside = path.stat(), set[int](), path.with_name(f"{path.name}-wal")
    if not beside.exists():
        return None, None
    with beside.open("rb", buffering=0) as log:  # SQLite holds no locks on this file, so closing drops none
        header = log.read(HEADER)
        if len(header) < HEADER:
            return None, None
        page_size, salt = int.from_bytes(header[8:12]), int.from_bytes(header[16:20])
        if _salts.get((there.st_dev, there.st_ino)) != salt:
            return salt, None
        at = HEADER
        while len(frame := os.pread(log.fileno(), FRAME, at)) == FRAME and frame[8:16] == header[16:24]:
            pages.add(int.from_bytes(frame[:4]))
            at += FRAME + page_size
    return salt, pages


def overwrite(path: Path, page_size: int, salt: int | None = None, pages: set[int] | None = None) -> int:
    """Overwrite the unused bytes of B-tree pages with zeros. Return the number of pages in which they were not all
    zero.

    The caller must have registered the database with `use`, must hold a lock that blocks all writers, and must have
    truncated the write-ahead log.

    Args:
        salt, pages: the result of `changed_pages` before the log was truncated, if no process wrote in between. Without
            `pages`, all pages are read.

    Raises:
        OSError: the file cannot be read or written.
    """
    there = path.stat()
    key = there.st_dev, there.st_ino
    with _changing:
        if key not in _descriptors:
            _descriptors[key] = os.open(path, os.O_RDWR | getattr(os, "O_CLOEXEC", 0))
    # `mmap` is not used: it duplicates the descriptor, and closing the duplicate drops the locks of the whole process
    descriptor, zeros, dirty, size = _descriptors[key], bytes(page_size), 0, there.st_size
    begins = [at for each in sorted(pages) if (at := (each - 1) * page_size) < size] if pages is not None else None
    for chunk, places in _chunks(descriptor, page_size, range(0, size, page_size) if begins is None else begins):
        for begin, end in _used_gaps(chunk, page_size, is_first=not places[0]):
            os.pwrite(descriptor, zeros[: end - begin], places[begin // page_size] + begin % page_size)
            dirty += 1
    if dirty:
        os.fsync(descriptor)
    with _changing:
        _salts.pop(key, None)
        if salt is not None:
            _salts[key] = (salt + 1) % (1 << 32)
    return dirty


def _chunks(descriptor: int, page_size: int, places: Sequence[int]) -> Iterator[tuple[bytes, Sequence[int]]]:
    """Read the pages that begin at the given byte offsets (`places`) of a file; yield several pages at once, with their
    offsets."""
    for start in range(0, len(places), at_once := CHUNK // page_size):
        some = places[start : start + at_once]
        if isinstance(some, range):
            yield os.pread(descriptor, len(some) * page_size, some[0]), some
        else:
            yield b"".join(os.pread(descriptor, page_size, each) for each in some), some


def _used_gaps(chunk: bytes, page_size: int, *, is_first: bool) -> list[tuple[int, int]]:
    """Return the beginning and end of the unused range of each page in a chunk, for the ranges that have a byte other
    than zero."""
    flat = np.frombuffer(chunk, np.uint8, len(chunk) // page_size * page_size)
    pages = flat.reshape(-1, page_size)
    header = pages[:, :8].astype(np.int64)
    if is_first and len(pages):
        header[0] = pages[0, 100:108]
    cells, content = header[:, 3] << 8 | header[:, 4], header[:, 5] << 8 | header[:, 6]
    content = np.where(content == 0, 65_536, content)
    interior = np.isin(header[:, 0], INTERIOR)
    begins = np.where(interior, 12, 8) + 2 * cells
    if is_first and len(pages):
        begins[0] += 100
    is_sound = (interior | np.isin(header[:, 0], LEAVES)) & (begins < content) & (content <= page_size)
    at = np.flatnonzero(is_sound)
    gaps = np.stack((at * page_size + begins[at], at * page_size + content[at]), axis=1)
    edges = gaps.reshape(-1)
    highest = np.maximum.reduceat(flat, edges[edges < len(flat)])[::2] if len(edges) else edges
    return [(int(begin), int(end)) for begin, end in gaps[highest > 0]]
