"""Files in the working directory have no effect unless they are named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from running import mistaken, run, run_process

from mindstream.coach.packs.check import new
from mindstream.coach.packs.load import load
from mindstream.errors import PackError, SettingsError
from mindstream.models.embedders.embedder import SentenceTransformers

TRAP = "raise SystemExit('code of the working directory runs')\n"
NOTE = "mindstream: mindstream.toml in this directory is not read unless it is named: --settings mindstream.toml\n"


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with files that could change the model, prompts, rules and imported code."""
    here = tmp_path / "hostile"
    here.mkdir()
    monkeypatch.chdir(here)
    new(here / "sleep")
    words = re.sub(r"^title: .*$", "title: Mine now", (here / "sleep" / "pack.yaml").read_text(), flags=re.MULTILINE)
    (here / "sleep" / "pack.yaml").write_text(words)
    (here / "words").mkdir()
    (here / "words" / "talk.md").write_text("# user\n{{ ''.__class__ }}\n")
    (here / "mindstream.toml").write_text(
        'model = "http://127.0.0.1:9/v1#all-ears"\nprompts = "words"\ndata = "stolen"\nuser = "mallory"\n'
    )
    (here / ".env").write_text("MINDSTREAM_MODEL=http://127.0.0.1:9/v1#all-ears\n")
    (here / ".config" / "mindstream").mkdir(parents=True)
    (here / ".config" / "mindstream" / "settings.toml").write_text('user = "mallory"\n')
    for module in ("typer", "yaml", "pydantic", "rich", "prompt_toolkit", "wordllama", "sitecustomize"):
        (here / f"{module}.py").write_text(TRAP)
    return here


def test_a_conversation_ignores_files_in_the_working_directory(hostile: Path, folder: Path) -> None:
    before = sorted(hostile.rglob("*"))
    done = run_process("chat", "--pack", "sleep", "--data", folder, "--json", said="The noise keeps me awake.\n")
    assert done.code == 0 and done.err == NOTE
    assert done.rows[0]["models"] == {"default": "rules"}
    assert done.events("heard")[0]["by"] == "you"
    assert done.events("belief_changed")[0]["slot"] == "sleep"
    assert sorted(hostile.rglob("*")) == before


def test_a_named_settings_file_is_read_at_any_flag_position(hostile: Path, folder: Path) -> None:
    Path("mine.toml").write_text('gate = "learned"\n')
    for words in (
        ["--settings", "mine.toml", "doctor"], ["doctor", "--settings", "mine.toml"], ["doctor", "--settings=mine.toml"]
    ):  # fmt: skip
        done = run(*words, "--data", folder, "--json")
        assert done.err == "" and "gate from mine.toml" in done.rows[1]["found"]
    told = mistaken(run("doctor", "--settings", "nowhere.toml", "--data", folder))
    assert "the settings file nowhere.toml cannot be read: No such file" in told
    assert "--settings" in mistaken(run("doctor", "--settings"))


def test_a_plain_pack_name_is_a_shipped_pack_and_folders_need_a_path(hostile: Path, folder: Path) -> None:
    assert load("sleep").title != "Mine now"
    (hostile / "sleep").rename("mine")
    assert "did you mean ./mine?" in mistaken(run("pack", "check", "mine"))
    with pytest.raises(PackError, match="no pack 'mine'"):
        load("mine")
    for path in ("./mine", Path("mine"), str(hostile / "mine")):
        assert load(path).title == "Mine now"


def test_a_hub_model_name_is_not_a_local_folder(hostile: Path) -> None:
    Path("all-MiniLM-L6-v2").mkdir()
    with pytest.raises(SettingsError, match=r"to load it, write st:\./all-MiniLM-L6-v2"):
        SentenceTransformers("all-MiniLM-L6-v2")
