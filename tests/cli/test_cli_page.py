from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import typer
import write_docs

from mindstream.cli.app import app


def test_the_command_line_page_is_up_to_date() -> None:
    code = "import write_docs; print(write_docs.page(), end='')"  # in a process without traces of other tests
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parent, capture_output=True, text=True, check=True
    )
    assert write_docs.FILE.read_text("utf-8") == done.stdout, "run python tests/cli/write_docs.py"


def test_every_command_has_a_description_and_an_example() -> None:
    for name, text in write_docs.helps(typer.main.get_command(app)):
        assert f"Usage: {name}" in text
        assert "Commands:" in text or f"    {name}" in text, f"{name} --help has no example"
