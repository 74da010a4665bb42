"""A process killed at any step of any operation on a data folder leaves consistent data."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from killing import THINGS

KILLING = Path(__file__).with_name("killing.py")


MAIN = ["remember", "supersede", "forget", "erase", "an import", "hearing"]
"""What is killed in the quick tier too."""


def killed(work: Path, points: int, names: list[str]) -> list[dict[str, Any]]:
    command = [sys.executable, str(KILLING), str(work), str(points), *names]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("points", "names"),
    [
        (1, MAIN),
        pytest.param(1, sorted(THINGS.keys() - set(MAIN)), marks=pytest.mark.slow),
        pytest.param(20, list(THINGS), marks=pytest.mark.soak),
    ],
    ids=["main", "others", "all"],
)
def test_a_kill_at_any_point_leaves_consistent_data(points: int, names: list[str], tmp_path: Path) -> None:
    found = killed(tmp_path, points, names)
    assert [each["thing"] for each in found] == names
    assert [each for each in found if each["wrong"] or not each["killed"]] == []
