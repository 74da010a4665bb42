"""`mindstream live` and `mindstream life`: with and without a terminal, in two processes, and after a kill."""

from __future__ import annotations

import asyncio
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from fake_endpoint import Behaviour, Fails, FakeEndpoint, Says
from living_door import FOUND, GOAL, call, calls, finish, lives
from running import COMMAND, PATIENCE_S, mistaken, run, terminal

from mindstream import guidance
from mindstream.life import opened as life_log
from mindstream.life.events import LifeBegan
from mindstream.memory.memory import Memory

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


def flags(door: FakeEndpoint, folder: Path) -> list[str]:
    return ["--model", f"{door.url}#m", "--data", str(folder)]


def test_a_goal_is_reached_and_every_step_shown(door: FakeEndpoint, folder: Path) -> None:
    m1: list[Behaviour] = [calls(call("M0", question="Is it plausible?", context="")), Says(FOUND)]
    work = calls(call("M1", task="Read the report", context="it lies there"), text="I begin with the report.")
    door.otherwise = lives({1: [work, Says("The share is found.")], 2: finish()}, m1)
    done = run("live", "--goal", GOAL, *flags(door, folder))
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    shown = [lines.index(line) for line in (
        "goal: Find the share", "I begin with the report.", "  → M1 Read the report · it lies there",
        "    → M0 Is it plausible?", "    ← M0: Step by step: it holds.", f"  ← M1: {FOUND}", "The share is found.",
        "  ✓ task 1 is done: Find the share → 17.5 %", "It is done.",
    )]  # fmt: skip
    assert shown == sorted(shown)
    assert lines[-1].startswith("nothing is left to do;") and "2 turns, 7 calls of models" in lines[-1]
    bill = {row["name"]: row["calls"] for row in run("cost", "--data", folder, "--by", "role", "--json").rows}
    assert bill == {"M2": 4, "M1": 2, "M0": 1, "all": 7}
    whole = run("life", "turn", "1", "--data", folder)
    assert "Turn 1." in whole.out and '→ M1 {"task": "Read the report", "context": "it lies there"}' in whole.out
    told = run("log", "--data", folder).out
    assert "turn 1, because of: task" in told and "task 1 is done: Find the share" in told
    asked = len(door.chats)
    again = run("live", *flags(door, folder))
    assert again.code == 0 and "nothing is left to do" in again.out and len(door.chats) == asked, "the life rests"


def test_json_output_equals_the_rows_of_the_log(door: FakeEndpoint, folder: Path) -> None:
    door.otherwise = lives({1: finish()})
    done = run("live", "--goal", GOAL, *flags(door, folder), "--json")
    assert done.code == 0 and done.err == ""
    kinds = [row["event"] for row in done.rows]
    assert kinds[:2] == ["life_began", "task_changed"] and "turn_began" in kinds and "turn_ended" in kinds
    logged = run("log", "--data", folder, "--json").rows
    assert [row["seq"] for row in done.rows] == [row["seq"] for row in logged][: len(done.rows)]


def test_in_a_terminal_the_user_answers_questions_and_steers(door: FakeEndpoint, folder: Path) -> None:
    asks = calls(call("I", tip="Which year do you mean?", timeout=500))
    door.otherwise = lives({1: [asks, Says("I know the year.")], 2: finish(), 3: [Says("Good day to you.")]})
    with terminal("live", "--goal", GOAL, *flags(door, folder), "--wait-for-input") as screen:
        screen.until("asks you: Which year do you mean?")
        screen.until("answer: ")
        screen.type("/tasks\r")
        screen.until("asks you (1.1.1): Which year do you mean?")
        screen.type("2024\r")
        screen.until("you answered: 2024")
        screen.until("It is done.")
        screen.type("/nonsense\r")
        screen.until("there is no command /nonsense")
        screen.type("/pause lunch\r")
        screen.until("paused: lunch")
        screen.type("hello\r")
        screen.until("you: hello")
        screen.type("/resume\r")
        screen.until("Good day to you.")
        screen.type("\x03")
        screen.until("you left; nothing is lost.")
        screen.until("to continue the life: mindstream live --model")
        assert screen.ended() == 0
    told = run("life", "status", "--data", folder, "--json").rows[0]
    assert told["turn"] == 3 and not told["lived"] and told["questions"] == []


