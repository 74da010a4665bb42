"""`mindstream plan`: plans in files are checked, drawn, edited, exported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from running import mistaken, run

from mindstream.planning.plan import Plan

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
    assert run("plan", "check", file).out == (
        "2 steps, and nothing is wrong with its form; it runs with --tools calculator\n"
    )
    assert run("plan", "check", file, "--tools", "calculator").code == 0
    file.write_text(TEXT.replace("#E1 +", "#E3 +").replace("calculator[17", "calculater[17"))
    done = run("plan", "check", file, "--tools", "calculator,llm")
    assert done.code == 1 and len(done.out.splitlines()) == 2
    assert "did you mean calculator?" in done.out and "add E3, or refer to another" in done.out
    assert [row["kind"] for row in run("plan", "check", file, "--json").rows] == ["missing"]


def test_what_is_no_plan_is_said_by_line(file: Path) -> None:
    file.write_text("\nhello\n")
    assert "plan.txt: no step of a plan stands in it: line 2" in mistaken(run("plan", "check", file))
    file.write_text('{"steps": [\n  {"id": "X"}]}')
    assert "steps.0" in mistaken(run("plan", "draw", file))


def test_a_plan_is_drawn_as_mermaid_or_as_lines(file: Path) -> None:
    assert "    E1 --> E2\n" in run("plan", "draw", file).out
    assert "   E2 calculator[#E1 + 12]  ← E1" in run("plan", "draw", file, "--as", "text").out


def test_a_step_is_changed_added_and_taken_away_in_the_file_s_own_form(file: Path, tmp_path: Path) -> None:
    done = run("plan", "edit", file, "--step", "E2", "--input", "#E1 + 13")
    assert done.code == 0 and "~ E2: arguments" in done.out
    assert file.read_text() == TEXT.replace("12", "13")
    kept = tmp_path / "plan.json"
    kept.write_text(Plan.load('{"steps": [{"id": "E1", "tool": "web_search", "arguments": {"query": "a"}}]}').save())
    added = run("plan", "edit", kept, "--step", "E2", "--tool", "LLM", "--input", "Sum up #E1", "--why", "So")
    assert added.code == 0 and '+ E2 = LLM[{"input": {"$text": ["Sum up ", {"$ref": "E1"}]}}]' in added.out
    changed = run("plan", "edit", kept, "--step", "E1", "--input", "b")
    assert changed.code == 0 and Plan.load(kept.read_text()).step("E1").arguments == {"query": "b"}
    gone = run("plan", "edit", kept, "--remove", "E1")
    assert gone.code == 1 and "add E1, or refer to another" in gone.err
    assert [step.id for step in Plan.load(kept.read_text()).steps] == ["E2"]


def test_an_edit_that_cannot_be_made_leaves_the_file_as_it_is(file: Path, tmp_path: Path) -> None:
    assert "there is no step 'E7'" in mistaken(run("plan", "edit", file, "--step", "E7", "--input", "x"))
    assert "say with --step" in mistaken(run("plan", "edit", file, "--input", "x"))
    assert "nobody is there to edit it" in mistaken(run("plan", "edit", file))
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
