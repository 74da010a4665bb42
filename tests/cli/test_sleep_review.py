"""A sleep is reviewed before it is applied, answered with or without a terminal, and undone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from running import mistaken, run, terminal

from mindstream.clock import DAY_S, SystemClock


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, now = tmp_path_factory.mktemp("first"), SystemClock().now()
    lines = [
        {"mindstream": "memory", "format": 1},
        {"id": "fox000001", "kind": "observation", "text": "A fox on the wall", "created": now - 40 * DAY_S},
        {"id": "sea000001", "kind": "note", "text": "Likes the sea at night", "created": now - 30 * DAY_S},
        {"id": "tea000001", "kind": "note", "text": "She drinks tea at night", "created": now - 9},
        {"id": "tea000002", "kind": "note", "text": "She drinks the tea at night", "created": now - 8},
    ]
    assert run("memory", "import", "--data", folder, said="\n".join(map(json.dumps, lines))).code == 0
    assert run("memory", "policy", "retention=decay", "--data", folder).code == 0
    return folder


@pytest.fixture
def kept(first: Path, folder: Path) -> Path:
    shutil.copytree(first, folder)
    return folder


def forgotten(folder: Path) -> set[str]:
    rows = [json.loads(line) for line in run("memory", "export", "--data", folder).out.splitlines()[1:]]
    return {row["id"] for row in rows if row.get("forgotten")}


def test_a_sleep_can_be_reviewed_without_a_terminal(kept: Path, tmp_path: Path) -> None:
    shown = run("memory", "sleep", "--review", "--data", kept)
    assert "would be archived: 2" in shown.out and "fox000001 A fox on the wall" in shown.out
    assert "would be merged" in shown.out and "I dreamt: " in shown.out
    assert "--accept FILE" in shown.err and forgotten(kept) == set()
    file = tmp_path / "night.json"
    file.write_text(run("memory", "sleep", "--review", "--json", "--data", kept).out, "utf-8")
    assert json.loads(file.read_text("utf-8"))["texts"]["fox000001"] == "A fox on the wall"
    odd = mistaken(run("memory", "sleep", "--accept", file, "--keep", "nobody", "--data", kept))
    assert "would not change nobody" in odd
    done = run("memory", "sleep", "--accept", file, "--keep", "fox000001", "--data", kept)
    assert "1 archived" in done.out and "I dreamt: Likes the sea at night." in done.out
    assert forgotten(kept) == {"sea000001"}
    undone = json.loads(run("memory", "undo-sleep", "--json", "--data", kept).out)
    assert set(undone["held_again"]) == {"sea000001", "tea000001", "tea000002"} and len(undone["archived"]) == 2
    assert forgotten(kept) == set(undone["archived"])
    assert "no sleep to undo" in mistaken(run("memory", "undo-sleep", "--data", kept))
    odd_file = tmp_path / "odd.json"
    odd_file.write_text('{"weakened": 3}', "utf-8")
    assert "must hold the output of" in mistaken(run("memory", "sleep", "--accept", odd_file, "--data", kept))
    assert "--review or --accept" in mistaken(run("memory", "sleep", "--keep", "fox000001", "--data", kept))


def test_a_sleep_can_be_reviewed_in_a_terminal(kept: Path) -> None:
    with terminal("memory", "sleep", "--review", "--data", kept) as screen:
        screen.until("ids of records to keep")
        screen.type("perhaps\n")
        screen.until("expected yes, no, or ids")
        screen.type("sea000001\n")
        screen.until("I dreamt: A fox on the wall")
        assert screen.ended() == 0
    assert forgotten(kept) == {"fox000001"}
    with terminal("memory", "sleep", "--review", "--data", kept) as screen:
        screen.until("none is archived or merged")
        assert screen.ended() == 0
    assert "3 records restored" in run("memory", "undo-sleep", "--data", kept).out
