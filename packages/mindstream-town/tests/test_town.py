"""`mindstream town`: a hamlet from its beginning to its metrics, by commands alone; errors and interruptions."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from doing import needs_ray
from fake_endpoint import Fails, FakeEndpoint, Says
from running import COMMAND, PATIENCE_S, interruptible, mistaken, run, run_here, terminal

HAMLET = """
[town]
name = "Hamlet"
start = 2023-02-13T00:00:00

[map]
rows = '''
##############
#aaaaa#cccccc#
#aaaaa#cccccc#
###.#####.####
#............#
##############
'''
things = '''
..............
.1...s.k....p.
.2............
..............
..............
..............
'''
[map.places]
a = "Mill House:room"
c = "Oak Cafe:cafe"
[map.objects]
1 = "bed"
2 = "bunk"
s = "shower"
k = "counter"
p = "piano"

[[residents]]
name = "Ada Brook"
age = 34
learned = "Ada Brook is a baker who runs the Oak Cafe."
currently = "Ada Brook is planning a reading evening at Oak Cafe on February 14th from 5pm to 7pm."
lifestyle = "Ada Brook goes to bed around 10pm, wakes up around 6am."
routine = "Ada Brook works at the Oak Cafe counter from 8am to 6pm."
home = "Mill House:room"
day = [
    { from = "06:00", to = "07:30", what = "having breakfast", where = "shower" },
    { from = "08:00", to = "18:00", what = "serving guests", where = "Oak Cafe:cafe:counter", duty = true },
    { from = "18:30", to = "22:00", what = "reading" },
]
knows = ["Oak Cafe:cafe:counter", "Oak Cafe:cafe:piano"]
relations = [{ who = "Ben Hale", as = "husband" }]

