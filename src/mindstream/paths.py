"""Check paths that users name, and read short text files with a size limit and without blocking."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from mindstream.encodings import decode_utf
from mindstream.errors import InputError

MAX_NAME_BYTES, MAX_PATH_BYTES = 255, 4095
"""Maximum number of bytes of a file name, and of a whole path, in common file systems."""


_MARKS = "\ufeff\u200b\u2060"
_VARIABLE = re.compile(r"\$\{?[A-Za-z_]\w*\}?(/|$)|%\w+%")


def variable(name: str) -> str:
    """Return the value of an environment variable; "" if it is unset or blank.

    White space, a byte order mark and one pair of quotation marks around the value are removed, because env files of
    Docker and systemd, and `set` of Windows, include them in the value.
    """
    text = os.environ.get(name, "").strip().strip(_MARKS).strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        text = text[1:-1].strip()
    return text


def usable(path: str | Path) -> Path:
    """Return a path with its `~` expanded.

    Raises:
        InputError: the text is not a valid path.
    """
    if not str(path).strip(" \t\r\n" + _MARKS):
        raise InputError("the name of a file or folder is expected, found an empty text")
    if _VARIABLE.match(str(path)):
        raise InputError(
            f"{str(path)!r} begins with a variable, and variables in paths are not replaced: write the full path"
        )
    if "\0" in str(path):
        raise InputError(f"{str(path)!r} cannot be a path: it contains a NUL character")
    try:
        path = Path(path).expanduser()
    except RuntimeError:
        raise InputError(
            f"{str(path)!r} begins with the home directory of an unknown user: write the full path"
        ) from None
    if len(os.fsencode(path)) > MAX_PATH_BYTES or any(len(os.fsencode(part)) > MAX_NAME_BYTES for part in path.parts):
        raise InputError(
            f"{str(path)[:60]!r}… is too long for a path: at most {MAX_PATH_BYTES:,} bytes, and {MAX_NAME_BYTES} in"
            " each name"
        )
    return path


def is_path(text: str) -> bool:
    """Return whether a text is a path, not a name. A path contains a slash, or is "." or ".."."""
    return text in (".", "..") or any(each in text for each in (os.sep, os.altsep) if each)


def as_path(path: Path) -> str:
    """Return a path as a text that `is_path` recognises. For Path("./mine"), str() returns "mine", so "./" is added
    again."""
    text = str(path)
    return text if is_path(text) else f"{os.curdir}{os.sep}{text}"


def is_odd(path: Path) -> bool:
    """Return whether a path exists and is neither a file nor a folder. Reading such a path, as a pipe, could block."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def home() -> Path | None:
    """Return the user's home directory; None if it is unknown."""
    try:
        return Path.home()
    except RuntimeError:
        return None


def own_folder(setting: str, usual: str) -> Path | None:
    """Return mindstream's folder for a purpose in the user's home, such as state or configuration.

    Args:
        setting: the environment variable that names the parent folder, by an absolute path.
        usual: the parent folder in the home directory, if the variable names none.

    Returns:
        The folder; None: the home directory is unknown.
    """
    named = Path(variable(setting))
    place = named if named.is_absolute() else (own / usual if (own := home()) else None)
    return place / "mindstream" if place else None


def read_text(path: Path, most: int) -> str:
    """Return the text of a file of at most `most` bytes.

    Raises:
        InputError: the file cannot be read (see `read_bytes`), or is not UTF-8, UTF-16 or UTF-32; the caller puts the
            file's name before the message.
    """
    return decode_utf(read_bytes(path, most))


def read_bytes(path: Path, most: int) -> bytes:
    """Return the content of a file of at most `most` bytes.

    Raises:
        InputError: the file cannot be read, is not a regular file (a pipe or device could block or never end), or is
            larger; the caller puts the file's name before the message.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise InputError("is not a regular file")
        with os.fdopen(descriptor, "rb") as file:
            content = file.read(most + 1)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise InputError(f"cannot be read: {error}") from None
    if len(content) > most:
        raise InputError(f"is too large: at most {most:,} bytes are read")
    return content


def write_text(file: Path, text: str) -> None:
    """Write a file, replacing it if it exists.

    Raises:
        InputError: the file cannot be written.
    """
    try:
        file.write_text(text, "utf-8")
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror}") from None
