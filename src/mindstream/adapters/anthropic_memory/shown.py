"""How paths and files are written for a model, as the tool's documentation has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anthropic.lib.tools import ToolError

from mindstream.memory.store.record import Record

ROOT = "/memories"
DEEP, WIDTH = 2, 6


def checked_path(path: str) -> str:
    """Return a path without what means nothing in it.

    Raises:
        ToolError: it leaves the memory.
    """
    parts = [part for part in path.split("/") if part]
    if not path.startswith("/") or parts[:1] != [ROOT[1:]] or {".", ".."} & {*parts} or not path.isprintable():
        raise ToolError(f"Path must start with {ROOT} and stay within it, got: {path}")
    return "/" + "/".join(parts)


def below(path: str, files: Mapping[str, Record]) -> dict[str, Record]:
    return {other: record for other, record in files.items() if other.startswith(f"{path}/")}


def content_of(record: Record) -> str:
    return str(record.data["content"])


def places(content: str, old: str) -> list[int]:
    """Return where a text stands in another one."""
    found, at = list[int](), content.find(old)
    while at >= 0:
        found.append(at)
        at = content.find(old, at + 1)
    return found


def numbered(path: str, content: str, view_range: Sequence[int] | None = None) -> str:
    """Show a file with the numbers of its lines, or those from one to another (-1: the last)."""
    lines = content.split("\n")
    first, last = view_range if view_range and len(view_range) == 2 else (1, -1)
    first = max(1, first)
    shown = lines[first - 1 : len(lines) if last == -1 else last]
    rows = [f"{number:>{WIDTH}}\t{line}" for number, line in enumerate(shown, first)]
    return "\n".join([f"Here's the content of {path} with line numbers:", *rows])


def listing(path: str, files: Mapping[str, Record]) -> str:
    """Show what lies in a folder, two levels deep, hidden files aside; folders end with a slash."""
    sizes: dict[str, int] = {}
    whole = 0
    for other, record in sorted(below(path, files).items()):
        parts, size = other[len(path) + 1 :].split("/"), len(content_of(record).encode())
        whole += size
        if not any(part.startswith(".") for part in parts):
            for deep in range(1, min(DEEP, len(parts)) + 1):
                name = "/".join(parts[:deep]) + ("/" if deep < len(parts) else "")
                sizes[name] = sizes.get(name, 0) + size
    rows = [f"{_written(size)}\t{path}/{name}" for name, size in sorted(sizes.items())]
    head = f"Here're the files and directories up to {DEEP} levels deep in {path}, excluding hidden items:"
    return "\n".join([head, f"{_written(whole)}\t{path}", *rows])


def _written(size: int) -> str:
    for unit in ("B", "K"):
        if size < 1024:
            return f"{size:.1f}{unit}".replace(".0", "")
        size /= 1024  # type: ignore[assignment]
    return f"{size:.1f}M"
