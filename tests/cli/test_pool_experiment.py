"""`mindstream pool experiment`, by the command alone."""

from __future__ import annotations

from pathlib import Path

from running import mistaken, run

QUICK = ("--agents", "limerick,fitness", "--tests", "1", "--form", "bare")


def test_it_prints_tables_for_people_and_rows_for_programs(tmp_path: Path) -> None:
    out = tmp_path / "cells.jsonl"
    read = run("pool", "experiment", *QUICK, "--shots", "0,1", "--out", out)
    assert read.code == 0 and "While the stream comes in" in read.out and "20 %" in read.out
    assert "rules copy the nearest exemplar's answer" in read.out and "Controls: they must do worse" in read.out
    told = run("pool", "experiment", *QUICK, "--shots", "0,1", "--out", out, "--json")
    assert told.rows[0]["experiment"]["agents"] == {"limerick": "rules", "fitness": "rules"}
    assert {row["study"] for row in told.rows[1:]} == {"shots", "pools", "growth", "controls"}
    assert all(0 <= row["rouge_l"] <= 1 and row["tests"] for row in told.rows[1:])


def test_mistakes_are_one_sentence(tmp_path: Path) -> None:
    assert "the studies are shots, pools" in mistaken(run("pool", "experiment", "--studies", "nix"))
    assert "shots are numbers" in mistaken(run("pool", "experiment", "--shots", "1,x"))
    assert "no agent 'nix'" in mistaken(run("pool", "experiment", "--agents", "nix"))
    assert "has no agents" in mistaken(run("pool", "experiment", "--data", tmp_path))