def test_a_second_process_can_watch_answer_and_pause(door: FakeEndpoint, folder: Path) -> None:
    asks = calls(call("I", tip="Which year do you mean?", timeout=500))
    door.otherwise = lives({1: [asks, Says("I know the year.")], 2: finish()})
    with terminal("live", "--goal", GOAL, *flags(door, folder), "--wait-for-input") as first:
        first.until("asks you: Which year do you mean?")
        with terminal("live", *flags(door, folder)) as second:
            second.until("another process lives this life")
            second.until("answer: ")
            assert "the call" not in mistaken(run("life", "allow", "--data", folder))
            done = run("life", "answer", "in", "2024", "--data", folder)
            assert (done.code, done.out, done.err) == (0, "answered: Which year do you mean?\n", "")
            for screen in (first, second):
                screen.until("you answered: in 2024")
                screen.until("It is done.")
            second.type("/pause\r")
            for screen in (first, second):
                screen.until("· paused")
            second.type("\x03")
            second.until("the life continues in the other process")
            assert second.ended() == 0
        assert run("life", "status", "--data", folder, "--json").rows[0]["halted"] == "paused"
        run("life", "resume", "--data", folder)
        first.until("· continues")
        run("life", "stop", "enough", "--data", folder)
        first.until("stopped: enough; `mindstream life resume --data ")
        assert first.ended() == 0
    assert len(door.chats) == 4, "a watching process calls no model"


def test_a_call_can_be_approved_from_another_process(door: FakeEndpoint, folder: Path, tmp_path: Path) -> None:
    book, server = tmp_path / "book", tmp_path / "server.py"
    server.write_text(NOTES)
    work = calls(call("M1", task="Write the note", context=""))
    m1: list[Behaviour] = [calls(call("write_note", text="17.5 %")), Says("I tried.")]
    wait = calls(call("wait_task", task=1, until="in 3 hours"))
    door.otherwise = lives({1: [work, wait, Says("I wait for leave.")], 2: [work, *finish()]}, m1)
    server_flags = ["--mcp", f"{sys.executable} {server} {book}", "--trust"]
    command = [*COMMAND, "live", "--goal", GOAL, *flags(door, folder), *server_flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) as process:
        assert process.stdout
        shown = "".join(iter(process.stdout.readline, "I wait for leave.\n"))
        assert "wants permission for write_note" in shown and not book.exists()
        wanted = run("life", "status", "--data", folder, "--json").rows[0]["leave_wanted"]
        assert [each["tool"] for each in wanted] == ["write_note"]
        assert f"the call {wanted[0]['id']} may be made" in run("life", "allow", "--data", folder).out
        rest = process.stdout.read()
        assert process.wait(PATIENCE_S) == 0, rest
    assert "← written" in rest and book.read_text() == "17.5 %\n"


def test_only_changed_files_wake_a_watching_life(door: FakeEndpoint, folder: Path, tmp_path: Path) -> None:
    watched = tmp_path / "in"
    watched.mkdir()
    door.otherwise = lives({1: finish(), 2: [Says("I saw the new file.")]})
    with terminal("live", "--goal", GOAL, *flags(door, folder), "--wait-for-input", "--watch", watched) as screen:
        screen.until("It is done.")
        asked = len(door.chats)
        (watched / "report.txt").write_text("17.5 %")
        screen.until("noticed: in the folder in: new: report.txt")
        screen.until("I saw the new file.")
        assert len(door.chats) == asked + 1
        screen.type("/quit\r")
        assert screen.ended() == 0


def test_the_call_limit_holds_across_processes(door: FakeEndpoint, folder: Path) -> None:
    door.otherwise = lives({})
    limits = ["--max-calls", "3"]
    done = run("live", "--goal", GOAL, *flags(door, folder), *limits)
    assert done.code == 1 and "rests: budget: the limit of 3 calls is reached" in done.out and len(door.chats) == 3
    done = run("live", *flags(door, folder), *limits)
    assert done.code == 1 and len(door.chats) == 3
    done = run("live", *flags(door, folder), "--max-calls", "5")
    assert done.code == 1 and len(door.chats) == 5


