"""`mindstream town evaluate`: estimated, no repeated calls, judged by a model or by people; one-sentence errors."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest
from fake_endpoint import Asked, Fails, FakeEndpoint, Says
from running import mistaken, run_here
from test_town import HAMLET

SMALL = ("--questions", "2", "--pairs", "9", "--control", "shuffled")


@pytest.fixture
def town(tmp_path: Path) -> tuple[str | Path, ...]:
    """Run the hamlet for a morning; return the flags that name it."""
    file, where = tmp_path / "hamlet.toml", ("--data", tmp_path / "town")
    file.write_text(HAMLET)
    assert run_here("town", "new", file, "--seed", "3", *where).code == 0
    assert run_here("town", "run", "--hours", "10", *where).code == 0
    return where


def mind(asked: Asked) -> Says:
    """Answer with a given number of memories; prefer the answer with more, and find one claim."""
    user = asked.body["messages"][-1]["content"]
    if "<first>" in user:
        first, second = (int(each) for each in re.findall(r"I remember (\d+)", user))
        better = "equal" if first == second else "first" if first > second else "second"
        return Says(json.dumps({"why": "more", "better": better}))
    if "<answer>" in user:
        return Says(json.dumps({"claims": [{"claim": "It remembers.", "fact": 1}]}))
    return Says(f"I remember {user.count('2023-02-13')} things.")


def test_a_model_answers_and_judges_without_repeated_calls(town: tuple[str | Path, ...], tmp_path: Path) -> None:
    with FakeEndpoint() as door:
        door.otherwise = mind
        model = ("--model", f"{door.url}#any", *SMALL, *town)
        assert "add --yes" in mistaken(run_here("town", "evaluate", *model))
        planned = run_here("town", "evaluate", "--dry-run", "--json", *model).rows[-1]
        assert not door.chats and planned["calls"] > 0
        answers = tmp_path / "answers.csv"
        found = run_here("town", "evaluate", "--yes", "--json", "--answers", answers, *model)
        assert found.code == 0, found.err
        asked = len(door.chats)
        assert 0 < asked <= planned["calls"]
        (row,) = found.rows
        assert row["judged"] == row["pairs"] == 9 and row["spent"]["calls"] == asked
        assert {each["condition"] for each in row["conditions"]} >= {"full", "none", "shuffled"}
        assert row["agreed_when_turned"] == 1.0
        said = run_here("town", "evaluate", *model).out
        assert len(door.chats) == asked, "so no approval is requested"
    assert "TrueSkill" in said and "order: " in said and "Kruskal-Wallis" in said and "claims made up" in said
    with answers.open() as file:
        assert len(list(csv.DictReader(file))) == row["answers"]
    assert (tmp_path / "town.evaluation.jsonl").is_file()


def test_a_failing_model_loses_no_results(town: tuple[str | Path, ...]) -> None:
    with FakeEndpoint() as door:
        door.otherwise = Fails(401, "wrong key")
        failed = run_here("town", "evaluate", "--yes", "--model", f"{door.url}#any", *SMALL, *town)
    assert failed.code == 1 and "wrong key" in failed.err and "the same command continues" in failed.err


def test_people_can_judge_pairs_on_a_page_and_return_the_file(town: tuple[str | Path, ...], tmp_path: Path) -> None:
    page, judged = tmp_path / "pairs.html", tmp_path / "judged.csv"
    asked = ("town", "evaluate", "--questions", "2", "--pairs", "12", *town)
    done = run_here(*asked, "--pairs-out", page)
    assert done.code == 0 and "--judged judged.csv" in done.out, done.err
    ids = re.findall(r'"id": "(\w+)"', page.read_text("utf-8"))
    assert ids
    judged.write_text("pair,verdict\n" + "".join(f"{each},1\n" for each in ids))
    said = run_here(*asked, "--judged", judged).out
    assert "judged by people" in said and "unsupported claims are not counted" in said


def test_invalid_arguments_are_refused_in_one_sentence(town: tuple[str | Path, ...], tmp_path: Path) -> None:
    assert "no model judges" in mistaken(run_here("town", "evaluate", *town))
    assert "unknown condition" in mistaken(run_here("town", "evaluate", "--conditions", "half", "--answers",
                                                  tmp_path / "a.csv", *town))  # fmt: skip
    assert "Zoe" in mistaken(run_here("town", "evaluate", "--residents", "Zoe", "--answers", tmp_path / "a.csv", *town))
    assert "run it further with" in mistaken(run_here("town", "evaluate", "--at", "day 9", *town))
    blank = tmp_path / "mine.csv"
    assert run_here("town", "evaluate", "--questions-out", blank, *town).code == 0
    assert "no row has an answer" in mistaken(run_here("town", "evaluate", "--person", blank, *town))
    empty = ("--data", tmp_path / "new")
    run_here("town", "new", tmp_path / "hamlet.toml", *empty)
    assert "has not run yet" in mistaken(run_here("town", "evaluate", "--answers", tmp_path / "a.csv", *empty))
