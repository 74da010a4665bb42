"""`mindstream plan`: plans in files are checked, drawn, edited, exported."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from running import mistaken, run

from mindstream.planning.plan import Plan

PLANNING = (Path(__file__).parents[2] / "docs" / "planning.md").read_text("utf-8")
TEXT = """Question: How much is it?
Plan: Work out the share.
#E1 = calculator[17.5% of 2480]
Plan: Add.
#E2 = calculator[#E1 + 12]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "plan.txt"
    path.write_text(TEXT)
    return path


def test_faults_are_printed_with_advice(file: Path) -> None:
    assert run("plan", "check", file).out == "2 steps, and nothing is wrong\n"
    assert run("plan", "check", file, "--tools", "calculator").code == 0
    file.write_text(TEXT.replace("#E1 +", "#E3 +").replace("calculator[17", "calculater[17"))
    done = run("plan", "check", file, "--tools", "calculator,llm")
    assert done.code == 1 and len(done.out.splitlines()) == 2
    assert "did you mean calculator?" in done.out and "add E3, or refer to another" in done.out
    assert [row["kind"] for row in run("plan", "check", file, "--json").rows] == ["tool", "missing"]


HAND_WRITTEN = [
    *re.findall(r'"""\n(Question.*?)"""', PLANNING, re.S), TEXT, TEXT.partition("\n")[2],
    "#E1 = search_documents[tea]", '1. web_search["x"]\njoin()', "#E1 = recall[tea]",
]  # fmt: skip


@pytest.mark.parametrize("text", HAND_WRITTEN)
@pytest.mark.parametrize("named", [(), ("--tools", "recall"), ("--docs", "shelf"), ("--task", "Why?")], ids=str)
def test_a_plan_runs_exactly_when_the_check_finds_nothing(
    text: str, named: tuple[str, ...], file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shelf").mkdir()
    (tmp_path / "shelf" / "tea.txt").write_text("Tea is in the cup.")
    file.write_text(text)
    checked = run("plan", "check", file, "--data", tmp_path / "d", *named)
    done = run("plan", "run", file, "--data", tmp_path / "d", *named)
    began = "nothing was run" not in done.err and "is no plan" not in done.err and done.code != 2
    assert began == (checked.code == 0), (checked.out, checked.err, done.err)


def test_a_saved_plan_passes_the_check_and_runs_with_the_same_flags(tmp_path: Path) -> None:
    (tmp_path / "shelf").mkdir()
    (tmp_path / "shelf" / "tea.txt").write_text("Tea is in the cup.")
    where, saved = ("--docs", tmp_path / "shelf", "--data", tmp_path / "d"), tmp_path / "saved.json"
    run("solve", "Where is the tea?", *where, "--save", saved)
    assert run("plan", "check", saved, *where).code == 0
    assert "Tea is in the cup." in run("plan", "run", saved, *where).out
    bare = run("plan", "check", saved, "--data", tmp_path / "d")
    assert bare.code == 1 and "come with --docs DIR" in bare.err
    assert "come with --docs DIR" in run("plan", "run", saved, "--data", tmp_path / "d").err


def test_text_that_is_no_plan_is_reported_by_line(file: Path) -> None:
    file.write_text("\nhello\n")
    assert "plan.txt: expected a plan" in mistaken(run("plan", "check", file))
    file.write_text('{"steps": [\n  {"id": "X"}]}')
    assert "steps.0" in mistaken(run("plan", "draw", file))


def test_a_plan_is_drawn_as_mermaid_or_as_lines(file: Path) -> None:
    assert "    E1 --> E2\n" in run("plan", "draw", file).out
    assert "   E2 calculator[#E1 + 12]  ← E1" in run("plan", "draw", file, "--as", "text").out


def test_steps_are_edited_in_the_format_of_the_file(file: Path, tmp_path: Path) -> None:
    done = run("plan", "edit", file, "--step", "E2", "--input", "#E1 + 13")
    assert done.code == 0 and "~ E2: arguments" in done.out
    assert file.read_text() == TEXT.replace("12", "13")
    kept = tmp_path / "plan.json"
    kept.write_text(Plan.load('{"steps": [{"id": "E1", "tool": "web_search", "arguments": {"query": "a"}}]}').save())
    added = run("plan", "edit", kept, "--step", "E2", "--tool", "LLM", "--input", "Sum up #E1", "--why", "So")
    assert added.code == 0 and '+ E2 = LLM[{"input": {"$text": ["Sum up ", {"$ref": "E1"}]}}]' in added.out
    changed = run("plan", "edit", kept, "--step", "E1", "--input", "b")
    assert changed.code == 0 and Plan.load(kept.read_text()).step("E1").arguments == {"query": "b"}
    again = run("plan", "edit", kept, "--step", "E3", "--tool", "web_search", "--input", "#E2 now")
    assert again.code == 0 and Plan.load(kept.read_text()).step("E3").arguments.keys() == {"query"}
    assert run("plan", "edit", kept, "--remove", "E3").code == 0
    gone = run("plan", "edit", kept, "--remove", "E1")
    assert gone.code == 1 and "add E1, or refer to another" in gone.err
    assert [step.id for step in Plan.load(kept.read_text()).steps] == ["E2"]


def test_an_impossible_edit_leaves_the_file_unchanged(file: Path, tmp_path: Path) -> None:
    assert "there is no step 'E7'" in mistaken(run("plan", "edit", file, "--step", "E7", "--input", "x"))
    assert "name the step to change" in mistaken(run("plan", "edit", file, "--input", "x"))
    assert "without a terminal, name the change" in mistaken(run("plan", "edit", file))
    link = tmp_path / "link"
    link.symlink_to(file)
    assert mistaken(run("plan", "edit", link, "--remove", "E2"))
    assert file.read_text() == TEXT


def test_a_plan_is_exported_as_an_example(file: Path) -> None:
    (example,) = run("plan", "export", file, "--tools", "calculator").rows
    assert [message["role"] for message in example["messages"]] == ["system", "user", "assistant"]
    assert example["messages"][2]["content"] == TEXT.partition("\n")[2].rstrip()
    (pair,) = run("plan", "export", file, "--form", "instruction", "--task", "Why?").rows
    assert pair["input"] == "Why?" and json.dumps(pair).count("#E2 = calculator") == 1
