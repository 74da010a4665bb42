"""The example shows admission by the rubric, recall by another agent, and withdrawal with all derived pairs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "three_agents.py"


def test_three_agents_share_a_pool_without_a_key(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(EXAMPLE.parents[1] / "src")}
    done = subprocess.run(
        [sys.executable, EXAMPLE], capture_output=True, cwd=tmp_path, env=env, timeout=200, check=True
    )
    offered, recalled, withdrawn = done.stdout.decode().split("\n\n")[1:]
    assert offered.count("  admitted, 70 points") == 2 and "no model has read the content" in offered
    assert "rejected, 0 points: more than half of the answer is one repeated word" in offered
    shown = "A sailor who trembled at cod"
    assert shown in recalled and "sonnet (model C)" in recalled and shown not in withdrawn
    assert "olga withdraws all of limerick: 2 pairs" in withdrawn
    assert withdrawn.strip().endswith("is sonnet's own still served to wuyanlushi? no")
