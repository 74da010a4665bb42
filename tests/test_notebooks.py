from __future__ import annotations

import ast
import inspect
import json
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from mindstream import ManualClock, Memory, Plan, PlannedStep, Solution, Timeline
from mindstream.html_tables import MAX_ROWS, Share, table
from mindstream.planning.plan import Evidence

NOTEBOOKS = sorted((Path(__file__).parents[1] / "examples" / "notebooks").glob("*.ipynb"))
TEXTS = {path: path.read_text("utf-8") for path in NOTEBOOKS}
EVIL = '<img src=x onerror=alert(1)> & "so"'


class Note(BaseModel):
    topics: list[str] = []


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)


def tags(html: str) -> set[str]:
    parser = _Tags()
    parser.feed(html)
    return set(parser.tags)


def html_of(shown: Any) -> str:
    return str(shown._repr_html_())


async def run_cells(name: str, text: str) -> list[object]:
    """Run a notebook's cells as Jupyter does, with top-level await; return the displayed values."""
    names: dict[str, Any] = {"__name__": "__main__"}
    shown = []
    for cell in json.loads(text)["cells"]:
        if cell["cell_type"] != "code":
            continue
        assert cell["outputs"] == [] and cell["execution_count"] is None, "notebooks are stored without output"
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        for part, mode in (
            (tree, "exec"),
            (ast.Expression(last.value) if isinstance(last, ast.Expr) else None, "eval"),
        ):
            if part is not None:
                code = compile(part, name, mode, flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
                found = eval(code, names)
                found = await found if inspect.iscoroutine(found) else found
                shown += [found] if mode == "eval" else []
    return shown


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
async def test_a_notebook_runs_and_shows_tables(path: Path) -> None:
    shown = [each for each in await run_cells(path.name, TEXTS[path]) if hasattr(each, "_repr_html_")]
    assert len(shown) >= 2 and all("<table>" in html_of(each) for each in shown)


async def test_text_of_users_is_escaped(folder: Path) -> None:
    async with Memory.open(folder, "ann", clock=ManualClock()) as memory:
        await memory.retain(EVIL, "note")
        belief = await memory.believe("note", {"topics": [EVIL]}, Note)
        recalled, timeline = await memory.recall("img src"), await Timeline.of(memory.log())
    plan = Plan(task=EVIL, steps=(PlannedStep(id="E1", tool="look", arguments={"of": EVIL}, why=EVIL),))
    solved = Solution(EVIL, "rewoo", EVIL, plan, {"E1": Evidence("E1", EVIL, failed=True)})
    for each in (belief, recalled, timeline, plan, solved):
        html = html_of(each)
        assert "&lt;img src=x" in html
        assert tags(html) <= {
            "div",
            "style",
            "table",
            "caption",
            "small",
            "thead",
            "tbody",
            "tr",
            "th",
            "td",
            "span",
            "p",
        }


def test_the_size_of_tables_is_limited() -> None:
    html = table("many", ("n", "share"), [("x" * 10_000, Share(7.0))] * (MAX_ROWS + 3))
    assert "… and 3 more" in html and len(html) < 100_000 and "--share:100%" in html


def test_notebook_code_is_loaded_only_on_demand() -> None:
    code = "import sys, mindstream; mindstream.Memory; mindstream.Plan; print('mindstream.html_tables' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
