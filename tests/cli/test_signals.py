"""A conversation ended from outside: the shown part of an answer is kept, and all work is released."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_endpoint import FakeEndpoint, Says
from keys import key_of
from running import COMMAND, PATIENCE_S, interruptible, run_here, terminal

from mindstream.memory.store.sqlite import SqliteStore

WORDS = "This goes on and on and on"


@pytest.fixture
def door() -> Iterator[FakeEndpoint]:
    with FakeEndpoint() as opened:
        opened.will(Says(WORDS, step=True))
        yield opened


def said(folder: Path) -> list[str]:
    rows = run_here("log", "--data", folder, "--json").rows
    return [row["text"] for row in rows if row["event"] == "said"]


async def owners(folder: Path) -> set[tuple[bool, float]]:
    """Return the holder of open work as (running, lease)."""
    store = SqliteStore(folder)
    try:
        return {(work.running, work.lease) for work in await store.open_work(key_of("you"))}
    finally:
        await store.close()


def talking(folder: Path, door: FakeEndpoint, *more: str) -> subprocess.Popen[bytes]:
    """Start a conversation on pipes and return in the middle of an answer."""
    process = subprocess.Popen(
        [*COMMAND, "chat", "--data", folder, "--json", *more, "--role", f"talker={door.url}#slow", "reasoner=rules"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=interruptible,
    )  # fmt: skip
    assert process.stdin and process.stdout
    process.stdin.write(b"The noise keeps me awake.\n")
    process.stdin.flush()
    for _ in range(3):
        door.go()
    while "goes" not in (row := json.loads(process.stdout.readline())).get("text", "") or row["event"] != "piece":
        pass
    return process


@pytest.mark.parametrize(
    ("signals", "code", "more"),
    [
        ([signal.SIGTERM], 143, []),
        ([signal.SIGHUP], 129, ["--no-wait"]),
        ([signal.SIGINT, signal.SIGINT], 130, []),
    ],
    ids=["SIGTERM", "SIGHUP", "Ctrl-C twice"],
)
def test_a_signal_keeps_the_text_so_far(
    signals: list[signal.Signals], code: int, more: list[str], folder: Path, door: FakeEndpoint
) -> None:
    process = talking(folder, door, *more)
    for number in signals:
        process.send_signal(number)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == code
    assert err == b"mindstream: stopped; your messages are stored, and reasoning about them continues the next time\n"
    (kept,) = said(folder)
    assert kept.startswith("This goes") and kept != WORDS
    assert asyncio.run(owners(folder)) == {(False, 0.0)}


@pytest.mark.parametrize(("hang_up", "code"), [(False, 143), (True, 129)], ids=["SIGTERM", "the window is closed"])
def test_a_signal_in_a_terminal_keeps_the_text_so_far(
    hang_up: bool, code: int, folder: Path, door: FakeEndpoint
) -> None:
    with terminal("chat", "--data", folder, "--role", f"talker={door.url}#slow", "reasoner=rules") as screen:
        screen.until("you: ")
        screen.type("The noise keeps me awake.\r")
        screen.until("coach: ")
        for _ in range(3):
            door.go()
        screen.until("goes")
        if hang_up:
            screen.hang_up()
        else:
            screen.process.send_signal(signal.SIGTERM)
        assert (screen.process.wait(PATIENCE_S) if hang_up else screen.ended()) == code
        assert "Traceback" not in screen.rest
    (kept,) = said(folder)
    assert kept.startswith("This goes") and kept != WORDS
    assert asyncio.run(owners(folder)) == {(False, 0.0)}


def test_ctrl_c_twice_in_a_terminal_keeps_the_text(folder: Path, door: FakeEndpoint) -> None:
    with terminal("chat", "--data", folder, "--role", f"talker={door.url}#slow", "reasoner=rules") as screen:
        screen.until("you: ")
        screen.type("The noise keeps me awake.\r")
        screen.until("coach: ")
        for _ in range(3):
            door.go()
        screen.until("goes")
        for _ in range(2):
            screen.process.send_signal(signal.SIGINT)
        screen.until("stopped")
        screen.type("\x04")
        assert screen.ended() == 0
    (kept,) = said(folder)
    assert kept.startswith("This goes") and kept != WORDS


def test_ctrl_c_during_an_import_says_that_the_same_command_continues(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    file, data = folder / "facts.jsonl", folder / "data"
    file.write_text("".join(json.dumps({"text": f"Fact {n} about the Quaxon."}) + "\n" for n in range(20_000)))
    words = [*COMMAND, "memory", "import", "--from", "jsonl", str(file), "--data", str(data)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=interruptible)
    log = data / "mindstream.db-wal"
    while not (log.exists() and log.stat().st_size > 500_000):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130 and out == b""
    told = re.search(r"stopped; ([\d,]+) records? imported so far, and the same command continues\n$", err.decode())
    assert told, err
    again = run_here("memory", "import", "--from", "jsonl", file, "--data", data, "--json").rows[0]
    assert again["known"] >= int(told[1].replace(",", "")) > 0 and again["known"] + again["written"] == 20_000


def test_ctrl_c_in_any_command_says_so(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("mindstream.cli.memory.look.read_export", interrupted)
    (folder / "x.jsonl").parent.mkdir(exist_ok=True)
    (folder / "x.jsonl").write_text("{}")
    done = run_here("memory", "import", folder / "x.jsonl", "--data", folder / "data")
    assert (done.code, done.out, done.err) == (130, "", "mindstream: stopped\n")
