"""`mindstream pool`: a pool from its rubric to its export, by commands alone."""

from __future__ import annotations

import json
from pathlib import Path

from running import mistaken, run


def test_a_pool_can_be_used_from_draft_rubric_to_export(folder: Path, tmp_path: Path) -> None:
    where = ("--data", folder, "--user", "olga")
    rubric, pairs = tmp_path / "rubric.toml", tmp_path / "pairs.jsonl"
    made = run("pool", "create", "verse", "--open", "--domain", "couplets", *where)
    assert made.code == 0 and made.out.index("pool lesson verse") < made.out.index("pool add verse")
    assert "has no frozen rubric yet" in mistaken(run("pool", "rubric", "verse", *where))
    assert run("pool", "rubric", "verse", "--draft", rubric, *where).code == 0
    assert "version 1" in run("pool", "rubric", "verse", "--freeze", rubric, *where).out
    assert run("pool", "add", "verse", "--query", "A couplet on tea", "--answer", "Tea in the cup.", *where).code == 0
    told = run(
        "pool", "add", "verse", "--query", "A couplet on rain", "--answer", "Rain on the pane.", "--writer", "ann",
        "--json", *where,
    )  # fmt: skip
    assert told.rows[0]["verdict"] == "admitted" and told.rows[0]["model"] == "rules"
    found = run("pool", "recall", "verse", "a couplet on rain", "-k", "1", *where).out
    assert found == "Question: A couplet on rain\nAnswer: Rain on the pane.\n\nQuestion: a couplet on rain\nAnswer:\n"
    explained = run("pool", "why", "verse", told.rows[0]["id"][:6], *where).out
    for told_of in ("ann wrote it", "no model has read the content", "served to olga"):
        assert told_of in explained
    assert run("pool", "export", "verse", pairs, *where).code == 0
    assert len([json.loads(line) for line in pairs.read_text("utf-8").splitlines()]) == 2
    assert run("pool", "create", "again", *where).code == 0
    assert run("pool", "import", "again", pairs, *where).code == 0
    assert "2 pairs were there already" in run("pool", "import", "again", pairs, *where).out
    assert run("pool", "grant", "verse", "--private", "--data", folder, "--user", "ann").code == 0
    assert "rain" not in run("pool", "export", "verse", *where).out
    assert run("pool", "withdraw", "verse", "--writer", "ann", *where).code == 0


def test_a_rejected_pair_gives_exit_code_1(folder: Path, tmp_path: Path) -> None:
    where = ("--data", folder, "--user", "olga")
    run("pool", "create", "verse", "--open", *where)
    run("pool", "rubric", "verse", "--draft", tmp_path / "r.toml", *where)
    run("pool", "rubric", "verse", "--freeze", tmp_path / "r.toml", *where)
    done = run("pool", "add", "verse", "--query", "Tea?", "--answer", "tea", "--writer", "ann", *where)
    assert done.code == 1 and "only repeats the query" in done.out


def test_adding_a_pair_reports_whether_it_is_served(folder: Path, tmp_path: Path) -> None:
    where = ("--data", folder, "--user", "olga")
    run("pool", "create", "verse", "--open", *where)
    run("pool", "rubric", "verse", "--draft", tmp_path / "r.toml", *where)
    run("pool", "rubric", "verse", "--freeze", tmp_path / "r.toml", *where)
    soup = ("pool", "add", "verse", "--query", "A soup?", "--answer", "Boil lentils in stock.", *where)
    assert "admitted, served (100 points by a person): A soup?" in run(*soup).out
    tea = ("pool", "add", "verse", "--query", "A tea?", "--answer", "Pour hot water on it.", "--writer", "ann", *where)
    assert "admitted, served (70 points by rules): A tea?" in run(*tea).out
    run("pool", "grant", "verse", "--private", "--data", folder, "--user", "ann")
    assert "admitted, not served: it is an exemplar of 'ann', which 'olga' may not read" in run(*tea).out
    assert run(*tea, "--json").rows[0]["unserved"] == ["it is an exemplar of 'ann', which 'olga' may not read"]


def test_the_owner_adds_and_removes_members_and_sees_them(folder: Path) -> None:
    where = ("--data", folder, "--user", "olga")
    run("pool", "create", "verse", "--member", "ann", "--member", "eve", *where)
    changed = run("pool", "members", "verse", "--add", "bob", "--remove", "eve", *where)
    assert changed.out == "olga (owner)\nann\nbob\n"
    assert run("pool", "members", "verse", "--json", "--data", folder, "--user", "bob").rows[0]["members"] == [
        "ann",
        "bob",
    ]
    assert "not a member" in mistaken(run("pool", "members", "verse", "--data", folder, "--user", "eve"))
    assert "'eve' is not in the list of members" in mistaken(run("pool", "members", "verse", "--remove", "eve", *where))
    run("pool", "create", "open", "--open", *where)
    assert "all agents are members by '*'" in mistaken(run("pool", "members", "open", "--remove", "eve", *where))
    assert run("pool", "members", "open", "--remove", "*", "--add", "ann", *where).out == "olga (owner)\nann\n"


def test_invalid_arguments_are_refused_in_one_sentence(folder: Path, tmp_path: Path) -> None:
    where = ("--data", folder)
    assert "pool create nix" in mistaken(run("pool", "recall", "nix", "x", *where))
    run("pool", "create", "verse", "--open", *where)
    bad = tmp_path / "bad.toml"
    bad.write_text('domain = "x"\nthreshold = 10\ncriteria = []\n')
    assert "criteria" in mistaken(run("pool", "rubric", "verse", "--freeze", bad, *where))
    lines = tmp_path / "lines.jsonl"
    lines.write_text('{"messages": 3}\n')
    assert "lines.jsonl:1: expected a pair" in mistaken(run("pool", "import", "verse", lines, *where))
