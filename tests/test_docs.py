"""What the documentation shows is what happens."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def run(code: str, folder: Path) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_readmes_ten_lines_print_what_it_says(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    code, output = (re.search(rf"```{kind}\n(.*?)```", text, re.DOTALL) for kind in ("python", "output"))
    assert code and output
    assert run(code[1], tmp_path) == output[1]


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_every_example_runs(path: Path, tmp_path: Path) -> None:
    assert run(path.read_text("utf-8"), tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_are_named_are_there(page: Path) -> None:
    text = page.read_text("utf-8")
    for name in re.findall(r"`((?:docs|tests|benchmarks|examples)/[\w/.-]+\.(?:md|py|jsonl|svg))`", text):
        assert (ROOT / name).exists(), f"{page.name} names {name}, which is not there"


def test_the_version_is_the_changelogs() -> None:
    import mindstream

    newest = re.search(r"^## (\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert newest and newest[1] == mindstream.__version__
