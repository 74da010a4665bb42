"""`mindstream live` keeps its limits, and can use a planner as a tool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from fake_endpoint import Asked, Behaviour, Calls, FakeEndpoint, Says
from living_door import GOAL, call, calls, finish, lives
from running import run

PRICED = "openai:gpt-5-mini@http://shop.openai.azure.com/v1"
"""A model whose price is known at this address; the proxy that leads there is the fake endpoint."""
A_QUARTER = (1_000_000, 0)
"""The tokens of a call that costs 25 cents."""


def priced(door: FakeEndpoint, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("HTTP_PROXY", door.url.removesuffix("/v1"))
    return ["--model", PRICED, "--data", str(folder)]


def dear(m2: Mapping[int, Sequence[Behaviour]]) -> Mapping[int, Sequence[Behaviour]]:
    return {
        turn: [
            Calls(step.calls, step.text, A_QUARTER) if isinstance(step, Calls) else Says("So far.", A_QUARTER)
            for step in steps
        ]
        for turn, steps in m2.items()
    }


@pytest.mark.parametrize(("flag", "allowed"), [("--max-usd", "0.6"), ("--usd-per-day", "0.6"), ("--max-usd", "0")])
def test_the_money_limit_holds_across_processes(
    door: FakeEndpoint, folder: Path, monkeypatch: pytest.MonkeyPatch, flag: str, allowed: str
) -> None:
    data = priced(door, folder, monkeypatch)
    door.otherwise = lives(dear({turn: [Says("So far.")] for turn in range(1, 9)}))
    most = 3 if allowed == "0.6" else 0
    first = run("live", "--goal", GOAL, *data, flag, allowed)
    assert first.code == 1 and len(door.chats) == most, "the call that exceeds the limit is the last"
    assert f"the limit of {allowed} US dollars{' a day' * (flag == '--usd-per-day')} is reached" in first.out
    assert first.out.splitlines()[-1].endswith(f"{flag} {float(allowed)}"), "the advice for continuing names the limit"
    again = run("live", *data, flag, allowed)
    assert again.code == 1 and len(door.chats) == most, "another process has the same budget"
    assert "resume" not in again.out, "a larger limit continues the life"
    more = run("live", *data, flag, "0.9")
    assert more.code == 1 and len(door.chats) == 4


def test_a_money_limit_without_a_known_price_is_reported_and_ignored(door: FakeEndpoint, folder: Path) -> None:
    door.otherwise = lives({1: finish()})
    data = ["--model", f"{door.url}#m", "--data", str(folder)]
    done = run("live", "--goal", GOAL, *data, "--max-usd", "0.01")
    assert done.code == 0 and "because no price is known" in done.out, done.out


def test_only_shown_words_count_for_the_word_limit(door: FakeEndpoint, folder: Path) -> None:
    tips = ["one two three", "four five six seven", "eight nine"]
    asks = [calls(call("I", tip=tip, timeout=0)) for tip in tips]
    door.otherwise = lives({1: [*asks, *finish()]})
    data = ["--model", f"{door.url}#m", "--data", str(folder)]
    done = run("live", "--goal", GOAL, *data, "--words-per-day", "5")
    assert done.code == 0, done.err
    assert [line for line in done.out.splitlines() if "asks you" in line] == [
        "asks you: one two three", "asks you (without disturbing you now): four five six seven", "asks you: eight nine",
    ]  # fmt: skip


def test_chinese_words_are_counted_without_spaces(door: FakeEndpoint, folder: Path) -> None:
    door.otherwise = lives({1: [calls(call("I", tip="昨天在船上做了什么？", timeout=0)), *finish()]})
    data = ["--model", f"{door.url}#m", "--data", str(folder), "--words-per-day", "4"]
    done = run("live", "--goal", "写航海日记", *data, "--turns", "1")
    assert "asks you (without disturbing you now): 昨天在船上" in done.out, done.out


def test_a_life_can_ignore_chat_messages(folder: Path) -> None:
    data = ["--data", str(folder)]
    assert run("live", "--goal", "Collect stamps", *data, "--ignore-chat").code == 0
    assert run("chat", *data, said="The blue album is full.\n").code == 0
    assert run("life", "say", "The red album is empty.", *data).code == 0
    done = run("live", *data, "--ignore-chat")
    assert "red album" in done.out and "blue album" not in done.out, done.out
    assert run("chat", *data, said="The green album is lost.\n").code == 0
    assert "green album" in run("live", *data).out


def test_a_planner_solves_a_task_in_steps_with_the_other_tools(door: FakeEndpoint, folder: Path) -> None:
    m1: list[Behaviour] = [calls(call("solve_task", task="17.5 * 4")), Says("It is 70.")]
    behave = lives({1: [calls(call("M1", task="Compute 17.5 * 4", context="")), *finish()]}, m1)

    def answers(asked: Asked) -> Behaviour:
        words = str(asked.body["messages"])
        if "Turn 1." in words or asked.body.get("tools"):
            return behave(asked)
        return Says("#E1 = calculator[17.5 * 4]" if "calculator" in words and "70" not in words else "70")

    door.otherwise = answers
    data = ["--model", f"{door.url}#m", "--data", str(folder)]
    done = run("live", "--goal", GOAL, *data, "--tools", "planner,calculator")
    assert done.code == 0 and "→ solve_task 17.5 * 4" in done.out and "E1 calculator: 70" in done.out, done.out
    told = run("life", "status", *data[2:], "--json").rows[0]["spent"]["calls"]
    assert told == len(door.chats), "calls of the planner are charged"


def test_files_of_a_life_can_be_read_and_deletion_needs_approval(
    door: FakeEndpoint, folder: Path, tmp_path: Path
) -> None:
    """The tools for written files are offered only after a file was written."""
    work = calls(*(call("M1", task=f"Care for the file {n}", context="") for n in (1, 2)))
    m1: list[Behaviour] = [
        calls(call("write_file", name="share.md", text="17.5 %")), calls(call("read_file", name="share.md")),
        calls(call("delete_file", name="share.md")), Says("Cared for."),
    ]  # fmt: skip
    door.otherwise = lives({1: [work, *finish()]}, m1)
    data = ["--model", f"{door.url}#m", "--data", str(folder)]
    done = run("live", "--goal", GOAL, *data, "--out", tmp_path / "out", "--turns", "1")
    assert "← 17.5 %" in done.out and "wants permission for delete_file" in done.out, done.out
    assert (tmp_path / "out" / "share.md").exists()
    shown = [{each["function"]["name"] for each in asked.body.get("tools", ())} for asked in door.chats]
    of_m1 = [tools for tools in shown if "write_file" in tools]
    assert "read_file" not in of_m1[0]
