"""Reads and writes files, standard input and standard output line by line."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import select
import shutil
import stat
import sys
import tempfile
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO

from mindstream import chance
from mindstream.cli.shell.output import complain, escape_json
from mindstream.encodings import Decoded, decode_text
from mindstream.errors import InputError

MAX_LINE = 4 << 20
"""Maximum size of a line in bytes, so that a file without line breaks is not read as a whole. Lines of exports are far
shorter."""
CHUNK = 1 << 16
MAX_UTTERANCE = 8_000_000
"""Maximum number of bytes of an utterance that are read. It is far above the mind's limit, so the mind refuses an
utterance that was cut here."""


def real_file(file: Path | None) -> Path | None:
    """Return a file; None if it means standard input or output."""
    return None if file is None or str(file) == "-" else file


def source(file: Path | None) -> str:
    """Return the name of a file for messages."""
    return str(real_file(file) or "standard input")


def read_lines(file: Path | None) -> Iterator[bytes]:
    """Yield the lines of a regular file, or of standard input.

    Raises:
        InputError: the file cannot be read, is not a regular file, or has a line over MAX_LINE.
    """
    try:
        if real_file(file) is None:
            if sys.stdin.isatty():
                print("reading from the terminal; Ctrl-D ends the input", file=sys.stderr)
            yield from _lines(sys.stdin.buffer, source(file))
        elif file is not None:
            with _opened(file) as lines:
                yield from _lines(lines, source(file))
    except OSError as error:
        raise InputError(f"{source(file)} cannot be read: {error.strerror}") from None


def read_text(file: Path | None) -> str:
    """Return the text of a file, or of standard input, in any encoding; a detected encoding is reported.

    Raises:
        InputError: the file cannot be read, or is not text.
    """
    try:
        found = decode_text(b"".join(read_lines(file)))
    except InputError as error:
        message = str(error)
        raise InputError(message if source(file) in message else f"{source(file)} {message}") from None
    if found.note:
        complain(f"{source(file)}: {found.note}")
    return found.text


@contextlib.contextmanager
def open_bytes(file: Path | None) -> Iterator[IO[bytes]]:
    """Yield a regular file, or a copy of standard input, as a seekable binary file.

    Raises:
        InputError: the file cannot be read, or is not a regular file.
    """
    try:
        if real_file(file) is None or file is None:
            with tempfile.TemporaryFile() as copy:
                shutil.copyfileobj(sys.stdin.buffer, copy)
                copy.seek(0)
                yield copy
        else:
            with _opened(file) as opened:
                yield opened
    except OSError as error:
        raise InputError(f"{source(file)} cannot be read: {error.strerror}") from None


@contextlib.contextmanager
def open_writer(file: Path | None) -> Iterator[Callable[[str], None]]:
    """Yield a function that writes a line to a file that only its owner can read, or to standard output.

    The file gets its name when the block ends without an error. Only a regular file is replaced: a link, device or FIFO
    is refused. On a terminal, characters that would move its cursor are written as JSON escapes.

    Raises:
        InputError: the file cannot be written.
    """
    if real_file(file) is None or file is None:
        shown = escape_json if sys.stdout.isatty() else str
        yield lambda line: print(shown(line))
        return
    _check_replaceable(file)
    part = file.with_name(f".{chance.token()}.part")
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as out:
                yield lambda line: print(line, file=out)
                out.flush()
                os.fsync(out.fileno())
            _check_replaceable(file)  # it may have changed since the first check
            part.replace(file)
        except BaseException:
            with contextlib.suppress(OSError):
                part.unlink()
            raise
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror}") from None


def write_text(file: Path | None, text: str) -> None:
    """Write a text as `open_writer` does, with one line break at its end."""
    with open_writer(file) as write:
        write(text.rstrip("\n"))


async def write_lines(file: Path | None, lines: AsyncIterator[str]) -> int:
    """Write lines as they arrive (see `open_writer`); return their number."""
    count = 0
    with open_writer(file) as write:
        async for line in lines:
            write(line)
            count += 1
    return count


def _opened(file: Path) -> BinaryIO:
    """Open a regular file, without waiting for the writer of a FIFO.

    Raises:
        InputError: the path names something else, such as a folder or a FIFO.
    """
    descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise InputError(f"{file} is {_kind(file.stat().st_mode)}, not a file; `-` reads standard input")
    return os.fdopen(descriptor, "rb")


def _lines(file: BinaryIO, name: str) -> Iterator[bytes]:
    number = 0
    while line := file.readline(MAX_LINE + 1):
        number += 1
        if len(line) > MAX_LINE:
            raise InputError(
                f"{name}:{number}: a line may have at most {MAX_LINE >> 20} MB, and this one is longer; check that"
                " this is the right file"
            )
        yield line


def _check_replaceable(file: Path) -> None:
    try:
        mode = file.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        raise InputError(
            f"{file} is {_kind(mode)}, and only a regular file is replaced: name another file, or `-` for standard"
            " output"
        )


def _kind(mode: int) -> str:
    names = {stat.S_IFDIR: "a folder", stat.S_IFLNK: "a link", stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket"}
    return names.get(stat.S_IFMT(mode), "a device")


@dataclass(frozen=True, slots=True)
class InputLine:
    """A line that is not blank."""

    number: int
    text: str


class Lines:
    """Reads lines from a descriptor as they arrive, without blank lines.

    A line that is not UTF-8 is read in the detected encoding, which is reported once. Bytes in no known encoding become
    �.

    A chunk is read only when none of the lines already read is left. A daemon thread waits for each chunk; the wait
    does not delay the end of the process.
    """

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor
        self._ready: deque[InputLine] = deque()
        self._rest = bytearray()
        self._number = 0
        self._told = False
        self._ended = False

    async def next(self) -> InputLine | None:
        """Return the next line, or None at the end."""
        while not self._ready and not self._ended:
            self._take(await asyncio.wrap_future(self._chunk()))
        return self._ready.popleft() if self._ready else None

    def has_more(self) -> bool:
        """Return whether a line has already arrived, without waiting."""
        while not self._ready and not self._ended and select.select([self._descriptor], [], [], 0)[0]:
            self._take(os.read(self._descriptor, CHUNK))
        return bool(self._ready)

    def _chunk(self) -> Future[bytes]:
        future: Future[bytes] = Future()
        future.set_running_or_notify_cancel()  # so that it cannot be cancelled while the thread reads

        def read() -> None:
            try:
                select.select([self._descriptor], [], [])
                chunk = os.read(self._descriptor, CHUNK)
            except OSError:
                chunk = b""  # a closed terminal ends the input
            with contextlib.suppress(RuntimeError):  # the event loop may be closed
                future.set_result(chunk)

        threading.Thread(target=read, daemon=True).start()
        return future

    def _take(self, chunk: bytes) -> None:
        *whole, rest = chunk.split(b"\n")
        for part in whole:
            self._keep(part)
            self._line()
        self._keep(rest)
        if not chunk:
            self._ended = True
            self._line()

    def _keep(self, part: bytes) -> None:
        self._rest += part[: max(0, MAX_UTTERANCE - len(self._rest))]

    def _line(self) -> None:
        self._number += 1
        typed = bytes(self._rest).removeprefix(codecs.BOM_UTF8)
        try:
            found = Decoded(typed.decode("utf-8"), "UTF-8")
        except UnicodeDecodeError:
            try:
                found = decode_text(bytes(self._rest))
            except InputError:
                found = Decoded(typed.decode("utf-8", "replace"), "UTF-8")
        if found.note and not self._told:
            self._told = True
            complain(f"line {self._number} of the input is not UTF-8: {found.note}")
        text = found.text
        self._rest.clear()
        if text.strip():
            self._ready.append(InputLine(self._number, text))
