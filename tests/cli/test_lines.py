from __future__ import annotations

import signal
import subprocess
from pathlib import Path

from running import COMMAND, PATIENCE_S, interruptible, run

from mindstream.memory.sqlite import SqliteStore

THREE = "I sleep badly because of the noise.\nAlso the light.\nMake me a plan, step by step.\n"


async def open_work(folder: Path) -> int:
    store = SqliteStore(folder)
    try:
        return len(await store.open_work("you"))
    finally:
        await store.close()


def test_a_line_is_read_after_the_answer_and_all_thinking(folder: Path) -> None:
    done = run("chat", "--data", folder, "--json", said=THREE)
    assert done.code == 0 and done.err == ""
    heard = [row["seq"] for row in done.events("heard")]
    for row in done.events("thought", "said"):
        about = row["about"][0] if row["event"] == "thought" else row["answers"]
        later = [seq for seq in heard if seq > about]
        assert row["seq"] < min(later, default=10**9)
    assert len(done.events("said")) == 3
    assert [row["text"] for row in done.events("heard")] == THREE.splitlines()


async def test_poured_lines_are_answered_in_order_and_thought_about_before_the_end(folder: Path) -> None:
    lines = [f"It was noisy again, night {number}." for number in range(12)]
    done = run("chat", "--data", folder, "--json", "--no-wait", said="\n".join(lines))
    assert done.code == 0
    heard = done.events("heard")
    assert [row["text"] for row in heard] == lines
    assert [row["answers"] for row in done.events("said")] == [row["seq"] for row in heard]
    thought = sorted(seq for row in done.events("thought") if row["slot"] == "sleep" for seq in row["about"])
    assert thought == [row["seq"] for row in heard]
    assert await open_work(folder) == 0


def test_json_lines_are_the_log_in_its_order(folder: Path) -> None:
    done = run("chat", "--data", folder, "--json", said=THREE)
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


def test_people_get_plain_text(folder: Path) -> None:
    done = run("chat", "--data", folder, said="The noise keeps me awake.\n")
    assert "you: The noise keeps me awake.\n" in done.out
    assert "coach: " in done.out and "belief v1" in done.out
    assert "no model is configured: stand-ins answer" in done.out
    assert "\x1b" not in done.out


def test_bytes_that_are_no_text_are_survived(folder: Path) -> None:
    done = run(
        "chat", "--data", folder, "--json", said=b"\xef\xbb\xbfnoise \xff\xfe keeps me awake\r\n\n   \nlight, too"
    )
    assert done.code == 0
    assert [row["text"] for row in done.events("heard")] == ["noise �� keeps me awake", "light, too"]


def test_a_line_that_cannot_be_taken_is_named_and_the_conversation_goes_on(folder: Path) -> None:
    done = run("chat", "--data", folder, "--json", said="x" * 1_000_000 + "\n\x01\x02\nThe noise keeps me awake.\n")
    assert done.code == 1 and done.err == ""
    first, second = done.events("error")
    assert first["text"].startswith("line 1: ") and "1,000,000 bytes" in first["text"]
    assert second["text"].startswith("line 2: ")
    assert len(done.events("said")) == 1


def test_json_stays_json_where_the_output_is_ascii(folder: Path) -> None:
    done = run("chat", "--data", folder, "--json", said="外面很吵，我睡不着。\n", PYTHONIOENCODING="ascii")
    assert done.code == 0
    assert done.events("heard")[0]["text"] == "外面很吵，我睡不着。"


def test_a_reader_that_goes_away_is_no_error(folder: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "chat", "--data", str(folder), "--json"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin and process.stdout and process.stderr
    process.stdin.write(b"The noise keeps me awake.\n")
    process.stdin.flush()
    process.stdout.readline()
    process.stdout.close()
    process.stdin.write(b"Is anybody there?\n" * 20)
    process.stdin.close()
    assert process.wait(PATIENCE_S) == 141
    assert process.stderr.read() == b""
    process.stderr.close()


def test_an_interrupt_keeps_what_was_heard(folder: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "chat", "--data", str(folder), "--json"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        preexec_fn=interruptible,
    )  # fmt: skip
    assert process.stdin and process.stdout
    process.stdin.write(b"The noise keeps me awake.\n")
    process.stdin.flush()
    while b'"event": "said"' not in process.stdout.readline():
        pass
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert err.decode().count("\n") == 1 and "Traceback" not in err.decode()
    assert "noise keeps me awake" in run("memory", "show", "--data", folder).out


def test_a_new_process_remembers_and_another_user_knows_nothing_of_it(folder: Path) -> None:
    run("chat", "--data", folder, "--user", "ann", said="The noise keeps me awake.\n")
    asked = run("chat", "--data", folder, "--user", "ann", said="What do you remember about me?\n")
    assert "noise" in asked.out.partition("What do you remember")[2]
    other = run("chat", "--data", folder, "--user", "bob", said="What do you remember about me?\n")
    assert "noise" not in other.out
