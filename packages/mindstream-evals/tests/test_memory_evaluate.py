"""`mindstream memory evaluate` over HTTP: answers, verdicts, a resumable file, a cost estimate."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from fake_endpoint import Asked, Behaviour, Fails, FakeEndpoint, Says
from published_forms import LOCOMO
from running import mistaken, run

ANSWERS = {
    "When did Rosa paint": "On 7 May 2023",
    "What is wrong": "It leaks; they caulk it",
    "Who of them": "not known",
}


def reads(asked: Asked) -> Behaviour:
    """Answer from the shown text, judge by exact words."""
    system, user = (message["content"] for message in asked.body["messages"][:2])
    if "You check an answer" in system:
        is_right = "not known" in user or "7 May 2023\n</right_answers>" in user
        return Says(json.dumps({"why": "so it stands", "right": is_right}))
    assert "You answer a question from lines of a talk" in system and "<lines>" in user
    return Says(next(answer for start, answer in ANSWERS.items() if start in user))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "talks.json").write_text(json.dumps(LOCOMO))
    return tmp_path / "talks.json"


def flags(door: FakeEndpoint, file: Path) -> list[str]:
    name = f"{door.url}#m"
    return ["memory", "evaluate", "--data", str(file), "--reader", name, "--judge", name, "--yes"]


def test_every_arm_is_answered_judged_and_cached(door: FakeEndpoint, file: Path) -> None:
    door.otherwise = reads
    done = run(*flags(door, file), "--json")
    assert done.code == 0, done.err
    (found,) = done.rows
    whole = {each["arm"]: each for each in found["standings"] if not each["type"]}
    assert found["form"] == "LoCoMo" and set(whole) == {"memory", "bm25", "whole"}
    assert all((each["right"], each["judged"], each["answered"]) == (2, 3, 3) for each in whole.values())
    assert whole["whole"]["evidence"] == 1 and 0 < whole["memory"]["low"] < 2 / 3 < whole["memory"]["high"] < 1
    kept = [json.loads(line) for line in file.with_suffix(".answers.jsonl").read_text().splitlines()]
    assert {each["row"] for each in kept} == {"answer", "judgement"}
    answer = next(each for each in kept if each["row"] == "answer" and each["question"] == "1")
    assert answer["shown"] and answer["reply"] == "On 7 May 2023" and answer["evidence"] == 1
    asked = len(door.chats)
    again = run(*flags(door, file), "--json")
    assert again.rows[0]["standings"] == found["standings"] and len(door.chats) == asked, "no call is repeated"
    table = run(*flags(door, file)).out
    assert "judged by" in table and "0.667" in table


def test_answers_before_a_model_failure_are_kept(door: FakeEndpoint, file: Path) -> None:
    failing = True

    def fails_late(asked: Asked) -> Behaviour:
        if not (failing and "What is wrong" in asked.body["messages"][1]["content"]):
            return reads(asked)
        time.sleep(2)  # the other answers and verdicts have come by then
        return Fails(400, "gone")

    door.otherwise = fails_late
    done = run(*flags(door, file), "--arms", "whole")
    assert done.code == 1 and "the same command continues" in done.err
    failing, before = False, len(door.chats)
    assert run(*flags(door, file), "--arms", "whole").code == 0
    assert (before, len(door.chats) - before) == (5, 2), "only the failed answer and its verdict are asked for"


def test_without_a_judge_there_is_no_accuracy(door: FakeEndpoint, file: Path) -> None:
    door.otherwise = reads
    done = run("memory", "evaluate", "--data", file, "--reader", f"{door.url}#m", "--yes", "--arms", "memory")
    assert done.code == 0 and "without a judge" in done.out and "evidence" in done.out
    row = next(line.split() for line in done.out.splitlines() if line.startswith("memory"))
    assert row[3] == "-" and float(row[5]) > 0.8


def test_the_cost_is_estimated_before_any_call(door: FakeEndpoint, file: Path) -> None:
    done = run(*flags(door, file), "--dry-run", "--json")
    assert done.rows[0]["calls"] == 18 and done.rows[0]["usd"] is None and not door.chats
    mistaken(run(*[each for each in flags(door, file) if each != "--yes"]))
    priced = run("memory", "evaluate", "--data", file, "--reader", "openai:gpt-5-mini", "--dry-run", "--json")
    assert priced.rows[0]["usd"] > 0 and not door.chats


def test_invalid_arguments_are_refused(file: Path) -> None:
    mistaken(run("memory", "evaluate", "--data", file, "--arms", "luck"))
    told = mistaken(run("memory", "evaluate", "--data", file, "--types", "none such"))
    assert "has no questions of the types" in told
    file.write_text(json.dumps([LOCOMO[0] | {"qa": []}]))
    assert "no conversation with messages and questions" in mistaken(run("memory", "evaluate", "--data", file))
    mistaken(run("memory", "evaluate", "--data", file.with_name("absent.json")))
