"""Claude's memory tool keeps files in a memory: every version can be read until the file is forgotten."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("anthropic", reason="anthropic is not installed: `make adapters` has it")

from anthropic.lib.tools import ToolError

from mindstream import Memory
from mindstream.adapters.anthropic_memory import AsyncMindstreamMemoryTool, MindstreamMemoryTool

OURS = {
    "from anthropic.tools import BetaLocalFilesystemMemoryTool":
        "from mindstream.adapters.anthropic_memory import MindstreamMemoryTool",
    "memory = BetaLocalFilesystemMemoryTool(base_path=tempfile.mkdtemp())":
        "memory = MindstreamMemoryTool(tempfile.mkdtemp())",
}  # fmt: skip


@pytest.mark.parametrize("replaced", [False, True], ids=["its own", "ours"])
def test_the_program_runs(replaced: bool, run_program: Callable[..., None]) -> None:
    run_program("anthropic_memory_tool", OURS if replaced else {})


def do(tool: MindstreamMemoryTool, command: str, path: str = "", **more: Any) -> str:
    fields = {"path": path, "view_range": None} | more
    return str(tool.execute(SimpleNamespace(command=command, **fields)))  # type: ignore[arg-type]


def bytes_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir() if path.is_file())


def test_file_versions_are_kept_until_forget(tmp_path: Path) -> None:
    tool = MindstreamMemoryTool(tmp_path, "ann")
    do(tool, "create", "/memories/trip.md", file_text="Lisbon in June\n")
    do(tool, "str_replace", "/memories/trip.md", old_str="June", new_str="JUNE")
    do(tool, "insert", "/memories/trip.md", insert_line=1, insert_text="by train")
    do(tool, "rename", old_path="/memories/trip.md", new_path="/memories/old/trip.md")
    do(tool, "delete", "/memories/old")
    with pytest.raises(ToolError, match="does not exist"):
        do(tool, "view", "/memories/old/trip.md")
    versions = tool.history("/memories/old/trip.md")
    texts = ["Lisbon in June\n", "Lisbon in JUNE\n", *["Lisbon in JUNE\nby train\n"] * 2]
    assert [each.data["content"] for each in versions] == texts and versions[-1].valid_until
    assert [each.data["path"] for each in versions[2:4]] == ["/memories/trip.md", "/memories/old/trip.md"]
    do(tool, "create", "/memories/old/trip.md", file_text="")  # the path is free again
    again = tool.history("/memories/old/trip.md")
    assert [each.data["content"] for each in again] == [*texts, ""] and not again[-1].valid_until
    assert tool.forget("/memories/old/trip.md") == 5 and b"Lisbon" not in bytes_of(tmp_path)
    assert tool.history("/memories/old/trip.md") == []


def test_file_contents_are_kept_exactly(tmp_path: Path) -> None:
    tool = MindstreamMemoryTool(tmp_path)
    for n, content in enumerate(["", "  spaces \r\n\ttab\x00\n\n", "ä🌱" * 20_000, "no newline"]):
        do(tool, "create", f"/memories/{n}", file_text=content)
        assert [each.data["content"] for each in tool.history(f"/memories/{n}")] == [content]
    with pytest.raises(ToolError, match="longer than"):
        do(tool, "create", "/memories/long", file_text="x" * 1_000_001)


@pytest.mark.parametrize(
    "path", ["", "/", "memories", "/memoriesx/a", "/memories/..", "/memories/./a", "/memories/a\nb", "/etc/passwd"]
)
def test_a_path_outside_the_memory_is_refused(path: str, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="/memories"):
        do(MindstreamMemoryTool(tmp_path), "create", path, file_text="x")


def test_files_and_folders_are_not_interchangeable(tmp_path: Path) -> None:
    tool = MindstreamMemoryTool(tmp_path)
    do(tool, "create", "/memories/a/b", file_text="x")
    for path in ("/memories/a", "/memories/a/b/c"):
        with pytest.raises(ToolError):
            do(tool, "create", path, file_text="y")
    for old, new in (("/memories/a", "/memories/a/b2"), ("/memories/a", "/memories/a"), ("/memories/x", "/memories/y")):
        with pytest.raises(ToolError):
            do(tool, "rename", old_path=old, new_path=new)
    with pytest.raises(ToolError, match="does not exist"):
        do(tool, "str_replace", "/memories/a", old_str="x", new_str="y")


def test_a_replacement_must_match_exactly_once(tmp_path: Path) -> None:
    tool = MindstreamMemoryTool(tmp_path)
    do(tool, "create", "/memories/a", file_text="one\ntwo\none\nthree\n")
    for old, said in (("one", "in lines: 1, 3"), ("", "did not appear"), ("four", "did not appear")):
        with pytest.raises(ToolError, match=said):
            do(tool, "str_replace", "/memories/a", old_str=old, new_str="x")
    snippet = do(tool, "str_replace", "/memories/a", old_str="\nthree", new_str="")
    assert snippet.splitlines()[1:] == ["     1\tone", "     2\ttwo", "     3\tone", "     4\t"]
    assert do(tool, "view", "/memories").splitlines()[1:] == ["12B\t/memories", "12B\t/memories/a"]


async def test_the_async_tool_shares_files_and_recall_finds_them(tmp_path: Path) -> None:
    tool = AsyncMindstreamMemoryTool(tmp_path, "ann")
    made = {"command": "create", "path": "/memories/keys.md", "file_text": "The spare key hangs behind the door."}
    assert "created" in str(await tool.call(made))
    with pytest.raises(ToolError, match="exists"):
        await tool.call(made)
    assert (await tool.history("/memories/keys.md"))[0].data["content"] == "The spare key hangs behind the door."
    async with Memory.open(tmp_path, "ann") as memory:
        assert "spare key" in (await memory.recall("where is the key?", k=1))[0].record.text
    await tool.clear_all_memory()
    assert b"spare key" not in bytes_of(tmp_path)
