"""Claude's memory tool over a stream: a file is a record, each version of it stays as history until it is forgotten.

client.beta.messages.tool_runner(…, tools=[MindstreamMemoryTool("data", user="ann")])
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError

from mindstream.adapters.loop import Handle, both
from mindstream.clock import Moment
from mindstream.errors import InputError
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import Record, RecordDraft
from mindstream.memory.store.store import Store
from mindstream.memory.store.validation import fitted_text
from mindstream.models.embedders.embedder import Embedder

ROOT, MOST_FILES, MOST_BYTES = "/memories", 10_000, 1_000_000
"""So many files are seen, and so long may one be."""
Files = dict[str, Record]


@dataclass(frozen=True, slots=True)
class FileVersion:
    """How a file was, from a moment on; `content` None: it was deleted then."""

    path: str
    at: Moment
    content: str | None


def _command(change: Callable[[Memory, Any, Files], Awaitable[str]]) -> tuple[Any, Any]:
    """Return the methods that carry out a command of the tool, one after the other; a ToolError is for the model."""

    async def run(tool: _OverStream, command: Any, memory: Memory) -> str:
        async with tool.alone:
            files = {str(each.data["path"]): each for each in await memory.latest("document", MOST_FILES, episode=ROOT)}
            try:
                return await change(memory, command, files)
            except InputError as error:
                raise ToolError(str(error)) from None

    return both(run)


async def _view(_: Memory, command: Any, files: Files) -> str:
    path = _checked(command.path)
    if path in files:
        return f"Here's the content of {path} with line numbers:\n{_numbered(files[path], command.view_range)}"
    if path != ROOT and not _below(path, files):
        raise ToolError(f"The path {path} does not exist. Please provide a valid path.")
    sizes = Counter({path: 0})
    for other, record in sorted(_below(path, files).items()):
        parts, size = other[len(path) + 1 :].split("/"), len(_content(record).encode())
        sizes[path] += size
        if not any(part.startswith(".") for part in parts):
            for deep in range(1, min(2, len(parts)) + 1):
                sizes["/".join([path, *parts[:deep]]) + ("/" if deep < len(parts) else "")] += size
    head = f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items:"
    return "\n".join([head, *(f"{_written(size)}\t{name}" for name, size in sizes.items())])


async def _create(memory: Memory, command: Any, files: Files) -> str:
    path = _free(command.path, [*files], "File {} already exists")
    await memory.retain_all([_draft(path, command.file_text)])
    return f"File created successfully at: {path}"


async def _str_replace(memory: Memory, command: Any, files: Files) -> str:
    record, old = _file(command.path, files), command.old_str
    content = _content(record)
    places = [at for at in range(len(content)) if content.startswith(old, at)] if old in content else []
    if not places:
        raise ToolError(f"No replacement was performed, old_str `{old}` did not appear verbatim in {command.path}.")
    lines = [content[:at].count("\n") + 1 for at in places]
    if len(places) > 1:
        raise ToolError(
            f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines:"
            f" {', '.join(map(str, lines))}. Please ensure it is unique"
        )
    new = await memory.replace(record.id, _draft(_path(record), content.replace(old, command.new_str or "")))
    shown = _numbered(new, [max(1, lines[0] - 2), lines[0] + 2]) if new else ""
    return f"The memory file has been edited. Here is the snippet showing the change (with line numbers):\n{shown}"


async def _insert(memory: Memory, command: Any, files: Files) -> str:
    record = _file(command.path, files)
    lines = _content(record).removesuffix("\n").split("\n") if _content(record) else []
    if not 0 <= command.insert_line <= len(lines):
        raise ToolError(
            f"Invalid `insert_line` parameter: {command.insert_line}. It should be within the range [0, {len(lines)}]."
        )
    lines.insert(command.insert_line, command.insert_text.rstrip("\n"))
    await memory.replace(record.id, _draft(_path(record), "\n".join(lines) + "\n"))
    return f"The file {command.path} has been edited."


async def _delete(memory: Memory, command: Any, files: Files) -> str:
    for record in _named(command.path, files, "delete").values():
        await memory.replace(record.id, None)
    return f"Successfully deleted {command.path}"


async def _rename(memory: Memory, command: Any, files: Files) -> str:
    old, moved = _checked(command.old_path), _named(command.old_path, files, "rename")
    new = _free(command.new_path, [*files, old], "The destination {} already exists")
    for path, record in moved.items():
        await memory.replace(record.id, _draft(new + path[len(old) :], _content(record)))
    return f"Successfully renamed {command.old_path} to {command.new_path}"


class _OverStream:
    """What both tools are: files in a memory.

    Args:
        data: a folder, a database's URL, or a store.
        user: whose memory.
        cache_control: as the SDK's own tool has it.
        embed: an embedder, or the name of one.
    """

    def __init__(
        self, data: str | Path | Store = "data", user: str = "you", *, cache_control: Any = None,
        embed: Embedder | str = "wordllama",
    ) -> None:  # fmt: skip
        super().__init__(cache_control=cache_control)  # type: ignore[call-arg]
        self.handle, self.alone = Handle(data, user, embed), asyncio.Lock()


async def _history(_: _OverStream, path: str, memory: Memory) -> list[FileVersion]:
    """Return how a file was, oldest first, under whatever name, deleted ones too."""
    versions = list[FileVersion]()
    for last in [each for each in await _lasts(memory, path) if _path(each) == path]:
        wordings = await memory.history(last.id)
        versions += [FileVersion(_path(each), each.created, _content(each)) for each in wordings]
        versions += [FileVersion(path, last.valid_until, None)] if last.valid_until else []
    return sorted(versions, key=lambda version: version.at)


async def _forget(_: _OverStream, path: str = ROOT, *, memory: Memory) -> int:
    """Erase a file, or all below a folder, for good, with every version; return how many records that were."""
    ids = [each.id for each in await _lasts(memory, path)]
    return (await memory.forget(*ids)).records if ids else 0


async def _clear_all_memory(tool: _OverStream, memory: Memory) -> str:
    """Erase all files for good, with every version."""
    await _forget(tool, memory=memory)
    return "All memory cleared"


METHODS = [
    *map(_command, (_view, _create, _str_replace, _insert, _delete, _rename)),
    *(both(_history), both(_forget), both(_clear_all_memory)),
]


class MindstreamMemoryTool(_OverStream, BetaAbstractMemoryTool):
    """The memory tool for `Anthropic`: what Claude writes under /memories is in a user's memory."""

    view, create, str_replace, insert, delete, rename, history, forget, clear_all_memory = (each[0] for each in METHODS)


