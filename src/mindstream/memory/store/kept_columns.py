"""Columns of long streams in files next to the store, so that a process need not read all records when it starts.

A file contains arrays: a header with the position of each array, checksums, and free space after each array for new
rows. The file is mapped, not read: the operating system loads pages when they are used and drops them when memory is
scarce. Changes that a process makes to a mapped array stay in that process. A file is never changed, only replaced.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import mmap
import os
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from mindstream import file_locks
from mindstream.arrays import Array
from mindstream.identifiers import StreamKey
from mindstream.log import erasures
from mindstream.log.erasures import Erased, digest_of
from mindstream.log.sql import Sql
from mindstream.text.lexical import GrowingArray

if TYPE_CHECKING:
    from mindstream.memory.store.columns import Columns

Step: TypeAlias = Callable[[], object]
"""A step that an iterator yields. The caller runs it in any thread, and then asks the iterator for the next one."""
VERSION = 4
"""Version of the file's format and content; files of other versions are ignored."""
LARGEST = "vectors.sums"
"""The array whose checksum is verified in the background, because a caller would wait too long for it."""
POSTINGS = ("keywords", "fields.postings", "lexical.postings")
MAGIC = b"MINDCOL1"
ROOM = 65_536
"""Size of the header of a file of columns, in bytes."""
PAGE = 4_096
AT_ONCE = 1 << 23
"""Maximum number of bytes that are written in one step."""
SPARE = 8
"""Rows of an array per row of free space after it: the free space is an eighth of the array."""


class DamagedFileError(Exception):
    """A file is damaged or does not belong to this stream; the columns are rebuilt."""


class Live(NamedTuple):
    """An array whose rows may change while a file is written; `before` has the original content of changed rows."""

    rows: Array
    before: Mapping[int, Array]


