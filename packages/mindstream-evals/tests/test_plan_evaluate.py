"""`mindstream plan evaluate`: estimated, resumable without repeated calls, scored, judged; tools fail on request."""

from __future__ import annotations

import csv
import json
import re
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from doing import begin_ray, needs_ray
from fake_endpoint import Asked, Calls, Fails, FakeEndpoint, Says, Stalls
from question_sets import HOTPOT, write_set
from running import COMMAND, Done, mistaken, run

ANSWERS = {str(row["question"]): str(row["answer"]) for row in HOTPOT}
PASSAGES = re.compile(r"1871|crosses the Osk|town on the Osk")


def mind(asked: Asked) -> Says | Calls:
    """Plan a search, search, and answer correctly from the result; know nothing otherwise."""
    system, user = (asked.body["messages"][at]["content"] for at in (0, 1))
    seen = json.dumps(asked.body["messages"][1:])
    question = next((each for each in ANSWERS if each in user), "")
    if "<right_answers>" in user:
        wanted, said = (
            re.findall(rf"<{tag}>\n(.*?)\n</{tag}>", user, re.DOTALL)[0] for tag in ("right_answers", "answer")
        )
        return Says(json.dumps({"why": "so", "right": wanted.lower() in said.lower()}))
    if "#E1 = Tool[input]" in system:
        return Says(f"Plan: Look it up.\n#E1 = search_documents[{question}]", usage=(200, 20), cached=100)
    if asked.body.get("tools") and not any(each["role"] == "tool" for each in asked.body["messages"]):
        return Calls((("search_documents", json.dumps({"query": question})),))
    if PASSAGES.search(seen):
        return Says(f"It stands there.\n{ANSWERS[question]}", usage=(300, 10))
    return Says("nobody knows")


def evaluate(door: FakeEndpoint, tmp_path: Path, *flags: str | Path, form: str = "hotpotqa", yes: bool = True) -> Done:
    tmp_path.mkdir(exist_ok=True)
    data, out = write_set(tmp_path, form), tmp_path / "out"
    where = ("--data", data, "--out", out, "--model", f"{door.url}#m", "--tools", "")
    return run("plan", "evaluate", *where, *(["--yes"] if yes else []), *flags)


def found(done: Done) -> dict[str, Any]:
    assert done.code == 0, done.err
    (row,) = done.rows
    return row | {"ways": {each["way"]: each for each in row["findings"]["ways"]}}


def test_strategies_are_compared_with_their_cost_and_no_call_is_repeated(door: FakeEndpoint, tmp_path: Path) -> None:
    door.otherwise = mind
    assert "add --yes" in mistaken(evaluate(door, tmp_path, "--how", "rewoo", yes=False))
    planned = evaluate(door, tmp_path, "--how", "rewoo,react,direct", "--estimate", "--json").rows[0]
    assert not door.chats and planned["calls"] >= 3 * (2 + 2 + 1)
    row = found(evaluate(door, tmp_path, "--how", "rewoo,react,direct", "--json"))
    asked = len(door.chats)
    assert asked == 3 * (2 + 2 + 1) and row["spent"]["calls"] == asked
    rewoo, react, direct = (row["ways"][way] for way in ("rewoo", "react", "direct"))
    assert [each["exact"]["hits"] for each in (rewoo, react, direct)] == [3, 3, 0]
    assert rewoo["tokens"] == 530 and rewoo["tokens_at_a_tenth"] == 440 and rewoo["calls"] == 2
    assert rewoo["exact"]["low"] < 0.5 and rewoo["exact"]["high"] == 1.0 and direct["f1"] == 0.0
    first = row["findings"]["pairs"][0]
    assert (first["first"], first["only_first"], first["only_second"], first["p"]) == ("rewoo", 0, 0, 1.0)
    assert [each["exact"]["hits"] for each in row["findings"]["control"]] == [0, 0, 0], "answers to other questions"
    again = evaluate(door, tmp_path, "--how", "rewoo,react,direct", yes=False)
    assert again.code == 0 and len(door.chats) == asked, "so no approval is requested"
    assert "control, answers scored against another question: exact 0 of 9, contained 0 of 9" in again.out
    with (tmp_path / "out" / "answers.csv").open(encoding="utf-8") as file:
        assert [each["exact"] for each in csv.DictReader(file) if each["way"] == "rewoo"] == ["True"] * 3


