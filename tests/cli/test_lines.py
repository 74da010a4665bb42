from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path

import pytest
from running import COMMAND, PATIENCE_S, run, run_process

from mindstream.cli.conversation import Conversation
from mindstream.log.events import Failed, Logged

THREE = "I sleep badly because of the noise.\nAlso the light.\nMake me a plan, step by step.\n"


def test_the_next_line_is_read_after_the_answer_and_all_reasoning(folder: Path) -> None:
    done = run("chat", "--data", folder, "--json", said=THREE)
    assert done.code == 0 and done.err == ""
    heard = [row["seq"] for row in done.events("heard")]
    for row in done.events("thought", "said"):
        about = row["about"][0] if row["event"] == "thought" else row["answers"]
        later = [seq for seq in heard if seq > about]
        assert row["seq"] < min(later, default=10**9)
    assert len(done.events("said")) == 3
    assert [row["text"] for row in done.events("heard")] == THREE.splitlines()


def test_json_output_equals_the_log_in_order(folder: Path) -> None:
    done = run_process("chat", "--data", folder, "--json", said=THREE)
    kept = [row["seq"] for row in done.rows if row["seq"] is not None]
    assert kept == sorted(set(kept))
    assert {row["event"] for row in done.rows} >= {
        "heard",
        "piece",
        "said",
        "thought",
        "model_called",
        "belief_changed",
    }
    assert all(0 <= row["after_s"] < PATIENCE_S for row in done.rows)
    said = done.events("said")[0]
    pieces = [row["text"] for row in done.events("piece") if row["answers"] == said["answers"]]
    assert "".join(pieces).strip() == said["text"]
    logged = run("log", "--data", folder, "--json").rows
    assert [row["seq"] for row in logged] == kept
    assert done.rows[0]["event"] == "opened" and done.rows[0]["pack"] == "sleep"


def test_events_during_opening_are_shown(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find = Conversation.find_opening

    async def find_late(talk: Conversation) -> Logged | None:
        await talk.mind.memory.commit(Failed(text="it was quick", where="night"))
        return await find(talk)

    monkeypatch.setattr(Conversation, "find_opening", find_late)
    done = run("chat", "--data", folder, "--json", said="Hello.\n")
    kept = [row["seq"] for row in done.rows if row["seq"] is not None]
    assert kept == [row["seq"] for row in run("log", "--data", folder, "--json").rows]


def test_without_json_the_output_is_plain_text(folder: Path) -> None:
    done = run("chat", "--data", folder, said="The noise keeps me awake.\n")
    assert "you: The noise keeps me awake.\n" in done.out
    assert "coach: " in done.out and "belief v1" in done.out
    assert "no model is configured: fixed rules answer" in done.out
    assert "\x1b" not in done.out


def test_invalid_bytes_are_accepted_and_json_works_with_ascii_output(folder: Path) -> None:
    said = b"\xef\xbb\xbfnoise \xff\xfe keeps me awake\r\n\n   \nlight, too"
    done = run_process("chat", "--data", folder, "--json", said=said, PYTHONIOENCODING="ascii")
    assert done.code == 0
    assert [row["text"] for row in done.events("heard")] == ["noise �� keeps me awake", "light, too"]


def test_an_invalid_line_is_reported_and_the_conversation_continues(folder: Path) -> None:
    done = run("chat", "--data", folder, "--json", said="x" * 1_000_000 + "\n\x01\x02\nThe noise keeps me awake.\n")
    assert done.code == 1 and done.err == ""
    first, second = done.events("error")
    assert first["text"].startswith("line 1: ") and "1,000,000 characters" in first["text"]
    assert second["text"].startswith("line 2: ")
    assert len(done.events("said")) == 1


def test_a_closed_output_pipe_is_not_an_error(folder: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "chat", "--data", str(folder), "--json"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin and process.stdout and process.stderr
    process.stdin.write(b"The noise keeps me awake.\n")
    process.stdin.flush()
    process.stdout.readline()
    process.stdout.close()
    with contextlib.suppress(BrokenPipeError):  # it may have exited already
        process.stdin.write(b"Is anybody there?\n" * 20)
        process.stdin.flush()
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()
    assert process.wait(PATIENCE_S) == 141
    assert process.stderr.read() == b""
    process.stderr.close()


def test_memory_persists_between_processes_and_is_isolated_by_user(folder: Path) -> None:
    run("chat", "--data", folder, "--user", "ann", said="The noise keeps me awake.\n")
    asked = run("chat", "--data", folder, "--user", "ann", said="What do you remember about me?\n")
    assert "noise" in asked.out.partition("What do you remember")[2], (asked.out, asked.err)
    other = run("chat", "--data", folder, "--user", "bob", said="What do you remember about me?\n")
    assert "noise" not in other.out


def test_slash_commands_are_refused_in_piped_input_unless_escaped(folder: Path) -> None:
    for more in ([], ["--no-wait"]):
        done = run("chat", "--data", folder, "--json", *more, said="/plan\n/forget the key\n//plan it\n/home is full\n")
        assert done.code == 1
        assert [row["text"] for row in done.events("heard")] == ["/plan it", "/home is full"]
        assert (
            done.events("error")[0]["text"]
            == "line 1: /plan is a command that works only in a terminal; //plan sends it as text"
        )