MISTAKES = [
    (["live"], "this mind has no goal yet; give it one with --goal"),
    (["live", "--goal", "x", "--every", "blue moon: sing"], "a standing order needs a time and a task"),
    (["live", "--goal", "x", "--for", "long"], "--for 'long' is not a time, such as 2h"),
    (["live", "--goal", "x", "--tools", "calculater"], "did you mean 'calculator'?"),
    (["live", "--goal", "x", "--watch", "/nowhere/at/all"], "there is no folder '/nowhere/at/all'"),
    (["live", "--goal", "x", "--allow", "send_male"], "--allow 'send_male': this life has no such tool"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "says"), MISTAKES, ids=lambda value: " ".join(value)[:40])
def test_invalid_arguments_are_refused_in_one_sentence(arguments: list[str], says: str, folder: Path) -> None:
    done = run(*arguments, "--data", str(folder))
    assert done.code == 2 and says in done.err and len(done.err.splitlines()) == 1, done.err


def test_rules_identify_themselves_and_a_refused_start_leaves_no_goal(folder: Path) -> None:
    data = ["--data", str(folder)]
    assert run("live", "--goal", "x", "--watch", "/nowhere/at/all", *data).code == 2
    assert "no memory" in mistaken(run("life", "status", *data))
    done = run("live", "--goal", "Collect stamps", *data, "--turns", "1")
    assert done.out.startswith("rules: no model is configured; see `mindstream doctor`\ngoal: Collect stamps")
    assert "1 turn, " in done.out and " steps of rules so far" in done.out and "models" not in done.out


@pytest.mark.parametrize(("turns", "failed"), [([], 5), (["--turns", "2"], 2)])
def test_a_refused_key_is_explained_once_and_the_exit_code_says_that_all_failed(
    turns: list[str], failed: int, door: FakeEndpoint, folder: Path
) -> None:
    door.otherwise = Fails(401, "Incorrect API key", code="invalid_api_key")
    done = run("live", "--goal", GOAL, *flags(door, folder), *turns)
    assert done.code == 1 and f"turn {failed} failed: (as above)" in done.out
    screen, end = done.out.rsplit("\n\n", 1)
    assert screen.count("refuses the key") == 1
    assert f"{failed} calls of models, 0 tokens so far" in end and "rules" not in end


def test_an_unreadable_stored_order_is_reported_and_skipped(folder: Path) -> None:
    old = LifeBegan(goal="Keep a diary", language="en", orders=("每天早上八点问我", "every day at 8: ask me"))

    async def write() -> None:
        async with Memory.open(folder, "ann") as stream:
            await life_log.begin(stream, old)

    asyncio.run(write())
    data = ["--data", str(folder), "--user", "ann"]
    told = [" ".join(run(*each, *data).out.split()) for each in (("life", "status"), ("live", "--turns", "0"))]
    assert all(
        "standing order 1 cannot be read: a standing order needs a time and a task, such as 'every day" in each
        for each in told
    )
    assert "standing order 2, next" in told[0]
    assert list(run("life", "status", *data, "--json").rows[0]["unknown_orders"]) == ["1"]


def test_a_ledger_is_edited_without_a_running_process(folder: Path) -> None:
    data = ["--data", str(folder)]
    assert run("live", "--goal", "Collect stamps", *data, "--turns", "0").code == 0
    done = run("life", "add", "Buy an album", *data)
    assert done.out == "2. Buy an album\n" and "no process runs this life now" in done.err
    assert run("life", "move", "2", "1", *data, "--json").rows[0]["number"] == 2
    assert [row["number"] for row in run("life", "tasks", *data, "--json").rows] == [2, 1]
    assert run("life", "drop", "2", *data).out == "2. Buy an album (given up)\n"
    assert run("life", "open", "2", *data).out == "2. Buy an album\n"
    assert "there is no task 7; the task numbers are: 2, 1" in mistaken(run("life", "drop", "7", *data))
    for words in (["say", "Only blue ones."], ["wake", "The shop is open."]):
        assert run("life", *words, *data, "--json").rows[0]["text"] == words[1]


