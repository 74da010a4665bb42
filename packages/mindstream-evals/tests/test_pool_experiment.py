"""The command `mindstream pool experiment`."""

from __future__ import annotations

import json
from pathlib import Path

from doing import begin_ray, needs_ray
from fake_endpoint import Fails, FakeEndpoint, Says
from running import mistaken, run

QUICK = ("--agents", "limerick,fitness", "--tests", "1", "--form", "bare")


def test_the_command_prints_tables_or_json_rows(tmp_path: Path) -> None:
    out = tmp_path / "cells.jsonl"
    read = run("pool", "experiment", *QUICK, "--shots", "0,1", "--out", out)
    assert read.code == 0 and "Growth: after each part of the stream" in read.out and "20 %" in read.out
    assert "rules copy the nearest exemplar's answer" in read.out and "Controls, which must score lower" in read.out
    told = run("pool", "experiment", *QUICK, "--shots", "0,1", "--out", out, "--json")
    assert told.rows[0]["experiment"]["agents"] == {"limerick": "rules", "fitness": "rules"}
    assert {row["study"] for row in told.rows[1:]} == {"shots", "pools", "growth", "controls"}
    assert all(0 <= row["rouge_l"] <= 1 and row["tests"] for row in told.rows[1:])


def test_invalid_arguments_are_refused_in_one_sentence(tmp_path: Path) -> None:
    assert "expected one or more of shots, pools" in mistaken(run("pool", "experiment", "--studies", "nix"))
    assert "expected numbers of one or two digits" in mistaken(run("pool", "experiment", "--shots", "1,x"))
    assert "unknown agent 'nix'" in mistaken(run("pool", "experiment", "--agents", "nix"))
    assert "--out FILE.jsonl" in mistaken(run("pool", "experiment", *QUICK, "--ray"))
    assert "has no agents" in mistaken(run("pool", "experiment", "--data", tmp_path))
    assert "there is no folder" in mistaken(run("pool", "experiment", "--data", tmp_path / "none"))


def test_agents_answer_the_stream_and_no_call_is_repeated(door: FakeEndpoint, tmp_path: Path) -> None:
    door.otherwise = Says("There was a young man of the sea, whose parrot was partial to tea.")
    out, blind = tmp_path / "cells.jsonl", tmp_path / "blind"
    few = ("--agents", "limerick", "--tests", "2", "--form", "bare", "--studies", "shots", "--shots", "0,2")
    wanted = ("pool", "experiment", *few, "--models", f"{door.url}#any", "--scorer", "rules", "--own-answers")
    (price,) = run(*wanted, "--price", "--json").rows
    assert price["calls"] > 4 and not door.asked
    told = run(*wanted, "--out", out, "--blind", blind, "--json").rows[0]["experiment"]
    asked = len(door.chats)
    assert told["answers of the stream"] == "their own" and told["blind pairs"] == 2 and asked <= price["calls"]
    assert any("partial to tea" in str(each.body["messages"]) for each in door.chats), (
        "exemplars of one agent are shown to others"
    )
    assert run(*wanted, "--out", out, "--blind", blind, "--json").code == 0 and len(door.chats) == asked
    rows = [json.loads(line) for line in (blind / "pairs.jsonl").read_text("utf-8").splitlines()]
    key = json.loads((blind / "key.json").read_text("utf-8"))["with exemplars"]
    assert [row["n"] for row in rows] == list(key) and set(key.values()) <= {"a", "b"}
    refused = run("pool", "experiment", *few[:-1], "1,2", "--blind", blind)
    assert "--shots 0,3" in mistaken(refused)


@needs_ray
def test_the_experiment_on_ray_gives_the_same_rows_and_answers(tmp_path: Path) -> None:
    begin_ray()
    few = ("pool", "experiment", "--agents", "limerick", "--tests", "2", "--form", "bare", "--shots", "0,2", "--json")
    here = run(*few, "--out", tmp_path / "here.jsonl")
    there = run(*few, "--out", tmp_path / "there.jsonl", "--ray")
    assert here.code == there.code == 0 and here.rows == there.rows
    kept = [sorted((tmp_path / name).read_text().splitlines()) for name in ("here.jsonl", "there.jsonl")]
    assert kept[0] == kept[1] and len(kept[0]) > 2


@needs_ray
def test_answers_before_a_model_failure_are_kept(door: FakeEndpoint, tmp_path: Path) -> None:
    begin_ray()
    door.otherwise = lambda _: Fails(401, "wrong key") if len(door.chats) > 3 else Says("A parrot was partial to tea.")
    few = ("--agents", "limerick", "--tests", "2", "--form", "bare", "--studies", "shots", "--shots", "0,2")
    wanted = ("pool", "experiment", *few, "--models", f"{door.url}#any", "--scorer", "rules")
    failed = run(*wanted, "--out", tmp_path / "cells.jsonl", "--ray")
    assert failed.code == 1 and "wrong key" in failed.err and "the same command continues" in failed.err
    door.otherwise, asked = Says("A parrot was partial to tea."), len(door.chats)
    assert run(*wanted, "--out", tmp_path / "cells.jsonl").code == 0
    assert len(door.chats) == asked + 1, "three of four answers were stored"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cells.jsonl", "cells.jsonl.pools"]
