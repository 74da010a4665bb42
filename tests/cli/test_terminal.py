from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from fake_endpoint import Asked, FakeEndpoint, Says
from prompt_toolkit.history import FileHistory, InMemoryHistory
from running import run, terminal

from mindstream.cli.terminal import _history

PROMPT = "you: "


def said(folder: Path) -> list[str]:
    rows = run("log", "--data", folder, "--json").rows
    return [row["text"] for row in rows if row["event"] in ("said", "follow_up")]


def thinks(thought: dict[str, Any]) -> Says:
    return Says(json.dumps(thought))


def test_a_terminal_conversation_with_all_commands(folder: Path) -> None:
    with terminal("chat", "--data", folder) as screen:
        assert screen.until(PROMPT).startswith("no model is configured: fixed rules answer")
        screen.type("The noise keeps me awake.\r")
        screen.until("coach: ")
        screen.until("belief v1")
        screen.type("/belief\r")
        screen.until("sleep concern: ")
        screen.type("/plan\r")
        screen.until("there is no plan yet")
        screen.type("/recall noise\r")
        screen.until("chat: ")
        screen.type("/retain The spare key hangs in the shed.\r")
        screen.until("retained as ")
        screen.type("/recall spare key\r")
        screen.until("note: The spare key hangs in the shed.")
        screen.type("/work\r")
        screen.until("no reasoner is running")
        screen.type("/nonsense\r")
        screen.until("there is no command /nonsense")
        screen.type("/help\r")
        screen.type("\x04")  # before the next prompt
        screen.until("/cancel")
        assert screen.ended() == 0
        assert "--session" in screen.rest
    assert (folder / "history" / "you.txt").stat().st_mode & 0o077 == 0
    assert len(said(folder)) == 1


def test_session_names_are_not_cut_in_narrow_terminals(folder: Path) -> None:
    name = "x" * 100  # as long as a line
    run("chat", "--data", folder, "--session", name, said="The noise keeps me awake.\n")
    with terminal("chat", "--data", folder, "--session", name) as screen:
        screen.until(PROMPT)
        screen.type("/sessions\r")
        screen.until(f"{name}: ")
        screen.type("\x04")
        screen.until(f"--session {name} continues it")
        assert screen.ended() == 0


def test_a_conversation_can_be_continued(folder: Path) -> None:
    run("chat", "--data", folder, "--session", "monday", said="The noise keeps me awake.\n")
    with terminal("chat", "--data", folder, "--session", "monday") as screen:
        assert "you: The noise keeps me awake." in screen.until("coach: ")
        screen.leave()


def test_ctrl_c_stops_an_answer_and_keeps_the_text_so_far(folder: Path, door: FakeEndpoint) -> None:
    door.will(Says("This goes on and on and on", step=True))
    with terminal("chat", "--data", folder, "--model", "rules", "--role", f"talker={door.url}#slow") as screen:
        screen.until(PROMPT)
        screen.type("The noise keeps me awake.\r")
        screen.until("coach: ")
        for _ in range(4):
            door.go()
        screen.until("goes on")
        screen.type("\x03")
        screen.until("stopped")
        screen.leave()
    (kept,) = said(folder)
    assert kept.startswith("This goes on") and kept != "This goes on and on and on"


def test_control_sequences_of_a_model_do_not_reach_the_terminal(folder: Path, door: FakeEndpoint) -> None:
    door.will(Says("I am \x1b]0;evil\x07not \x1b[31mred\x1b[0m, [bold]and[/bold] no :smile: either."))
    with terminal("chat", "--data", folder, "--model", "rules", "--role", f"talker={door.url}#loud") as screen:
        screen.until(PROMPT)
        screen.type("hello\r")
        screen.until("coach: ")
        screen.until("I am not red, [bold]and[/bold] no :smile: either.")
        screen.leave()
        assert b"\x1b]0;evil" not in screen.raw and b"\x1b[31m" not in screen.raw


def test_a_follow_up_is_printed_above_the_input_line(folder: Path, door: FakeEndpoint) -> None:
    more = "One thing more: earplugs may help tonight."
    thought = {"thought": "enough", "patch": {}, "follow_up": more}

    def reasoner(asked: Asked) -> Says:
        words = json.dumps(asked.body)
        if "follow_up" in words:
            return Says(json.dumps(thought, separators=(",", ":")).replace(" ", "\\u0020"), step=True)
        return thinks({"facts": []} if "predicate" in words else {"reason": "so", "phase": "understanding"})

    door.otherwise = reasoner
    with terminal("chat", "--data", folder, "--model", "rules", "--role", f"reasoner={door.url}#deep") as screen:
        screen.until(PROMPT)
        screen.type("The noise keeps me awake.\r")
        screen.until("coach: ")
        screen.until(PROMPT)
        screen.type("and half a sent")
        screen.until("and half a sent")
        door.go()
        screen.until(more)
        screen.until("and half a sent")
        screen.type("ence.\r")
        screen.until("coach: ")
        screen.until(PROMPT)
        screen.type("\x04")
        screen.until("the reasoners finish their work")
        door.go()
        assert screen.ended() == 0
    heard = [row["text"] for row in run("log", "--data", folder, "--json").rows if row["event"] == "heard"]
    assert heard == ["The noise keeps me awake.", "and half a sentence."]


@pytest.mark.parametrize("command", ["memory", "mind"])
def test_an_export_is_escaped_in_a_terminal_but_not_in_a_pipe(command: str, folder: Path) -> None:
    odd = "turned \u202ecod.exe\u202c \x9b31m and \u200bhidden"
    run("chat", "--data", folder, said=f"The neighbour's dog keeps me awake: {odd}\n")
    piped = run(command, "export", "-", "--data", folder).out
    with terminal(command, "export", "-", "--data", folder) as screen:
        assert screen.ended() == 0
    shown = screen.raw.decode()
    assert "\u202e" in piped and "\u200b" in piped
    assert "\\u202e" in shown and not any(each in shown for each in "\u202e\u200b\x9b")
    lines = [json.loads(line) for line in shown.replace("\r\n", "\n").splitlines()]
    assert lines[1:] == [json.loads(line) for line in piped.splitlines()][1:]


@pytest.mark.parametrize("odd", ["fifo", "link to nothing", "no folder"])
def test_typed_history_is_stored_only_in_a_regular_file(odd: str, tmp_path: Path) -> None:
    path = tmp_path / "history" / "you.txt"
    assert isinstance(_history(path), FileHistory) and path.stat().st_mode & 0o777 == 0o600
    path.unlink()
    if odd == "fifo":
        os.mkfifo(path)
    elif odd == "no folder":
        path.parent.rmdir()
        path.parent.write_text("")
    else:
        path.symlink_to(tmp_path / "nothing")
    assert isinstance(_history(path), InMemoryHistory)
    assert not (tmp_path / "nothing").exists()
