"""Columns as arrays in a file, and columns from such a file."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mindstream.log import erasures
from mindstream.log.erasures import Erased, digest_of
from mindstream.log.names import StreamKey
from mindstream.log.sql import Sql
from mindstream.memory.store.kept.file import ArrayFile, DamagedFileError, Live, writing
from mindstream.text.lexical import GrowingArray

if TYPE_CHECKING:
    from mindstream.memory.store.columns import Columns

Array = NDArray[Any]
VERSION = 2
"""Of the form, and of what words and numbers in it mean: another one is ignored."""
LARGEST = "vectors.sums"
"""The part that is summed behind, for it takes longer than anybody should wait."""
POSTINGS = ("keywords", "fields.postings", "lexical.postings")


def path_of(folder: Path, stream: StreamKey, embedder: str) -> Path:
    """Return where a stream's columns are kept; no name stands in it."""
    return folder / f"{_digest(stream)}-{_digest(embedder)[:8]}.columns"


def delete_kept(folder: Path | None, stream: StreamKey | None = None) -> None:
    """Delete what is kept of a stream, or of all of them, and what was being written."""
    if folder is None or not folder.is_dir():
        return
    patterns = (f"{_digest(stream)}-*.columns" if stream is not None else "*.columns", ".*.new")
    for path in [path for pattern in patterns for path in folder.glob(pattern)]:
        path.unlink(missing_ok=True)


def kept_beside(folder: Path | None) -> dict[Path, tuple[str, int]]:
    """Return the files that this machine keeps there and for other tenants: whose each is, and up to which erasure."""
    found: dict[Path, tuple[str, int]] = {}
    for path in folder.parent.glob("*/*.columns") if folder is not None else ():
        with contextlib.suppress(DamagedFileError, OSError, KeyError):
            meta = ArrayFile(path).meta
            found[path] = (meta["stream"], meta["erased"])
    return found


def outdated(folder: Path | None, connection: Sql) -> list[Path]:
    """Return the files of a folder of which something was erased after they were written, and what is half written."""
    if folder is None or not folder.is_dir():
        return []
    kept = {path: each for path, each in kept_beside(folder).items() if path.parent == folder}
    salt, erased = erasures.after(connection, min((upto for _, upto in kept.values()), default=0))
    last = {each.digest: each.number for each in erased}
    sound = {path for path, (stream, upto) in kept.items() if last.get(digest_of(salt, stream), 0) <= upto}
    return sorted(path for path in folder.iterdir() if path not in sound)


def delete_erased(kept: dict[Path, tuple[str, int]], salt: str, erased: Sequence[Erased]) -> None:
    """Delete those of which something was erased after they were written, by whatever process."""
    last = {each.digest: each.number for each in erased}
    for path, (stream, upto) in kept.items():
        if last.get(digest_of(salt, stream), 0) > upto:
            path.unlink(missing_ok=True)


def _digest(name: str) -> str:
    return hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _growing(columns: Columns) -> dict[str, GrowingArray[Any]]:
    """Return the arrays that grow, by name; those of one row a record, and others."""
    holders = {"": columns, "lexical.": columns.lexical, "vectors.": columns.vectors}
    found = {
        prefix + name: each
        for prefix, holder in holders.items()
        for name, each in vars(holder).items()
        if isinstance(each, GrowingArray)
    }
    return found | {f"vectors.bits{word}": each for word, each in enumerate(columns.vectors.bits)}


def keeping(columns: Columns, path: Path, erased: int) -> Generator[Callable[[], object]]:
    """Write columns to a file in steps, each to be called in whatever thread; the columns may be used between them.

    `erased`: the number of the last erasure that they know of.

    They are written as they are now, all caught up with the store and settled.
    """
    count, upto = len(columns), columns.upto
    live = columns.vectors.held_still()
    try:
        arrays: dict[str, Array | Live] = {
            name: each.values.copy() for name, each in _growing(columns).items() if name != LARGEST
        }
        arrays |= {f"vectors.{name}": each for name, each in columns.vectors.state().items()}
        arrays["words"] = _packed(
            {"names": list(columns.names), "episodes": list(columns.episodes), "speakers": columns.speakers.state()}
        )
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
    """Check what `load` does not.

    Raises:
        DamagedFileError: it is not as it was written.
    """
    file.check(lambda name: name == LARGEST)


def load(path: Path, columns: Columns) -> ArrayFile:
    """Let empty columns begin with what a file holds; return it, for its largest part is not checked yet.

    Raises:
        DamagedFileError: it is torn, of another form, or of another stream or embedder.
        OSError: it cannot be read.
    """
    file = ArrayFile(path)
    meta = file.meta
    if [meta.get(name) for name in ("version", "stream", "embedder")] != [VERSION, columns.stream, columns.embedder]:
        raise DamagedFileError(f"{path} holds something else")
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


def _postings(columns: Columns, name: str) -> Any:
    holder: Any = columns
    for each in name.split("."):
        holder = getattr(holder, each)
    return holder


def _packed(words: dict[str, Any]) -> Array:
    return np.frombuffer(json.dumps(words).encode(), np.uint8)
