"""The talker's benchmark runs and prints what it promises; its numbers are not judged here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "talker.py"


def printed(*options: str) -> dict[str, object]:
    done = subprocess.run([sys.executable, BENCHMARK, "--json", *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def test_conversations_through_a_real_endpoint_are_measured() -> None:
    found = printed("--quick")
    promised = {
        "overhead_p50_ms", "overhead_p99_ms", "cpu_ms_per_utterance", "staleness_turns_mean", "wait_rate",
        "first_words_p50_ms", "single_agent_first_words_p50_ms",
    }  # fmt: skip
    assert promised <= found.keys()
    assert all(isinstance(found[name], float) for name in promised)
    assert found["utterances"] == 20


def test_one_long_conversation_is_measured_at_its_marks() -> None:
    assert printed("--turns", "10")["overhead_p50_ms_at_turn"].keys() == {"10"}  # type: ignore[attr-defined]


def test_a_gate_that_never_waits_breaks_the_bar_for_stale_answers() -> None:
    run: list[str | Path] = [sys.executable, BENCHMARK, "--json", "--quick", "--utterances", "24", "--gate", "never"]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "stale_share" in done.stderr and "small_talk_woke_share" in done.stderr
    found = json.loads(done.stdout)
    assert found["double_answers"] == found["unanswered"] == 0 and found["utterances"] == 24
