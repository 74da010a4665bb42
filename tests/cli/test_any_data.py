"""First commands give the same output with a folder and with a database."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import postgres_server
import pytest
from fake_endpoint import Fails, FakeEndpoint, Says
from running import Done, mistaken, run, run_process, terminal
from test_town import HAMLET

SECRET = "My parrot Zorro keeps me awake in Utrecht."


@pytest.fixture
def ann(data: str) -> tuple[str, ...]:
    return ("--data", data, "--user", "ann")


@pytest.fixture(autouse=True)
def state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A separate state folder for the test."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def done(*arguments: str | Path, said: str = "") -> Done:
    """Run a command that succeeds and prints no password."""
    found = run(*arguments, said=said)
    assert found.code == 0, (found.out, found.err)
    assert ":secret@" not in found.out + found.err
    return found


def test_a_conversation_is_remembered_by_the_next_process(ann: tuple[str, ...]) -> None:
    told = run_process("chat", *ann, "--json", said=f"{SECRET}\n")
    assert told.code == 0 and told.events("said") and "secret" not in told.out + told.err, told.err
    found = done("memory", "recall", "what keeps me awake?", *ann, "--json").rows
    assert SECRET in [row["text"] for row in found]
    listed = done("memory", "list", *ann).out
    assert SECRET in listed and "belief sleep, v1" in listed
    heard = done("log", *ann, "--json").events("heard")
    assert [row["text"] for row in heard] == [SECRET]
    assert any(row["name"] == "all" and row["calls"] for row in done("cost", *ann, "--json").rows)
    assert "user" in done("memory", "sessions", *ann).out or done("memory", "sessions", *ann).out


def test_typed_history_is_local_and_forgotten_with_the_memory(
    ann: tuple[str, ...], data: str, state: Path, folder: Path
) -> None:
    with terminal("chat", *ann) as screen:
        screen.until("you: ")
        screen.type(f"/retain {SECRET}\r")
        screen.until("retained as")
        screen.leave()
    (typed,) = (folder if Path(data) == folder else state).rglob("history/ann.txt")
    assert SECRET in typed.read_text() and typed.stat().st_mode & 0o077 == 0
    assert "1 record" in done("memory", "forget", "--about", "Zorro", "--yes", *ann).out
    assert "Zorro" not in done("memory", "export", *ann).out and "Zorro" not in typed.read_text()


def test_a_memory_can_be_exported_imported_forgotten_and_erased(
    ann: tuple[str, ...], data: str, tmp_path: Path
) -> None:
    done("memory", "retain", SECRET, *ann)
    (tea,) = done("memory", "retain", "The tea is in the shed.", *ann, "--json").rows
    file, mind = tmp_path / "ann.jsonl", tmp_path / "ann.mind"
    done("memory", "export", file, *ann)
    done("mind", "export", mind, *ann)
    done("memory", "forget", tea["id"], "--yes", *ann)
    assert "tea" not in done("memory", "list", *ann).out
    bob = ("--data", data, "--user", "bob")
    refused = run("memory", "import", file, *bob)
    assert refused.code == 2 and "belongs to another user" in refused.err
    assert done("memory", "erase", "--yes", "--json", *ann).rows[0]["records"] == 1
    assert "there is no user 'ann'" in mistaken(run("memory", "list", *ann))
    done("mind", "import", mind, *bob)
    assert "Zorro" in done("memory", "recall", "the parrot", *bob).out
    assert "0 broken" in (told := done("doctor", *bob).out) or "nothing is broken" in told


def test_an_erased_user_is_in_no_row_of_database_or_pool(data: str, tmp_path: Path) -> None:
    olga, ann = ("--data", data, "--user", "olga"), ("--data", data, "--user", "ann")
    _pool(olga, tmp_path)
    done("pool", "add", "verse", "--query", SECRET, "--answer", "Rain on the pane.", "--writer", "ann", *olga)
    done("memory", "retain", SECRET, *ann)
    (row,) = done("memory", "erase", "--yes", "--json", *ann).rows
    assert row["elsewhere"] == {"pool:verse": row["elsewhere"]["pool:verse"]} and row["looked_for"]
    assert "Zorro" not in done("pool", "export", "verse", *olga).out
    assert "Zorro" not in _all_of(data)


def _all_of(data: str) -> str:
    """Return the content of all tables as one text."""
    from mindstream.memory.opening import open_store

    tables = ("log", "records", "work", "kept", "uniques", "streams")

    async def read() -> str:
        async with open_store(data) as store:
            return await store.read(
                lambda connection: "".join(
                    str(row) for table in tables for row in connection.execute(f"SELECT * FROM {table}")
                )
            )

    import asyncio

    return asyncio.run(read())


def test_a_task_is_solved_and_an_interrupted_run_resumes(door: FakeEndpoint, ann: tuple[str, ...]) -> None:
    flags = ("--model", f"{door.url}#m", *ann)
    door.will(Says("#E1 = calculator[6 * 7]\n"), Fails(400, "out of order"))
    failed = run("solve", "How many?", *flags, "--run", "monday")
    assert failed.code != 0 and "solve --resume monday" in failed.err and ":secret@" not in failed.err
    assert [row["state"] for row in done("solve", "--list", *ann, "--json").rows] == ["broken off"]
    door.will(Says("Forty-two."))
    assert done("solve", "--resume", "monday", *flags).out == "Forty-two.\n"
    assert len(door.chats) == 3, "no call is repeated"


def _pool(olga: tuple[str, ...], tmp_path: Path) -> None:
    rubric = tmp_path / "rubric.toml"
    done("pool", "create", "verse", "--open", "--domain", "couplets", *olga)
    done("pool", "rubric", "verse", "--draft", rubric, *olga)
    done("pool", "rubric", "verse", "--freeze", rubric, *olga)


def test_a_pool_can_be_filled_and_recalled(data: str, tmp_path: Path) -> None:
    olga = ("--data", data, "--user", "olga")
    assert "there is no pool" in run("pool", "recall", "verse", "rain", *olga).err
    _pool(olga, tmp_path)
    done("pool", "add", "verse", "--query", "A couplet on rain", "--answer", "Rain on the pane.", *olga)
    found = done("pool", "recall", "verse", "a couplet on rain", "-k", "1", *olga).out
    assert found.startswith("Question: A couplet on rain\nAnswer: Rain on the pane.\n")
    assert len(done("pool", "export", "verse", *olga).out.splitlines()) == 1


def test_a_town_shares_a_database_with_memories_but_not_a_folder(data: str, tmp_path: Path) -> None:
    where, file, journal = ("--data", data), tmp_path / "hamlet.toml", tmp_path / "journal.jsonl"
    file.write_text(HAMLET)
    done("town", "new", file, "--seed", "3", *where)
    assert "contains a town" in mistaken(run("town", "new", file, *where))
    done("town", "run", "--until", "Feb 13 08:30", *where)
    (status,) = done("town", "status", "--json", *where).rows
    assert status["residents"][0]["place"].startswith("Hamlet:Oak")
    assert "serving guests" in done("town", "timeline", "ada", *where).out
    done("town", "whisper", "ben", "The bridge is closed on Sunday.", *where)
    done("town", "export", "--journal", journal, *where)
    assert len(journal.read_text().splitlines()) > 20
    done("town", "fork", tmp_path / "fork", "--at", "Feb 13 08:00", *where)
    (forked,) = done("town", "status", "--json", "--data", tmp_path / "fork").rows
    assert forked["residents"] and 0 < forked["step"] < status["step"]
    talk = run("memory", "retain", "The tea is in the shed.", *where)
    assert (talk.code == 0) == data.startswith("postgresql://")


def test_a_database_can_be_set_by_environment_or_settings_file(data: str, tmp_path: Path) -> None:
    done("memory", "retain", SECRET, "--data", data)
    file = tmp_path / "my.toml"
    file.write_text(f"data = {json.dumps(data)}\n")
    for variables in ({"MINDSTREAM_DATA": data}, {"MINDSTREAM_SETTINGS": str(file)}):
        found = run("memory", "list", **variables)
        assert found.code == 0 and SECRET in found.out


def test_tokens_can_be_created_listed_and_revoked(data: str) -> None:
    where = ("--data", data)
    (made,) = done("token", "new", "--tenant", "acme", "--scope", "read", "--json", *where).rows
    assert [row["id"] for row in done("token", "list", "--json", *where).rows] == [made["id"]]
    done("token", "revoke", made["id"], *where)
    assert done("token", "list", "--json", *where).rows == []


def test_data_copy_copies_memories_and_tokens_both_ways(data: str, tmp_path: Path) -> None:
    done("memory", "retain", SECRET, "--data", data)
    (made,) = done("token", "new", "--tenant", "acme", "--json", "--data", data).rows
    other = str(tmp_path / "copy") if data.startswith("postgresql://") else postgres_server.fresh_url()
    told = done("data", "copy", data, other, "--json").rows
    assert {row["table"]: row["rows"] for row in told}["kept"] == 1
    assert SECRET in done("memory", "list", "--data", other).out
    assert [row["id"] for row in done("token", "list", "--json", "--data", other).rows] == [made["id"]]


def test_a_copied_town_can_be_continued(data: str, tmp_path: Path) -> None:
    file = tmp_path / "hamlet.toml"
    file.write_text(HAMLET)
    done("town", "new", file, "--seed", "3", "--data", data)
    other = str(tmp_path / "copy") if data.startswith("postgresql://") else postgres_server.fresh_url()
    done("data", "copy", data, other)
    done("town", "run", "--until", "Feb 13 00:10", "--data", other)
    (status,) = done("town", "status", "--json", "--data", other).rows
    assert status["residents"] and status["step"] == 60
    assert "already contains a town" in mistaken(run("town", "new", file, "--data", other))


def test_the_doctor_reports_missing_parts_of_a_database(tmp_path: Path) -> None:
    url = postgres_server.fresh_url()
    told = done("doctor", "--data", url).out
    for words in ("PostgreSQL 18", "'mind' is suitable", "no memory yet", "pgvector", "connections"):
        assert words in told
    done("memory", "retain", "tea", "--data", url)
    assert "migrations" in (told := done("doctor", "--data", url).out) and "pg_dump" in told
    unfit = run("doctor", "--data", postgres_server.admin_url())
    assert unfit.code == 1 and "SUPERUSER" in unfit.out and "CREATE ROLE" in unfit.out
    away = run("doctor", "--data", "postgresql://ann:hunter2@127.0.0.1:9/mind")
    assert away.code == 1 and "pg_isready" in away.out and "hunter2" not in away.out + away.err
    mend = run("doctor", "--mend", "--data", url)
    assert mend.code == 2 and "is a database" in mend.err


def test_passwords_are_in_no_process_title_or_file(state: Path) -> None:
    url = postgres_server.fresh_url()
    with terminal("chat", MINDSTREAM_DATA=url) as screen:
        screen.until("you: ")
        listed = subprocess.run(["ps", "-o", "args=", "-p", str(screen.process.pid)], capture_output=True, text=True)
        assert listed.stdout and "secret" not in listed.stdout
        screen.type("/retain tea\r")
        screen.leave()
        assert ":secret" not in screen.raw.decode()
    assert any(state.rglob("*.txt"))
    for path in state.rglob("*"):
        assert "secret" not in str(path) and (path.is_dir() or b"secret" not in path.read_bytes())
    assert "MINDSTREAM_DATA" not in os.environ
