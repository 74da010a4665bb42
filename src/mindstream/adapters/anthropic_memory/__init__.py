"""Claude's memory tool over a stream: a file is a record, each version of it stays as history until it is forgotten.

client.beta.messages.tool_runner(…, tools=[MindstreamMemoryTool("data", user="ann")])
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool

from mindstream.adapters.anthropic_memory.files import Files, FileVersion
from mindstream.adapters.anthropic_memory.shown import ROOT
from mindstream.adapters.loop import Handle
from mindstream.memory.memory import Memory
from mindstream.memory.store.store import Store
from mindstream.models.embedders.embedder import Embedder

__all__ = ["AsyncMindstreamMemoryTool", "FileVersion", "MindstreamMemoryTool"]


COMMANDS = ("view", "create", "str_replace", "insert", "delete", "rename")


def _command(name: str) -> Any:
    return lambda tool, command: tool._do(lambda memory: tool.files.run(memory, name, command))


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
        self.handle, self.files = Handle(data, user, embed), Files()


class MindstreamMemoryTool(_OverStream, BetaAbstractMemoryTool):
    """The memory tool for `Anthropic`: what Claude writes under /memories is in a user's memory."""

    view, create, str_replace, insert, delete, rename = map(_command, COMMANDS)

    def history(self, path: str) -> list[FileVersion]:
        """Return how a file was, oldest first, under whatever name, deleted ones too."""
        return self.handle.wait(lambda memory: self.files.history(memory, path))

    def forget(self, path: str = ROOT) -> int:
        """Erase a file, or all below a folder, for good, with every version; return how many records that were."""
        return self.handle.wait(lambda memory: self.files.forget(memory, path))

    def clear_all_memory(self) -> str:
        """Erase all files for good, with every version."""
        self.forget()
        return "All memory cleared"

    def _do(self, work: Callable[[Memory], Any]) -> Any:
        return self.handle.wait(work)


class AsyncMindstreamMemoryTool(_OverStream, BetaAsyncAbstractMemoryTool):
    """The memory tool for `AsyncAnthropic`; see `MindstreamMemoryTool`."""

    view, create, str_replace, insert, delete, rename = map(_command, COMMANDS)

    async def history(self, path: str) -> list[FileVersion]:
        """Return how a file was, oldest first, under whatever name, deleted ones too."""
        return await self.handle.do(lambda memory: self.files.history(memory, path))

    async def forget(self, path: str = ROOT) -> int:
        """Erase a file, or all below a folder, for good, with every version; return how many records that were."""
        return await self.handle.do(lambda memory: self.files.forget(memory, path))

    async def clear_all_memory(self) -> str:
        """Erase all files for good, with every version."""
        await self.forget()
        return "All memory cleared"

    async def _do(self, work: Callable[[Memory], Any]) -> Any:
        return await self.handle.do(work)