[[residents]]
name = "Ben Hale"
age = 36
learned = "Ben Hale is a piano tuner."
lifestyle = "Ben Hale goes to bed around 11pm, wakes up around 7am."
home = "Mill House:room"
day = [
    { from = "07:00", to = "08:30", what = "having breakfast" },
    { from = "08:40", to = "12:00", what = "tuning the piano", where = "Oak Cafe:cafe:piano", duty = true },
    { from = "12:00", to = "23:00", what = "mending a clavichord" },
]
knows = ["Oak Cafe:cafe:piano"]
relations = [{ who = "Ada Brook", as = "wife" }]
"""


@pytest.fixture
def town(tmp_path: Path) -> tuple[str | Path, ...]:
    """Begin the hamlet; return the flags that name it."""
    file, where = tmp_path / "hamlet.toml", ("--data", tmp_path / "town")
    file.write_text(HAMLET)
    done = run_here("town", "new", file, "--seed", "3", *where)
    assert done.code == 0 and "2 residents" in done.out and "mindstream town run" in done.out, done.err
    assert "missing keys: danger of [conditions]" in done.err
    return where


def test_a_town_can_be_run_and_inspected(town: tuple[str | Path, ...], tmp_path: Path) -> None:
    assert "has not run yet" in run_here("town", "status", *town).out
    assert run_here("town", "run", "--until", "Feb 13 09:00", *town).code == 0
    (status,) = run_here("town", "status", "--json", *town).rows
    assert status["time"] == "2023-02-13T09:00:00+00:00" and status["residents"][0]["place"].startswith("Hamlet:Oak")
    assert "bridge" not in run_here("town", "interview", "ben", "Is the bridge closed?", *town).out
    assert run_here("town", "whisper", "ben", "The bridge is closed on Sunday.", *town).code == 0
    assert run_here("town", "set", "piano", "out of tune", *town).code == 0
    rows = run_here("town", "run", "--hours", "2", "-v", "--json", *town).rows
    assert rows[-1]["event"] == "ended" and rows[-1]["steps"] == 720
    assert any(row["event"] == "resident_acted" and "piano is out of tune" in row["line"] for row in rows), (
        "a resident sees it"
    )
    assert "bridge is closed" in run_here("town", "interview", "Ben", "Is the bridge closed?", *town).out
    talked = run_here("town", "talk", "ada", "The market on Sunday begins at 4pm.", "--by", "Maya", "--json", *town)
    assert talked.rows[0]["resident"] == "Ada Brook" and talked.rows[0]["answer"]
    (mind,) = run_here("town", "status", "--resident", "ada", "--at", "09:00", "--json", *town).rows
    assert mind["name"] == "Ada Brook" and mind["step"] == 3_240 and mind["memories"] and mind["blocks"]
    assert "by plan" in run_here("town", "why", "ada", "--at", "day 1 09:00", *town).out
    told = run_here("town", "timeline", "ada", "--from", "08:00", "--to", "09:00", *town).out
    assert "serving guests" in told and "05:" not in told
    assert run_here("town", "resume", *town).code == 0
    assert "market" in run_here("town", "interview", "ada", "When does the market begin?", *town).out
    assert run_here("town", "status", "--json", *town).rows[0]["step"] == 8_639, "to the end of the day"
    (found,) = run_here(
        "town", "metrics", "--fact", "the bridge is closed on Sunday", "--event", "Oak Cafe", "--from", "10:00", "--to",
        "11:00", "--csv", tmp_path / "csv", "--plot", tmp_path / "plot", "--json", *town,
    ).rows  # fmt: skip
    assert "Ben Hale" in [each["name"] for each in found["facts"][0]["who"]] and found["event"]["minutes"]
    assert {each.name for each in (tmp_path / "csv").iterdir()} == {"curves.csv", "fact_1.csv"}
    assert "<svg" in (tmp_path / "plot" / "curves.svg").read_text()


def test_running_a_town_with_rules_loads_no_coach_and_no_http_client(town: tuple[str | Path, ...]) -> None:
    heavy = ["aiohttp", "httpx2", "tomlkit", "tokenizers", "mindstream.coach.coach", "mindstream.tools.web"]
    code = (
        f"import sys; from mindstream.cli.edge import run; code = run({['town', 'status', *map(str, town)]});"
        f"print([name for name in {heavy} if name in sys.modules], code, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[] 0"


def test_an_export_can_be_imported(town: tuple[str | Path, ...], tmp_path: Path) -> None:
    run_here("town", "run", "--hours", "8", *town)
    journal, saved = tmp_path / "journal.jsonl", tmp_path / "saved"
    assert run_here("town", "export", "--journal", journal, "--out", saved, "--at", "07:30", *town).code == 0
    assert all(len(json.loads(line)) == 7 for line in journal.read_text("utf-8").splitlines())
    assert json.loads((saved / "reverie" / "meta.json").read_text())["step"] == 2_701
    again = ("--data", tmp_path / "again")
    assert run_here("town", "import", saved, *again).code == 0, "the export contains the map"
    assert run_here("town", "status", "--json", *again).rows[0]["step"] == 2_700
    assert "is not later than the town" in mistaken(run_here("town", "run", "--until", "07:30", *town))


def test_the_export_of_a_town_without_a_map_names_no_map(tmp_path: Path) -> None:
    file, where = tmp_path / "roads.toml", ("--data", tmp_path / "town")
    file.write_text(
        '[town]\nname = "Ferry"\n[[roads]]\nfrom = "quay"\nto = "hut"\nsteps = 5\n[[places]]\naddress = "hut:room"\n'
        'objects = ["bed"]\n[[residents]]\nname = "Ida Moe"\nage = 40\nhome = "hut:room:bed"\n'
    )
    assert run_here("town", "new", file, *where).code == 0
    run_here("town", "run", "--hours", "1", *where)
    done = run_here("town", "export", "--out", tmp_path / "saved", *where)
    assert "1 resident as of" in done.out and "map" not in done.out, done.err


def test_the_cost_is_estimated_in_advance(town: tuple[str | Path, ...]) -> None:
    rows = run_here("town", "estimate", "--hours", "9", "--model", "openai:gpt-5-mini", "--json", *town).rows
    assert rows[-1]["usd"] > 0 and rows[-1]["calls"] == sum(row["calls"] for row in rows[:-1])
    with FakeEndpoint() as door:
        asked = mistaken(run_here("town", "run", "--hours", "9", "--model", f"{door.url}#any", *town))
        assert "add --yes" in asked and not door.chats


@pytest.mark.parametrize("ray", [(), pytest.param(("--ray",), marks=needs_ray)], ids=["here", "ray"])
def test_a_failing_model_ends_the_run_and_loses_no_step(town: tuple[str | Path, ...], ray: tuple[str, ...]) -> None:
    straight = _lived(town, "--hours", "10")
    with FakeEndpoint() as door:
        door.otherwise = Fails(401, "wrong key")
        other = (town[0], Path(town[1]).parent / "other")
        run_here("town", "new", Path(town[1]).parent / "hamlet.toml", "--seed", "3", *other)
        run_here("town", "run", "--hours", "7", *other)
        failed = run_here("town", "run", "--hours", "3", "--model", f"{door.url}#any", "--yes", *other, *ray)
    assert failed.code == 1 and "wrong key" in failed.err and "--steps" in failed.err
    assert ("--ray" in failed.err) == bool(ray)
    steps = failed.err.split("--steps ")[1].split()[0]
    assert 0 < int(steps) <= 1_080, "finished steps are kept"
    assert _lived(other, "--steps", steps) == straight, "the interrupted step is repeated"


def test_a_budget_is_a_hard_limit_and_the_bill_is_stored(town: tuple[str | Path, ...]) -> None:
    with FakeEndpoint() as door:
        day = {"wake": "06:30", "bed": "22:00", "items": [{"start": "06:30", "minutes": 900, "what": "resting"}]}
        door.otherwise = Says(json.dumps(day | {"tasks": [{"minutes": 60, "what": "resting"}]}), usage=(1_000, 500))
        model = ("--model", f"{door.url}#gpt-5-mini", "--yes")
        settings = Path(town[1]).parent / "settings.toml"
        settings.write_text("budget_tokens = 4000\n")
        done = run_here("town", "run", "--hours", "9", "--settings", settings, *model, *town)
        asked = len(door.chats)
    assert done.code == 1 and "allowed tokens are spent" in done.err and 1 < asked < 6
    (*_, bill) = run_here("cost", "--json", *town).rows
    assert bill["calls"] >= asked and bill["input_tokens"] == 1_000 * asked


def test_ctrl_c_keeps_finished_steps(town: tuple[str | Path, ...]) -> None:
    words = [*COMMAND, "town", "run", "--days", "30", "-v", *map(str, town)]
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ}, text=True,
        preexec_fn=interruptible,
    )  # fmt: skip
    assert process.stdout is not None
    assert "plans the day" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130 and "mindstream town resume" in err and "--steps" in err, err
    left = int(err.split("--steps ")[1])
    (status,) = run_here("town", "status", "--json", *town).rows
    assert status["step"] + 1 + left == 30 * 8_640


def test_a_terminal_shows_the_clock_of_the_town(town: tuple[str | Path, ...]) -> None:
    with terminal("town", "run", "--hours", "9", *town) as screen:
        screen.until("Mon Feb 13")
        screen.until("3,240 steps")
        assert screen.ended() == 0


def test_a_conversation_is_read_line_by_line_and_can_be_continued(town: tuple[str | Path, ...]) -> None:
    run_here("town", "run", "--hours", "9", *town)
    said = run("town", "talk", "ada", "--by", "Maya", *town, said="Hello!\n\nI am a painter from the hills.\n")
    assert said.code == 0 and said.out.startswith("Ada Brook: (No model answers. Ada Brook remembers"), said.err
    assert len(said.out.splitlines()) == 2, "blank lines are skipped"
    again = run_here("town", "talk", "ada", "Who is a painter?", "--by", "Maya", "--json", *town)
    assert again.rows[0].keys() == {"resident", "said", "answer"} and "hills" in again.rows[0]["answer"]
    with terminal("town", "talk", "ada", "--by", "Maya", *town) as screen:
        screen.until("Maya: ")
        screen.type("Hello Ada!\n")
        screen.until("Ada Brook: (No model")
        screen.until("Maya: ")
        screen.type("\x03")
        screen.until("before the town continues")
        assert screen.ended() == 130


def test_towns_and_user_memories_have_separate_folders(
    town: tuple[str | Path, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "hamlet.toml"
    before = _lived(town, "--hours", "1")
    for words in (
        ("chat", "--user", "Ada Brook"), ("live", "--goal", "rest"), ("solve", "1 + 1"),
        ("memory", "sleep", "--user", "Ada Brook"), ("pool", "create", "verse", "--domain", "limericks"),
    ):  # fmt: skip
        assert "mindstream town talk NAME" in mistaken(run(*words, *town, said="Hello.\n")), words
    assert _lived(town, "--steps", "0") == before
    own = ("--data", tmp_path / "own")
    assert run("chat", *own, said="I sleep badly.\n").code == 0
    assert "a folder of its own" in mistaken(run_here("town", "new", file, *own))
    assert "contains other data, but no town" in mistaken(run_here("town", "run", *own))
    (tmp_path / "empty").mkdir()
    assert "town new --data" in mistaken(run_here("town", "talk", "ada", "Hello.", "--data", tmp_path / "empty"))
    assert not list((tmp_path / "empty").iterdir())
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("MINDSTREAM_DATA", raising=False)
    assert str(tmp_path / "home" / "mindstream" / "town") in run_here("town", "new", file).out
    assert "2 residents" in run_here("town", "status").out


def test_invalid_arguments_are_refused_in_one_sentence(town: tuple[str | Path, ...], tmp_path: Path) -> None:
    file = tmp_path / "hamlet.toml"
    assert "already contains a town" in mistaken(run_here("town", "new", file, *town))
    fresh = ("--data", tmp_path / "fresh")
    assert "town new" in mistaken(run_here("town", "status", *fresh)) and not (tmp_path / "fresh").exists()
    assert "did you mean 'smallville'" in mistaken(run_here("town", "new", "smalville", *fresh))
    assert "did you mean 'vision'" in mistaken(run_here("town", "new", file, "--profile", "visoin=3", *fresh))
    assert "vision" in mistaken(run_here("town", "new", file, "--profile", "vision=-3", *fresh))
    assert "did you mean 'planning'" in mistaken(run_here("town", "new", file, "--without", "planing", *fresh))
    assert "did you mean 'Ada Brook'" in mistaken(run_here("town", "whisper", "Ada Brok", "Hello.", *town))
    assert "piano" in mistaken(run_here("town", "set", "paino", "burning", *town))
    assert "one of --days" in mistaken(run_here("town", "run", "--days", "1", "--hours", "1", *town))
    assert "is not a time" in mistaken(run_here("town", "run", "--until", "noonish", *town))
    assert "before the beginning of the town" in mistaken(run_here("town", "run", "--until", "2022-01-01 10:00", *town))
    assert "has not run yet" in mistaken(run_here("town", "metrics", *town))
    early = mistaken(run_here("town", "status", "--at", "08:00", *town))
    assert "has not run yet" in early
    database = tmp_path / "town" / "mindstream.db"
    assert "another journal" in mistaken(run_here("town", "export", "--journal", database, *town))
    assert "name an output" in mistaken(run_here("town", "export", *town))
    assert "no role 'barber'" in mistaken(run_here("town", "run", "--role", "barber=rules", *town))


def _lived(where: tuple[str | Path, ...], *span: str) -> str:
    """Run the town and return its journal."""
    assert run_here("town", "run", *span, *where).code == 0
    file = Path(where[1]).parent / f"{Path(where[1]).name}.jsonl"
    assert run_here("town", "export", "--journal", file, *where).code == 0
    return file.read_text("utf-8")
