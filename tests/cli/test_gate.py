from __future__ import annotations

from pathlib import Path

from running import mistaken, run


def test_gates_are_reported_on_from_the_log(folder: Path) -> None:
    run("chat", "--data", folder, said="The noise keeps me awake.\nthanks\n")
    (row,) = run("gate", "report", "--data", folder, "--json").rows
    assert row["gate"] == "belief" and row["turns"] == 2
    told = run("gate", "report", "--data", folder).out
    assert told.startswith("gate") and "belief" in told and "regret" in told
    assert "'bob'" in mistaken(run("gate", "report", "--data", folder, "--user", "bob"))


def test_a_gate_that_is_gone_is_said_to_be(folder: Path) -> None:
    told = mistaken(run("chat", "--data", folder, "--gate", "quick", said="hello\n"))
    assert "no gate 'quick': choose one of talker, belief" in told
