"""Files that `write_file` wrote: listed, read back, deleted; nothing that somebody else wrote, or changed since."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import Field

from mindstream.errors import ToolError
from mindstream.text.words import count_of
from mindstream.tools.tool import FunctionTool, tool
from mindstream.tools.traits import Traits
from mindstream.tools.write_file import DELETED, find_path, is_own, note_written, read_written

SHOWN = 8_000
"""So many characters of a file are given at once."""
MOST = 200
"""So many files are listed, the newest first."""


def written_file_tools(folder: Path | str) -> tuple[FunctionTool, ...]:
    """Make `list_files`, `read_file` and `delete_file` over the folder of `write_file`.

    They are shown where something was written. What is read back may quote strangers; to delete is a change.
    """
    root = Path(folder).expanduser()

    def list_files() -> str:
        """List the files that you wrote into the folder for results, the newest first."""
        there = list(_own_files(root))
        lines = [f"{path.name} ({count_of(path.stat().st_size, 'byte')})" for path in there[:MOST]]
        lines += [f"… and {len(there) - MOST} older ones"] * (len(there) > MOST)
        return "\n".join(lines) or "none of the files that you wrote is there"

    def read_file(name: str, start: Annotated[int, Field(ge=0)] = 0) -> str:
        """Read back a file that you wrote into the folder for results; `start`: from this character on."""
        text = _own_path(root, name).read_text("utf-8", errors="replace")
        shown, end = text[start : start + SHOWN], start + SHOWN
        return shown + (f"\n… (go on with start={end}; {len(text):,} characters in all)" if end < len(text) else "")

    def delete_file(name: str, key: Annotated[str, Field(max_length=200)] = "") -> str:
        """Delete a file that you wrote into the folder for results."""
        if key and any((each.get("key"), each.get("name")) == (key, name) for each in read_written(root)):
            return f"deleted already: {name}"
        path = _own_path(root, name)
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
        tool(read_file, Traits(foreign=True, ready=is_ready)),
        tool(delete_file, Traits(changes=True, key="key", ready=is_ready)),
    )


def _own_files(root: Path) -> Iterator[Path]:
    """Yield what was written and is there unchanged, the newest first."""
    written = read_written(root)
    for name in dict.fromkeys(each.get("name", "") for each in reversed(written)):
        try:
            path = find_path(root, name)
        except ToolError:  # a line that somebody else wrote
            continue
        if path.exists() and is_own(path, written):
            yield path


def _own_path(root: Path, name: str) -> Path:
    path, written = find_path(root, name), read_written(root)
    if not path.exists():
        there = ", ".join(json.dumps(each.name, ensure_ascii=False) for each in _own_files(root)) or "none"
        raise ToolError(f"there is no file {name[:80]!r}; those that you wrote: {there[:500]}")
    if not is_own(path, written):
        raise ToolError(f"{name} was written or changed by somebody else")
    return path
