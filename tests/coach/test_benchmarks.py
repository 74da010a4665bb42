"""The talker's benchmark runs, and a gate that never waits misses its thresholds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "talker.py"


@pytest.mark.slow
def test_the_benchmark_fails_with_a_gate_that_never_waits() -> None:
    run: list[str | Path] = [sys.executable, BENCHMARK, "--json", "--quick", "--utterances", "24", "--gate", "never"]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "stale_share" in done.stderr and "small_talk_woke_share" in done.stderr
    found = json.loads(done.stdout)
    assert found["double_answers"] == found["unanswered"] == 0 and found["utterances"] == 24
