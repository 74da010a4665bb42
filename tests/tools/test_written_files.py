"""Written files are listed, read and deleted; other files in the folder are not touched."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mindstream.errors import ToolError
from mindstream.models.model import Call
from mindstream.tools.tool import traits_of
from mindstream.tools.write_file import MAX_SHOWN, write_file_tool, written_file_tools


async def use(folder: Path, tool: str, /, **arguments: object) -> str:
    tools = {each.spec.name: each for each in (write_file_tool(folder), *written_file_tools(folder))}
    return await tools[tool](Call(tool, json.dumps(arguments)))


async def test_written_files_are_listed_read_and_deleted(tmp_path: Path) -> None:
    (tmp_path / "mine.md").write_text("mine")
    assert not any(traits_of(each).ready() for each in written_file_tools(tmp_path))  # type: ignore[misc]
    await use(tmp_path, "write_file", name="a.md", text="one")
    await use(tmp_path, "write_file", name="b.md", text="x" * MAX_SHOWN + "end")
    assert await use(tmp_path, "list_files") == f"b.md ({MAX_SHOWN + 3:,} bytes)\na.md (3 bytes)"
    assert await use(tmp_path, "read_file", name="a.md") == "one"
    assert f"start={MAX_SHOWN}" in await use(tmp_path, "read_file", name="b.md")
    assert await use(tmp_path, "read_file", name="b.md", start=MAX_SHOWN) == "end"
    assert await use(tmp_path, "delete_file", name="a.md", key="k") == "deleted: a.md"
    assert not (tmp_path / "a.md").exists() and "already" in await use(tmp_path, "delete_file", name="a.md", key="k")
    assert await use(tmp_path, "list_files") == f"b.md ({MAX_SHOWN + 3:,} bytes)"


@pytest.mark.parametrize("tool", ["read_file", "delete_file"])
async def test_files_written_or_changed_by_others_are_untouched(tmp_path: Path, tool: str) -> None:
    await use(tmp_path, "write_file", name="a.md", text="one")
    (tmp_path / "mine.md").write_text("mine")
    (tmp_path / "a.md").write_text("one, and my remark")
    for name in ("mine.md", "a.md", ".written.jsonl", "../a.md"):
        with pytest.raises(ToolError, match=r"another source|plain file name"):
            await use(tmp_path, tool, name=name)
    (tmp_path / "a.md").unlink()
    (tmp_path / "a.md").symlink_to(tmp_path / "mine.md")
    with pytest.raises(ToolError, match="not a regular file"):
        await use(tmp_path, tool, name="a.md")
    assert (tmp_path / "mine.md").read_text() == "mine" and "mine.md" not in await use(tmp_path, "list_files")
