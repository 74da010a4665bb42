"""Rows that move between pages leave copies in unused bytes; these are overwritten without rewriting the file."""

from __future__ import annotations

import contextlib
import random
import sqlite3
import threading
import time
from pathlib import Path

import pytest

from mindstream.log import free_space
from mindstream.log.database import SECURED, connect, open_database, overwrite_deleted


def table(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID")
    connection.execute("INSERT INTO counters VALUES (?, 1)", (SECURED,))
    connection.execute("CREATE TABLE rows (number INTEGER PRIMARY KEY, text TEXT, level INTEGER, after TEXT)")


def churn(connection: sqlite3.Connection, chance: random.Random) -> set[int]:
    """Write rows, change them at random, and delete some; return the remaining ones."""
    for batch in range(40):
        connection.execute("BEGIN")
        for number in range(batch * 80, batch * 80 + 80):
            text = f"zebra{number:05d}. " + "w" * chance.randrange(20, 400)
            connection.execute("INSERT INTO rows (number, text, level) VALUES (?, ?, 0)", (number, text))
        for number in chance.sample(range(batch * 80 + 80), 80):
            after = "x" * chance.randrange(200)
            connection.execute("UPDATE rows SET level = level + 1, after = ? WHERE number = ?", (after, number))
        connection.execute("COMMIT")
    there = set(range(40 * 80))
    for number in chance.sample(sorted(there), 800):
        connection.execute("DELETE FROM rows WHERE number = ?", (number,))
        there.remove(number)
    return there


def left(path: Path) -> set[int]:
    data = b"".join(each.read_bytes() for each in path.parent.iterdir())
    return {int(each[:5]) for each in data.split(b"zebra")[1:] if each[:5].isdigit()}


def test_copies_of_deleted_rows_are_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "rows.db"
    with contextlib.closing(open_database(path, [table])) as connection, free_space.in_use(path):
        there = churn(connection, random.Random(5))
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        schema = connection.execute("PRAGMA schema_version").fetchone()
        assert left(path) - there  # secure_delete alone leaves some
        overwrite_deleted(connection, path)
        assert left(path) == there
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("PRAGMA schema_version").fetchone() == schema  # no VACUUM


def test_a_file_of_an_earlier_version_is_rewritten_once(tmp_path: Path) -> None:
    path = tmp_path / "rows.db"
    with contextlib.closing(open_database(path, [table])) as connection, free_space.in_use(path):
        connection.execute("PRAGMA secure_delete = OFF")
        connection.execute("DELETE FROM counters")
        there = churn(connection, random.Random(6))
        schemas = [connection.execute("PRAGMA schema_version").fetchone()]
        for _ in range(2):
            overwrite_deleted(connection, path)
            schemas.append(connection.execute("PRAGMA schema_version").fetchone())
        assert left(path) == there
        assert schemas[0] != schemas[1] == schemas[2]


class Erasing:
    """A file in which rows are erased one after another, while it grows; counts how many pages each erasure read."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path, self.chance, self.number, self.read = folder / "rows.db", random.Random(11), 0, list[int | None]()
        real = free_space.overwrite

        def overwrite(path: Path, page_size: int, salt: int | None = None, pages: set[int] | None = None) -> int:
            self.read.append(None if pages is None else len(pages))
            return real(path, page_size, salt, pages)

        monkeypatch.setattr(free_space, "overwrite", overwrite)

    def write(self, connection: sqlite3.Connection, count: int) -> None:
        connection.execute("BEGIN IMMEDIATE")
        for _ in range(count):
            text = f"zebra{self.number:05d}. " + "w" * self.chance.randrange(20, 400)
            connection.execute("INSERT INTO rows (number, text, level) VALUES (?, ?, 0)", (self.number, text))
            grown = (self.recent(), "x" * self.chance.randrange(400))
            connection.execute("UPDATE rows SET after = ?2 WHERE number = ?1", grown)
            self.number += 1
        connection.execute("COMMIT")

    def recent(self) -> int:
        return max(0, self.number - self.chance.randrange(100))

    def erase(self, connection: sqlite3.Connection) -> int:
        """Delete some rows; return how many deleted rows are in any file."""
        for _ in range(10):
            connection.execute("DELETE FROM rows WHERE number = ?", (self.recent(),))
        overwrite_deleted(connection, self.path)
        return len(left(self.path) - {number for (number,) in connection.execute("SELECT number FROM rows")})


def test_after_the_first_erasure_only_the_pages_written_since_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    erasing = Erasing(tmp_path, monkeypatch)
    with contextlib.closing(open_database(erasing.path, [table])) as one, free_space.in_use(erasing.path):
        erasing.write(one, 4_000)
        for round_ in range(40):
            erasing.write(one, 30)
            if round_ % 10 == 9:  # the next write restarts the write-ahead log
                one.execute("PRAGMA wal_checkpoint")
            with contextlib.closing(connect(erasing.path)) as other:
                erasing.write(other, 10)
            assert erasing.erase(one) == 0
    assert [round_ for round_, pages in enumerate(erasing.read) if pages is None] == [0, 9, 19, 29, 39]
    assert all(pages is None or 0 < pages < 300 for pages in erasing.read)
    with contextlib.closing(connect(erasing.path)) as one, free_space.in_use(erasing.path):
        erasing.erase(one)
    assert erasing.read[-1] is None  # the file may have changed while it was closed


@pytest.mark.parametrize("broken", ["nothing is overwritten", "no page is said to have changed"])
def test_without_overwriting_the_search_finds_deleted_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    erasing, changed = Erasing(tmp_path, monkeypatch), free_space.changed_pages
    if broken == "nothing is overwritten":
        monkeypatch.setattr(free_space, "overwrite", lambda *_: 0)
    else:
        monkeypatch.setattr(free_space, "changed_pages", lambda path: (changed(path)[0], set()))
    found = 0
    with contextlib.closing(open_database(erasing.path, [table])) as one, free_space.in_use(erasing.path):
        for _ in range(40):
            erasing.write(one, 30)
            found = max(found, erasing.erase(one))
    assert found


def test_deleted_rows_are_overwritten_while_others_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    erasing, ended = Erasing(tmp_path, monkeypatch), threading.Event()

    def write() -> None:
        with contextlib.closing(connect(erasing.path)) as other:
            first = 1_000_000
            while not ended.is_set():
                rows = [(number, "o" * 300) for number in range(first, first + 20)]  # `left` does not count them
                other.executemany("INSERT INTO rows (number, text) VALUES (?, ?)", rows)
                other.execute("DELETE FROM rows WHERE number BETWEEN ? AND ?", (first - 20, first + 10))
                first += 20
                time.sleep(0.002)

    with contextlib.closing(open_database(erasing.path, [table])) as one, free_space.in_use(erasing.path):
        erasing.write(one, 1_000)
        writing = threading.Thread(target=write)
        writing.start()
        try:
            for _ in range(30):
                erasing.write(one, 30)
                number = erasing.chance.randrange(erasing.number)
                one.execute("DELETE FROM rows WHERE number = ?", (number,))
                overwrite_deleted(one, erasing.path)
                assert number not in left(erasing.path)
        finally:
            ended.set()
            writing.join()
        assert one.execute("PRAGMA integrity_check").fetchone() == ("ok",)
