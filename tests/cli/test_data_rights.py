"""`mindstream data`: retention, archives of a person, deleting a tenant, and the audit."""

from __future__ import annotations

import asyncio
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path

import pytest
from running import mistaken, run

from mindstream import ManualClock, Memory, SqliteStore
from mindstream.models.embedders.embedder import WordLlama

SAID = "The parrot Zibeth sings at noon."


@pytest.fixture
def said(folder: Path) -> Path:
    """A data folder in which ann has retained something."""
    run("memory", "retain", SAID, "--data", folder, "--user", "ann")
    return folder


def test_a_retention_rule_can_be_set_shown_tried_applied_and_removed(said: Path) -> None:
    (made,) = run("data", "retain", "--after", "12w", "--kinds", "note", "--data", said, "--json").rows
    assert made["days"] == 84 and made["kinds"] == ["note"]
    with closing(sqlite3.connect(said / "mindstream.db")) as connection, connection:
        connection.execute("UPDATE records SET created = 1e9")
    tried = run("data", "retain", "--dry-run", "--data", said)
    assert "1 record," in tried.out and "would be erased" in tried.out
    assert SAID in run("memory", "list", "--data", said, "--user", "ann").out
    assert run("data", "retain", "--now", "--data", said, "--json").rows[0]["records"] == 1
    assert SAID not in run("memory", "list", "--data", said, "--user", "ann").out
    assert "until it is erased on request" in run("data", "retain", "--never", "--data", said).out
    assert "there is no rule" in run("data", "retain", "--data", said).out
    did = [row["did"] for row in run("data", "audit", "--data", said, "--json").rows]
    assert did == ["retention_set", "retention_applied", "retention_set"]


def test_a_personal_archive_is_complete_and_audited_after_the_erasure(said: Path, tmp_path: Path) -> None:
    run("data", "export-person", tmp_path / "ann.zip", "--user", "ann", "--data", said)
    with zipfile.ZipFile(tmp_path / "ann.zip") as archive:
        assert SAID in archive.read("index.html").decode() and SAID in archive.read("records.jsonl").decode()
    run("memory", "erase", "--user", "ann", "--yes", "--data", said)
    rows = run("data", "audit", "--user", "ann", "--data", said, "--json").rows
    assert [row["did"] for row in rows] == ["exported", "erased"] and rows[1]["counts"]["records"] == 1
    assert all(row["who"] and row["door"] == "command" for row in rows)
    held = b"".join(path.read_bytes() for path in said.rglob("mindstream.db*"))
    assert b"Zibeth" not in held and b"ann" not in held.replace(b"planner", b"")
    with closing(sqlite3.connect(said / "mindstream.db")) as connection:
        for change in ("DELETE FROM audit", "UPDATE audit SET who = 'nobody'"):
            with pytest.raises(sqlite3.DatabaseError, match="stay as they are"):
                connection.execute(change)


def test_deleting_a_tenant_deletes_its_tokens(said: Path) -> None:
    (token,) = run("token", "new", "--tenant", "acme", "--data", said, "--json").rows
    gone = run("data", "delete-tenant", "acme", "--yes", "--data", said)
    assert "acme is deleted: 1 token\n" in gone.out
    assert run("token", "list", "--data", said, "--json").rows == []
    rows = run("data", "audit", "--tenant", "acme", "--data", said, "--json").rows
    assert [row["did"] for row in rows] == ["token_made", "tenant_deleted"]
    assert rows[0]["counts"]["token"] == token["id"]
    assert SAID in run("memory", "list", "--data", said, "--user", "ann").out


def test_erasing_a_user_of_a_tenant_keeps_a_namesake_without_tenant(said: Path) -> None:
    async def retain() -> None:
        async with SqliteStore(said, "acme") as store, Memory(store, "ann", WordLlama(), ManualClock()) as memory:
            await memory.retain("The tapir Quaxon sleeps.", "note")

    asyncio.run(retain())
    gone = run("memory", "erase", "--user", "ann", "--tenant", "acme", "--yes", "--data", said)
    assert gone.out.startswith("ann of acme is erased: ") and "1 record," in gone.out
    assert b"Quaxon" not in b"".join(path.read_bytes() for path in said.rglob("mindstream.db*"))
    assert SAID in run("memory", "list", "--data", said, "--user", "ann").out
    rows = run("data", "audit", "--tenant", "acme", "--user", "ann", "--data", said, "--json").rows
    assert [row["did"] for row in rows] == ["erased"]


def test_the_tenant_local_means_users_without_a_tenant(said: Path, tmp_path: Path) -> None:
    local = ("--tenant", "local", "--data", said)
    run("data", "retain", "--after", "12w", *local)
    assert run("data", "retain", "--data", said, "--json").rows[0]["days"] == 84
    run("data", "export-person", tmp_path / "ann.zip", "--user", "ann", *local)
    run("memory", "erase", "--user", "ann", "--yes", *local)
    assert "there is no user 'ann'" in mistaken(run("memory", "list", "--data", said, "--user", "ann"))


@pytest.mark.parametrize(
    ("words", "said_of_it"),
    [
        (["retain", "--after", "soon"], "--after takes days or weeks"),
        (["retain", "--after", "0d"], "the shortest retention period is a day"),
        (["retain", "--after", "9d", "--kinds", "chats"], "there is no kind of record 'chats'"),
        (["delete-tenant", "acme", "--yes"], "there are no data of a tenant 'acme'"),
        (["delete-tenant", "local", "--yes"], "are not a tenant"),
        (["delete-tenant", "*", "--yes"], "tenant '*'"),
        (["delete-tenant", "_town", "--yes"], "are reserved"),
        (["retain", "--now", "--tenant", "_life"], "are reserved"),
        (["audit", "--tenant", "_town"], "are reserved"),
        (["export-person", "x.zip", "--user", "ann", "--tenant", "_town"], "are reserved"),
        (["export-person", "carla.zip", "--user", "carla"], "there is no user 'carla'"),
    ],
)
def test_invalid_arguments_are_refused(words: list[str], said_of_it: str, said: Path) -> None:
    assert said_of_it in mistaken(run("data", *words, "--data", said))
