"""Lines from a file or from standard input, and to them."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable
from pathlib import Path

from mindstream.errors import InputError


def named(file: Path | None) -> Path | None:
    """Return a file; None where it stands for standard input or output."""
    return None if file is None or str(file) == "-" else file


def source(file: Path | None) -> str:
    """Name a file to people."""
    return str(named(file) or "standard input")


def read_lines(file: Path | None) -> Iterable[bytes]:
    """Return the lines of a file, or of standard input.

    Raises:
        InputError: it cannot be read.
    """
    if (file := named(file)) is None:
        if sys.stdin.isatty():
            print("reading from the terminal; Ctrl-D ends it", file=sys.stderr)
        return sys.stdin.buffer.readlines()
    try:
        with file.open("rb") as lines:
            return lines.readlines()
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}") from None


def write_lines(file: Path | None, lines: Iterable[str]) -> Path | None:
    """Write lines to a file that only its owner can read, whole or not at all; without a file, to standard output.

    Returns the file.

    Raises:
        InputError: it cannot be written.
    """
    if (file := named(file)) is None:
        sys.stdout.writelines(f"{line}\n" for line in lines)
        return None
    part = file.with_name(f"{file.name}.part")
    try:
        with part.open("w", encoding="utf-8") as out:
            part.chmod(0o600)
            out.writelines(f"{line}\n" for line in lines)
        part.replace(file)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink()
        raise InputError(f"{file} cannot be written: {error.strerror}") from None
    return file
