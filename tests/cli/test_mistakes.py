from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_endpoint import FakeEndpoint, Stalls
from running import mistaken, run, run_process

from mindstream import Memory
from mindstream.errors import ReadOnlyData
from mindstream.sharing import admission

MISTAKES = [
    (["chat", "--pack", "nowhere"], "no pack 'nowhere'"),
    (["chat", "--model", "gpt-5"], "not the name of a model"),
    (["chat", "--model", "openai:gpt-5"], "OPENAI_API_KEY"),
    (["chat", "--role", "talker"], "ROLE=MODEL"),
    (["chat", "--user", "a\tb"], "user 'a\\tb'"),
    (["chat", "--deadline", "soon"], "--deadline"),
    (["chat", "--record", "nowhere/calls.jsonl"], "cannot be written"),
    (["chat", "--data", "/proc/nowhere"], "cannot be created"),
    (["chat", "--nothing"], "no such option"),
    (["whistle"], "no such command"),
    (["memory", "recall", "noise", "--data", "nowhere"], "no memory in nowhere"),
]


@pytest.mark.parametrize(
    ("arguments", "told"), MISTAKES, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_invalid_arguments_are_refused_in_one_sentence(
    arguments: list[str], told: str, folder: Path, tmp_path: Path
) -> None:
    data = [] if "--data" in arguments or arguments[0] in ("whistle",) else ["--data", str(folder)]
    with contextlib.chdir(tmp_path):
        assert told in mistaken(run(*arguments, *data, said="The noise keeps me awake.\n"))


def test_a_damaged_database_is_reported(folder: Path) -> None:
    folder.mkdir()
    (folder / "mindstream.db").write_bytes(b"this is no database " * 500)
    assert "damaged" in mistaken(run("chat", "--data", folder, said="hello"))
    assert "damaged" in mistaken(run("memory", "list", "--data", folder))


def test_a_database_of_another_program_is_left_unchanged(folder: Path) -> None:
    folder.mkdir()
    with contextlib.closing(sqlite3.connect(folder / "mindstream.db")) as connection:
        connection.execute("CREATE TABLE music (title)")
    assert "another program" in mistaken(run("chat", "--data", folder, said="hello"))


def test_a_locked_database_is_reported(folder: Path) -> None:
    run("chat", "--data", folder, said="hello")
    with contextlib.closing(sqlite3.connect(folder / "mindstream.db", isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        assert "another program has locked it" in mistaken(run("chat", "--data", folder, said="hello"))


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """A data folder on a file system that is mounted read-only."""
    place, tmpfs = tmp_path / "disc", ["mount", "-t", "tmpfs", "-o", "size=20m"]
    place.mkdir()
    if subprocess.run([*tmpfs, "tmpfs", place], capture_output=True).returncode:
        pytest.skip("only root may mount a file system")
    try:
        run("memory", "retain", "The rowing boat is moored at pier 7.", "--data", place / "data", "--user", "ann")
        subprocess.run(["mount", "-o", "remount,ro", place], check=True)
        yield place / "data"
    finally:
        subprocess.run(["umount", place], check=True)


READS = [
    "memory list", "memory recall boat", "memory export -", "mind export -", "memory audit", "memory curve", "log",
    "memory sessions", "data export-person {file}", "cost",
]  # fmt: skip
WRITES = ["memory retain tea", "memory forget --about boat --yes", "memory erase --yes", "memory sleep", "chat"]


def test_a_read_only_folder_is_read_and_not_changed(read_only: Path, tmp_path: Path) -> None:
    for command in (*READS, *WRITES):
        words = [word.format(file=tmp_path / "person.zip") for word in command.split()]
        user = [] if command == "cost" else ["--user", "ann"]
        done = run(*words, "--data", read_only, *user, said="hello\n")
        if command in READS:
            assert done.code == 0 and "mindstream:" not in done.err, (command, done.err)
            assert "pier 7" in done.out or not {"list", "recall", "export"} & {*words}, command
        else:
            assert done.code == 2 and "can be read, but not changed" in done.err.splitlines()[-1], (command, done.err)
    assert [path.name for path in read_only.iterdir()] == ["mindstream.db"]


async def test_programs_read_a_read_only_folder(read_only: Path) -> None:
    async with Memory(read_only, "ann") as memory:
        (hit,) = await memory.recall("where is the boat?", limit=1)
        assert "pier 7" in hit.text and (await memory.get(hit.id)) is not None
        with pytest.raises(ReadOnlyData, match="not changed"):
            await memory.retain("tea")
        assert [record.text for record in await memory.list()] == [hit.text]


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[Path]:
    """A file system of 600 kB."""
    place = tmp_path / "tiny"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", place], capture_output=True)
    if mounted.returncode:
        pytest.skip("only root may mount a file system")
    yield place
    subprocess.run(["umount", place], check=True)


def test_a_full_disk_ends_a_piped_conversation_with_one_sentence(tiny: Path) -> None:
    done = run("chat", "--data", tiny / "data", said="I sleep badly, and the noise keeps me awake.\n" * 300)
    assert done.code == 2
    assert len(done.err.splitlines()) == 1 and "disk is full" in done.err


def test_an_internal_error_writes_its_traceback_to_a_file(folder: Path, tmp_path: Path) -> None:
    broken = tmp_path / "mindstream_broken"
    broken.mkdir()
    (broken / "sitecustomize.py").write_text(
        "import mindstream.coach.packs.load as load\ndef fall(*_): raise KeyError('oops')\nload.shipped_packs = fall\n"
    )
    path = os.pathsep.join([str(broken), *sys.path])
    done = run_process("packs", PYTHONPATH=path, TMPDIR=str(tmp_path))
    assert done.code == 70 and len(done.err.splitlines()) == 1
    (kept,) = tmp_path.glob("mindstream-*.log")
    assert str(kept) in done.err and "KeyError: 'oops'" in kept.read_text()
    assert "Traceback" in run_process("packs", "--debug", PYTHONPATH=path).err


def test_a_timeout_is_explained_in_a_sentence(
    door: FakeEndpoint, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "JUDGING_S", 0.2)
    where = ("--data", folder, "--user", "olga")
    run("pool", "create", "verse", *where)
    run("pool", "rubric", "verse", "--draft", tmp_path / "r.toml", *where)
    run("pool", "rubric", "verse", "--freeze", tmp_path / "r.toml", *where)
    door.otherwise = Stalls()
    tea = ("--query", "A tea?", "--answer", "Pour hot water on it.", "--writer", "ann")
    told = mistaken(run("pool", "add", "verse", *tea, "--model", f"{door.url}#m", *where))
    assert "TimeoutError" not in told and "fault of mindstream" not in told


def test_reasoner_failures_are_shown_only_with_debug(folder: Path, tmp_path: Path) -> None:
    broken = tmp_path / "mindstream_broken"
    broken.mkdir()
    (broken / "sitecustomize.py").write_text(
        "from mindstream.coach.belief.belief import BeliefReasoner\n"
        "async def fall(*_): raise KeyError('oops')\nBeliefReasoner.think = fall\n"
    )
    path = os.pathsep.join([str(broken), *sys.path])
    quiet = run_process("chat", "--data", tmp_path / "data", said="Hello!\n", PYTHONPATH=path)
    loud = run_process("--debug", "chat", "--data", tmp_path / "data", said="Hello!\n", PYTHONPATH=path)
    assert (quiet.code, loud.code) == (0, 0)
    assert "oops" not in quiet.err and "KeyError: 'oops'" in loud.err
