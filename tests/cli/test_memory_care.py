from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from fake_endpoint import FakeEndpoint, Says
from running import mistaken, run, terminal

from mindstream.clock import DAY_S, SystemClock

HEADER = '{"mindstream": "memory", "format": 1}'


def record(id_: str, text: str, days_ago: float, kind: str = "note", **more: Any) -> str:
    at = SystemClock().now() - days_ago * DAY_S
    return json.dumps({"id": id_, "kind": kind, "text": text, "created": at, **more})


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory with old, new, forgotten and derived records."""
    folder = tmp_path_factory.mktemp("first")
    lines = [
        HEADER,
        record("seen00001", "A fox sat on the wall", 40, "observation"),
        record("note00001", "There is a fox near the house", 39, evidence=["seen00001", "gone00001"], level=1),
        record("note00002", "Likes the sea at night", 30),
        record("note00003", "Is there a fox?", 0),
        record("forgot001", "Had a red bicycle", 60, forgotten=SystemClock().now() - 10 * DAY_S),
    ]
    done = run("memory", "import", "--data", folder, said="\n".join(lines))
    assert done.code == 0, done.err
    assert run("memory", "policy", "retention=decay", "--data", folder).code == 0
    return folder


@pytest.fixture
def kept(first: Path, folder: Path) -> Path:
    """A copy that tests may change."""
    shutil.copytree(first, folder)
    return folder


def test_a_sleep_reports_its_steps_and_dream(kept: Path) -> None:
    told = run("memory", "sleep", "--data", kept).out
    steps = [line.split()[0] for line in told.partition("\n\n")[0].splitlines()]
    assert steps == ["fading", "importance", "duplicates", "expiry", "compaction"]
    assert "4 selected, 3 lost a level, 2 archived" in told
    assert "I dreamt: " in told and "the sea at night" in told
    assert "no dream" in run("memory", "sleep", "-n", "0", "--data", kept).out
    rows = run("memory", "sleep", "--data", kept, "--json").rows
    assert [row["step"] for row in rows] == [steps[0], "dream", *steps[1:]] and "fox" in rows[1]["text"]


def test_a_named_model_dreams_and_its_call_is_logged(kept: Path, door: FakeEndpoint) -> None:
    door.otherwise = Says("I swam with a fox.")
    done = run("memory", "sleep", "--data", kept, "--model", f"{door.url}#one")
    assert "I swam with a fox." in done.out and done.code == 0
    rows = run("cost", "--data", kept, "--by", "role", "--json").rows
    assert {row["name"]: row["calls"] for row in rows}["reasoner"] == 1


def test_the_curve_is_output_as_text_json_and_svg(first: Path, tmp_path: Path) -> None:
    picture = tmp_path / "curve.svg"
    told = run("memory", "curve", "--data", first, "-n", "1", "--svg", picture).out
    assert told.count("|") == 13 and "100 % |" in told and "90 days" in told
    assert ElementTree.parse(picture).getroot().tag.endswith("svg")
    rows = run("memory", "curve", "--data", first, "--days", "60", "--json").rows
    assert [row["level"] for row in rows] == list(range(len(rows)))
    assert [row["records"] for row in rows][:2] == [3, 1] and rows[-1]["lasting"]
    assert len(rows[0]["points"]) == 61 and rows[0]["points"][0] == {"day": 0, "kept": 1.0}
    assert [row["points"][-1]["kept"] for row in rows] == sorted(row["points"][-1]["kept"] for row in rows)


def test_audit_finds_junk_and_changes_nothing(first: Path) -> None:
    before = run("memory", "export", "--data", first).out.splitlines()[1:]
    told = run("memory", "audit", "--data", first).out
    assert "junk: 1" in told and "Is there a fox? (a question)" in told and "1 archived" in told
    (row,) = run("memory", "audit", "--data", first, "--json").rows
    assert row["junk"] == [{"id": "note00003", "why": "a question"}]
    assert run("memory", "export", "--data", first).out.splitlines()[1:] == before


def test_purge_asks_and_deletes_archived_records(kept: Path) -> None:
    assert "add --yes" in mistaken(run("memory", "purge", "--data", kept))
    few = run("memory", "purge", "--data", kept, "--older", "20", "--yes")
    assert few.out == "no record was archived more than 20 days ago\n"
    with terminal("memory", "purge", "--data", kept) as screen:
        screen.until("Delete 1 archived record of you permanently? [y/N]: ")
        screen.type("n\r")
        screen.until("nothing was deleted")
        assert screen.ended() == 0
    assert run("memory", "purge", "--data", kept, "--yes", "--json").rows == [{"purged": 1}]
    assert run("memory", "purge", "--data", kept, "--yes").out == "nothing is archived\n"
    assert "bicycle" not in run("memory", "export", "--data", kept).out


def test_reembed_computes_only_missing_vectors(kept: Path, door: FakeEndpoint) -> None:
    name = f"{door.url}#tiny"
    assert run("memory", "reembed", "--data", kept, "--embedder", name, "--json").rows == [
        {"embedder": name, "embedded": 5}
    ]
    assert "all records have a vector" in run("memory", "reembed", "--data", kept, "--embedder", name).out
    (row,) = run("memory", "audit", "--data", kept, "--embedder", "wordllama", "--json").rows
    assert row["foreign"] == 5
    (row,) = run("memory", "audit", "--data", kept, "--json").rows
    assert row["foreign"] == 0, "by the embedder of the memory"


def test_evidence_is_a_tree_down_to_observations(first: Path) -> None:
    told = run("memory", "evidence", "note00001", "--data", first).out
    assert "fox near the house" in told and "── " in told and "gone00001 does not exist any more" in told
    (row,) = run("memory", "evidence", "note00001", "--data", first, "--json").rows
    assert [each["id"] for each in row["drawn_from"]] == ["seen00001"] and row["missing"] == ["gone00001"]
    assert "no memory with the id 'note99999'" in mistaken(run("memory", "evidence", "note99999", "--data", first))
