"""Read files with size limits, and write files completely or not at all; error messages begin with the path."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree

from pydantic import JsonValue

from mindstream.chance import token
from mindstream.errors import InputError, prefixed
from mindstream.json_values import JsonObject
from mindstream.paths import read_text, usable

MOST_BYTES = 256_000_000
DEEPEST = 50


def load_text(path: Path, most: int = MOST_BYTES) -> str:
    """Return the text of a file.

    Raises:
        InputError: the file cannot be read, or has more than `most` bytes; the message begins with the file's path.
    """
    with prefixed(f"{path}:"):
        return read_text(usable(path), most)


@contextmanager
def named_once(path: Path) -> Iterator[None]:
    """Put a path before the message of an InputError that does not begin with it."""
    try:
        yield
    except InputError as error:
        text = str(error)
        raise InputError(text if text.startswith(str(path)) else f"{path}: {text}") from None


def load_json(path: Path, most: int = MOST_BYTES) -> JsonValue:
    """Return the content of a JSON file.

    Raises:
        InputError: the file cannot be read, has more than `most` bytes, or is not JSON. The message has the path; for a
            syntax error, also line and column.
    """
    return parse_json(load_text(path, most), str(path))


def parse_json(text: str, where: str) -> JsonValue:
    """Parse JSON.

    Raises:
        InputError: the text is not JSON, is nested deeper than DEEPEST, or contains a number with too many digits or an
            unpaired surrogate. The message begins with `where`.
    """
    try:
        data: JsonValue = json.loads(text)
    except json.JSONDecodeError as error:
        cut = "; the file ends there and may be incomplete" if not text[error.pos :].strip() else ""
        raise InputError(f"{where}: line {error.lineno}, column {error.colno}: {error.msg}{cut}") from None
    except (RecursionError, ValueError):
        raise InputError(f"{where}: the JSON is nested too deeply, or a number has too many digits") from None
    _check_depth(data, where)
    if "\\u" in text and not _is_text(data):
        raise InputError(f"{where}: a text contains an unpaired surrogate (\\uD800 to \\uDFFF), which is no character")
    return data


def load_object(path: Path, most: int = MOST_BYTES) -> JsonObject:
    """Return the object in a JSON file.

    Raises:
        InputError: the file cannot be read, has more than `most` bytes, is not JSON, or is not an object.
    """
    return expect_object(load_json(path, most), str(path))


def expect_object(data: JsonValue, where: str) -> JsonObject:
    """Return data that must be a JSON object.

    Raises:
        InputError: the data are not an object; the message begins with `where`.
    """
    if not isinstance(data, dict):
        raise InputError(f"{where}: expected a JSON object, found {type(data).__name__}")
    return data


def make_new_folder(folder: Path) -> Path:
    """Create a folder; if it exists, it must be empty.

    Raises:
        InputError: the folder cannot be created, or is not empty.
    """
    folder = usable(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if next(folder.iterdir(), None) is not None:
            raise InputError(f"{folder} is not empty: name a new folder")
    except OSError as error:
        raise InputError(f"{folder} cannot be created: {error.strerror}") from None
    return folder


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder. It replaces `folder` when the block ends, and is removed after an error.

    Raises:
        InputError: the folder cannot be created or written, or is not empty.
    """
    was_there = usable(folder).exists()
    folder = make_new_folder(folder).resolve()
    beside = folder.with_name(f".{folder.name}.{token()}")
    try:
        yield make_new_folder(beside)
        beside.rename(folder)
    except BaseException as error:
        rmtree(beside, ignore_errors=True)
        if not was_there:
            folder.rmdir()
        if isinstance(error, OSError):
            raise InputError(f"{folder} cannot be written: {error.strerror}") from None
        raise


def write_text(path: Path, text: str) -> None:
    """Write a new text file, and create its folder if needed.

    Raises:
        InputError: the file exists, or cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8", newline="") as file:
            file.write(text)
    except FileExistsError as error:  # the file exists, or a file is in the place of its folder
        raise InputError(f"{error.filename} exists already: name another file, or remove it") from None
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from None


def _is_text(data: JsonValue) -> bool:
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_depth(data: JsonValue, where: str) -> None:
    layer: list[JsonValue] = [data]
    for _ in range(DEEPEST):
        layer = [
            child
            for each in layer
            if isinstance(each, dict | list)
            for child in (each.values() if isinstance(each, dict) else each)
            if isinstance(child, dict | list)
        ]
        if not layer:
            return
    raise InputError(f"{where}: the JSON is nested deeper than {DEEPEST} levels")