class AsyncMindstreamMemoryTool(_OverStream, BetaAsyncAbstractMemoryTool):
    """The memory tool for `AsyncAnthropic`; see `MindstreamMemoryTool`."""

    view, create, str_replace, insert, delete, rename, history, forget, clear_all_memory = (each[1] for each in METHODS)


def _checked(path: str) -> str:
    """Return a path without what means nothing in it.

    Raises:
        ToolError: it leaves the memory.
    """
    parts = [part for part in path.split("/") if part]
    if not path.startswith("/") or parts[:1] != [ROOT[1:]] or {".", ".."} & {*parts} or not path.isprintable():
        raise ToolError(f"Path must start with {ROOT} and stay within it, got: {path}")
    return "/" + "/".join(parts)


def _below(path: str, files: Files) -> Files:
    return {other: record for other, record in files.items() if other.startswith(f"{path}/")}


def _file(asked: str, files: Files) -> Record:
    if (record := files.get(_checked(asked))) is None:
        raise ToolError(f"The path {asked} does not exist. Please provide a valid path.")
    return record


def _named(asked: str, files: Files, verb: str) -> Files:
    """Return the file of a path, or those below it."""
    path = _checked(asked)
    if path == ROOT:
        raise ToolError(f"Cannot {verb} the {ROOT} directory itself")
    if not (found := {path: files[path]} if path in files else _below(path, files)):
        raise ToolError(f"The path {asked} does not exist")
    return found


def _free(asked: str, taken: Collection[str], says: str) -> str:
    """Return a path at which a file or a folder can be."""
    path = _checked(asked)
    if path == ROOT or any(f"{other}/".startswith(f"{path}/") for other in taken):
        raise ToolError(says.format(asked))
    if any(path.startswith(f"{other}/") for other in taken):
        raise ToolError(f"{asked} would lie within a file, or within what is renamed")
    return path


def _path(record: Record) -> str:
    return str(record.data["path"])


def _content(record: Record) -> str:
    return str(record.data["content"])


def _numbered(record: Record, view_range: Sequence[int] | None = None) -> str:
    """Show a file with the numbers of its lines, or those from one to another (-1: the last)."""
    lines = _content(record).split("\n")
    first, last = view_range if view_range and len(view_range) == 2 else (1, -1)
    first = max(1, first)
    shown = lines[first - 1 : len(lines) if last == -1 else last]
    return "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(shown, first))


def _written(size: float) -> str:
    for unit in ("B", "K"):
        if size < 1024:
            return f"{size:.1f}{unit}".replace(".0", "")
        size /= 1024
    return f"{size:.1f}M"


def _draft(path: str, content: str) -> RecordDraft:
    if len(content.encode()) > MOST_BYTES:
        raise ToolError(f"{path} would be longer than {MOST_BYTES:,} bytes")
    words = fitted_text(f"{path}\n{content}")  # to be recalled by; the content itself stands beside it, to the letter
    return RecordDraft(text=words, kind="document", episode=ROOT, data={"path": path, "content": content})


async def _lasts(memory: Memory, asked: str) -> list[Record]:
    """Return the last versions of a file, or of those below a folder, deleted ones too."""
    path = _checked(asked)
    found = await memory.find(kinds=["document"], where={"episode": ROOT}, over=True)
    return [each for each in found if not each.superseded_by and f"{_path(each)}/".startswith(f"{path}/")]
