"""Read a file of another program object by object: JSON, JSON Lines, or a ZIP archive of such files.

At most one object is in memory at a time. Objects and files over a maximum size are refused.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from itertools import chain, islice
from typing import IO, Any, Literal, TypeAlias, cast, get_args

from mindstream.encodings import BOMS, decode_clear, decode_utf
from mindstream.errors import InputError
from mindstream.service.importing.items import Item, Tally, shown

MAX_OBJECT, MAX_FILE = 64 << 20, 8 << 30
"""Maximum size of an object, and of a whole file, in bytes."""
MAX_MEMBERS = 100_000
"""Maximum number of files in an archive."""
HOW = {"use_float": True, "multiple_values": True, "buf_size": 1 << 20}
"""Options of ijson. The chunks are large, because ijson copies a long string again with each chunk."""
_INEXACT = json.JSONDecoder(strict=False, parse_constant=lambda _: None)
BOM, ZIP, GZIP = b"\xef\xbb\xbf", b"PK\x03\x04", b"\x1f\x8b"
PADDING = b"\x00\x1e \t\r\n"
"""Bytes that are stripped from both ends of a line: zeros after a crash, record separators (RFC 7464), white space. A
comma at the end is stripped, too."""
RATIO, SMALL = 200, 16 << 20
"""A file in an archive is refused if its unpacked size is more than SMALL bytes and more than RATIO times the packed
size."""


@dataclass(slots=True)
class _Counted:
    """A file with a maximum number of bytes per object and in total (MAX_FILE).

    Attributes:
        longest: maximum number of bytes per object.
        since: number of bytes since the previous object; the caller sets it to 0 after each object.
    """

    file: IO[bytes]
    longest: int = MAX_OBJECT
    since: int = 0
    read_so_far: int = 0
    chunk: bytes = b""

    def read(self, size: int = -1) -> bytes:
        chunk = self.file.read(size)
        self.since += len(chunk)
        self.chunk = chunk or self.chunk
        self.read_so_far += len(chunk)
        if self.since > self.longest:
            raise InputError(f"an object in the file is larger than the maximum of {self.longest >> 20} MB")
        if self.read_so_far > MAX_FILE:
            raise InputError(f"the file is larger than {MAX_FILE >> 30} GB: import it in parts")
        return chunk


@dataclass(slots=True)
class _Recoded:
    """Reads a UTF-16 or UTF-32 text as UTF-8."""

    text: io.TextIOWrapper

    def read(self, size: int = -1) -> bytes:
        return self.text.read(size).encode("utf-8", "replace")

    def readline(self, size: int = -1) -> bytes:
        return self.text.readline(size).encode("utf-8", "replace")

    def seek(self, at: int) -> int:
        return self.text.seek(at)


@dataclass(slots=True)
class Source:
    """A file to import; it can be read more than once. Methods that read it raise InputError if it cannot be read or
    parsed, or is too large.

    Attributes:
        name: the name of the file in messages.
    """

    name: str
    file: IO[bytes]

    def __post_init__(self) -> None:
        if self.file.read(len(GZIP)) == GZIP:
            self.file.seek(0)
            self.file = cast(IO[bytes], gzip.GzipFile(fileobj=self.file))
        self.file.seek(0)

    def members(self, wanted: Callable[[str], bool], tally: Tally) -> Iterator[Source]:
        """Yield the files of an archive whose names (without folders) are `wanted`.

        If this source is not an archive, yield the source itself. Other files of the archive are counted in `tally`.

        Raises:
            InputError: the archive is damaged, has too many files, or has no file that is `wanted`; or a file unpacks
                to a size that text cannot have.
        """
        self.file.seek(0)
        if self.file.read(len(ZIP)) != ZIP:
            yield self
            return
        with self._explained(), zipfile.ZipFile(self.file) as archive:
            files = sorted((each for each in archive.infolist() if not each.is_dir()), key=lambda each: each.filename)
            if len(files) > MAX_MEMBERS:
                raise InputError(f"the archive contains {len(files):,} files; the maximum is {MAX_MEMBERS:,}")
            found = [
                each for each in files if not each.filename.startswith("__MACOSX/") and wanted(_last(each.filename))
            ]
            if not found:
                names = [each.filename for each in files]
                inner = "; unpack it, and import the archive that it contains" * any(
                    _last(each).endswith(".zip") for each in names
                )
                raise InputError(f"the archive has none of the expected files, only {shown(', '.join(names))}{inner}")
            for each in files:
                if each not in found:
                    tally.lose("files of the archive", each.filename, "only conversations are read")
                elif each.file_size > max(SMALL, RATIO * each.compress_size):
                    times = each.file_size // max(each.compress_size, 1)
                    raise InputError(
                        f"{each.filename} unpacks to {each.file_size >> 20:,} MB, {times:,} times its size in the"
                        " archive; text does not shrink so much: unpack and inspect it before you import it"
                    )
            for each in found:
                with archive.open(each) as member:
                    yield Source(f"{self.name}/{each.filename}", member)

    def text(self) -> str:
        """Return the whole file as text; its encoding may be any that can be detected with certainty.

        Raises:
            InputError: the file cannot be read, is too large or empty, or is no text.
        """
        with self._explained():
            self.file.seek(0)
            data = self.file.read(MAX_OBJECT + 1)
            if len(data) > MAX_OBJECT:
                raise InputError(f"the file is larger than {MAX_OBJECT >> 20} MB: import it in parts")
            if not data.strip():
                raise InputError(f"{self.name} is empty")
            try:
                return decode_clear(data).lstrip("\ufeff").replace("\0", "")
            except InputError as error:
                raise InputError(f"{self.name} {error}") from None

    def values(self, prefix: str, longest: int = MAX_OBJECT) -> Iterator[Any]:
        """Yield the values at a place in the JSON.

        Args:
            prefix: the place: "item" in a list, "results.item" in a list of an object, "" in JSON Lines.
            longest: maximum bytes of a value.
        """
        import ijson

        counted, count = self._start(longest), 0
        with self._explained(counted):
            try:
                for value in ijson.items(counted, prefix, **HOW):
                    yield value
                    count += 1
                    counted.since = 0
            except (ijson.JSONError, OverflowError):
                if (whole := self._read_inexact()) is None:
                    raise
                yield from islice(_within(whole, [*filter(None, prefix.split("."))]), count, None)

    def place(self, *lists: str) -> str:
        """Return the place of the objects in the file (see `values`).

        The file is a list, an object with one of `lists`, or JSON Lines. If an object has several of these lists, the
        first one that is not empty is used.

        Raises:
            InputError: the file cannot be read, is empty or a ZIP archive, or does not contain JSON objects.
        """
        import ijson

        counted = self._start(MAX_OBJECT)
        with self._explained(counted):
            try:
                return self._place(counted, lists)
            except (ijson.JSONError, OverflowError):
                if (whole := self._read_inexact()) is None:
                    raise
        first = next(iter(whole), None)
        if isinstance(first, list):
            return "item"
        full = (each for each in lists if next(_within(whole[:1], [*each.split("."), "item"]), None) is not None)
        return next((f"{each}.item" for each in full), "")

    def _place(self, counted: _Counted, lists: tuple[str, ...]) -> str:
        import ijson

        empty = last = ""
        for prefix, event, value in ijson.parse(counted, **HOW):
            if last and event != "end_array":
                return last
            empty, last = empty or last, ""
            if event == "start_array" and prefix in ("", *lists):
                last = f"{prefix}.item".lstrip(".")
            if event == "end_map" and not prefix:
                return empty
            if not prefix and event in ("string", "number", "boolean", "null"):
                raise InputError(f"expected JSON objects, found {shown(value)}")
        if empty:
            return empty
        raise InputError(f"{self.name} is empty")

    def _read_inexact(self) -> list[Any] | None:
        """Return the JSON values of a file that is not strict JSON: as Python and some other programs write it.

        Python writes NaN and Infinity (read as null) and integers of any length. Other programs write line breaks in
        strings. Return None if the file deviates in any other way, or is larger than MAX_OBJECT; the caller then
        reports the first error.
        """
        file = self._start(MAX_OBJECT).file
        data = file.read(MAX_OBJECT + 1)
        found: list[Any] = []
        try:
            text = decode_utf(data).strip() if len(data) <= MAX_OBJECT else ""
            at = 0
            while at < len(text):
                value, at = _INEXACT.raw_decode(text, at)
                found.append(value)
                at = next((at for at in range(at, len(text)) if not text[at].isspace()), len(text))
        except (ValueError, RecursionError, InputError):
            return None
        return found or None

    def is_lines(self) -> bool:
        """Return whether the file looks like JSON Lines.

        It does if its first line has content, is not only `{`, and does not begin with `[`.
        """
        with self._explained():
            first = self._start(MAX_OBJECT).file.readline(MAX_OBJECT).strip(PADDING)
        return not first.startswith(b"[") and first not in (b"{", b"")

    def lines(self) -> Iterator[tuple[int, Any]]:
        """Yield the number and the JSON value of each line; empty lines are skipped.

        Raises:
            InputError: a line is not JSON, or a line or the file is too large or cannot be read.
        """
        counted = self._start(MAX_OBJECT)
        number = 0
        with self._explained(counted):
            while line := counted.file.readline(MAX_OBJECT + 1):
                number += 1
                counted.read_so_far += len(line)
                if len(line) > MAX_OBJECT or counted.read_so_far > MAX_FILE:
                    raise InputError(
                        f"line {number}, at byte {counted.read_so_far:,}: the line or the file is too large: at most"
                        f" {MAX_OBJECT >> 20} MB a line and {MAX_FILE >> 30} GB a file are read"
                    )
                for each in line.split(b"\r"):  # a lone \r ends a line, too; within JSON it would be escaped
                    if bare := each.strip(PADDING).removesuffix(b","):
                        yield number, self._line(bare, number)

    def _line(self, line: bytes, number: int) -> Any:
        try:
            return _INEXACT.decode(decode_utf(line))
        except InputError as error:
            raise InputError(f"line {number} {error}") from None
        except (ValueError, RecursionError) as error:
            raise InputError(f"line {number} is not JSON ({error})") from None

    def _start(self, longest: int) -> _Counted:
        self.file.seek(0)
        start = self.file.read(len(ZIP))
        if start == ZIP:
            raise InputError(f"{self.name} is a ZIP archive: unpack it, and import the file that it contains")
        if codec := _wide(start):
            self.file.seek(0)
            self.file, start = cast(IO[bytes], _Recoded(io.TextIOWrapper(self.file, codec, newline="\n"))), b""
        self.file.seek(len(BOM) if start.startswith(BOM) else 0)
        return _Counted(self.file, longest)

    @contextlib.contextmanager
    def _explained(self, counted: _Counted | None = None) -> Iterator[None]:
        """Turn errors of parsing and reading into an InputError with the name of the file."""
        try:
            yield
        except InputError as error:
            message = str(error)
            raise InputError(message if message.startswith(self.name) else f"{self.name}: {message}") from None
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
            raise InputError(f"{self.name}: this archive cannot be read: {shown(str(error))}") from None
        except OSError as error:
            raise InputError(f"{self.name} cannot be read: {error.strerror or error}") from None
        except Exception as error:
            from ijson import JSONError

            if not isinstance(error, JSONError | ValueError | OverflowError):
                raise
            if counted and not counted.read_so_far:
                raise InputError(f"{self.name} is not JSON: the file is empty") from None
            said = error.args[0] if error.args else ""
            said = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
            message = shown(said.splitlines()[0]) if said else type(error).__name__
            if counted and "UTF8" in said:
                try:
                    decode_utf(counted.chunk)
                except InputError as error:
                    raise InputError(f"{self.name} {error}") from None
            near = f" in the first {counted.read_so_far:,} bytes" if counted else ""
            raise InputError(f"{self.name}: not JSON{near} ({message})") from None


def _within(values: list[Any], path: list[str]) -> Iterator[Any]:
    """Yield the values at a path within these values; the path has the parts of the `prefix` of `Source.values`."""
    for value in values:
        if not path:
            yield value
        elif path[0] == "item" and isinstance(value, list):
            yield from _within(value, path[1:])
        elif isinstance(value, dict) and path[0] in value:
            yield from _within([value[path[0]]], path[1:])


def _last(name: str) -> str:
    """Return the last part of a path in an archive; some programs separate the parts by backslashes."""
    return name.replace("\\", "/").rpartition("/")[2]


def _wide(start: bytes) -> str:
    """Return the encoding of JSON that begins with these four bytes; "" if it is neither UTF-16 nor UTF-32."""
    for mark, codec in BOMS:
        if start.startswith(mark) and codec.startswith("utf-") and mark != BOM:
            return codec
    zeros = "".join("0" if each == 0 else "x" for each in start)
    return {
        "x0x0": "utf-16-le",
        "0x0x": "utf-16-be",
        "x000": "utf-32-le",
        "000x": "utf-32-be",
    }.get(zeros, "")


Form: TypeAlias = Literal["mem0", "letta", "zep", "langmem", "chatgpt", "claude", "jsonl", "csv", "whatsapp"]
Reader: TypeAlias = Callable[[Source, Tally], Iterator[Item]]
FORMS: tuple[Form, ...] = get_args(Form)
ENDS: dict[Form, tuple[str, ...]] = {"csv": (".csv", ".tsv", ".txt"), "whatsapp": (".txt",)}
"""Endings of the names of files that are read from an archive, for formats that are not JSON."""


def reader(form: Form) -> Reader:
    """Return the reader of a format."""
    read = cast(Reader, import_module(f"mindstream.service.importing.{form}").read)
    if form in ("chatgpt", "claude"):  # these readers select the files of an archive themselves
        return read
    ends = ENDS.get(form, (".json", ".jsonl", ".ndjson", ".af"))
    return lambda source, tally: chain.from_iterable(
        read(each, tally) for each in source.members(lambda name: name.casefold().endswith(ends), tally)
    )
