from __future__ import annotations

from pathlib import Path

import pytest
from running import mistaken, run


def test_shipped_packs_are_listed() -> None:
    assert "sleep" in run("packs").out
    assert "sleep" in [row["name"] for row in run("packs", "--json").rows]


def test_a_new_pack_can_be_used_and_checked(tmp_path: Path, folder: Path) -> None:
    mine = tmp_path / "mine"
    assert "pack check" in run("pack", "new", mine).out
    assert "exists already" in mistaken(run("pack", "new", mine))
    assert run("pack", "check", mine).code in (0, 1)
    assert run("chat", "--pack", mine, "--data", folder, said="hello\n").code == 0
    assert "greet (en): " in run("pack", "check", mine, "--phrases").out


@pytest.mark.parametrize("path", ["./mine", "mine/", "~/here/mine"])
def test_a_pack_is_found_by_any_form_of_its_path(
    path: str, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert run("pack", "new", "mine").code == 0
    done = run("chat", "--pack", path, "--json", "--data", folder, said="hello\n")
    assert done.code == 0, done.err
    assert [row["pack"] for row in done.events("opened")] == ["mine"]


def test_a_broken_pack_is_refused_with_its_line(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    run("pack", "new", mine)
    pack = mine / "pack.yaml"
    pack.write_text(pack.read_text("utf-8") + "colour: red\n", "utf-8")
    line = len(pack.read_text("utf-8").splitlines())
    assert f"pack.yaml:{line}: colour" in mistaken(run("pack", "check", mine))


def test_a_new_pack_says_that_its_texts_are_those_of_the_example(tmp_path: Path) -> None:
    mine = tmp_path / "guitar"
    assert "example" in run("pack", "new", mine).out
    assert "the title is still 'Tea coach (example)'" in run("pack", "check", mine).out
    pack = mine / "pack.yaml"
    pack.write_text(pack.read_text("utf-8").replace("Tea coach (example)", "Guitar coach"), "utf-8")
    assert "the title is still" not in run("pack", "check", mine).out
