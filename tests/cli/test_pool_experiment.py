"""`mindstream pool experiment`, by the command alone."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

from running import COMMAND, mistaken, run_here

QUICK = ("--agents", "limerick,fitness", "--tests", "1", "--form", "bare")


def test_it_prints_tables_for_people_and_rows_for_programs(tmp_path: Path) -> None:
    out = tmp_path / "cells.jsonl"
    read = run_here("pool", "experiment", *QUICK, "--shots", "0,1", "--out", out)
    assert read.code == 0 and "While the stream comes in" in read.out and "20 %" in read.out
    assert "rules copy the nearest exemplar's answer" in read.out and "Controls: they must do worse" in read.out
    told = run_here("pool", "experiment", *QUICK, "--shots", "0,1", "--out", out, "--json")
    assert told.rows[0]["experiment"]["agents"] == {"limerick": "rules", "fitness": "rules"}
    assert {row["study"] for row in told.rows[1:]} == {"shots", "pools", "growth", "controls"}
    assert all(0 <= row["rouge_l"] <= 1 and row["tests"] for row in told.rows[1:])


def test_it_can_be_stopped_and_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "cells.jsonl"
    command = [*COMMAND, "pool", "experiment", "--out", str(out)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL) and None,
    )  # fmt: skip
    while process.poll() is None and (not out.exists() or out.read_bytes().count(b"\n") < 5):
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130 and b"the same command goes on" in told
    assert 4 <= out.read_bytes().count(b"\n") < 500


def test_mistakes_are_one_sentence(tmp_path: Path) -> None:
    assert "the studies are shots, pools" in mistaken(run_here("pool", "experiment", "--studies", "nix"))
    assert "shots are numbers" in mistaken(run_here("pool", "experiment", "--shots", "1,x"))
    assert "0 to 10" in mistaken(run_here("pool", "experiment", "--shots", "12"))
    assert "zero-shot" in mistaken(run_here("pool", "experiment", "--shots", "0"))
    assert "no agent 'nix'" in mistaken(run_here("pool", "experiment", "--agents", "nix"))
    assert "has no agents" in mistaken(run_here("pool", "experiment", "--data", tmp_path))
    assert "not the name of a model" in mistaken(run_here("pool", "experiment", *QUICK, "--model", "nix"))
    assert "bertscore" in mistaken(run_here("pool", "experiment", *QUICK, "--bertscore", "nix"))
