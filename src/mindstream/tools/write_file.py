"""Tools with which an agent writes files into one folder of the user; they change only files that they have written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from pydantic import Field

from mindstream.chance import token
from mindstream.errors import ToolError
from mindstream.text.words import count_of
from mindstream.tools.tool import FunctionTool, Traits, tool

MAX_NAME, MAX_TEXT = 100, 1_000_000
"""Maximum bytes of a file's name, and characters of its text."""
MAX_SHOWN, MAX_FILES = 8_000, 200
"""Maximum characters of a file that one call returns, and number of files that are listed, newest first."""
NOT_OWN = "is from another source, or was changed since it was written"
WRITTEN = ".written.jsonl"
"""The log of the folder: a line for each file that a tool call wrote or deleted, with the key of this
call."""
DELETED = "deleted"
"""In a line of the log WRITTEN: the value in place of the file's hash if the file was deleted."""
Key = Annotated[str, Field(max_length=200)]


def write_file_tool(folder: Path | str) -> FunctionTool:
    """Make the tool `write_file`, which writes files into a folder; the folder is created if it is missing.

    A repeated call with the same `key`, name and text has no further effect. A file that this tool did not write, or
    that was changed afterwards or written by another life, is not replaced.
    """
    root = Path(folder).expanduser()

    def write_file(name: str, text: Annotated[str, Field(max_length=MAX_TEXT)], key: Key = "") -> str:
        """Write a text into a file of the folder for results; a file that this tool has written before is replaced."""
        path = find_path(root, name)
        written = read_written(root)
        digest = _digest(text.encode())
        if key and {"key": key, "name": name, "hash": digest} in written:
            return f"written already: {name}"
        if (is_there := path.exists()) and not is_own(
            path, [*written, {"key": key, "name": name, "hash": digest}], key
        ):
            raise ToolError(f"{name} {NOT_OWN}: choose another name")
        _replace(path, text)
        note_written(root, key, name, digest)
        how = "in place of the earlier one" if is_there else "a new file"
        return f"written: {name}, {how} ({count_of(len(text.split()), 'word')}, {count_of(len(text), 'character')})"

    return tool(write_file, Traits(changes=True, key="key"))


def find_path(root: Path, name: str) -> Path:
    """Return the path of a file in a folder; the folder is created if it is missing.

    Raises:
        ToolError: the name is not a plain file name, or the file is not a regular file.
    """
    plain = (
        name.isprintable() and not set(name) & set('/\\:*?"<>|') and not name.startswith(".") and name.strip() == name
    )
    if not plain or not 0 < len(name.encode()) <= MAX_NAME:
        raise ToolError(
            f"expected a plain file name such as brief.md, of at most {MAX_NAME} bytes, without folders, a dot in"
            f' front, spaces at the ends, control characters or \\ : * ? " < > |, found {name[:80]!r}'
        )
    root.mkdir(parents=True, exist_ok=True)
    path = root / name
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise ToolError(f"{name} is not a regular file: choose another name")
    return path


def read_written(root: Path) -> list[dict[str, str]]:
    """Return the entries of a folder's log of written files, oldest first; [] if it cannot be read. Damaged lines are
    skipped."""
    try:
        lines = (root / WRITTEN).read_text("utf-8").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        with suppress(ValueError):  # a line that was cut off by a crash
            found.append(json.loads(line))
    return [each for each in found if isinstance(each, dict)]


def is_own(path: Path, written: Sequence[Mapping[str, str]], key: str | None = None) -> bool:
    """Return whether a file is unchanged since `write_file` wrote it, according to the log.

    Args:
        key: the key of a call; only what the call's own life wrote counts. None: every life's files count.
    """
    about = [each for each in written if each.get("name") == path.name]
    if key is not None:
        about = [each for each in about if _life_of(each.get("key", "")) == _life_of(key)]
    return _digest(path.read_bytes()) in {each.get("hash") for each in about}


