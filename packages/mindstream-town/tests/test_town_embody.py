"""`mindstream town embody`: typed commands, scripts with the same journal, ways of ending, JSON, a pace."""

from __future__ import annotations

from pathlib import Path
from subprocess import PIPE, Popen

import pytest
from mindstream_town.commands.screen import Typed, addressee, read_typed
from running import COMMAND, mistaken, run_here, terminal
from test_town import HAMLET

from mindstream.errors import InputError

MORNING = """# a morning
08:12 do "juggling at sea" for 5 at piano
say Guten Morgen, ich bin neu hier. to Ada
say Bis bald!
go "oak cafe:cafe"
wait 10
"""
MAYA = ("Maya", "--as-visitor", "--at", "oak cafe:cafe")


def begin_hamlet(folder: Path) -> tuple[str | Path, ...]:
    """Begin the hamlet and run it up to eight; return the flags that name it."""
    file = folder / "hamlet.toml"
    file.write_text(HAMLET)
    where = ("--data", folder / "town")
    assert run_here("town", "new", file, "--seed", "3", *where).code == 0
    assert run_here("town", "run", "--until", "Feb 13 08:10", *where).code == 0
    return where


def journal(folder: Path, where: tuple[str | Path, ...]) -> bytes:
    file = folder / "journal.jsonl"
    assert run_here("town", "export", "--journal", file, *where).code == 0
    return file.read_bytes()


def test_scripts_and_piped_lines_give_the_same_journal(tmp_path: Path) -> None:
    kept = []
    for way in ("script", "again", "piped"):
        folder = tmp_path / way
        folder.mkdir()
        where, script = begin_hamlet(folder), folder / "morning.txt"
        script.write_text(MORNING)
        piped = way == "piped"
        said = "".join(line for line in MORNING.splitlines(keepends=True) if line[0] != "#") if piped else ""
        done = run_here("town", "embody", *MAYA, *(() if piped else ("--script", script)), *where, said=said)
        assert done.code == 0 and "Ada Brook: Hello, Maya." in done.out, done.err
        assert "you still control" in done.err
        assert run_here("town", "run", "--hours", "1", *where).code == 0
        kept.append(journal(folder, where))
        assert "juggling at sea" in run_here("town", "timeline", "Maya", *where).out
        assert "Guten Morgen, ich bin neu hier." in run_here("town", "timeline", "ada", *where).out
    assert kept[0] == kept[1] == kept[2]


def test_leave_ends_the_control_and_script_errors_name_the_line(tmp_path: Path) -> None:
    where, script = begin_hamlet(tmp_path), tmp_path / "morning.txt"
    done = run_here("town", "embody", "ada", "--by", "Tom", "--json", *where, said="plan\nfly\nwait 5\nleave\n")
    assert done.code == 2 and "line 2: unknown command 'fly': type help for a list; the lines after it" in done.err
    assert [row["command"] for row in done.rows] == ["look", "plan"] and "still control" in done.err
    assert done.rows[1]["plan"][0]["what"].startswith("serving guests")
    script.write_text("wait 5\ngo moon\n")
    done = run_here("town", "embody", *MAYA, "--script", script, *where)
    assert done.code == 2 and "morning.txt:2: Hamlet has no place called 'moon'" in done.err
    assert "line not run" not in done.err, "it was the last line"
    done = run_here("town", "embody", *MAYA, "--script", tmp_path / "none.txt", *where)
    assert done.code == 2 and "none.txt cannot be read: No such file" in done.err
    done = run_here("town", "embody", "ada", "--by", "Tom", *where, said="wait 5\nleave\n")
    assert done.code == 0 and "you leave" in done.out and "still control" not in done.err
    assert "--wait and --pace" in mistaken(run_here("town", "embody", "ada", "--wait", "--pace", "3", *where))


SPOKEN_TO = "Ben Hale has spoken to you: 'wait 60' was interrupted"


