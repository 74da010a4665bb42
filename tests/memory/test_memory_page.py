"""The first programs of docs/memory.md run unchanged; tests/test_docs.py checks those with output."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "memory.md"
EXAMPLES = re.findall(r"```python\n((?:(?!```).)*)```\n(?!\n```output)", PAGE.read_text("utf-8"), re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_of_the_memory_page_run_as_documented(example: str, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("Trams squeal below Ann's window.")
    assert lines[1] == "['Ann goes to bed at 22:00.']"
    assert lines[2].startswith("I dreamt: ")
    assert "Ann goes to bed at 22:00." in lines[3]
