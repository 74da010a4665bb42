from __future__ import annotations

from pathlib import Path

from running import mistaken, run


def test_the_gate_report_is_computed_from_the_log(folder: Path) -> None:
    run("chat", "--data", folder, said="The noise keeps me awake.\nthanks\n")
    (row,) = run("gate", "report", "--data", folder, "--json").rows
    assert row["gate"] == "belief" and row["turns"] == 2
    told = run("gate", "report", "--data", folder).out
    assert told.startswith("gate") and "belief" in told and "regret" in told
    assert "'bob'" in mistaken(run("gate", "report", "--data", folder, "--user", "bob"))


def test_a_removed_gate_is_refused_with_the_available_ones(folder: Path) -> None:
    told = mistaken(run("chat", "--data", folder, "--gate", "quick", said="hello\n"))
    assert "unknown gate 'quick'; choose one of talker, belief" in told


def test_curve_and_calibration_cover_one_user_or_all(folder: Path) -> None:
    run("chat", "--data", folder, "--user", "ann", said="The noise keeps me awake.\nI have a cat.\n")
    rows = run("gate", "curve", "--data", folder, "--json").rows
    assert [row["rule"] for row in rows][:3] == ["never", "as decided", "belief (its phase waits)"]
    assert rows[-1]["rule"] == "always" and rows[-1]["wait_rate"] == 1.0
    told = run("gate", "curve", "--data", folder, "--user", "ann").out
    assert told.startswith("rule") and "stale: share of the turns whose answer needed the thought" in told
    assert "'bob'" in mistaken(run("gate", "curve", "--data", folder, "--user", "bob"))
    for more in ((), ("--user", "ann")):
        assert "no step has both" in run("coach", "calibration", "--data", folder, *more).err
    assert "'bob'" in mistaken(run("coach", "calibration", "--data", folder, "--user", "bob"))
