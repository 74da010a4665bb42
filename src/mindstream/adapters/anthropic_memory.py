"""Claude's memory tool, stored in a mindstream memory: a file is a record; earlier versions stay until forgotten.

client.beta.messages.tool_runner(…, tools=[MindstreamMemoryTool("data", user="ann")])
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError

from mindstream.adapters.loop import Data, Handle, both
from mindstream.errors import InputError
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import Record, RecordDraft, fitted_text
from mindstream.models.embedders.embedder import Embedder

ROOT, MAX_FILES, MAX_BYTES = "/memories", 10_000, 1_000_000
"""Root of all paths, maximum number of files that are read, and maximum size of a file in bytes."""


class _Files:
    """The files of a memory and the commands on them; the message of a ToolError is for the model."""

    def __init__(self, memory: Memory, records: Iterable[Record]) -> None:
        self.memory, held = memory, {str(each.data["path"]): each for each in records}
        self.ids = {path: each.id for path, each in held.items()}
        self.contents = {path: str(each.data["content"]) for path, each in held.items()}

    async def view(self, command: Any) -> str:
        path, found = _checked(command.path), self._named(command.path)
        if path in found:
            shown = _numbered(self.contents[path], command.view_range)
            return f"Here's the content of {path} with line numbers:\n{shown}"
        sizes = Counter({path: 0})
        for other in found:
            parts, size = other[len(path) + 1 :].split("/"), len(self.contents[other].encode())
            sizes[path] += size
            if not any(part.startswith(".") for part in parts):
                for deep in range(1, min(2, len(parts)) + 1):
                    sizes["/".join([path, *parts[:deep]]) + ("/" if deep < len(parts) else "")] += size
        head = f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items:"
        return "\n".join([head, *(f"{size}B\t{name}" for name, size in sizes.items())])

    async def create(self, command: Any) -> str:
        path = self._free(command.path, "File {} already exists")
        await self.memory.retain_all([_draft(path, command.file_text)])
        return f"File created successfully at: {path}"

    async def str_replace(self, command: Any) -> str:
        path, old = self._file(command.path), command.old_str
        parts = self.contents[path].split(old) if old else [""]
        lines = [old.join(parts[:n]).count("\n") + 1 for n in range(1, len(parts))]
        if len(lines) != 1:
            none = f"No replacement was performed, old_str `{old}` did not appear verbatim in {command.path}."
            many = f"Multiple occurrences of old_str `{old}` in lines: {', '.join(map(str, lines))}."
            raise ToolError(f"No replacement was performed. {many} Please ensure it is unique" if lines else none)
        content = (command.new_str or "").join(parts)
        await self.memory.replace(self.ids[path], _draft(path, content))
        shown = _numbered(content, [lines[0] - 2, lines[0] + 2])
        return f"The memory file has been edited. Here is the snippet showing the change (with line numbers):\n{shown}"

    async def insert(self, command: Any) -> str:
        path, at = self._file(command.path), command.insert_line
        lines = self.contents[path].removesuffix("\n").split("\n") if self.contents[path] else []
        if not 0 <= at <= len(lines):
            raise ToolError(f"Invalid `insert_line` parameter: {at}. It should be within the range [0, {len(lines)}].")
        lines.insert(at, command.insert_text.rstrip("\n"))
        await self.memory.replace(self.ids[path], _draft(path, "\n".join(lines) + "\n"))
        return f"The file {command.path} has been edited."

    async def delete(self, command: Any) -> str:
        for path in self._named(command.path, "delete"):
            await self.memory.replace(self.ids[path], None)
        return f"Successfully deleted {command.path}"

    async def rename(self, command: Any) -> str:
        old, moved = _checked(command.old_path), self._named(command.old_path, "rename")
        new = self._free(command.new_path, "The destination {} already exists", old)
        for path in moved:
            await self.memory.replace(self.ids[path], _draft(new + path[len(old) :], self.contents[path]))
        return f"Successfully renamed {command.old_path} to {command.new_path}"

    def _file(self, asked: str) -> str:
        if (path := _checked(asked)) not in self.contents:
            raise ToolError(f"The path {asked} does not exist. Please provide a valid path.")
        return path

    def _named(self, asked: str, verb: str = "") -> list[str]:
        """Return the path of a file, or the paths of the files below a folder; the root may be empty.

        Args:
            verb: name of an operation that is refused for the root, such as `delete`; "": the root is allowed.
        """
        path = _checked(asked)
        if verb and path == ROOT:
            raise ToolError(f"Cannot {verb} the {ROOT} directory itself")
        below = sorted(other for other in self.contents if other.startswith(f"{path}/"))
        return below if below or path == ROOT else [self._file(asked)]

    def _free(self, asked: str, says: str, *more: str) -> str:
        """Return the normal form of a path at which a file or folder can be created.

        Args:
            says: the message if a file or folder has this path; `{}` stands for the path.
            more: a folder that is being renamed; the path must not be inside this folder.

        Raises:
            ToolError: the path is taken, or would be inside a file or inside the renamed folder.
        """
        path, taken = _checked(asked), [*self.contents, *more]
        if path == ROOT or any(f"{other}/".startswith(f"{path}/") for other in taken):
            raise ToolError(says.format(asked))
        if any(path.startswith(f"{other}/") for other in taken):
            raise ToolError(f"{asked} would be inside a file, or inside the renamed folder")
        return path


def _command(change: Callable[[_Files, Any], Awaitable[str]]) -> tuple[Any, Any]:
    """Return the sync and async methods for a command of the tool; commands run one after the other."""

    async def run(tool: _OnFiles, command: Any, memory: Memory) -> str:
        async with tool.alone:
            files = _Files(memory, await memory.latest("document", MAX_FILES, episode=ROOT))
            try:
                return await change(files, command)
            except InputError as error:
                raise ToolError(str(error)) from None

    return both(run)


class _OnFiles:
    """The common part of the sync and the async tool: files in a memory.

    Args:
        data: a folder, a database's URL, or a store. user: the owner of the memory.
        embed: an embedder, or its name. sdk: arguments of the SDK's own tool (`cache_control`).
    """

    def __init__(
        self, data: Data = "data", user: str = "you", *, embed: Embedder | str | None = None, **sdk: Any
    ) -> None:
        super().__init__(**sdk)
        self.handle, self.alone = Handle(data, user, embed), asyncio.Lock()

    async def _history(self, path: str, memory: Memory) -> list[Record]:
        """Return all versions of a file, oldest first, also deleted ones and those under earlier names.

        The content of a version is in its `data`.
        """
        lasts = [each for each in await _lasts(memory, path) if each.data["path"] == _checked(path)]
        found = [each for last in lasts for each in await memory.history(last.id)]
        return sorted(found, key=lambda each: each.created)

    async def _forget(self, path: str = ROOT, *, memory: Memory) -> int:
        """Erase a file, or all files below a folder, with every version; return the number of records."""
        ids = [each.id for each in await _lasts(memory, path)]
        return (await memory.forget(*ids)).records if ids else 0

    async def _clear_all_memory(self, memory: Memory) -> str:
        """Erase all files, with every version."""
        await self._forget(memory=memory)
        return "All memory cleared"


NAMED = (_Files.view, _Files.create, _Files.str_replace, _Files.insert, _Files.delete, _Files.rename)
METHODS = [*map(_command, NAMED), both(_OnFiles._history), both(_OnFiles._forget), both(_OnFiles._clear_all_memory)]


class MindstreamMemoryTool(_OnFiles, BetaAbstractMemoryTool):
    """The memory tool for `Anthropic`: files that Claude writes under /memories are stored in a user's memory."""

    view, create, str_replace, insert, delete, rename, history, forget, clear_all_memory = (each[0] for each in METHODS)


