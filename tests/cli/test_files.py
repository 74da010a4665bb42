from __future__ import annotations

import io
import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mindstream.cli.shell.files import MAX_LINE, open_writer, read_lines, write_lines
from mindstream.errors import InputError


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def test_a_file_is_private_from_the_first_byte_and_renamed_when_complete(tmp_path: Path) -> None:
    file = tmp_path / "ann.jsonl"
    seen: list[tuple[bool, int]] = []

    async def lines() -> AsyncIterator[str]:
        for n in range(3):
            seen.append((file.exists(), max((tmp_path / name).stat().st_mode & 0o777 for name in names(tmp_path))))
            yield f"line {n}"

    before = os.umask(0)
    try:
        assert await write_lines(file, lines()) == 3
    finally:
        os.umask(before)
    assert seen == [(False, 0o600)] * 3
    assert file.read_text() == "line 0\nline 1\nline 2\n" and file.stat().st_mode & 0o777 == 0o600
    assert names(tmp_path) == ["ann.jsonl"]


async def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    (file := tmp_path / "ann.jsonl").write_text("old")

    async def lines() -> AsyncIterator[str]:
        yield "new"
        raise InputError("nobody is called so")

    with pytest.raises(InputError, match="nobody"):
        await write_lines(file, lines())
    assert file.read_text() == "old" and names(tmp_path) == ["ann.jsonl"]
    with open_writer(file) as write:
        write("new")
    assert file.read_text() == "new\n"


@pytest.fixture(params=["link", "dangling", "fifo"])
def odd(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A path that is not a regular file."""
    path = tmp_path / "odd"
    if request.param == "fifo":
        os.mkfifo(path)
    else:
        (tmp_path / "target").write_text("mine")
        path.symlink_to(tmp_path / ("target" if request.param == "link" else "nothing"))
    return path


def test_a_device_or_pipe_is_never_overwritten(odd: Path, tmp_path: Path) -> None:
    before = odd.lstat()
    with pytest.raises(InputError, match="and only a regular file is replaced"), open_writer(odd) as write:
        write("secret")
    assert stat.S_IFMT(odd.lstat().st_mode) == stat.S_IFMT(before.st_mode) and odd.lstat().st_ino == before.st_ino
    assert not (tmp_path / "nothing").exists() and not list(tmp_path.glob(".*"))
    if odd.is_symlink():
        assert (tmp_path / "target").read_text() == "mine"


def test_a_device_or_pipe_is_refused_without_blocking(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "odd")
    for path in (tmp_path / "odd", Path("/dev/zero"), tmp_path, tmp_path / "nothing"):
        with pytest.raises(InputError, match=r"not a file|cannot be read"):
            next(iter(read_lines(path)))


def test_an_endless_line_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (file := tmp_path / "huge").open("wb") as out:
        out.write(b"{}\n")
        out.truncate(1 << 40)  # a sparse file of a terabyte
    lines = read_lines(file)
    assert next(lines) == b"{}\n"
    with pytest.raises(InputError, match=rf"huge:2: a line may have at most {MAX_LINE >> 20} MB"):
        next(lines)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a\nb")))
    assert list(read_lines(None)) == [b"a\n", b"b"]
