"""`mindstream solve`: with and without a terminal, with a model behind an endpoint, stopped and resumed."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from fake_endpoint import Fails, FakeEndpoint, Says, Stalls
from running import mistaken, run, terminal

from mindstream.cli.permission import edit
from mindstream.errors import InputError
from mindstream.planning.plan import Plan, PlannedStep

PLAN = """Plan: Work out the share.
#E1 = calculator[17.5% of 2480]
Plan: Put it in words.
#E2 = LLM[Write that #E1]
"""
SERVER = f"{sys.executable} {Path(__file__).parents[1] / 'tools' / 'mcp_servers' / 'good.py'}"


def model(door: FakeEndpoint) -> list[str]:
    return ["--model", f"{door.url}#m"]


def test_a_task_is_planned_solved_and_billed(door: FakeEndpoint, folder: Path, tmp_path: Path) -> None:
    door.will(Says(PLAN, usage=(300, 40)), Says("It is 434."), Says("434", usage=(100, 5)))
    kept = tmp_path / "plan.json"
    done = run("solve", "How much is it?", *model(door), "--data", folder, "--save", kept)
    assert done.code == 0 and done.out == "434\n", "standard output holds only the answer"
    told = done.err.splitlines()
    assert told[0].startswith("about 3 model calls, ") and told[0].endswith("price not known")
    assert "E1 calculator: 17.5% of 2480" in told and "E2 LLM: Write that 434" in told
    assert told[-1].startswith("3 model calls, 2 tool calls, 455 tokens, price not known, ")
    assert [step["tool"] for step in json.loads(kept.read_text())["steps"]] == ["calculator", "LLM"]
    calls = run("cost", "--data", folder, "--by", "role", "--json").rows
    assert {row["name"]: row["calls"] for row in calls if row["by"] == "role"} == {
        "planner": 1, "solver": 1, "worker": 1,
    }  # fmt: skip


def test_unanswered_parts_are_named_next_to_the_answer(door: FakeEndpoint, folder: Path) -> None:
    plan, part = Says("#E1 = calculator[6 * 7]\n"), Says("42\nMISSING: of what")
    flags: list[str | Path] = ["solve", "How many, and of what?", *model(door), "--data", folder, "--replans", "0"]
    door.will(plan, part, plan, part)
    done = run(*flags)
    assert done.code == 0 and done.out == "42\n"
    assert "plan: 1 step" in done.err.splitlines() and "not found: of what" in done.err.splitlines()
    (told,) = run(*flags, "--json").rows
    assert (told["answer"], told["unanswered"], told["stopped"]) == ("42", "of what", "")


def test_a_tool_allowed_by_name_is_not_called_with_untrusted_text(door: FakeEndpoint, folder: Path) -> None:
    plan = '#E1 = variable[{"name": "MINDSTREAM_X"}]\n#E2 = variable[{"name": "#E1"}]\n'
    door.will(Says(plan), Says("Done."))
    flags = ["--mcp", SERVER, "--trust", "--replans", "0", "--allow", "variable"]
    done = run("solve", "Which?", *model(door), "--data", folder, *flags, "--json")
    (told,) = done.rows
    first, second = told["evidence"]
    assert done.err == "" and told["missing"] == ["E2"] and told["spent"]["tool_calls"] == 1
    assert first["text"] == "not set" and first["foreign"]
    assert second["failed"] and "was not approved" in second["text"] and "--allow" not in second["text"]
    door.will(Says(plan), Says("Done."))
    (told,) = run("solve", "Which?", *model(door), "--data", folder, *flags[:-2], "--json").rows
    assert "was not approved; allow it with --allow variable" in told["evidence"][0]["text"]
    refused = run("solve", "Which?", *model(door), "--data", folder.with_name("other"), "--mcp", SERVER)
    assert refused.code == 2 and "accept it with --trust" in refused.err


def test_in_a_terminal_steps_are_shown_and_side_effects_need_approval(door: FakeEndpoint, folder: Path) -> None:
    door.will(Says('#E1 = add[{"a": 2, "b": 3}]\n#E2 = variable[{"name": "#E1"}]\n'), Says("Done."))
    with terminal("solve", "Which?", *model(door), "--data", folder, "--mcp", SERVER) as screen:
        shown = screen.until("Accept these tools? [y/N]")
        assert "the server says that it only reads" in shown
        assert "run without asking you, as they only read: add." in shown
        screen.type("y\r")
        screen.until("E1 done")
        screen.until("E2 wants to call variable, which may change something:")
        assert "name: 5" in screen.until("It contains untrusted text.")
        screen.until("Do it? [y/N]")
        screen.type("y\r")
        screen.until("E2 done")
        screen.until("Done.")
        assert screen.ended() == 0
        assert "2 model calls, 2 tool calls" in screen.rest


def test_a_plan_can_be_shown_edited_and_approved(door: FakeEndpoint, folder: Path, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i s/2480/1000/ "$1"\n')
    editor.chmod(0o755)
    door.will(Says(PLAN), Says("MISSING E2"), Says("MISSING E1"), Says("#E1 = calculator[6 * 7]\n"))
    with terminal(
        "solve", "How much?", *model(door), "--data", folder, "--approve", EDITOR=str(editor), VISUAL=""
    ) as screen:
        assert "E2 LLM[Write that #E1]  ← E1" in screen.until("Run it? [y]es, [e]dit, [N]o")
        screen.type("e\r")
        screen.until("E1 calculator[17.5% of 1000]")
        screen.until("Run it?")
        assert len(door.chats) == 1, "no step has run"
        screen.type("y\r")
        screen.until("~ E1: arguments")
        screen.until("Continue with the changed plan? [y/N]")
        screen.type("\r")
        screen.until("the changed plan was refused; partial results are stored")
        assert screen.ended() == 2


def test_an_editor_with_an_open_quotation_mark_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISUAL", "vim 'unclosed")
    plan = Plan(task="How much?", steps=(PlannedStep(id="E1", tool="calculator", arguments={"formula": "6 * 7"}),))
    with pytest.raises(InputError, match=r"cannot be run \(No closing quotation\): set VISUAL or EDITOR"):
        edit(plan, ())


def test_ctrl_c_keeps_the_evidence_and_the_run_resumes(door: FakeEndpoint, folder: Path) -> None:
    door.will(Says(PLAN), Stalls())
    with terminal("solve", "How much?", *model(door), "--data", folder, "--run", "monday") as screen:
        screen.until("E1 done")
        screen.until("Write that 434")
        screen.type("\x03")
        screen.until("mindstream: stopped; partial results are stored")
        screen.until(f"solve --resume monday --model '{door.url}#m'")
        assert screen.ended() == 130
    listed = run("solve", "--list", "--data", folder, "--json").rows
    assert [(row["run"], row["state"]) for row in listed] == [("monday", "broken off")]
    day = listed[0]["at"][:10]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", day) and day in run("solve", "--list", "--data", folder).out
    door.will(Says("It is 434."), Says("434"))
    done = run("solve", "--resume", "monday", *model(door), "--data", folder, "--json")
    assert done.rows[0]["answer"] == "434" and done.rows[0]["spent"]["tool_calls"] == 3, "E1, and E2 twice"
    assert len(door.chats) == 4, "and no planner is called again"


def test_after_a_model_failure_the_run_can_be_resumed(door: FakeEndpoint, folder: Path) -> None:
    door.will(Says("#E1 = calculator[6 * 7]\n"), Fails(400, "out of order"))
    done = run("solve", "How many?", *model(door), "--data", folder, "--run", "monday")
    assert done.code != 0 and done.out == "" and "out of order" in done.err
    assert f"mindstream solve --resume monday --model '{door.url}#m'" in done.err
    (told,) = run("solve", "--list", "--data", folder, "--json").rows
    assert told["state"] == "broken off" and told["answer"] is None
    door.will(Says("Forty-two."))
    done = run("solve", "--resume", "monday", *model(door), "--data", folder)
    assert (done.code, done.out) == (0, "Forty-two.\n") and len(door.chats) == 3


def test_without_a_model_documents_are_quoted_and_a_model_can_resume(
    door: FakeEndpoint, folder: Path, tmp_path: Path
) -> None:
    towns = tmp_path / "towns.txt"
    where: list[str | Path] = ["--docs", tmp_path, "--data", folder]
    towns.write_text("The mayor of Tornby is Erik Moe.")
    for how in ("rewoo", "plan-execute"):
        done = run("solve", "Who is the mayor of Tornby?", *where, "--how", how, "--run", how)
        assert done.code == 1 and done.out.startswith("No model was there to answer; what was found is quoted:")
        assert done.out.endswith("towns.txt, line 1:\nThe mayor of Tornby is Erik Moe.\n")
        assert f"--resume {how} --data {folder} --docs {tmp_path} --model NAME" in done.err
    (told,) = run("solve", "Who is the mayor?", *where, "--json").rows
    assert told["is_quotation"] and told["unanswered"] == "an answer: no model was there" and told["missing"] == []
    states = [row["state"] for row in run("solve", "--list", "--data", folder, "--json").rows]
    assert states == ["quoted"] * 3
    door.will(Says("Erik Moe."))
    answered = run("solve", "--resume", "rewoo", *where, *model(door))
    assert (answered.code, answered.out) == (0, "Erik Moe.\n") and len(door.chats) == 1
    assert "towns.txt, line 1" in str(door.chats[0])


def test_without_a_model_every_search_tool_is_asked(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "towns.txt").write_text("The mayor of Tornby is Erik Moe.")
    where = ("--docs", tmp_path, "--tools", "recall,calculator", "--data", folder, "--json")
    (told,) = run("solve", "Who is the mayor of Tornby?", *where).rows
    assert [each["tool"] for each in told["evidence"]] == ["recall", "search_documents"]
    assert told["missing"] == ["E1"] and told["answer"].endswith("The mayor of Tornby is Erik Moe.")


def test_without_anything_to_quote_the_error_names_the_missing_flags(folder: Path, tmp_path: Path) -> None:
    done = run("solve", "Who is the mayor of Tornby?", "--data", folder)
    assert (done.code, done.out) == (1, "") and "recall found no memory" in done.err
    assert "name a folder with --docs, or a model with --model" in done.err


def test_a_plan_from_a_file_is_checked_then_run(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "plan.txt"
    file.write_text('1. calculator("17.5% of 2480")\n2. calculator("$1 + 12")\n3. join()\n')
    done = run("plan", "run", file, "--task", "How much?", "--data", folder)
    assert done.code == 0 and done.out == "446\n" and "no model, 2 tool calls" in done.err
    assert mistaken(run("plan", "run", file, "--data", folder)).endswith("name one with --task")
    file.write_text("#E1 = calculatr[1]\n#E2 = calculator[#E3]\n")
    done = run("plan", "run", file, "--task", "How much?", "--data", folder)
    assert done.code == 1 and "did you mean calculator?" in done.err and "#E3" in done.err
    assert done.err.endswith("nothing was run\n")


MISTAKES = [
    (["solve"], "name the task: "),
    (["solve", "x", "--tools", "calculater"], "did you mean 'calculator'?"),
    (["solve", "x", "--save", "/nowhere/plan.json"], "create the folder '/nowhere' first"),
    (["solve", "x", "--how", "react"], "react needs a model"),
    (["solve", "x", "--approve"], "run the command in a terminal"),
    (["solve", "--resume", "nix"], "there is no memory in"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "says"), MISTAKES, ids=lambda value: " ".join(value)[:40])
def test_invalid_arguments_are_refused_in_one_sentence(arguments: list[str], says: str, folder: Path) -> None:
    assert says in mistaken(run(*arguments, "--data", folder))
