"""`mindstream live` and `mindstream life`: in a terminal, without one, two processes on one, killed and gone on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_endpoint import Behaviour, FakeEndpoint, Says, Stalls
from living_door import FOUND, GOAL, call, calls, finish, lives
from running import COMMAND, PATIENCE_S, mistaken, run_here, terminal

NOTES = """
import sys
from pathlib import Path
from mcp.server.mcpserver import MCPServer
server = MCPServer("notes")

@server.tool()
def write_note(text: str) -> str:
    "Write a note into the book of notes."
    with Path(sys.argv[1]).open("a") as file:
        file.write(text + chr(10))
    return "written"

server.run("stdio")
"""


@pytest.fixture
def door() -> Iterator[FakeEndpoint]:
    with FakeEndpoint() as opened:
        yield opened


def flags(door: FakeEndpoint, folder: Path) -> list[str]:
    return ["--model", f"{door.url}#m", "--data", str(folder)]


def test_a_goal_is_reached_and_every_step_is_seen(door: FakeEndpoint, folder: Path) -> None:
    m1: list[Behaviour] = [calls(call("M0", question="Is it plausible?", context="")), Says(FOUND)]
    work = calls(call("M1", task="Read the report", context="it lies there"), text="I begin with the report.")
    door.otherwise = lives({1: [work, Says("The share is found.")], 2: finish()}, m1)
    done = run_here("live", "--goal", GOAL, *flags(door, folder))
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    shown = [lines.index(line) for line in (
        "goal: Find the share", "I begin with the report.", "  → M1 Read the report · it lies there",
        "    → M0 Is it plausible?", "    ← M0: Step by step: it holds.", f"  ← M1: {FOUND}", "The share is found.",
        "  ✓ task 1 is done: Find the share → 17.5 %", "It is done.",
    )]  # fmt: skip
    assert shown == sorted(shown)
    assert lines[-1].startswith("nothing is left to do;") and "2 turns, 7 calls of models" in lines[-1]
    bill = {row["name"]: row["calls"] for row in run_here("cost", "--data", folder, "--by", "role", "--json").rows}
    assert bill == {"M2": 4, "M1": 2, "M0": 1, "all": 7}
    whole = run_here("life", "turn", "1", "--data", folder)
    assert "Turn 1." in whole.out and '→ M1 {"task": "Read the report", "context": "it lies there"}' in whole.out
    told = run_here("log", "--data", folder).out
    assert "turn 1, because of: task" in told and "task 1 is done: Find the share" in told
    asked = len(door.chats)
    again = run_here("live", *flags(door, folder))
    assert again.code == 0 and "nothing is left to do" in again.out and len(door.chats) == asked, "it rests"


def test_json_lines_are_the_rows_of_the_log(door: FakeEndpoint, folder: Path) -> None:
    door.otherwise = lives({1: finish()})
    done = run_here("live", "--goal", GOAL, *flags(door, folder), "--json")
    assert done.code == 0 and done.err == ""
    kinds = [row["event"] for row in done.rows]
    assert kinds[:3] == ["life_began", "task_changed", "turn_began"] and "turn_ended" in kinds
    logged = run_here("log", "--data", folder, "--json").rows
    assert [row["seq"] for row in done.rows] == [row["seq"] for row in logged][: len(done.rows)]


def test_in_a_terminal_questions_are_answered_and_it_is_steered(door: FakeEndpoint, folder: Path) -> None:
    asks = calls(call("I", tip="Which year do you mean?", timeout=50))
    door.otherwise = lives({1: [asks, Says("I know the year.")], 2: finish(), 3: [Says("Good day to you.")]})
    with terminal("live", "--goal", GOAL, *flags(door, folder), "--stay") as screen:
        screen.until("asks you: Which year do you mean?")
        screen.until("answer: ")
        screen.type("/tasks\r")
        screen.until("asks you (1.1.1): Which year do you mean?")
        screen.type("2024\r")
        screen.until("you answered: 2024")
        screen.until("It is done.")
        screen.type("/nonsense\r")
        screen.until("there is no /nonsense")
        screen.type("/pause lunch\r")
        screen.until("paused: lunch")
        screen.type("hello\r")
        screen.until("you: hello")
        screen.type("/resume\r")
        screen.until("Good day to you.")
        screen.type("\x03")
        screen.until("you left; nothing is lost.")
        screen.until("this goes on with it: mindstream live --model")
        assert screen.ended() == 0
    told = run_here("life", "status", "--data", folder, "--json").rows[0]
    assert told["turn"] == 3 and not told["lived"] and told["questions"] == []


def test_a_second_process_watches_answers_and_pauses(door: FakeEndpoint, folder: Path) -> None:
    asks = calls(call("I", tip="Which year do you mean?", timeout=50))
    door.otherwise = lives({1: [asks, Says("I know the year.")], 2: finish()})
    with terminal("live", "--goal", GOAL, *flags(door, folder), "--stay") as first:
        first.until("asks you: Which year do you mean?")
        with terminal("live", *flags(door, folder)) as second:
            second.until("another process lives this life")
            second.until("answer: ")
            assert "the call" not in mistaken(run_here("life", "allow", "--data", folder))
            done = run_here("life", "answer", "in", "2024", "--data", folder)
            assert (done.code, done.out, done.err) == (0, "answered: Which year do you mean?\n", "")
            for screen in (first, second):
                screen.until("you answered: in 2024")
                screen.until("It is done.")
            second.type("/pause\r")
            first.until("· paused")
            second.type("\x03")
            second.until("it goes on in its own process")
            assert second.ended() == 0
        assert run_here("life", "status", "--data", folder, "--json").rows[0]["halted"] == "paused"
        run_here("life", "resume", "--data", folder)
        first.until("goes on")
        run_here("life", "stop", "enough", "--data", folder)
        first.until("stopped: enough; `mindstream life resume` lets it go on")
        assert first.ended() == 0
    assert len(door.chats) == 4, "who watches asks no model"


def test_leave_is_given_from_another_process(door: FakeEndpoint, folder: Path, tmp_path: Path) -> None:
    book, server = tmp_path / "book", tmp_path / "server.py"
    server.write_text(NOTES)
    work = calls(call("M1", task="Write the note", context=""))
    m1: list[Behaviour] = [calls(call("write_note", text="17.5 %")), Says("I tried.")]
    wait = calls(call("wait_task", task=1, until="in 3 hours"))
    door.otherwise = lives({1: [work, wait, Says("I wait for leave.")], 2: [work, *finish()]}, m1)
    command = [
        *COMMAND,
        "live",
        "--goal",
        GOAL,
        *flags(door, folder),
        "--mcp",
        f"{sys.executable} {server} {book}",
        "--trust",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) as process:
        assert process.stdout
        shown = "".join(iter(process.stdout.readline, "I wait for leave.\n"))
        assert "wants leave for write_note" in shown and not book.exists()
        wanted = run_here("life", "status", "--data", folder, "--json").rows[0]["leave_wanted"]
        assert [each["tool"] for each in wanted] == ["write_note"]
        assert f"the call {wanted[0]['id']} may be made" in run_here("life", "allow", "--data", folder).out
        rest = process.stdout.read()
        assert process.wait(PATIENCE_S) == 0, rest
    assert "← written" in rest and book.read_text() == "17.5 %\n"


def test_killed_it_goes_on_in_the_turn_that_it_was_in(door: FakeEndpoint, folder: Path) -> None:
    work = calls(call("M1", task="Read the report", context=""))
    door.otherwise = lives({1: [work, Stalls()]})
    command = [*COMMAND, "live", "--goal", GOAL, *flags(door, folder), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) as process:
        assert process.stdout
        for line in process.stdout:
            if '"observed"' in line:
                break
        os.kill(process.pid, signal.SIGKILL)
    asked = len(door.chats)
    door.otherwise = lives({1: [work, *finish()[:1], Says("It is done.")]})
    status = run_here("life", "status", "--data", folder)
    assert "tasks:\n  1. Find the share" in status.out
    with terminal("live", *flags(door, folder)) as screen:  # which watches until the lease of the dead one is over
        screen.until("→ M1 Read the report")
        screen.until("It is done.")
        assert screen.ended() == 0
    assert run_here("life", "turn", "1", "--data", folder).out.count("→ M1") == 1
    again = [
        each for each in door.chats[asked:] if "M0" in str(each.body.get("tools")) and "add_task" not in str(each.body)
    ]
    assert again == [], "M1 is not asked again"


def test_ctrl_c_without_a_terminal_says_how_to_go_on(door: FakeEndpoint, folder: Path) -> None:
    door.otherwise = lives({1: [Stalls()]})
    command = [*COMMAND, "live", "--goal", GOAL, *flags(door, folder), "--turns", "3"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:  # fmt: skip
        door.was_asked.wait(PATIENCE_S)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130 and "nothing is lost" in told and "mindstream live --model" in told
    assert run_here("life", "status", "--data", folder, "--json").rows[0]["in_turn"]


def test_files_wake_it_and_nothing_else_does(door: FakeEndpoint, folder: Path, tmp_path: Path) -> None:
    watched = tmp_path / "in"
    watched.mkdir()
    door.otherwise = lives({1: finish(), 2: [Says("I saw the new file.")]})
    with terminal("live", "--goal", GOAL, *flags(door, folder), "--stay", "--watch", watched) as screen:
        screen.until("It is done.")
        asked = len(door.chats)
        (watched / "report.txt").write_text("17.5 %")
        screen.until("noticed: in the folder in: new: report.txt")
        screen.until("I saw the new file.")
        assert len(door.chats) == asked + 1
        screen.type("/quit\r")
        assert screen.ended() == 0


def test_it_rests_where_its_calls_are_spent_across_processes(door: FakeEndpoint, folder: Path) -> None:
    door.otherwise = lives({})
    limits = ["--calls", "3"]
    done = run_here("live", "--goal", GOAL, *flags(door, folder), *limits)
    assert done.code == 1 and "rests: budget: 3 of the 3 calls" in done.out and len(door.chats) == 3
    done = run_here("live", *flags(door, folder), *limits)
    assert done.code == 1 and len(door.chats) == 3
    done = run_here("live", *flags(door, folder), "--calls", "5")
    assert done.code == 1 and len(door.chats) == 5


def test_it_writes_only_into_the_folder_that_was_named(door: FakeEndpoint, folder: Path, tmp_path: Path) -> None:
    work = calls(call("M1", task="Write the file", context=""))
    m1: list[Behaviour] = [calls(call("write_file", name="share.md", text="17.5 %")), Says("Written.")]
    door.otherwise = lives({1: [work, *finish()]}, m1)
    done = run_here("live", "--goal", GOAL, *flags(door, folder), "--out", tmp_path / "out")
    assert done.code == 0 and (tmp_path / "out" / "share.md").read_text() == "17.5 %"


MISTAKES = [
    (["live"], "this mind has no goal yet: give it one with --goal"),
    (["live", "--goal", "x", "--every", "blue moon: sing"], "a standing order says when and what"),
    (["live", "--goal", "x", "--every", "every blue moon: sing"], "not 'every blue moon: sing'"),
    (["live", "--goal", "x", "--every", "day at 25: sing"], "there is no 25:00 in a day"),
    (["live", "--goal", "x", "--for", "long"], "--for 'long' is no time: say 2h"),
    (["live", "--goal", "x", "--hours", "late"], "wanted are two times of a day"),
    (["live", "--goal", "x", "--tools", "calculater"], "did you mean 'calculator'?"),
    (["live", "--goal", "x", "--prompt-tokens", "10"], "at least 2,000"),
    (["live", "--goal", "x", "--watch", "/nowhere/at/all"], "there is no folder '/nowhere/at/all' to watch"),
    (["live", "--goal", "x", "--allow", "send_male"], "--allow 'send_male': there is no such tool"),
    (["live", "--goal", "x", "--role", "M3=rules"], "there is no role 'M3'"),
    (["life", "tasks"], 'yet: `mindstream live --goal "…"` begins one'),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "says"), MISTAKES, ids=lambda value: " ".join(value)[:40])
def test_a_mistake_gets_one_sentence(arguments: list[str], says: str, folder: Path) -> None:
    done = run_here(*arguments, "--data", str(folder))
    assert done.code == 2 and says in done.err and len(done.err.splitlines()) == 1, done.err


def test_rules_say_that_they_are_rules_and_what_a_mistake_stopped_left_no_goal(folder: Path) -> None:
    data = ["--data", str(folder)]
    assert run_here("live", "--goal", "x", "--watch", "/nowhere/at/all", *data).code == 2
    assert "no memory" in mistaken(run_here("life", "status", *data))
    done = run_here("live", "--goal", "Collect stamps", *data, "--turns", "1")
    assert done.out.startswith("rules: no model is configured; see `mindstream doctor`\ngoal: Collect stamps")
    assert "1 turn, " in done.out and " steps of rules so far" in done.out and "models" not in done.out
    told = run_here("life", "status", *data).out
    assert "1 turn, " in told and "nothing is left to do; `mindstream life add`" in told and "nobody lives" not in told
    run_here("life", "stop", *data)
    assert (
        "stopped; `mindstream life resume` lets it go on; nothing is left to do"
        in run_here("life", "status", *data).out
    )


def test_a_life_that_was_stopped_says_what_lets_it_go_on(folder: Path) -> None:
    data = ["--data", str(folder)]
    run_here("live", "--goal", "Collect stamps", *data, "--turns", "0")
    run_here("life", "stop", *data)
    with terminal("live", *data) as screen:
        screen.until("stopped; `mindstream life resume` lets it go on")
        assert screen.ended() == 0


def test_a_ledger_is_steered_where_nobody_lives_it(folder: Path) -> None:
    data = ["--data", str(folder)]
    assert run_here("live", "--goal", "Collect stamps", *data, "--turns", "0").code == 0
    done = run_here("life", "add", "Buy an album", *data)
    assert done.out == "2. Buy an album\n" and "nobody lives it now" in done.err
    assert run_here("life", "move", "2", "1", *data, "--json").rows[0]["number"] == 2
    assert [row["number"] for row in run_here("life", "tasks", *data, "--json").rows] == [2, 1]
    assert run_here("life", "drop", "2", *data).out == "2. Buy an album (given up)\n"
    assert run_here("life", "open", "2", *data).out == "2. Buy an album\n"
    assert "there is no task 7; there are: 2, 1" in mistaken(run_here("life", "drop", "7", *data))
    assert "nobody asks anything now" in mistaken(run_here("life", "answer", "yes", *data))
    assert "no call waits for leave" in mistaken(run_here("life", "allow", *data))
    assert "there was no turn 3" in mistaken(run_here("life", "turn", "3", *data))
    assert "lives for no goal yet" in mistaken(run_here("life", "status", *data, "--user", "ann"))
    for words in (["say", "Only blue ones."], ["wake", "The shop is open."]):
        assert run_here("life", *words, *data, "--json").rows[0]["text"] == words[1]


def test_a_life_with_a_chinese_goal_is_shown_in_chinese(folder: Path) -> None:
    (folder / "docs").mkdir(parents=True)
    (folder / "docs" / "茶馆.md").write_text("# 茶馆\n\n茶馆由陈守义在1921年开办。\n", "utf-8")
    goal = ("live", "--goal", "查明茶馆是谁开办的", "--docs", folder / "docs", "--data", folder / "data")
    lived = run_here(*goal).out
    run_here("life", "add", "睡觉", "--data", folder / "data")
    run_here("life", "pause", "午饭", "--data", folder / "data")
    stands = run_here("life", "status", "--data", folder / "data").out
    turn = run_here("life", "turn", "1", "--data", folder / "data").out
    assert "第1轮 · " in lived and "任务1没有完成：查明茶馆是谁开办的 → 没有完成：没有模型，只做了查找。" in lived
    assert "茶馆由陈守义在1921年开办。 — 茶馆.md, lines 1-3" in lived
    assert lived.splitlines()[-1].startswith("没有要做的事了；") and lived.splitlines()[-1].endswith("步规则。")
    assert "目标：查明茶馆" in stands and "暂停：午饭；" in stands and "2. 睡觉" in stands and "第1轮 · " in turn
