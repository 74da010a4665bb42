"""The programs on the adapter pages give the output shown there, if the framework is installed."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from foreign_programs import run_python

PAGES = sorted((Path(__file__).parents[2] / "docs" / "adapters").glob("*.md"))


def blocks() -> Iterator[tuple[str, str, str]]:
    """Yield each Python block with its expected output, named by page and number."""
    for page in PAGES:
        pairs = re.findall(r"```python\n((?:(?!```).)*)```\n\n```output\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
        yield from ((f"{page.stem} {n}", code, output) for n, (code, output) in enumerate(pairs, 1))


def imported(code: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@pytest.mark.parametrize(("code", "output"), [pytest.param(code, output, id=name) for name, code, output in blocks()])
def test_the_output_shown_on_a_page_is_the_output_of_its_program(
    code: str, output: str, tmp_path: Path, needs: Callable[..., None]
) -> None:
    needs(*(name for name in imported(code) if not name.startswith("mindstream")))
    assert run_python(code, tmp_path) == output


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_page_has_a_tested_program(page: Path) -> None:
    assert page.stem in {name.split()[0] for name, _, _ in blocks()}
