"""The tool that writes files writes only into its folder, once per key, and never over files of others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mindstream.errors import ToolError
from mindstream.models.model import Call
from mindstream.tools.tool import traits_of
from mindstream.tools.write_file import write_file_tool, written_file_tools


async def write(folder: Path, name: str, text: str, key: str = "") -> str:
    call = Call("write_file", json.dumps({"name": name, "text": text, "key": key}))
    return await write_file_tool(folder)(call)


async def test_files_are_written_and_replaced(tmp_path: Path) -> None:
    await write(tmp_path / "out", "brief.md", "one")
    assert "written" in await write(tmp_path / "out", "brief.md", "two")
    assert (tmp_path / "out" / "brief.md").read_text() == "two"
    assert traits_of(write_file_tool(tmp_path)).changes


async def test_a_call_with_the_same_key_has_its_effect_once(tmp_path: Path) -> None:
    await write(tmp_path, "a.md", "one", "k1")
    await write(tmp_path, "a.md", "two", "k2")
    await write(tmp_path, "a.md", "one", "k1")
    assert (tmp_path / "a.md").read_text() == "two"


async def test_files_written_or_changed_by_others_are_kept(tmp_path: Path) -> None:
    (tmp_path / "mine.md").write_text("mine")
    await write(tmp_path, "a.md", "one")
    (tmp_path / "a.md").write_text("one, and my remark")
    for name in ("mine.md", "a.md"):
        with pytest.raises(ToolError, match="from another source"):
            await write(tmp_path, name, "new")


async def test_a_file_that_another_life_wrote_is_kept(tmp_path: Path) -> None:
    await write(tmp_path, "brief.md", "one", "ann-1764500000-1.2")
    assert "in place" in await write(tmp_path, "brief.md", "two", "ann-1764500000-3.1")
    for other in ("ann-1764500099-1.2", "bo-1764500000-1.2", ""):
        with pytest.raises(ToolError, match="another source"):
            await write(tmp_path, "brief.md", "new", other)
    erase = written_file_tools(tmp_path)[2]
    with pytest.raises(ToolError, match="another source"):
        await erase(Call("delete_file", json.dumps({"name": "brief.md", "key": "bo-1764500000-1.3"})))
    assert (tmp_path / "brief.md").read_text() == "two"


@pytest.mark.parametrize(
    "name", ["../a.md", "a/b.md", "/etc/x", ".hidden", "", " a.md", "a\nb.md", "x" * 200, "..", "a\\b"]
)
async def test_only_a_plain_name_is_taken(tmp_path: Path, name: str) -> None:
    with pytest.raises(ToolError, match="plain file name"):
        await write(tmp_path / "out", name, "text")
    assert not (tmp_path / "a.md").exists()


async def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "out" / "a.md").symlink_to(tmp_path / "secret")
    with pytest.raises(ToolError, match="not a regular file"):
        await write(tmp_path / "out", "a.md", "text")
    assert (tmp_path / "secret").read_text() == "secret"
