"""The files of a memory tool: each a record that holds, each version and each deleted one history."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from anthropic.lib.tools import ToolError

from mindstream.adapters.anthropic_memory.shown import ROOT, below, checked_path, content_of, listing, numbered, places
from mindstream.clock import Moment
from mindstream.errors import InputError
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import Record, RecordDraft
from mindstream.memory.store.validation import fitted_text

MOST_FILES, MOST_BYTES = 10_000, 1_000_000
"""So many files are seen, and so long may one be."""


@dataclass(frozen=True, slots=True)
class FileVersion:
    """How a file was, from a moment on; `content` None: it was deleted then."""

    path: str
    at: Moment
    content: str | None


class Files:
    """The files of a memory and what is done to them, one thing after the other."""

    def __init__(self) -> None:
        self._alone = asyncio.Lock()

    async def run(self, memory: Memory, name: str, command: Any) -> str:
        """Carry out a command of the tool.

        Raises:
            ToolError: it cannot be done; the message is for the model.
        """
        run: Callable[[Memory, Any], Awaitable[str]] = getattr(self, name)
        async with self._alone:
            try:
                return await run(memory, command)
            except InputError as error:
                raise ToolError(str(error)) from None

    async def view(self, memory: Memory, command: Any) -> str:
        path, files = checked_path(command.path), await _files(memory)
        if path in files:
            return numbered(command.path, content_of(files[path]), command.view_range)
        if path != ROOT and not below(path, files):
            raise ToolError(f"The path {command.path} does not exist. Please provide a valid path.")
        return listing(path, files)

    async def create(self, memory: Memory, command: Any) -> str:
        path, files = checked_path(command.path), await _files(memory)
        if path == ROOT or path in files or below(path, files):
            raise ToolError(f"File {command.path} already exists")
        if any(path.startswith(f"{other}/") for other in files):
            raise ToolError(f"A parent of {command.path} is a file")
        await memory.retain_all([_draft(path, command.file_text)])
        return f"File created successfully at: {command.path}"

    async def str_replace(self, memory: Memory, command: Any) -> str:
        path, record = await self._file(memory, command.path)
        content, old = content_of(record), command.old_str
        if not old or (count := content.count(old)) == 0:
            raise ToolError(f"No replacement was performed, old_str `{old}` did not appear verbatim in {command.path}.")
        if count > 1:
            lines = [str(content[:at].count("\n") + 1) for at in places(content, old)]
            raise ToolError(
                f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {', '.join(lines)}."
                " Please ensure it is unique"
            )
        new = content.replace(old, command.new_str or "")
        await memory.replace(record.id, _draft(path, new))
        line = content[: content.find(old)].count("\n") + 1
        shown = numbered(command.path, new, [max(1, line - 2), line + 2]).partition("\n")[2]
        return f"The memory file has been edited. Here is the snippet showing the change (with line numbers):\n{shown}"

    async def insert(self, memory: Memory, command: Any) -> str:
        path, record = await self._file(memory, command.path)
        lines = content_of(record).removesuffix("\n").split("\n") if content_of(record) else []
        if not 0 <= command.insert_line <= len(lines):
            raise ToolError(
                f"Invalid `insert_line` parameter: {command.insert_line}. It should be within the range"
                f" [0, {len(lines)}]."
            )
        lines.insert(command.insert_line, command.insert_text.rstrip("\n"))
        await memory.replace(record.id, _draft(path, "\n".join(lines) + "\n"))
        return f"The file {command.path} has been edited."

    async def delete(self, memory: Memory, command: Any) -> str:
        path, files = checked_path(command.path), await _files(memory)
        if path == ROOT:
            raise ToolError(f"Cannot delete the {ROOT} directory itself")
        gone = [files[path]] if path in files else list(below(path, files).values())
        if not gone:
            raise ToolError(f"The path {command.path} does not exist")
        for record in gone:
            await memory.replace(record.id, None)
        return f"Successfully deleted {command.path}"

    async def rename(self, memory: Memory, command: Any) -> str:
        old, new, files = checked_path(command.old_path), checked_path(command.new_path), await _files(memory)
        if old == ROOT:
            raise ToolError(f"Cannot rename the {ROOT} directory itself")
        moved = {old: files[old]} if old in files else below(old, files)
        if not moved:
            raise ToolError(f"The path {command.old_path} does not exist")
        if new == ROOT or new in files or below(new, files):
            raise ToolError(f"The destination {command.new_path} already exists")
        if any(new.startswith(f"{other}/") for other in (*files, old)):
            raise ToolError(f"The destination {command.new_path} lies within a file, or within what is renamed")
        for path, record in moved.items():
            await memory.replace(record.id, _draft(new + path[len(old) :], content_of(record)))
        return f"Successfully renamed {command.old_path} to {command.new_path}"

    async def history(self, memory: Memory, path: str) -> list[FileVersion]:
        """Return how a file was, oldest first, under whatever name; where it was deleted, and when."""
        path, files = checked_path(path), await _files(memory)
        ended = {row.event.old: row.at async for row in memory.log(kinds=["corrected"]) if not row.event.new}  # type: ignore[attr-defined]
        last = [each for id_ in ended if (each := await memory.get(id_)) and each.data.get("path") == path]
        versions = [FileVersion(path, ended[each.id], None) for each in last]
        for record in (*last, *([files[path]] if path in files else [])):
            wordings = await memory.history(record.id)
            versions += [FileVersion(str(each.data["path"]), each.created, content_of(each)) for each in wordings]
        return sorted(versions, key=lambda version: version.at)

    async def forget(self, memory: Memory, path: str) -> int:
        """Erase a file, or all below a folder, for good: every version, deleted ones too; return how many."""
        path, ids = checked_path(path), set[str]()
        async for row in memory.log(kinds=["corrected"]):
            record = None if row.event.new else await memory.get(row.event.old)  # type: ignore[attr-defined]
            if record and record.episode == ROOT and f"{record.data.get('path')}/".startswith(f"{path}/"):
                ids.add(record.id)
        ids |= {each.id for at, each in (await _files(memory)).items() if f"{at}/".startswith(f"{path}/")}
        return (await memory.forget(*ids)).records if ids else 0

    async def _file(self, memory: Memory, asked: str) -> tuple[str, Record]:
        path = checked_path(asked)
        if (record := (await _files(memory)).get(path)) is None:
            raise ToolError(f"The path {asked} does not exist. Please provide a valid path.")
        return path, record


async def _files(memory: Memory) -> dict[str, Record]:
    """Return the files that there are, by path."""
    return {str(each.data.get("path")): each for each in await memory.latest("document", MOST_FILES, episode=ROOT)}


def _draft(path: str, content: str) -> RecordDraft:
    if len(content.encode()) > MOST_BYTES:
        raise ToolError(f"{path} would be longer than {MOST_BYTES:,} bytes")
    words = fitted_text(f"{path}\n{content}")  # to be recalled by; the content itself stands beside it, to the letter
    return RecordDraft(text=words, kind="document", episode=ROOT, data={"path": path, "content": content})
