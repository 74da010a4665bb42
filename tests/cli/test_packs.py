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
    thin = run("pack", "check", mine)
    assert thin.code == 0 and "thin: " in thin.out and "can be used" in thin.err
    assert run("pack", "check", mine, "--strict").code == 1
    assert run("pack", "check", "sleep", "--strict").code == 0
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


def test_a_missing_pack_is_named_with_the_folder_that_was_meant(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, path in (("guitar", "./guitar"), ("my pack", "'./my pack'")):
        assert run("pack", "new", name).code == 0
        for command in (["pack", "check", name], ["chat", "--pack", name, "--data", folder]):
            assert f"did you mean {path}?" in mistaken(run(*command))
    assert run("pack", "new", "sleep").code == 0
    assert "sleep can be used" in run("pack", "check", "sleep").err, "a shipped name takes precedence"
    assert "there is no folder ./nope" in mistaken(run("pack", "check", "./nope"))
    (tmp_path / "empty").mkdir()
    assert "there is no file empty/pack.yaml" in mistaken(run("pack", "check", "./empty"))
    assert "shipped are sleep" in mistaken(run("pack", "check", "empty"))


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
