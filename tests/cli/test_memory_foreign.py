from __future__ import annotations

import json
from pathlib import Path

import pytest
from running import mistaken, run, run_process

MEMORIES = [
    {"id": "1", "memory": "Ann rows on Sundays", "created_at": "2024-05-01T10:00:00Z", "user_id": "ann", "hash": "x"},
    {"id": "2", "memory": "Bob sings", "created_at": "2024-05-02T10:00:00Z", "user_id": "bob"},
]


IMPORT = ("memory", "import", "--from", "mem0")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    written = tmp_path / "mem0.json"
    written.write_text(json.dumps({"results": MEMORIES}), "utf-8")
    return written


def test_an_import_reports_kept_fields_and_is_idempotent(file: Path, tmp_path: Path) -> None:
    command: list[str | Path] = [*IMPORT, file, "--user", "ann", "--data", tmp_path / "data"]
    told = run(*command).out
    assert "2 records imported, 0 were known" in told and "created_at (2)" in told
    assert "not kept: hash (1): computed from the text; the first: x" in told
    (row,) = run(*command, "--json").rows
    assert (row["written"], row["known"]) == (0, 2)
    assert row["lost"]["hash"] == {"count": 1, "example": "x", "why": "computed from the text"}
    listed = run("memory", "list", "--kind", "note", "--user", "ann", "--data", tmp_path / "data", "--json").rows
    assert [each["created"] for each in listed] == [1_714_557_600.0, 1_714_644_000.0]


def test_each_user_flag_splits_the_import_by_user(file: Path, tmp_path: Path) -> None:
    said = file.read_text("utf-8")
    command: list[str | Path] = [*IMPORT, "-", "--user", "carol", "--each-user", "--data", tmp_path]
    done = run_process(*command, "--json", said=said)
    assert done.rows[0]["users"] == {"ann": 1, "bob": 1}
    given = json.loads(run("memory", "export", "--as", "mem0", "--user", "bob", "--data", tmp_path).out)
    assert [(each["id"], each["memory"], each["user_id"]) for each in given["results"]] == [("2", "Bob sings", "bob")]


def test_a_dry_run_writes_nothing(file: Path, tmp_path: Path) -> None:
    command: list[str | Path] = [*IMPORT, file, "--user", "ann", "--data", tmp_path / "data"]
    assert "2 records would be imported" in run(*command, "--dry-run").out
    assert not (tmp_path / "data").exists()
    run(*command)
    (row,) = run(*command, "--dry-run", "--json").rows
    assert (row["written"], row["known"]) == (0, 2)


def test_invalid_arguments_are_refused(file: Path, tmp_path: Path) -> None:
    data: list[str | Path] = ["--data", tmp_path / "data", "--user", "ann"]
    assert "the formats are mem0, letta" in mistaken(run("memory", "import", "--from", "memo", file, *data))
    assert "apply only with --from" in mistaken(run("memory", "import", "--trust", file, *data))
    assert "a folder" in mistaken(run("memory", "import", "--from", "mem0", tmp_path, *data))
    file.write_text('[{"id": "1", "memory": "a"}, ', "utf-8")
    broken = mistaken(run("memory", "import", "--from", "mem0", file, *data))
    assert "not JSON" in broken and "1 record before it was imported" in broken
    again = run("memory", "import", "--from", "mem0", file, *data, "--json")
    assert (again.code, again.rows[0]["written"], again.rows[0]["known"]) == (2, 0, 1) and "error" in again.rows[0]
    file.write_text('[{"uuid": "1", "name": "Strings", "chat_messages": []}]', "utf-8")
    another = mistaken(run("memory", "import", "--from", "mem0", file, *data))
    assert "as an export of mem0, this contains no record" in another and "uuid, name" in another
    file.write_text('{"body": "Tea at four."}', "utf-8")
    assert "text or content or memory" in mistaken(run("memory", "import", "--from", "jsonl", file, *data))
    file.write_text("[]", "utf-8")
    assert "0 records imported" in run("memory", "import", "--from", "mem0", file, *data).out
    assert "the formats are mem0, langmem, jsonl" in mistaken(run("memory", "export", "--as", "zep", *data))