class AsyncMindstreamMemoryTool(_OnFiles, BetaAsyncAbstractMemoryTool):
    """The memory tool for `AsyncAnthropic`; see `MindstreamMemoryTool`."""

    view, create, str_replace, insert, delete, rename, history, forget, clear_all_memory = (each[1] for each in METHODS)


def _checked(path: str) -> str:
    """Return the normal form of a path.

    Raises:
        ToolError: the path is neither ROOT nor below ROOT, has a part `.` or `..`, or contains control characters.
    """
    parts = [part for part in path.split("/") if part]
    if not path.startswith("/") or parts[:1] != [ROOT[1:]] or {".", ".."} & {*parts} or not path.isprintable():
        raise ToolError(
            f"Path must start with {ROOT}, stay within it, and contain no control characters, got: {path!r}"
        )
    return "/" + "/".join(parts)


def _numbered(content: str, view_range: Sequence[int] | None) -> str:
    """Return a file, or the lines of a range (-1: the last line), with line numbers."""
    first, last = view_range if view_range and len(view_range) == 2 else (1, -1)
    lines = list(enumerate(content.split("\n"), 1))[max(0, first - 1) : None if last == -1 else last]
    return "\n".join(f"{number:>6}\t{line}" for number, line in lines)


def _draft(path: str, content: str) -> RecordDraft:
    if len(content.encode()) > MAX_BYTES:
        raise ToolError(f"{path} would be longer than {MAX_BYTES:,} bytes")
    words = fitted_text(f"{path}\n{content}")  # for recall; the exact content is in `data`
    return RecordDraft(text=words, kind="document", episode=ROOT, data={"path": path, "content": content})


async def _lasts(memory: Memory, asked: str) -> list[Record]:
    """Return the last versions of a file, or of the files below a folder, including deleted ones."""
    path = _checked(asked)
    found = await memory.find(kinds=["document"], where={"episode": ROOT}, over=True)
    return [each for each in found if not each.superseded_by and f"{each.data['path']}/".startswith(f"{path}/")]
