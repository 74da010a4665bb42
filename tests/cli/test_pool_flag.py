"""`--pool NAME` of chat, solve and live: a pool of which the user is a member, or a clear error."""

from __future__ import annotations

from pathlib import Path

import pytest
from running import mistaken, run

COMMANDS = (("chat",), ("solve", "2 + 2"), ("live", "--goal", "Keep the lighthouse."))


@pytest.fixture
def where(folder: Path) -> tuple[str | Path, ...]:
    """A pool of olga's that ann is a member of, with a pair and no rubric."""
    olga = ("--data", folder, "--user", "olga")
    assert run("pool", "create", "verse", "--member", "ann", *olga).code == 0
    assert run("pool", "add", "verse", "--query", "A couplet on tea", "--answer", "Tea in a cup.", *olga).code == 0
    return "--data", folder


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_an_unknown_pool_and_a_non_member_are_refused(where: tuple[str, ...], command: tuple[str, ...]) -> None:
    unknown = run(*command, "--pool", "prose", "--user", "ann", *where, said="hello\n")
    assert unknown.code == 2 and "there is no pool 'prose'" in unknown.err
    stranger = run(*command, "--pool", "verse", "--user", "ben", *where, said="hello\n")
    assert stranger.code == 2 and "'ben' is not a member of the pool 'verse'" in stranger.err


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_member_can_use_a_pool_in_chat_solve_and_live(where: tuple[str, ...], command: tuple[str, ...]) -> None:
    done = run(*command, "--pool", "verse", "--user", "ann", *where, said="hello\n")
    assert done.code == 0, done.err


def test_a_life_offers_to_a_pool_that_can_grade(where: tuple[str, ...]) -> None:
    assert "needs a pool" in mistaken(run("live", "--goal", "x", "--offer", *where))
    offer = run("live", "--goal", "x", "--offer", "--pool", "verse", "--user", "ann", *where)
    assert "no frozen rubric" in mistaken(offer)
