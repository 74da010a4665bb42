"""Files written into one folder that a person named: nothing outside of it, and nothing that somebody else wrote."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from pydantic import Field

from mindstream.chance import token
from mindstream.errors import ToolError
from mindstream.text.words import count_of
from mindstream.tools.tool import FunctionTool, tool
from mindstream.tools.traits import Traits

LONGEST_NAME = 100
LONGEST = 1_000_000
WRITTEN = ".written.jsonl"
"""What was written into the folder, and by which call: a line each."""
DELETED = "deleted"
"""What stands there for the content of a file that was deleted."""


def write_file_tool(folder: Path | str) -> FunctionTool:
    """Make the tool `write_file` over a folder, which is made where it is not there.

    A call with a `key`, made again, has its effect once. What somebody else wrote, or changed since, is not replaced.
    """
    root = Path(folder).expanduser()

    def write_file(
        name: str, text: Annotated[str, Field(max_length=LONGEST)], key: Annotated[str, Field(max_length=200)] = ""
    ) -> str:
        """Write a text into a file of the folder for results; a file that was written so before is replaced."""
        path = find_path(root, name)
        written = read_written(root)
        digest = _digest(text.encode())
        if key and any(
            (each.get("key"), each.get("name"), each.get("hash")) == (key, name, digest) for each in written
        ):
            return f"written already: {name}"
        if (is_there := path.exists()) and not is_own(path, [*written, {"name": name, "hash": digest}]):
            raise ToolError(f"{name} was written or changed by somebody else: choose another name")
        _replace(path, text)
        note_written(root, key, name, digest)
        how = "in place of the earlier one" if is_there else "a new file"
        return f"written: {name}, {how} ({count_of(len(text.split()), 'word')}, {count_of(len(text), 'character')})"

    return tool(write_file, Traits(changes=True, key="key"))


def find_path(root: Path, name: str) -> Path:
    """Return where a file of that name lies.

    Raises:
        ToolError: it is no plain name of a file, or something else lies there.
    """
    plain = (
        name.isprintable() and not set(name) & set('/\\:*?"<>|') and not name.startswith(".") and name.strip() == name
    )
    if not plain or not 0 < len(name.encode()) <= LONGEST_NAME:
        raise ToolError(f"{name[:80]!r} is no plain name of a file, like brief.md: no folders, no dot in front")
    root.mkdir(parents=True, exist_ok=True)
    path = root / name
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise ToolError(f"{name} is no regular file: choose another name")
    return path


def read_written(root: Path) -> list[dict[str, str]]:
    """Return what was done in a folder, the oldest first."""
    try:
        lines = (root / WRITTEN).read_text("utf-8").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        with suppress(ValueError):  # a line that a crash broke off
            found.append(json.loads(line))
    return [each for each in found if isinstance(each, dict)]


def is_own(path: Path, written: Sequence[Mapping[str, str]]) -> bool:
    """Tell whether a file is as it was written here."""
    return _digest(path.read_bytes()) in {each.get("hash") for each in written if each.get("name") == path.name}


def note_written(root: Path, key: str, name: str, digest: str) -> None:
    """Add a line on what was done to a file."""
    with (root / WRITTEN).open("a", encoding="utf-8") as log:
        log.write(json.dumps({"key": key, "name": name, "hash": digest}, ensure_ascii=False) + "\n")


def _replace(path: Path, text: str) -> None:
    beside = path.with_name(f".writing-{token()}")
    try:
        with beside.open("x", encoding="utf-8") as file:
            file.write(text)
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise ToolError(f"{path.name} cannot be written: {error.strerror}") from None


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()