def _life_of(key: str) -> str:
    """Return the life that made an idempotency key; "" if no life made it.

    The key of a life is `NAME-TIME-CALL`; the name of its mind and the time when it began stand for the life.
    """
    life, _, call = key.rpartition("-")
    name, _, began = life.rpartition("-")
    return life if name and began.isdecimal() and call else ""


def note_written(root: Path, key: str, name: str, digest: str) -> None:
    """Add a line about a written or deleted file to the folder's list of such files (WRITTEN)."""
    with (root / WRITTEN).open("a", encoding="utf-8") as log:
        log.write(json.dumps({"key": key, "name": name, "hash": digest}, ensure_ascii=False) + "\n")


def _replace(path: Path, text: str) -> None:
    draft = path.with_name(f".writing-{token()}")
    try:
        with draft.open("x", encoding="utf-8") as file:
            file.write(text)
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise ToolError(f"{path.name} cannot be written: {error.strerror}") from None


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def written_file_tools(folder: Path | str) -> tuple[FunctionTool, ...]:
    """Make the tools `list_files`, `read_file` and `delete_file` for the folder into which `write_file` writes.

    A life offers them only while the folder has a file that `write_file` wrote. A file may quote third-party content,
    so its text is untrusted. Deleting a file needs approval.
    """
    root = Path(folder).expanduser()

    def list_files() -> str:
        """List the files that you wrote into the folder for results, the newest first."""
        there = list(_own_files(root))
        lines = [f"{path.name} ({count_of(path.stat().st_size, 'byte')})" for path in there[:MAX_FILES]]
        lines += [f"… and {len(there) - MAX_FILES} older ones"] * (len(there) > MAX_FILES)
        return "\n".join(lines) or "none of the files that you wrote is there"

    def read_file(name: str, start: Annotated[int, Field(ge=0)] = 0) -> str:
        """Read back a file that you wrote into the folder for results; `start`: from this character on."""
        text = _own_path(root, name).read_text("utf-8", errors="replace")
        shown, end = text[start : start + MAX_SHOWN], start + MAX_SHOWN
        return shown + (f"\n… (go on with start={end}; {len(text):,} characters in all)" if end < len(text) else "")

    def delete_file(name: str, key: Key = "") -> str:
        """Delete a file that you wrote into the folder for results."""
        if key and any((each.get("key"), each.get("name")) == (key, name) for each in read_written(root)):
            return f"deleted already: {name}"
        path = _own_path(root, name, key)
        try:
            path.unlink()
        except OSError as error:
            raise ToolError(f"{name} cannot be deleted: {error.strerror}") from None
        note_written(root, key, name, DELETED)
        return f"deleted: {name}"

    def is_ready() -> bool:
        return any(_own_files(root))

    return (
        tool(list_files, Traits(ready=is_ready)),
        tool(read_file, Traits(untrusted=True, ready=is_ready)),
        tool(delete_file, Traits(changes=True, key="key", ready=is_ready)),
    )


def _own_files(root: Path) -> Iterator[Path]:
    """Yield the files that `write_file` wrote and that are unchanged, the latest written first."""
    written = read_written(root)
    for name in dict.fromkeys(each.get("name", "") for each in reversed(written)):
        try:
            path = find_path(root, name)
        except ToolError:  # the line is not from `write_file`
            continue
        if path.exists() and is_own(path, written):
            yield path


def _own_path(root: Path, name: str, key: str | None = None) -> Path:
    path, written = find_path(root, name), read_written(root)
    if not path.exists():
        there = ", ".join(json.dumps(each.name, ensure_ascii=False) for each in _own_files(root)) or "none"
        raise ToolError(f"there is no file {name[:80]!r}; the files that you wrote are: {there[:500]}")
    if not is_own(path, written, key):
        raise ToolError(f"{name} {NOT_OWN}")
    return path
