"""`mindstream town ensemble`: a table over seeds, a line for each run, a chart; Ctrl-C keeps finished runs."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from doing import begin_ray, needs_ray
from fake_endpoint import Asked, FakeEndpoint, Says
from hamlet import HAMLET
from running import COMMAND, interruptible, mistaken, run_here
from test_town_evaluate import mind as judge


@pytest.fixture
def town(tmp_path: Path) -> Path:
    file = tmp_path / "hamlet.toml"
    file.write_text(HAMLET)
    return file


def digests(into: Path) -> dict[tuple[str, str], str]:
    with (into / "runs.csv").open(encoding="utf-8") as file:
        return {(each["condition"], each["seed"]): each["digest"] for each in csv.DictReader(file)}


def test_runs_are_summarised_and_compared_by_seed(town: Path, tmp_path: Path) -> None:
    into = tmp_path / "runs"
    asked = ("town", "ensemble", town, "--seeds", "1..3", "--hours", "10", "--into", into, "--without", "talk",
             "--workers", "2", "--fact", "a reading evening at Oak Cafe")  # fmt: skip
    said = run_here(*asked)
    assert said.code == 0, said.err
    assert "6 runs" in said.out and "without talk" in said.out and "p by Holm" in said.out
    assert len(digests(into)) == len(set(digests(into).values())) == 6
    row = run_here(*asked, "--json").rows[0]
    talks = {each["condition"]: each["mean"] for each in row["spreads"] if each["measure"] == "talks a day"}
    assert talks["full"] > talks["without talk"] == 0
    assert any("reading evening" in each["measure"] for each in row["spreads"])
    picture = (into / "ensemble.svg").read_text()
    assert picture.startswith("<svg") and "talks a day" in picture
    alone = ("--data", tmp_path / "alone")
    run_here("town", "new", town, "--seed", "2", *alone)
    run_here("town", "run", "--steps", str(row["steps"]), *alone)
    journals = [tmp_path / "one.jsonl", tmp_path / "other.jsonl"]
    run_here("town", "export", "--journal", journals[0], *alone)
    run_here("town", "export", "--journal", journals[1], "--data", into / "full" / "seed-2")
    assert journals[0].read_bytes() == journals[1].read_bytes(), "each run is a town like any other"


@needs_ray
def test_ray_and_processes_give_the_same_journals(town: Path, tmp_path: Path) -> None:
    begin_ray()
    for into, flags in (("here", ()), ("there", ("--ray",))):
        done = run_here("town", "ensemble", town, "--seeds", "1,2", "--hours", "9", "--into", tmp_path / into, *flags)
        assert done.code == 0, done.err
    assert digests(tmp_path / "here") == digests(tmp_path / "there")


@needs_ray
def test_residents_on_ray_give_the_same_journal(town: Path, tmp_path: Path) -> None:
    begin_ray()
    for name, flags in (("here", ()), ("there", ("--ray",))):
        where = ("--data", tmp_path / name)
        run_here("town", "new", town, *where)
        done = run_here("town", "run", "--hours", "9", *flags, *where)
        assert done.code == 0, done.err
        run_here("town", "export", "--journal", tmp_path / f"{name}.jsonl", *where)
    assert (tmp_path / "here.jsonl").read_bytes() == (tmp_path / "there.jsonl").read_bytes()


STOPS = [
    ((), signal.SIGINT),
    pytest.param((), signal.SIGTERM, marks=pytest.mark.slow),
    pytest.param(("--ray",), signal.SIGINT, marks=needs_ray),
]


def stop(into: Path, asked: list[str], sent: signal.Signals) -> tuple[int, str]:
    """Start a command and stop it when its first town has run for a while; return its exit code and output."""
    process = subprocess.Popen(
        [*COMMAND, *asked], stderr=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=interruptible
    )
    database = into / "full" / "seed-1" / "mindstream.db"
    written = (database, database.with_name(f"{database.name}-wal"))
    while process.poll() is None and sum(path.stat().st_size for path in written if path.exists()) < 150_000:
        time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError):
        if sent == signal.SIGINT:
            os.killpg(process.pid, sent)  # a terminal signals the whole process group
        else:
            process.send_signal(sent)
    _, err = process.communicate()
    return process.returncode, err


@pytest.mark.parametrize(("flags", "sent"), STOPS)
def test_a_stopped_ensemble_resumes(flags: tuple[str, ...], sent: signal.Signals, town: Path, tmp_path: Path) -> None:
    into = tmp_path / "runs"
    asked = [
        "town",
        "ensemble",
        str(town),
        "--seeds",
        "1..2",
        "--days",
        "8",
        "--into",
        str(into),
        "--workers",
        "2",
        *flags,
    ]
    code, err = stop(into, asked, sent)
    for _ in range(5):  # towns that ended as fast as the signal arrived
        if code == 0:
            shutil.rmtree(into)
            code, err = stop(into, asked, sent)
    assert code == 128 + sent and "the same command continues" in err and "Traceback" not in err, err
    assert run_here(*asked[: -len(flags) or None]).code == 0
    alone = tmp_path / "alone"
    assert run_here(*asked[:8], str(alone), "--workers", "1").code == 0
    assert digests(into) == digests(alone)


def test_believability_is_measured_in_each_run(town: Path, tmp_path: Path) -> None:
    def mind(asked: Asked) -> Says:
        words = asked.body["messages"][-1]["content"]
        return judge(asked) if "<first>" in words or "<answer>" in words else Says("I remember 3 things.")

    with FakeEndpoint() as door:
        door.otherwise = mind
        asked = ("town", "ensemble", town, "--seeds", "1..2", "--hours", "9", "--into", tmp_path / "runs", "--evaluate",
                 "--questions", "1", "--pairs", "6", "--role", f"talker={door.url}#any", "--judge", f"{door.url}#any",
                 "--profile", "talks=false", "--without", "planning")  # fmt: skip
        assert "add --yes" in mistaken(run_here(*asked))
        done = run_here(*asked, "--yes", "--json")
        assert done.code == 0, done.err
        many = len(door.chats)
        assert run_here(*asked, "--yes", "--json").rows == done.rows and len(door.chats) == many
    measures = {each["measure"] for each in done.rows[0]["spreads"]}
    assert {"TrueSkill, memory full", "TrueSkill, memory none", "claims made up, memory full"} <= measures


def test_invalid_arguments_are_refused_in_one_sentence(town: Path, tmp_path: Path) -> None:
    where = ("--into", tmp_path / "runs")
    assert "must go upward" in mistaken(run_here("town", "ensemble", town, "--seeds", "4..1", *where))
    assert "did you mean 'talk'" in mistaken(
        run_here("town", "ensemble", town, "--seeds", "1", "--without", "tulk", *where)
    )
    assert "--evaluate needs a judge" in mistaken(
        run_here("town", "ensemble", town, "--seeds", "1", "--evaluate", *where)
    )
    (tmp_path / "file").touch()
    assert "cannot be" in mistaken(run_here("town", "ensemble", town, "--seeds", "1", "--into", tmp_path / "file"))


def test_a_failed_run_is_reported_and_the_others_continue(town: Path, tmp_path: Path) -> None:
    broken = tmp_path / "runs" / "full" / "seed-2" / "mindstream.db"
    broken.parent.mkdir(parents=True)
    broken.write_text("no database")
    done = run_here("town", "ensemble", town, "--seeds", "1..3", "--hours", "7", "--into", tmp_path / "runs")
    assert done.code == 1 and "seed 2, full: " in done.err and "2 runs in" in done.out
    assert [each["seed"] for each in json.loads((tmp_path / "runs" / "report.json").read_text())["failed"]] == [2]