def test_piped_lines_end_when_a_resident_speaks(tmp_path: Path) -> None:
    where = begin_hamlet(tmp_path)
    done = run_here("town", "embody", *MAYA, *where, said="do whistling for 20\nwait 60\nlook\nleave\n")
    assert done.code == 3 and f"08:39  {SPOKEN_TO}" in done.out and "you leave" not in done.out
    assert "line 2: Ben Hale has spoken to you; the lines after it were not run" in done.err
    done = run_here("town", "embody", *MAYA, *where, said="wait\nsay Good day!\nwait until 09:30\nwho\n")
    assert done.code == 0 and "Ben Hale waits for your answer until 08:42" in done.out
    assert "08:42  you do not answer, and Ben Hale has stopped waiting" in done.out
    assert "09:30  Maya, cafe of Oak Cafe: standing about" in done.out, "the end of a conversation does not stop it"


def test_a_script_ends_when_a_resident_speaks_before_a_timed_line(tmp_path: Path) -> None:
    where, script = begin_hamlet(tmp_path), tmp_path / "morning.txt"
    script.write_text("do whistling for 20\n# then\n09:00 look\nleave\n")
    done = run_here("town", "embody", *MAYA, "--json", "--script", script, *where)
    assert done.code == 3 and "morning.txt:3: Ben Hale has spoken to you; 2 lines not run" in done.err
    assert done.rows[-1]["cut_short_by"] == "Ben Hale" and done.rows[-1]["talks_with"] == "Ben Hale"


def test_an_interactive_program_can_continue_after_a_mistake(tmp_path: Path) -> None:
    words = [*COMMAND, "town", "embody", *MAYA, *begin_hamlet(tmp_path)]
    with Popen(list(map(str, words)), stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True) as process:
        assert process.stdin and process.stdout and process.stderr
        process.stdin.write("fly\n")
        process.stdin.flush()
        told = next(line for line in process.stderr if "fly" in line)
        assert "line 1: unknown command" in told and "not run" not in told
        process.stdin.write("leave\n")
        process.stdin.close()
        assert "you leave" in process.stdout.read() and process.wait() == 2


def test_a_visitor_enters_at_the_given_time(tmp_path: Path) -> None:
    where = begin_hamlet(tmp_path)
    done = run_here("town", "embody", *MAYA, "--when", "09:00", *where, said="places\n")
    assert done.code == 0 and done.out.startswith("09:00  Maya, cafe of Oak Cafe: standing about")
    assert "standing about" not in run_here("town", "timeline", "Maya", "--to", "08:59", *where).out
    assert "visitor" in mistaken(run_here("town", "embody", "ada", "--when", "10:00", *where))
    assert "08:00 is in the past" in run_here("town", "embody", "Tom", "--as-visitor", "--when", "08:00", *where).err


def test_in_a_terminal_time_passes_at_the_given_pace(tmp_path: Path) -> None:
    where = begin_hamlet(tmp_path)
    with terminal("town", "embody", *MAYA, "--pace", "600", *where) as shown:
        shown.until("time passes while you type")
        shown.type("do whistling for 20\n")
        shown.until("you: whistling")
        shown.until("Hello, Maya")
        shown.type("leave\n")
        shown.until("you leave")


@pytest.mark.parametrize(
    ("line", "typed"),
    [
        ("go Hobbs Cafe:cafe", Typed("go", ("Hobbs Cafe:cafe",))),
        ("do reading for 20 at desk", Typed("do", ("reading",), 20, "desk")),
        ('09:05 do "looking at the sea" for 5', Typed("do", ("looking at the sea",), 5, at="09:05")),
        ("do 读书", Typed("do", ("读书",), 15)),
        ("say 你好！", Typed("say", ("你好！",))),
        ("wait until 12:30", Typed("wait", until="12:30")),
        ('set "Oak Cafe:cafe:piano" ""', Typed("set", ("Oak Cafe:cafe:piano", ""))),
        ("WHO", Typed("who")),
    ],
)
def test_typed_commands_are_parsed(line: str, typed: Typed) -> None:
    assert read_typed(line) == typed


@pytest.mark.parametrize("line", ["fly", "go", "wait long", "whisper ada", 'set "piano broken'])
def test_invalid_commands_are_refused(line: str) -> None:
    with pytest.raises(InputError):
        read_typed(line)


def test_the_addressee_is_the_last_part_of_a_line() -> None:
    near = ["Ada Brook", "Ben Hale"]
    assert addressee("hello to ada", near) == ("hello", "Ada Brook")
    assert addressee("I want to go to Cleo", near) == ("I want to go to Cleo", "")
    assert addressee("good morning to all", near) == ("good morning", "all")
    assert addressee("I am off to bed", near) == ("I am off to bed", "")
