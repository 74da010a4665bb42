"""Opening a data folder: by many processes, with unusual files in it, readable by its owner only."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from keys import key_of

from mindstream import SqliteStore
from mindstream.errors import StorageError
from mindstream.log.database import connect
from mindstream.log.events import Said
from mindstream.memory.store.store import Commit, Entry
from mindstream.memory.store.tables import MIGRATIONS

FILE = "mindstream.db"
OPENS = """
import asyncio, sys
from pathlib import Path
from mindstream import SqliteStore
base, count = Path(sys.argv[1]), int(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
for n in range(count):
    asyncio.run(SqliteStore(base / str(n)).close())
"""


def opened(folder: Path) -> None:
    """Open and close."""
    asyncio.run(SqliteStore(folder).close())


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_concurrent_processes_can_create_the_same_folder(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OPENS, str(tmp_path), "6"]
    pipe = subprocess.PIPE
    running = [subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) for _ in range(4)]
    for process in running:
        assert process.stdout and process.stdout.readline() == "ready\n"
    for process in running:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    assert [(process.communicate(timeout=200)[1], process.returncode) for process in running] == [("", 0)] * 4


DIES = """
import os, signal, sys
from pathlib import Path
from mindstream.log.database import open_database
from mindstream.memory.store.tables import MIGRATIONS

def renames(connection):
    connection.execute("UPDATE log SET kind = 'spoken' WHERE kind = 'said'")
    if sys.argv[2] == "dies":
        os.kill(os.getpid(), signal.SIGKILL)

open_database(Path(sys.argv[1]), [*MIGRATIONS, renames]).close()
"""


async def speak(folder: Path, times: int) -> None:
    store = SqliteStore(folder)
    said = [Entry(Said(text=f"{n}", answers=1, belief_version=0, model="m"), "coach") for n in range(times)]
    await store.commit(Commit(mind=key_of("ann"), at=0.0, entries=tuple(said)))
    await store.close()


def test_an_interrupted_migration_is_completed_by_the_next_process(folder: Path) -> None:
    asyncio.run(speak(folder, 500))

    def state() -> tuple[int, list[tuple[str, int]]]:
        with contextlib.closing(sqlite3.connect(folder / FILE)) as connection:
            (seen,) = connection.execute("PRAGMA user_version").fetchone()
            return seen, connection.execute("SELECT kind, count(*) FROM log GROUP BY kind").fetchall()

    for how, code, seen, kind in (("dies", -9, 0, "said"), ("lives", 0, 1, "spoken"), ("dies", 0, 1, "spoken")):
        done = subprocess.run([sys.executable, "-c", DIES, str(folder / FILE), how], capture_output=True)
        assert done.returncode == code, done.stderr
        assert state() == (len(MIGRATIONS) + seen, [(kind, 500)]), "once, and completely"
    with pytest.raises(StorageError, match="newer mindstream"):
        opened(folder)


def test_a_new_folder_is_readable_only_by_its_owner(folder: Path) -> None:
    store = SqliteStore(folder)
    assert mode(folder) == 0o700
    assert {path.name: mode(path) for path in folder.iterdir()} == {
        FILE: 0o600, f"{FILE}-wal": 0o600, f"{FILE}-shm": 0o600,
    }  # fmt: skip
    asyncio.run(store.close())


def test_permissions_change_only_for_files_of_the_store(folder: Path) -> None:
    folder.mkdir(mode=0o755)
    opened(folder)
    (folder / FILE).chmod(0o644)
    (folder / "other.txt").write_text("x")
    (folder / "other.txt").chmod(0o644)
    opened(folder)
    assert (mode(folder), mode(folder / FILE), mode(folder / "other.txt")) == (0o755, 0o600, 0o644)


@pytest.mark.parametrize("name", [FILE, f"{FILE}-wal", f"{FILE}-journal"])
@pytest.mark.parametrize("what", ["a pipe", "a folder", "a socket", "symbolic links"])
def test_pipes_sockets_folders_and_loops_are_refused_at_once(
    folder: Path, name: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(folder)
    place = folder / name
    place.unlink(missing_ok=True)
    monkeypatch.chdir(folder)  # socket paths must be short
    with socket.socket(socket.AF_UNIX) as listener:
        match what:
            case "a pipe":
                os.mkfifo(place)
            case "a folder":
                place.mkdir()
            case "a socket":
                listener.bind(name)
            case _:
                place.symlink_to(place)
        with pytest.raises(StorageError, match=what):
            SqliteStore(folder)


def test_a_device_file_is_refused(folder: Path) -> None:
    folder.mkdir()
    (folder / FILE).symlink_to("/dev/zero")
    with pytest.raises(StorageError, match="a device"):
        SqliteStore(folder)


def test_a_file_of_another_program_is_left_unchanged(folder: Path) -> None:
    folder.mkdir()
    with contextlib.closing(sqlite3.connect(folder / FILE)) as connection:
        connection.execute("CREATE TABLE theirs (x)")
        connection.commit()
    before = (folder / FILE).read_bytes()
    with pytest.raises(StorageError, match="another program"):
        SqliteStore(folder)
    assert (folder / FILE).read_bytes() == before
    assert not (folder / f"{FILE}-wal").exists()


@pytest.mark.parametrize(("number", "words"), [(0, "doctor --mend"), (-5, "doctor --mend"), (99, "newer mindstream")])
def test_an_impossible_schema_version_is_reported(folder: Path, number: int, words: str) -> None:
    opened(folder)
    with contextlib.closing(sqlite3.connect(folder / FILE)) as connection:
        connection.execute(f"PRAGMA user_version = {number}")
    with pytest.raises(StorageError, match=words):
        SqliteStore(folder)


def test_control_characters_in_a_damaged_file_do_not_reach_the_error(folder: Path) -> None:
    opened(folder)
    with contextlib.closing(sqlite3.connect(folder / FILE)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_master SET sql = 'CREATE INDEX \x0b\x1b x' WHERE name = 'records_slot'")
        connection.commit()
    with pytest.raises(StorageError, match="doctor --mend") as refused:
        SqliteStore(folder)
    assert str(refused.value).isprintable()


def test_a_connection_that_never_waits_can_be_made_while_another_holds_the_file(tmp_path: Path) -> None:
    """SQLite locks the file for itself, for example, while it recovers the log of a killed process."""
    opened(tmp_path)
    other = sqlite3.connect(tmp_path / FILE, check_same_thread=False)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("CREATE TABLE held (n)")

    release = threading.Timer(0.2, other.close)
    release.start()
    with contextlib.closing(connect(tmp_path / FILE, 0)) as connection:
        assert connection.execute("PRAGMA busy_timeout").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM held").fetchone() == (0,)
    release.join()
