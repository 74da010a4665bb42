"""The documentation shows the real output of its examples."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from fake_endpoint import KEY, FakeEndpoint

import mindstream

ROOT = Path(__file__).parents[1]
TUTORIAL = sorted((ROOT / "docs" / "tutorial").glob("*.md"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *TUTORIAL]
FILE = re.compile(r'```yaml title="([^"]+)"\n(.*?)```', re.DOTALL)
"""A block that is a file next to the page's program."""


def run(script: list[str], folder: Path) -> str:
    done = subprocess.run([sys.executable, *script], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def blocks() -> list[tuple[str, str, str]]:
    """Return each Python block that shows its output, with its page and number."""
    found = []
    for page in PAGES:
        pairs = re.findall(r"```python\n((?:(?!```).)*)```\n\n```output\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
        found += [(f"{page.stem} {n}", code, output) for n, (code, output) in enumerate(pairs, 1)]
    return found


@pytest.mark.parametrize(("code", "output"), [pytest.param(c, o, id=name) for name, c, o in blocks()])
def test_documented_output_equals_the_printed_output(
    code: str, output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Run it in this process, for speed; test_wheel runs the README's in separate processes.

    An MCP server needs a real stderr, and a trace provider can be set only once per process.
    """
    if "mcp" in code or "set_tracer_provider" in code:
        assert run(["-c", code], tmp_path) == output
        return
    monkeypatch.chdir(tmp_path)
    for page in TUTORIAL:
        for name, content in FILE.findall(page.read_text("utf-8")) if code in page.read_text("utf-8") else ():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(content, "utf-8")
    exec(compile(code, "page", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out == output


@pytest.mark.parametrize("page", [TUTORIAL[1], ROOT / "README.md"], ids=lambda page: page.stem)
def test_the_chat_bots_of_the_first_pages_answer_with_a_model(
    page: Path, door: FakeEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", door.url)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    code = next(
        each for each in re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL) if "ChatBot" in each
    )
    assert "ok" in run(["-c", code], tmp_path)


SLOW, HAS_ITS_OWN_TEST = {"a_month"}, {"three_agents"}
EXAMPLES = [
    pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem in SLOW else [])
    for path in sorted((ROOT / "examples").glob("*.py"))
    if path.stem not in HAS_ITS_OWN_TEST
]


@pytest.mark.parametrize("path", EXAMPLES)
def test_every_example_runs(path: Path, tmp_path: Path) -> None:
    assert run([str(path)], tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_named_on_a_page_exist(page: Path) -> None:
    text = page.read_text("utf-8")
    for name in re.findall(r"`((?:docs|tests|benchmarks|examples)/[\w/.-]+\.(?:md|py|jsonl|svg))`", text):
        assert (ROOT / name).exists(), f"{page.name} names {name}, which does not exist"


def test_the_version_equals_the_newest_of_the_changelog() -> None:
    newest = re.search(r"^## (\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert newest and newest[1] == mindstream.__version__
