"""`chat --offer`, `solve --offer`, `pool share` and `pool helped`: exemplars offered to others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fake_endpoint import FakeEndpoint, Says
from running import mistaken, run

ASKED = "Give me a couplet on green tea"
ANSWER = "The kettle sings, the leaves uncurl, and morning is a quiet pearl."
ID = re.compile(r"verse admitted (\w+); it is private")


@pytest.fixture
def where(folder: Path, tmp_path: Path) -> tuple[str | Path, ...]:
    """A pool of olga's with a rubric and a pair; ann and ben are members."""
    olga = ("--data", folder, "--user", "olga")
    run("pool", "create", "verse", "--member", "ann", "--member", "ben", "--embedder", "wordllama", *olga)
    run("pool", "rubric", "verse", "--draft", tmp_path / "r.toml", *olga)
    run("pool", "rubric", "verse", "--freeze", tmp_path / "r.toml", *olga)
    pair = ("--query", "A couplet on coffee", "--answer", "Coffee is black, and so is the track.")
    assert run("pool", "add", "verse", *pair, *olga).code == 0
    return "--data", folder


def shown(where: tuple[str | Path, ...], user: str) -> str:
    return run("pool", "recall", "verse", ASKED, "--user", user, *where).out


def test_an_answer_is_offered_with_permission_and_private_until_shared(
    where: tuple[str | Path, ...], door: FakeEndpoint
) -> None:
    door.otherwise = Says(ANSWER)
    talk = ("chat", "--role", "default=rules", f"talker={door.url}#any", "--user", "ann", *where)
    assert "admitted" not in run(*talk, "--pool", "verse", said=f"{ASKED}\n").err
    done = run(*talk, "--pool", "verse", "--offer", "verse", said=f"{ASKED}\n")
    (id_,) = ID.findall(done.err)
    assert ANSWER in shown(where, "ann") and ANSWER not in shown(where, "ben") and ANSWER not in shown(where, "olga")
    assert "no exemplar that you may read" in mistaken(run("pool", "why", "verse", id_, "--user", "olga", *where))
    told = run("pool", "why", "verse", id_, "--json", "--user", "ann", *where).rows[0]
    assert len(told["examples"]) == 1, "the preceding message is part of the pair"
    assert "that was offered by" in mistaken(run("pool", "share", "verse", id_, "--user", "ben", *where))
    assert run("pool", "share", "verse", id_, "--user", "ann", *where).code == 0
    assert ANSWER in shown(where, "ben")


def test_exemplars_of_one_pool_are_not_offered_to_another(where: tuple[str | Path, ...]) -> None:
    for command in (("chat",), ("solve", "2 + 2")):
        refused = run(*command, "--pool", "verse", "--offer", "plans", "--user", "ann", *where, said="hello\n")
        assert "can be offered only to 'verse'" in mistaken(refused)


def test_a_successful_plan_is_shown_and_offered(where: tuple[str | Path, ...]) -> None:
    done = run("solve", "17.5% of 2480 + 12", "--offer", "verse", "--user", "ann", *where)
    assert "for the pool verse: 17.5% of 2480 + 12" in done.err and "alculator" in done.err
    assert ID.search(done.err) or "verse rejected" in done.err
    quoted = run("solve", "Who wrote it?", "--offer", "verse", "--user", "ann", *where)
    assert "no plan is offered: " in quoted.err


def test_feedback_is_counted_and_refused_from_non_members(where: tuple[str | Path, ...]) -> None:
    (row,) = run("pool", "recall", "verse", ASKED, "--json", "--user", "ann", *where).rows
    run("pool", "helped", "verse", row["id"], "yes", "--user", "ann", *where)
    told = run("pool", "helped", "verse", row["id"], "no", "--query", ASKED, "--user", "ben", *where)
    assert told.out == f"{row['id']}: 1 of 2 answers rated good\n"
    stranger = run("pool", "helped", "verse", row["id"], "yes", "--user", "eve", *where)
    refused = mistaken(stranger)
    assert "'eve' is not a member" in refused and f"--add eve --data {where[1]} --user olga`" in refused
    assert "does not serve the exemplar" in mistaken(
        run("pool", "helped", "verse", "nothing", "yes", "--user", "ann", *where)
    )
