"""The talker's benchmarks: a gate that never waits misses its thresholds; a coach costs less than 1.8 agents."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

TOKENS = Path(__file__).parents[2] / "benchmarks" / "coach_tokens.py"
BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "talker.py"


@pytest.mark.slow
def test_the_benchmark_fails_with_a_gate_that_never_waits() -> None:
    run: list[str | Path] = [sys.executable, BENCHMARK, "--json", "--quick", "--utterances", "24", "--gate", "never"]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "stale_share" in done.stderr and "small_talk_woke_share" in done.stderr
    found = json.loads(done.stdout)
    assert found["double_answers"] == found["unanswered"] == 0 and found["utterances"] == 24


def test_a_coach_needs_less_than_1_8_times_the_tokens_of_one_agent() -> None:
    done = subprocess.run([sys.executable, TOKENS, "--json"], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["times"] < 1.8, "docs/talker-reasoner.md"
    assert found["prompts"]["think"]["calls"] <= found["turns"] / 3, "short messages are thought about together"
