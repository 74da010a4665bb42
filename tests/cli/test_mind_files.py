from __future__ import annotations

import asyncio
import base64
import io
import json
from pathlib import Path

import numpy as np
import pytest
from running import mistaken, run

from mindstream.coach.gates.learned import LearnedGate, read_weights
from mindstream.coach.packs.load import load
from mindstream.memory.sqlite import SqliteStore

TALK = "The noise keeps me awake, and my bedroom is too bright.\nMake me a plan, step by step.\n吵得我睡不着。\n"


def state(**more: object) -> bytes:
    """Return the file of a gate, changed."""
    file = io.BytesIO()
    np.savez(file, **{**np.load(io.BytesIO(LearnedGate(load("sleep")).state())), **more})
    return file.getvalue()


@pytest.fixture(scope="module")
def talked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder in which ann and bob have talked, with a gate that has learned from both; only to be read."""
    folder = tmp_path_factory.mktemp("talked")
    options = ("--data", folder, "--gate", "learned", "--session", "a monday")
    assert run("chat", *options, "--user", "bob", said="I drink coffee until midnight.\n" + TALK).code == 0
    assert run("chat", *options, "--user", "ann", said=TALK).code == 0
    gate = LearnedGate(load("sleep"), store := SqliteStore(folder), folder)
    asyncio.run(gate.catch_up())
    (folder / "gate-sleep.npz").write_bytes(gate.state())
    asyncio.run(store.close())
    return folder


@pytest.fixture(scope="module")
def exported(talked: Path) -> str:
    done = run("mind", "export", "-", "--data", talked, "--user", "ann")
    assert done.code == 0, done.err
    return done.out


def test_a_mind_s_file_is_its_memory_under_a_header_that_says_more(talked: Path, exported: str) -> None:
    header, *records, gate = exported.splitlines()
    assert records == run("memory", "export", "--data", talked, "--user", "ann").out.splitlines()[1:]
    assert json.loads(header)["settings"] == {
        "pack": "sleep", "gate": "learned", "models": {"default": "rules"}, "session": "a monday",
    }  # fmt: skip
    assert json.loads(gate)["gate"] == "gate-sleep.npz"


def test_a_mind_goes_on_elsewhere_under_another_name(exported: str, folder: Path) -> None:
    options = ("mind", "import", "-", "--data", folder, "--user", "carol")
    (row,) = run(*options, "--json", said=exported).rows
    assert row["written"] == len(exported.splitlines()) - 2 and row["gates"] == ["gate-sleep.npz"]
    assert row["go_on"].startswith("mindstream chat --user carol --pack sleep --session 'a monday' --gate learned")
    kept = read_weights((folder / "gate-sleep.npz").read_bytes())
    assert kept.upto == 0 and kept.outcomes > 0 and (folder / "gate-sleep.npz").stat().st_mode & 0o777 == 0o600
    told = run(*options, said=exported).out
    assert "0 records taken in" in told and "has its own, which stays" in told
    again = run("memory", "export", "--data", folder, "--user", "carol").out
    assert again.splitlines()[1:] == exported.splitlines()[1:-1]
    said = "What do you remember about me?\n"
    asked = run("chat", "--data", folder, "--user", "carol", "--session", "a monday", "--gate", "learned", said=said)
    assert "noise" in asked.out.partition("What do you remember")[2]


def test_without_a_name_it_keeps_its_own(exported: str, folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "ann.mind"
    file.write_text(exported.replace('"pack":"sleep"', '"pack":"tea"'), "utf-8")
    told = run("mind", "import", file, "--data", folder).out
    assert told.startswith("ann: ") and "'tea' does not come with mindstream" in told
    assert run("memory", "show", "--data", folder, "--user", "ann").out


def line(content: bytes, name: str = "gate-sleep.npz") -> str:
    return json.dumps({"gate": name, "npz": base64.b64encode(content).decode()})


HEADER = '{"mindstream": "mind", "format": 1, "user": "ann", "gates": 1}'


def settings(**habits: object) -> str:
    """Return a header that says how a mind was talked to."""
    return json.dumps({"mindstream": "mind", "format": 1, "user": "ann", "settings": habits})


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (['{"mindstream": "memory", "format": 1}'], "export of a memory: `mindstream memory import`"),
        (["{}"], "not an export of a mind"),
        ([HEADER], "promises 1 states of gates"),
        ([HEADER, line(b"nothing")], "standard input:2: gate-sleep.npz: not the weights of a gate"),
        ([HEADER, line(state(evil=np.array([{}], object)))], "standard input:2: gate-sleep.npz: not the weights"),
        ([HEADER, line(state(), "../gate-x.npz")], "standard input:2: gate: "),
        ([HEADER.replace('"ann"', '"../x"')], "user '../x'"),
        ([HEADER, '{"gate": "gate-x.npz", "npz": 3}'], "standard input:2: npz: "),
        ([HEADER, '{"gate": "gate-x.npz", "npz": "!!!"}'], "standard input:2: gate-x.npz: not base64"),
        ([HEADER, *[line(state())] * 2], "standard input:3: gate: at most"),
        ([settings(session="x; touch /tmp/x")], "settings.session 'x; touch /tmp/x'"),
        ([settings(session="-x")], "settings.session '-x'"),
        ([settings(gate="\x1b[31mred")], "settings: names of a pack, a gate and models are wanted"),
        ([settings(models={"default": "x\ny"})], "settings: names of a pack"),
        ([settings(models={str(n): "rules" for n in range(99)})], "settings: names of a pack"),
    ],
)
def test_a_mind_is_checked_whole_before_anything_is_written(lines: list[str], told: str, folder: Path) -> None:
    assert told in mistaken(run("mind", "import", "-", "--data", folder, said="\n".join(lines)))
    assert not folder.exists()


def test_a_mind_is_no_memory(exported: str, folder: Path) -> None:
    assert "`mindstream mind import`" in mistaken(run("memory", "import", "--data", folder, said=exported))


def test_what_the_gate_learned_from_others_stays(talked: Path, exported: str) -> None:
    both = read_weights((talked / "gate-sleep.npz").read_bytes())
    alone = read_weights(base64.b64decode(json.loads(exported.splitlines()[-1])["npz"]))
    judged = [row for row in run("log", "--json", "--data", talked, "--user", "ann").rows if row["event"] == "judged"]
    assert alone.outcomes == len(judged) < both.outcomes


def test_weights_of_another_version_are_left_out_and_that_is_said(folder: Path) -> None:
    done = run("mind", "import", "-", "--data", folder, said=f"{HEADER}\n{line(state(version=1))}\n")
    assert done.code == 0 and "gate-sleep.npz: left out" in done.out and not list(folder.glob("gate-*"))


def test_what_goes_on_with_a_mind_is_quoted_for_a_shell_and_taken_by_the_command(folder: Path) -> None:
    habits = {"pack": "sleep", "session": "2026-11-22T03:21:26Z", "gate": "`id`", "models": {"talker": "$(id)"}}
    header = settings(**habits)
    (row,) = run("mind", "import", "-", "--data", folder, "--json", said=header).rows
    assert "--session 2026-11-22T03:21:26Z" in row["go_on"] and "'talker=$(id)'" in row["go_on"]
    assert "`" not in row["go_on"]
    assert run("chat", "--session", habits["session"], "--data", folder, said="hello\n").code == 0  # type: ignore[arg-type]
