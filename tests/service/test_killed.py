"""Whatever is done to a data folder: a process that is killed at any step of it leaves nothing torn, lost or twice."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from killing import THINGS

KILLING = Path(__file__).with_name("killing.py")


def killed(work: Path, points: int) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, str(KILLING), str(work), str(points)], stdout=subprocess.PIPE, text=True, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("points", [1, pytest.param(20, marks=pytest.mark.soak)])
def test_killed_in_the_middle_of_anything_nothing_is_wrong(points: int, tmp_path: Path) -> None:
    found = killed(tmp_path, points)
    assert [each["thing"] for each in found] == list(THINGS)
    assert [each for each in found if each["wrong"] or not each["killed"]] == []
