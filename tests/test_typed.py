"""The documented examples are typed, and use every public name."""

from __future__ import annotations

import ast
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import mindstream

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "README.md", ROOT / "docs" / "python.md")


def examples(*pages: Path) -> dict[str, str]:
    """Return the Python blocks, each with a name."""
    pattern = re.compile(r"```python\n((?:(?!```).)*)```", re.DOTALL)
    return {
        f"{page.stem.lower()}_{number}": code
        for page in pages
        for number, code in enumerate(pattern.findall(page.read_text("utf-8")), 1)
    }


def test_every_example_passes_mypy_strict(tmp_path: Path) -> None:
    for name, code in examples(*PAGES).items():
        (tmp_path / f"{name}.py").write_text(code, "utf-8")
    command = (sys.executable, "-m", "mypy", tmp_path)  # with the options, and thus the cache, of `make test`
    paths = os.environ | {"MYPYPATH": str(tmp_path)}
    done = subprocess.run(command, cwd=ROOT, env=paths, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_public_name_is_used_in_an_example() -> None:
    imported = {
        alias.name
        for code in examples(ROOT / "docs" / "python.md").values()
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.ImportFrom) and node.module == "mindstream"
        for alias in node.names
    }
    assert sorted(set(mindstream.__all__) - imported) == []


@pytest.mark.parametrize("name", mindstream.__all__)
def test_docstrings_begin_with_a_sentence(name: str) -> None:
    public = getattr(mindstream, name)
    if not (inspect.isclass(public) or inspect.isfunction(public)):
        return  # a type alias needs no docstring
    first = (inspect.getdoc(public) or "").partition("\n")[0]
    assert first.endswith((".", ":", "?")) and not first.startswith(f"{name}("), first
