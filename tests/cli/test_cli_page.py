from __future__ import annotations

import typer
import write_docs

from mindstream.cli.app import app


def test_the_page_on_the_command_line_is_current() -> None:
    written = write_docs.FILE.read_text("utf-8")
    assert written == write_docs.page(), "python tests/cli/write_docs.py writes it anew"


def test_every_command_says_what_it_is_for_and_gives_an_example() -> None:
    for name, text in write_docs.helps(typer.main.get_command(app)):
        assert f"Usage: {name}" in text
        assert "Commands:" in text or f"    {name}" in text, f"{name} --help has no example"
