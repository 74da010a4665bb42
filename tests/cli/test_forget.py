"""`memory forget`, `memory correct`, `memory sessions`, and `/forget` and `/sessions` in a conversation."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from running import mistaken, run, terminal

AT = 1_790_000_000.0  # 2026-09-21 in UTC


def record(id_: str, text: str, days: float, kind: str = "chat", **more: Any) -> str:
    return json.dumps({"id": id_, "kind": kind, "text": text, "created": AT + days * 86_400, **more})


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("first")
    lines = [
        '{"mindstream": "memory", "format": 1}',
        record("said00001", "Otto and I bake on Fridays", 0, episode="monday"),
        record("note00001", "Bakes on Fridays", 0, "note", evidence=["said00001"]),
        record("said00002", "The tram keeps me awake", 2, episode="tuesday"),
        record("said00003", "It is worst at six", 2.01, episode="tuesday"),
        record("dream0001", "Otto and I bake on Fridays, in a tram", 3, "dream", evidence=["said00001", "said00002"]),
        record("note00002", "Sleeps badly", 3, "note", evidence=["said00002"]),
    ]
    done = run("memory", "import", "--data", folder, said="\n".join(lines))
    assert done.code == 0, done.err
    return folder


@pytest.fixture
def kept(first: Path, folder: Path) -> Path:
    shutil.copytree(first, folder)
    return folder


def left(folder: Path, words: str) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file() and words.encode() in path.read_bytes()]


def test_forget_previews_asks_and_leaves_no_byte(kept: Path) -> None:
    with terminal("memory", "forget", "said00001", "--data", kept) as screen:
        assert "to be deleted: 1" in screen.until("to be deleted, because derived only from these records: 1")
        screen.until("note00001: Bakes on Fridays")
        screen.until("to be kept, without the forgotten words: 1")
        screen.until("Forget it permanently? [y/n]: ")
        screen.type("\r")  # it asks in both cases
        screen.until("[y/n]: ")
        screen.type("n\r")
        screen.until("nothing was forgotten")
        assert screen.ended() == 0
    assert left(kept, "Otto and I bake")
    (row,) = run("memory", "forget", "said00001", "--data", kept, "--yes", "--json").rows
    assert row["forgotten"] == {"records": 2, "changed": 1, "items": 0}
    assert [each["id"] for each in row["drawn"]] == ["note00001"]
    assert left(kept, "Otto") == [] and left(kept, "bake on") == []
    assert "[erased], in a tram" in run("memory", "export", "--data", kept).out


def test_without_a_terminal_a_preview_says_that_nothing_is_deleted_yet(kept: Path) -> None:
    told = run("memory", "forget", "--about", "tram", "--data", kept)
    assert told.code == 2 and "to be deleted: " in told.err and "without a terminal to ask in, add --yes" in told.err
    assert "forgotten" not in told.out and left(kept, "The tram keeps me awake")


def test_forget_accepts_a_subject_a_session_or_a_time_span(kept: Path) -> None:
    told = run("memory", "forget", "--about", "tram", "--until", "2026-09-23", "--data", kept, "--yes")
    assert told.out == "2 records permanently forgotten\n"
    assert "said00002: The tram keeps me awake" in told.err and "note00002: Sleeps badly" in told.err
    assert "1 record" in run("memory", "forget", "--session", "tuesday", "--data", kept, "--yes").out
    assert "no record matches" in run("memory", "forget", "--since", "2027-01-01", "--data", kept, "--yes").out


def test_similar_records_are_kept_unless_their_number_is_typed(kept: Path) -> None:
    done = run("memory", "forget", "--about", "Otto's bike", "--data", kept, "--yes", "--json").rows[0]
    assert done["asked"] == [] and "said00001" in [each["id"] for each in done["similar"]]
    assert done["forgotten"] == {"records": 0, "changed": 0, "items": 0}
    with terminal("memory", "forget", "--about", "Otto's bike", "--data", kept) as screen:
        number = next(n for n, each in enumerate(done["similar"], 1) if each["id"] == "said00001")
        screen.until("kept, because only similar; name the id to delete one: ")
        screen.until("or Enter for none")
        screen.type(f"{number}\r")
        screen.until("Forget it permanently? [y/n]: ")
        screen.type("y\r")
        screen.until("2 records permanently forgotten")
        assert screen.ended() == 0
    assert left(kept, "Otto") == []


def test_a_part_of_a_message_can_be_forgotten(kept: Path) -> None:
    lines = [
        '{"mindstream": "memory", "format": 1}',
        record("said00009", "I am Ida and keep a goat, Muckl", 4),
        record("note00009", "Keeps a goat, Muckl", 4, "note", evidence=["said00009"]),
        record("note00010", "Is called Ida", 4, "note", evidence=["said00009"]),
    ]
    assert run("memory", "import", "--data", kept, said="\n".join(lines)).code == 0
    with terminal("memory", "forget", "--about", "goat", "--data", kept) as screen:
        screen.until("to be deleted with the message they come from, although they say other things: 1")
        screen.until("note00010: Is called Ida")
        screen.until("[y/n/p]: ")
        screen.type("p\r")
        screen.until("1 record permanently forgotten")
        assert screen.ended() == 0
    exported = run("memory", "export", "--data", kept).out
    assert "Keeps a goat" not in exported and "I am Ida and keep a goat" in exported and "Is called Ida" in exported
    audit = run("data", "audit", "--data", kept, "--json").rows
    assert [row["counts"] for row in audit if row["did"] == "forgot"] == [{"records": 1, "changed": 0, "items": 0}]


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ([], "name what is to be forgotten: ids of records, a subject, a session, or a span of time"),
        (["nobody0001"], "there is no record 'nobody0001'"),
        (["--since", "soon"], "a text such as 2026-11-20 or 2026-11-20T21:30+01:00 is expected, not 'soon'"),
        (["--about", "tram", "--user", "bob", "--yes"], "there is no user 'bob'"),
    ],
)
def test_an_invalid_forget_request_is_explained_in_one_sentence(flags: list[str], says: str, first: Path) -> None:
    assert says in mistaken(run("memory", "forget", *flags, "--data", first))


def test_sessions_are_listed(first: Path) -> None:
    told = run("memory", "sessions", "--data", first).out.splitlines()
    assert told == [
        "monday: 2026-09-21 14:13, 1 line: Otto and I bake on Fridays",
        "tuesday: 2026-09-23 14:13 to 14:27, 2 lines: The tram keeps me awake",
    ]
    rows = run("memory", "sessions", "--data", first, "--json").rows
    assert [(row["name"], row["lines"]) for row in rows] == [("monday", 1), ("tuesday", 2)]


def test_a_correction_replaces_the_old_text(kept: Path) -> None:
    told = run("memory", "correct", "said00002", "The bus keeps me awake", "--data", kept).out
    assert "now has the text: The bus keeps me awake" in told and "note00002: Sleeps badly" in told
    assert [row["event"] for row in run("log", "--data", kept, "--json").rows][-1] == "corrected"
    (row,) = run("memory", "correct", "note00002", "Sleeps well", "--data", kept, "--json").rows
    assert row["record"]["text"] == "Sleeps well" and row["superseded"] == "note00002"
    assert "was superseded by" in mistaken(run("memory", "correct", "note00002", "Sleeps", "--data", kept))


def test_the_forget_command_of_a_conversation_previews_and_asks(folder: Path) -> None:
    with terminal("chat", "--data", folder, "--session", "monday") as screen:
        screen.until("you: ")
        screen.type("My neighbour Otto keeps me awake.\r")
        screen.until("coach: ")
        screen.until("you: ")
        screen.type("/sessions\r")
        screen.until("monday: ")
        screen.type("/forget\r")
        screen.until("/forget WORDS: type the subject to forget")
        screen.type("/forget giraffes\r")
        screen.until("no record matches")
        screen.type("/forget Otto\r")
        screen.until("to be deleted: ")
        screen.until("forget it permanently? [y/n]:")
        screen.type("n\r")
        screen.until("nothing was forgotten")
        screen.type("/forget Otto\r")
        screen.until("forget it permanently? [y/n]:")
        screen.type("y\r")
        screen.until("permanently forgotten")
        screen.leave()
    assert left(folder, "Otto") == []
