from __future__ import annotations

import os
import subprocess
from pathlib import Path

from running import COMMAND, PATIENCE_S, mistaken, run

from mindstream.coach.packs.load import load
from mindstream.memory.sqlite import SqliteStore

FAST = ("--demo-speed", "20")


def test_with_nothing_on_standard_input_the_pack_plays_its_dialogue() -> None:
    done = run("chat", *FAST)
    assert done.code == 0 and done.err == ""
    for text in load("sleep").demo:
        assert f"you: {text}\n" in done.out
    assert not any(Path(os.environ["XDG_DATA_HOME"]).iterdir())


def test_a_closed_standard_input_is_nothing_on_it() -> None:
    closed = ["sh", "-c", 'exec "$@" <&-', "sh", *COMMAND, "chat", *FAST]
    done = subprocess.run(closed, capture_output=True, timeout=PATIENCE_S)
    assert done.returncode == 0 and done.stderr == b""
    assert done.stdout.count(b"\nyou: ") == len(load("sleep").demo)


def test_the_demo_shows_the_reasoner_behind_the_talker(folder: Path) -> None:
    done = run("chat", "--json", "--data", folder, "--demo-speed", "4")
    heard = [row["seq"] for row in done.events("heard")]
    first, second = (
        {row["event"]: row for row in reversed(done.rows) if heard[turn] <= (row["seq"] or 0) < heard[turn + 1]}
        for turn in (0, 1)
    )
    assert first["said"]["belief_version"] == 0
    assert second["said"]["seq"] < second["belief_changed"]["seq"]
    assert second["said"]["belief_version"] == first["belief_changed"]["version"]
    waiting, *_ = done.events("waiting")
    said = next(row for row in done.events("said") if row["answers"] == waiting["answers"])
    assert any(waiting["seq"] < row["seq"] < said["seq"] for row in done.events("thought"))
    assert {row["gate"] for row in done.events("decided")} == {"belief"}, "the paper's own, where none is named"


def test_the_demo_is_played_with_the_gate_that_is_named_and_a_talk_with_quick(folder: Path) -> None:
    named = run("chat", "--json", "--gate", "quick", *FAST)
    assert {row["gate"] for row in named.events("decided")} == {"quick"}
    talked = run("chat", "--json", "--data", folder, said="I lie awake.\nthanks\n")
    assert {row["gate"] for row in talked.events("decided")} == {"quick"}


async def test_the_demo_leaves_its_memory_where_it_is_told_to(folder: Path) -> None:
    assert run("chat", *FAST, "--data", folder).code == 0
    store = SqliteStore(folder)
    assert await store.streams() == ["you"] and await store.open_work("you") == []
    await store.close()


def test_the_demo_is_not_played_into_somebodys_memory(folder: Path) -> None:
    assert run("chat", "--data", folder, "--user", "nina", said="I lie awake.").code == 0
    refused = mistaken(run("chat", "--data", folder, "--user", "nina"))
    assert "'nina' has talked here before" in refused