def test_a_life_can_have_a_chinese_goal(folder: Path) -> None:
    (folder / "docs").mkdir(parents=True)
    (folder / "docs" / "茶馆.md").write_text("# 茶馆\n\n茶馆由陈守义在1921年开办。\n", "utf-8")
    goal = ("live", "--goal", "查明茶馆是谁开办的", "--docs", folder / "docs", "--data", folder / "data")
    lived = run(*goal).out
    run("life", "add", "睡觉", "--data", folder / "data")
    run("life", "pause", "午饭", "--data", folder / "data")
    stands = run("life", "status", "--data", folder / "data").out
    turn = run("life", "turn", "1", "--data", folder / "data").out
    assert "turn 1 · " in lived
    assert "task 1 is not done: 查明茶馆是谁开办的 → 没有完成：没有模型，只做了查找。" in lived
    assert "茶馆由陈守义在1921年开办。 — 茶馆.md, lines 1-3" in lived
    assert "goal: 查明茶馆" in stands and "paused: 午饭; " in stands and "2. 睡觉" in stands and "turn 1 · " in turn


def test_only_the_programs_own_commands_get_the_flags_of_the_data(tmp_path: Path) -> None:
    """Not those in a person's words; a folder whose name has braces and blanks is quoted."""
    folder, ann = tmp_path / "{a} b", ("--user", "ann")
    where = f"--data {shlex.quote(str(folder))} --user ann"
    data = ("--data", str(folder), *ann)
    missing = mistaken(run("life", "status", *data))
    assert f'`mindstream live --goal "…" {where}`' in missing
    run("live", "--goal", "Run `mindstream pool list`.", *data, "--turns", "0")
    paused = run("life", "pause", "`mindstream life stop`", *data).out
    assert paused == f"it pauses before its next step; `mindstream life resume {where}` continues it\n"
    stands = run("life", "status", *data).out
    assert f"paused: `mindstream life stop`; `mindstream life resume {where}` continues it" in stands
    assert "goal: Run `mindstream pool list`.\n" in stands
    unknown = mistaken(run("pool", "lessons", "team", *data))
    assert f"`mindstream pool create team {where}`" in unknown
    assert guidance.next_step("life resume") == "`mindstream life resume`"  # outside the command line


def test_an_abandoned_goal_is_reported_when_no_task_is_left(folder: Path) -> None:
    goal = "Ask me which supplier I prefer, then write a brief"
    done = run("live", "--goal", goal, "--data", folder)
    again = f"--data {folder}`"
    told = f"not done: task 1 (`mindstream life open NUMBER {again} tries it again); otherwise nothing is left to do;"
    assert done.code == 0 and done.out.splitlines()[-1].startswith(told), done.out
    assert f"`mindstream life add TASK {again}" in done.out and f"`mindstream live --goal TEXT {again}" in done.out
    assert done.out.count("nothing was found that could be quoted") == 1, "the result is shown once"
    assert "task 1 is done" not in done.out
    assert told in run("life", "status", "--data", folder).out
    assert run("life", "open", "1", "--data", folder).code == 0
    assert "not done" not in run("life", "status", "--data", folder).out


def test_a_paused_life_waits_only_in_a_terminal_or_if_told_to(folder: Path) -> None:
    where = ["--data", str(folder), "--user", "zoe"]
    run("live", "--goal", "Compare 3 and 4", *where)
    resume = f"`mindstream life resume {' '.join(where)}` continues it"
    assert resume in run("life", "pause", "lunch", *where).out
    for more in ([], ["--json"], ["--turns", "2"]):
        done = run("live", *where, *more)
        assert done.code == 1 and f"paused: lunch; {resume}" in done.err, done.err
    with terminal("live", *where) as screen:
        screen.until("/resume, or")
        screen.until("until then it waits, and Ctrl-C ends this command")
        screen.until("say: ")
        screen.type("\x03")
        screen.until("you left; nothing is lost.")
    shown = run("life", *where)
    assert shown.code == 0 and f"paused: lunch; {resume}" in shown.out
    assert run("life", *where, "--json").rows[0]["halted"] == "paused: lunch"
    told = mistaken(run("life", *where, "tasks"))
    assert "--data, --user before `tasks` would have no effect" in told and "`mindstream life tasks --data …`" in told
    assert run("life", "resume", *where).code == 0 and run("live", *where).code == 0