class ArrayFile:
    """A file of arrays, mapped into memory.

    Attributes:
        meta: the description of its content.

    Raises:
        DamagedFileError: the file is truncated, or does not have this format.
        OSError: the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            head = file.read(ROOM)
            size = os.fstat(file.fileno()).st_size
            length, total = int.from_bytes(head[8:12]), int.from_bytes(head[12:16])
            try:
                header = json.loads(head[16 : 16 + length])
                is_sound = head[:8] == MAGIC and zlib.crc32(head[16 : 16 + length]) == total and size == header["size"]
            except (ValueError, KeyError, TypeError):
                is_sound = False
            if not is_sound:
                raise DamagedFileError(f"{path} has no sound header, or is truncated")
            self._mapped = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY)
            self._as_written = memoryview(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ))
        self.meta: dict[str, Any] = header["meta"]
        self._parts: dict[str, dict[str, Any]] = header["parts"]

    def check(self, which: Callable[[str], bool] = lambda _: True) -> None:
        """Verify the checksums of the arrays whose names `which` selects.

        Raises:
            DamagedFileError: an array has another checksum than when it was written.
        """
        for name, part in self._parts.items():
            if which(name) and summed(self._as_written, part["at"], part["bytes"]) != part["sum"]:
                raise DamagedFileError(f"{name} is damaged")
        if hasattr(mmap, "MADV_DONTNEED"):  # release the pages that the verification loaded
            self._as_written.obj.madvise(mmap.MADV_DONTNEED)  # type: ignore[attr-defined]

    def array(self, name: str, whole: bool = False) -> Array:
        """Return an array; `whole`: with the free space after it."""
        part = self._parts[name]
        shape, dtype = tuple(part["shape"]), np.dtype(part["dtype"])
        shape = (part["room"], *shape[1:]) if whole else shape
        return np.frombuffer(self._mapped, dtype, int(np.prod(shape)), part["at"]).reshape(shape)

    def count(self, name: str) -> int:
        """Return how many rows an array has."""
        return int(self._parts[name]["shape"][0])


def writing(path: Path, meta: Mapping[str, Any], arrays: Mapping[str, Array | Live]) -> Iterator[Step]:
    """Write a file in steps; at the end of the iteration it replaces the old file. Only its owner may read it.

    If the iteration is closed early, the unfinished file is deleted.

    Raises:
        OSError: the file cannot be written, or another process is writing it.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.new")
    with _locked(new) as file:
        parts, size = _laid_out(arrays)
        yield lambda: file.truncate(size)
        for name, part in parts.items():
            array = arrays[name]
            rows = np.ascontiguousarray(array.rows if isinstance(array, Live) else array)
            for start in range(0, len(rows), step := max(1, AT_ONCE // max(1, rows[:1].nbytes))):
                place = part["at"] + start * rows[:1].nbytes
                yield lambda place=place, some=rows[start : start + step]: _put(file, place, some)  # type: ignore[misc]
        for name, array in arrays.items():
            if isinstance(array, Live):
                for at, row in array.before.items():
                    if at < len(array.rows):
                        _put(file, parts[name]["at"] + at * row.nbytes, row)
        yield file.flush
        view = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        for part in parts.values():
            yield lambda part=part: part.update(sum=summed(view, part["at"], part["bytes"]))  # type: ignore[misc]
        header = json.dumps({"meta": dict(meta), "parts": parts, "size": size}).encode()
        _put(file, 0, MAGIC + len(header).to_bytes(4) + zlib.crc32(header).to_bytes(4) + header)
        file.flush()
        new.replace(path)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[Any]:
    """Open and lock a file for writing. At the end of the block, delete the file unless it was moved.

    Raises:
        OSError: the file cannot be opened, or another process is writing it.
    """
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
        file_locks.lock(file.fileno(), wait=False)
        if not _is_at(file, path):  # the process that wrote this file has just moved it
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
        shape = list(rows.shape)
        parts[name] = {"dtype": rows.dtype.str, "shape": shape, "room": room, "at": at, "bytes": rows.nbytes}
        each = rows.dtype.itemsize * int(np.prod(rows.shape[1:]))
        at += (room * each + PAGE - 1) // PAGE * PAGE
    return parts, at


def _put(file: Any, place: int, what: Array | bytes) -> None:
    file.seek(place)
    file.write(what if isinstance(what, bytes) else np.ascontiguousarray(what).reshape(-1).view(np.uint8))


def summed(view: memoryview, at: int, length: int) -> int:
    """Return a checksum of a range of bytes.

    It is the CRC-32 of the sums of the pages, followed by the bytes after the last whole page. It takes a fifth of the
    time of the CRC-32 of all bytes. It detects any change of one number, and exchanged pages.
    """
    rest = length % PAGE
    pages = np.frombuffer(view, np.uint64, (length - rest) // 8, at).reshape(-1, PAGE // 8).sum(axis=1)
    return zlib.crc32(view[at + length - rest : at + length], zlib.crc32(pages.data))


def path_of(folder: Path, stream: StreamKey, embedder: str) -> Path:
    """Return the path of the file with a stream's columns; the path contains digests instead of names."""
    return folder / f"{_digest(stream)}-{_digest(embedder)[:8]}.columns"


def delete_kept(folder: Path | None, stream: StreamKey | None = None) -> None:
    """Delete the kept columns of a stream (None: of all streams), and unfinished files."""
    if folder is None or not folder.is_dir():
        return
    patterns = (f"{_digest(stream)}-*.columns" if stream is not None else "*.columns", ".*.new")
    for path in [path for pattern in patterns for path in folder.glob(pattern)]:
        path.unlink(missing_ok=True)


def kept_beside(folder: Path | None) -> dict[Path, tuple[str, int]]:
    """Return the files with columns in this folder and in the folders next to it, which may be those of other tenants.

    For each file: its stream, and the number of the last erasure whose data the file no longer contains.
    """
    found: dict[Path, tuple[str, int]] = {}
    for path in folder.parent.glob("*/*.columns") if folder is not None else ():
        with contextlib.suppress(DamagedFileError, OSError, KeyError):
            meta = ArrayFile(path).meta
            found[path] = (meta["stream"], meta["erased"])
    return found


def _stale(kept: Mapping[Path, tuple[str, int]], salt: str, erased: Sequence[Erased]) -> set[Path]:
    """Return the files of streams in which something was erased after the file was written."""
    last = {each.digest: each.number for each in erased}
    return {path for path, (stream, upto) in kept.items() if last.get(digest_of(salt, stream), 0) > upto}


def outdated(folder: Path | None, connection: Sql) -> list[Path]:
    """Return the invalid files of a folder: files that contain erased data, are unfinished, or cannot be read."""
    if folder is None or not folder.is_dir():
        return []
    kept = {path: each for path, each in kept_beside(folder).items() if path.parent == folder}
    salt, erased = erasures.after(connection, min((upto for _, upto in kept.values()), default=0))
    sound = kept.keys() - _stale(kept, salt, erased)
    return sorted(path for path in folder.iterdir() if path not in sound)


def delete_erased(kept: Mapping[Path, tuple[str, int]], salt: str, erased: Sequence[Erased]) -> None:
    """Delete the files that contain data that was erased, by any process, after the file was written."""
    for path in _stale(kept, salt, erased):
        path.unlink(missing_ok=True)


def _digest(name: str) -> str:
    return hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _growing(columns: Columns) -> dict[str, GrowingArray[Any]]:
    """Return all growing arrays of columns, by name."""
    found = {
        prefix + name: each
        for prefix, holder in {"": columns, "lexical.": columns.lexical, "vectors.": columns.vectors}.items()
        for name, each in vars(holder).items()
        if isinstance(each, GrowingArray)
    }
    return found | {f"vectors.bits{word}": each for word, each in enumerate(columns.vectors.bits)}


def _postings(columns: Columns, name: str) -> Any:
    holder: Any = columns
    for each in name.split("."):
        holder = getattr(holder, each)
    return holder


def keeping(columns: Columns, path: Path, erased: int) -> Generator[Step]:
    """Write the current state of columns to a file, in steps; the columns may be used between two steps.

    Args:
        columns: must be complete (`Columns.complete`), with all changes of vectors applied.
        erased: the number of the last erasure whose data the columns no longer contain.
    """
    count, upto = len(columns), columns.upto
    live = columns.vectors.held_still()
    try:
        arrays: dict[str, Array | Live] = {
            name: each.values.copy() for name, each in _growing(columns).items() if name != LARGEST
        }
        arrays |= {f"vectors.{name}": each for name, each in columns.vectors.state().items()}
        words = {"names": list(columns.names), "episodes": list(columns.episodes), "speakers": columns.speakers.state()}
        arrays["words"] = np.frombuffer(json.dumps(words).encode(), np.uint8)
        meta = {
            "version": VERSION,
            "stream": columns.stream,
            "embedder": columns.embedder,
            "width": columns.width,
            "count": count,
            "upto": upto,
            "only_talk": columns.only_talk,
            "total": columns.lexical.total,
            "grouped": columns.lexical.grouped,
            "seen": columns.vectors.seen,
            "erased": erased,
        }
        ids: dict[str, Array] = {}
        yield columns.ids.copying(count, ids)
        arrays |= {f"ids.{name}": each for name, each in ids.items()}
        for name in POSTINGS:
            found: dict[str, Array] = {}
            yield from _postings(columns, name).copying(count << 4 if name.startswith("lexical") else count, found)
            arrays |= {f"{name}.{part}": each for part, each in found.items()}
        arrays[LARGEST] = live
        yield from writing(path, meta, arrays)
    finally:
        columns.vectors.let_go()


def verify(file: ArrayFile) -> None:
    """Verify the array that `load` does not verify (LARGEST).

    Raises:
        DamagedFileError: the array is damaged.
    """
    file.check(lambda name: name == LARGEST)


def load(path: Path, columns: Columns) -> ArrayFile:
    """Fill empty columns from a file; return the file, whose largest array must still be verified (`verify`).

    Raises:
        DamagedFileError: the file is damaged, or of another version, stream or embedder.
        OSError: the file cannot be read.
    """
    file = ArrayFile(path)
    meta = file.meta
    if [meta.get(name) for name in ("version", "stream", "embedder")] != [VERSION, columns.stream, columns.embedder]:
        raise DamagedFileError(f"{path} was written for another version, stream or embedder")
    if columns.width and meta["width"] != columns.width:
        raise DamagedFileError(f"{path} has vectors of another width")
    file.check(lambda name: name != LARGEST)
    columns.begin_with(meta["width"])
    for name, each in _growing(columns).items():
        each.adopt(file.array(name, whole=True), file.count(name))
    columns.ids.adopt({name: file.array(f"ids.{name}") for name in ("ids", "order")})
    columns.vectors.adopt({name: file.array(f"vectors.{name}") for name in ("mean", "alone_at", "alone")}, meta["seen"])
    for name in POSTINGS:
        parts = ("hashes", "starts", "numbers")
        _postings(columns, name).adopt({part: file.array(f"{name}.{part}") for part in parts})
    words = json.loads(bytes(file.array("words")))
    for name in words["names"]:
        columns.number(name)
    columns.episodes.update((name, number) for number, name in enumerate(words["episodes"]))
    columns.speakers.begin_with(words["speakers"])
    columns.upto, columns.only_talk = meta["upto"], meta["only_talk"]
    columns.lexical.total, columns.lexical.grouped = meta["total"], meta["grouped"]
    return file