def test_each_question_has_its_own_documents_and_no_others(door: FakeEndpoint, tmp_path: Path) -> None:
    door.otherwise = mind
    found(evaluate(door, tmp_path, "--how", "rewoo", "--json"))
    planners = [each.body["messages"][0]["content"] for each in door.chats if "#E1 = Tool" in str(each.body)]
    assert len(planners) == 3 and sum("Skarv Lighthouse.txt" in each for each in planners) == 1
    assert any("Halm Bridge.txt; Halm Bridge 2.txt" in each or "Halm Bridge 2.txt" in each for each in planners)
    other = tmp_path / "docs"
    other.mkdir()
    (other / "moon.txt").write_text("The moon.")
    found(evaluate(door, tmp_path, "--how", "rewoo", "--docs", other, "--replans", "0", "--json"))
    newest = [each.body["messages"][0]["content"] for each in door.chats if "#E1 = Tool" in str(each.body)][3:]
    assert newest and all("moon.txt" in each and "Lighthouse" not in each for each in newest)


def test_an_evaluation_stopped_by_an_error_or_a_limit_resumes(door: FakeEndpoint, tmp_path: Path) -> None:
    door.otherwise = mind
    flags = ("--how", "rewoo,react", "--at-once", "1")
    door.will(*[Says("Plan: Look.\n#E1 = search_documents[Tornby Skarv lit in]")], Fails(401, "wrong key"))
    failed = evaluate(door, tmp_path, *flags)
    assert failed.code == 1 and "wrong key" in failed.err and "the same command continues" in failed.err
    stopped = evaluate(door, tmp_path, *flags, "--max-calls", "4")
    assert stopped.code == 1 and "is reached (" in stopped.err
    row = found(evaluate(door, tmp_path, *flags, "--json"))
    assert [each["exact"]["hits"] for each in row["ways"].values()] == [3, 3]
    done = Counter(json.dumps(each.body["messages"]) for each in door.chats)
    assert sorted(done.values()) == [1] * (len(done) - 1) + [2], "only the failed call was repeated"


