"""Mistyped and scripted arguments: one sentence, exit code 2, at once."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from running import mistaken, run, run_process

from mindstream.clock import format_iso
from mindstream.errors import InputError
from mindstream.identifiers import checked_name

LONG, HUGE = "b" * 300, "9" * 30
ODD = [
    (["chat", "--pack", LONG], "no pack 'bbb"),
    (["chat", "--pack", "a\x1b]0;evil\x07b\u202e"], r"no pack 'a\x1b]0;evil\x07b\u202e'"),
    (["chat", "--pack", "~nosuchuser/x"], "--pack: '~nosuchuser/x' begins with the home directory of an unknown user"),
    (["chat", "--data", "d" * 10_000], "--data: 'ddd"),
    (["chat", "--record", "pipe"], "the recording pipe cannot be written: it is not a regular file"),
    (["chat", "--settings", "/dev/zero"], "the settings file /dev/zero is not a regular file"),
    (["memory", "list", "-n", HUGE], "it should be less than or equal to 1000"),
    (["pack", "new", LONG], "bbb: file name too long"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "told"), ODD, ids=[" ".join(arguments)[:40] for arguments, _ in ODD])
def test_unusual_arguments_are_refused_in_one_sentence(
    arguments: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    sentence = mistaken(run(*arguments))
    assert told in sentence and len(sentence) < 2100
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202e]", sentence)


@pytest.mark.parametrize("name", ["auth0|1234", format_iso(1e9), "a:b|c", "urn:uuid:1", "é:1", "10:30"])
def test_names_of_other_systems_and_generated_sessions_are_accepted(name: str) -> None:
    assert checked_name(name) == name


@pytest.mark.parametrize(
    "name", ["", " ", ":a", "|a", "../a", "a\nb", "a\x00b", "a\u202eb", "a;b", "a$b", "a!b", "a" * 101]
)
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="letters, digits, spaces"):
        checked_name(name)


def test_a_session_can_be_continued_by_its_printed_name(folder: Path) -> None:
    user = "auth0|12:34"
    opened, *_ = run_process(
        "chat", "--data", folder, "--user", user, "--json", said="The noise keeps me awake.\n"
    ).rows
    assert ":" in opened["session"]
    again = run_process(
        "chat", "--data", folder, "--user", user, "--session", opened["session"], "--json", said="Yes.\n"
    )
    assert again.code == 0 and again.rows[0]["session"] == opened["session"]
    assert again.rows[0]["at"] > opened["at"] > 1.7e9 and 0 <= again.rows[0]["after_s"] < 60
    row = run("log", "--data", folder, "--user", user, "--json").rows[0]
    assert row == {name: value for name, value in opened.items() if name != "after_s"}
    for command in ("cost", "gate report"):
        assert "there is no user 'bob' here" in mistaken(run(*command.split(), "--data", folder, "--user", "bob"))


def test_a_printed_command_is_quoted_for_the_shell(tmp_path: Path) -> None:
    told = run("pack", "new", tmp_path / "my own; rm -rf")
    assert f"--pack '{tmp_path}/my own; rm -rf'" in told.out
    told = run("prompts", "copy", tmp_path / "my words")
    assert f"--prompts '{tmp_path}/my words'" in told.out
