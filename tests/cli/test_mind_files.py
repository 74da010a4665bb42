from __future__ import annotations

import json
from pathlib import Path

import pytest
from running import mistaken, run

TALK = "The noise keeps me awake, and my bedroom is too bright.\nMake me a plan, step by step.\n吵得我睡不着。\n"


@pytest.fixture(scope="module")
def talked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with conversations of ann and bob, for reading only."""
    folder = tmp_path_factory.mktemp("talked")
    options = ("--data", folder, "--session", "a monday")
    assert run("chat", *options, "--user", "bob", said="I drink coffee until midnight.\n" + TALK).code == 0
    assert run("chat", *options, "--user", "ann", said=TALK).code == 0
    return folder


@pytest.fixture(scope="module")
def exported(talked: Path) -> str:
    done = run("mind", "export", "-", "--data", talked, "--user", "ann")
    assert done.code == 0, done.err
    return done.out


def test_a_mind_file_is_a_memory_export_with_a_longer_header(talked: Path, exported: str) -> None:
    header, *records = exported.splitlines()
    assert records == run("memory", "export", "--data", talked, "--user", "ann").out.splitlines()[1:]
    assert json.loads(header)["settings"] == {
        "pack": "sleep", "gate": "belief", "models": {"default": "rules"}, "session": "a monday",
    }  # fmt: skip


def test_a_mind_can_be_continued_elsewhere_under_another_name(exported: str, folder: Path) -> None:
    options = ("mind", "import", "-", "--data", folder, "--user", "carol")
    (row,) = run(*options, "--json", said=exported).rows
    assert row["written"] == len(exported.splitlines()) - 1
    assert row["go_on"].startswith("mindstream chat --user carol --pack sleep --session 'a monday' --gate belief")
    assert "0 records imported" in run(*options, said=exported).out
    again = run("memory", "export", "--data", folder, "--user", "carol").out
    assert again.splitlines()[1:] == exported.splitlines()[1:]
    said = "What do you remember about me?\n"
    asked = run("chat", "--data", folder, "--user", "carol", "--session", "a monday", said=said)
    assert "noise" in asked.out.partition("What do you remember")[2]


def test_without_a_user_flag_the_mind_keeps_its_name(exported: str, folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "ann.mind"
    file.write_text(exported.replace('"pack":"sleep"', '"pack":"tea"'), "utf-8")
    told = run("mind", "import", file, "--data", folder).out
    assert told.startswith("ann: ") and "'tea' does not come with mindstream" in told
    assert run("memory", "list", "--data", folder, "--user", "ann").out


def settings(**habits: object) -> str:
    """Return a header that describes the conversation with a mind."""
    return json.dumps({"mindstream": "mind", "format": 1, "user": "ann", "settings": habits})


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (['{"mindstream": "memory", "format": 1}'], "export of a memory: use `mindstream memory import`"),
        (['{"mindstream": "mind", "format": 1, "user": "../x"}'], "user '../x'"),
        ([settings(session="x; touch /tmp/x")], "settings.session 'x; touch /tmp/x'"),
        ([settings(gate="\x1b[31mred")], "settings: expected the names of a pack, a gate"),
    ],
)
def test_a_mind_file_is_checked_completely_before_writing(lines: list[str], told: str, folder: Path) -> None:
    assert told in mistaken(run("mind", "import", "-", "--data", folder, said="\n".join(lines)))
    assert not folder.exists()


@pytest.mark.parametrize(
    "name", ["http://evil.example/v1#m", "openai:gpt-5@https://evil.example/v1", "HTTPS://evil.example#x"]
)
def test_a_model_address_of_a_file_is_reported_and_not_used(name: str, folder: Path) -> None:
    text = settings(models={"default": name, "talker": "ollama:tiny", "reasoner": name})
    done = run("mind", "import", "-", "--data", folder, said=text)
    before, _, command = done.out.partition("continue with it:")
    assert f"the file names the model {name}: your messages would be sent there" in before and before.count(name) == 1
    assert "evil" not in command and "--role talker=ollama:tiny" in command
    (row,) = run("mind", "import", "-", "--data", folder, "--json", said=text).rows
    assert row["left_out"] == [name] and "evil" not in row["go_on"]


def test_a_mind_file_is_not_a_memory_export(exported: str, folder: Path) -> None:
    assert "`mindstream mind import`" in mistaken(run("memory", "import", "--data", folder, said=exported))


def test_the_resume_command_is_quoted_for_a_shell_and_works(folder: Path) -> None:
    habits = {"pack": "sleep", "session": "2026-11-22T03:21:26Z", "gate": "`id`", "models": {"talker": "$(id)"}}
    header = settings(**habits)
    (row,) = run("mind", "import", "-", "--data", folder, "--json", said=header).rows
    assert "--session 2026-11-22T03:21:26Z" in row["go_on"] and "'talker=$(id)'" in row["go_on"]
    assert "`" not in row["go_on"]
    assert run("chat", "--session", habits["session"], "--data", folder, said="hello\n").code == 0  # type: ignore[arg-type]