@pytest.mark.parametrize("ended", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("ray", [(), pytest.param(("--ray",), marks=needs_ray)], ids=["here", "ray"])
def test_a_killed_evaluation_resumes(
    ended: signal.Signals, ray: tuple[str, ...], door: FakeEndpoint, tmp_path: Path
) -> None:
    def stalls(asked: Asked) -> Says | Calls | Stalls:
        return Stalls("It") if len(door.chats) == 6 else mind(asked)

    door.otherwise = stalls
    data = write_set(tmp_path, "hotpotqa")
    where = ["--data", data, "--out", tmp_path / "out", "--model", f"{door.url}#m", "--tools", "", "--yes"]
    flags = ["--how", "rewoo,react", "--at-once", "1"]
    words = [*COMMAND, "plan", "evaluate", *map(str, [*where, *flags, *ray])]
    process = subprocess.Popen(words, stderr=subprocess.PIPE)
    while len(door.chats) < 6:
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(ended)
    told = process.communicate()[1].decode()
    assert ended == signal.SIGKILL or "stopped; results of model calls are stored in" in told
    assert "received" not in told, "Ray does not report signals"
    row = found(evaluate(door, tmp_path, *flags, "--json"))
    assert [each["exact"]["hits"] for each in row["ways"].values()] == [3, 3]
    assert len(door.chats) == 3 * (2 + 2) + 1 and row["spent"]["calls"] == 3 * (2 + 2) - 5
    assert row["ways"]["rewoo"]["calls"] == 2 and row["ways"]["rewoo"]["tokens"] == 530, "including earlier calls"


def test_an_endless_planner_reply_is_counted(door: FakeEndpoint, tmp_path: Path) -> None:
    endless = "\n".join(f"#E{n} = search_documents[one thing of many, number {n}]" for n in range(1, 400))
    door.otherwise = Says(endless)
    row = found(evaluate(door, tmp_path, "--how", "rewoo", "--limit", "1", "--replans", "0", "--json"))
    assert row["ways"]["rewoo"]["tokens"] > 10 + 300, "the planner was interrupted before it reported its usage"


def test_a_refused_question_is_wrong_and_a_missing_tool_model_stops_the_run(door: FakeEndpoint, tmp_path: Path) -> None:
    refused = Fails(400, "not this one")
    door.otherwise = lambda asked: refused if "Ada Holm" in str(asked.body["messages"][-1]) else mind(asked)
    row = found(evaluate(door, tmp_path, "--how", "rewoo", "--json"))
    assert row["ways"]["rewoo"]["exact"]["hits"] == 2 and row["ways"]["rewoo"]["no_answer"] == 1

    def gone(asked: Asked) -> Says | Fails:
        user = str(asked.body["messages"][-1]["content"])
        return (
            Fails(401, "no key") if "Think" in user else Says("#E1 = LLM[Think]" if "Tool[" in str(asked.body) else "x")
        )

    door.otherwise = gone
    stopped = evaluate(door, tmp_path, "--how", "rewoo", "--tools", "llm", "--replans", "0")
    assert stopped.code == 1 and "no key" in stopped.err


def test_tools_fail_at_the_requested_rate_equally_for_every_strategy(door: FakeEndpoint, tmp_path: Path) -> None:
    door.otherwise = mind
    flags = ("--how", "rewoo,react", "--replans", "0", "--json")
    row = found(evaluate(door, tmp_path, "--fail", "docs=1", *flags))
    assert [each["exact"]["hits"] for each in row["ways"].values()] == [0, 0]
    assert [each["failed"] for each in row["ways"].values()] == [3, 3]
    assert any("No evidence found." in json.dumps(each.body) for each in door.chats)
    halves = [
        found(evaluate(door, tmp_path, "--fail", "search_documents=0.5", "--seed", seed, *flags)) for seed in "12345"
    ]
    hits = [[each["exact"]["hits"] for each in half["ways"].values()] for half in halves]
    assert all(one == two for one, two in hits) and len({one for one, _ in hits}) > 1
    sure = found(evaluate(door, tmp_path, *flags))
    assert [each["exact"]["hits"] for each in sure["ways"].values()] == [3, 3]


def test_a_judge_does_not_see_strategies_and_the_control_loses(door: FakeEndpoint, tmp_path: Path) -> None:
    door.otherwise = mind
    found(evaluate(door, tmp_path, "--how", "rewoo,direct", "--json"))
    before, judge = len(door.chats), f"{door.url}#judge"
    row = found(evaluate(door, tmp_path, "--how", "rewoo,direct", "--judge", judge, "--control", "shuffled", "--json"))
    judged = {way: each["judged"]["hits"] for way, each in row["ways"].items()}
    assert judged == {"rewoo": 3, "direct": 0} and row["findings"]["by"] == "judged"
    assert [each["judged"]["hits"] for each in row["findings"]["control"]] == [0, 0]
    asked = [each.body for each in door.chats if each.body["model"] == "judge"]
    assert len(asked) == len(door.chats) - before, "a later judge repeats no solving"
    assert asked and not any("rewoo" in str(each) or "direct" in str(each) for each in asked)
    assert len(asked) == len({str(each) for each in asked}), "an answer is judged once"


def test_exemplars_are_compared_as_separate_strategies(door: FakeEndpoint, tmp_path: Path) -> None:
    door.otherwise = mind
    row = found(evaluate(door, tmp_path, "--how", "rewoo,direct", "--exemplars", "none,shipped", "--json"))
    assert [*row["ways"]] == ["rewoo+none", "rewoo+shipped", "direct"]
    shown = [
        "Marne hall" in each.body["messages"][0]["content"] for each in door.chats if "#E1 = Tool" in str(each.body)
    ]
    assert sorted(shown) == [False] * 3 + [True] * 3


def test_every_question_format_is_solved_and_scored(door: FakeEndpoint, tmp_path: Path) -> None:
    said = {"gsm8k": "52", "strategyqa": "No.", "triviaqa": "Republic of Peru", "plain": "Paris"}
    for form, words in said.items():
        door.otherwise = Says(f"Thinking of 7.\n{words}")
        row = found(evaluate(door, tmp_path, "--how", "cot", "--json", form=form))
        assert row["ways"]["cot"]["exact"]["hits"] == 1, form


def test_invalid_arguments_are_refused_in_one_sentence(door: FakeEndpoint, tmp_path: Path) -> None:
    assert "no strategy calls a tool 'wikipedia'" in mistaken(
        evaluate(door, tmp_path, "--fail", "wikipedia=0.5", "--how", "rewoo")
    )
    assert "the chosen strategies call no tools" in mistaken(
        evaluate(door, tmp_path, "--fail", "docs=0.5", "--how", "direct,cot")
    )
    assert "as web=0.3" in mistaken(evaluate(door, tmp_path, "--fail", "docs=2"))
    assert "unknown strategy 'guess'" in mistaken(evaluate(door, tmp_path, "--how", "guess"))
    data = write_set(tmp_path, "plain")
    assert "no model is set" in mistaken(run("plan", "evaluate", "--data", data))
    assert "cannot be read" in mistaken(run("plan", "evaluate", "--data", tmp_path / "none", "--model", "rules"))
    nothing = tmp_path / "notes.txt"
    nothing.write_text("Who? Ada.")
    told = run("plan", "evaluate", "--data", nothing, "--model", f"{door.url}#m")
    assert told.code == 2 and "gsm8k: JSON Lines" in told.err and not door.chats


@needs_ray
def test_evaluation_on_ray_writes_the_same_files(door: FakeEndpoint, tmp_path: Path) -> None:
    begin_ray()
    door.otherwise = mind
    how = ("--how", "rewoo,direct", "--json")
    here = found(evaluate(door, tmp_path / "here", *how))
    asked = len(door.chats)
    there = found(evaluate(door, tmp_path / "there", *how, "--ray"))
    assert len(door.chats) == 2 * asked and here["spent"] == there["spent"]
    tables = [(tmp_path / each / "out" / "answers.csv").read_text() for each in ("here", "there")]
    assert tables[0] == tables[1]
    kept = [(tmp_path / each / "out" / "kept.jsonl").read_text().splitlines() for each in ("here", "there")]
    assert len(kept[0]) == len(kept[1])
    assert {json.loads(line)["key"] for line in kept[0]} == {json.loads(line)["key"] for line in kept[1]}
    assert found(evaluate(door, tmp_path / "there", *how, "--ray")) and len(door.chats) == 2 * asked, (
        "no call is repeated"
    )


@needs_ray
def test_a_model_failure_on_ray_ends_the_evaluation_and_keeps_results(door: FakeEndpoint, tmp_path: Path) -> None:
    begin_ray()
    door.otherwise = lambda asked: Fails(401, "wrong key") if len(door.chats) > 3 else mind(asked)
    failed = evaluate(door, tmp_path, "--how", "rewoo", "--at-once", "1", "--ray")
    assert failed.code == 1 and "wrong key" in failed.err and "the same command continues" in failed.err
    door.otherwise = mind
    stopped = evaluate(door, tmp_path, "--how", "rewoo", "--at-once", "1", "--ray", "--max-calls", "1")
    assert stopped.code == 1 and "the budget is spent" in stopped.err and len(door.chats) == 5
    assert found(evaluate(door, tmp_path, "--how", "rewoo", "--json", "--ray"))["spent"]["calls"] == 3 * 2 - 4
