from __future__ import annotations

import contextlib
import shutil
import sqlite3
from pathlib import Path

import pytest
from running import mistaken, run, terminal

BOTH = "Make me a plan."
SECRET = "My parrot Zorro keeps me awake in Utrecht."


def held(folder: Path) -> bytes:
    """Return all bytes that are left in a data folder."""
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("first")
    run("chat", "--data", folder, "--user", "ann", said=f"{SECRET}\n{BOTH}\n吵得我睡不着。\n")
    run("chat", "--data", folder, "--user", "bob", said=f"Quentin's coffee keeps me awake.\n{BOTH}\n")
    (folder / "history").mkdir()
    (folder / "history" / "ann.txt").write_text(f"+{SECRET}\n")
    (folder / "gate-sleep.npz").write_bytes(b"learned from both")
    return folder


@pytest.fixture
def talked(first: Path, folder: Path) -> Path:
    """A data folder in which ann and bob have talked."""
    shutil.copytree(first, folder)
    return folder


def test_erased_text_is_in_no_file(talked: Path) -> None:
    assert b"Zorro" in held(talked) and "吵得我".encode() in held(talked)
    with contextlib.closing(sqlite3.connect(talked / "mindstream.db")) as other:  # so that the -wal stays
        other.execute("SELECT count(*) FROM records").fetchone()
        done = run("memory", "erase", "--data", talked, "--user", "ann", "--yes", "--json")
        assert done.code == 0, done.err
        (row,) = done.rows
        assert row["records"] > 3 and row["log"] > 3 and row["looked_for"] > 3
        assert row["files"] == ["history/ann.txt", "gate-sleep.npz"]
        left = held(talked)
        assert other.execute("SELECT DISTINCT stream FROM records").fetchall() == [("bob",)]
    for word in ("Zorro", "Utrecht", "吵得我", "ann"):
        assert word.encode() not in left, word
    assert b"Quentin" in left and BOTH.encode() in left  # what bob said too is bob's
    assert "there is no user 'ann'" in mistaken(run("log", "--data", talked, "--user", "ann", "--json"))
    assert not list(talked.glob("erasing-*"))
    assert "coffee" in run("memory", "recall", "coffee", "--data", talked, "--user", "bob").out


def test_erase_asks_to_type_the_name(talked: Path) -> None:
    assert "add --yes" in mistaken(run("memory", "erase", "--data", talked, "--user", "ann"))
    with terminal("memory", "erase", "--data", talked, "--user", "ann") as screen:
        screen.until("Type ann to confirm: ")
        screen.type("anna\r")
        screen.until("as confirmation, not 'anna'; nothing was changed")
        assert screen.ended() == 2
    assert b"Zorro" in held(talked)
    with terminal("memory", "erase", "--data", talked, "--user", "ann") as screen:
        screen.until("Type ann to confirm: ")
        screen.type("ann\r")
        screen.until("ann is erased")
        assert screen.ended() == 0
    assert b"Zorro" not in held(talked)
