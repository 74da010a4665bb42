"""Spending limits have the same flags in every command, and bind or say why they cannot."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_endpoint import FakeEndpoint, Says
from running import Done, run
from test_town import HAMLET

COMMANDS = {
    "chat": ("chat", "--no-wait"),
    "solve": ("solve", "How much is it?"),
    "live": ("live", "--goal", "Find out how much it is"),
    "town run": ("town", "run", "--hours", "9", "--yes"),
}


def spends(name: str, door: FakeEndpoint, folder: Path, *flags: str) -> Done:
    """Run a command with a model of unknown price."""
    door.otherwise = Says("Go on, I listen.", usage=(1_000, 20))
    if name == "town run":
        file = folder.with_name("hamlet.toml")
        file.write_text(HAMLET)
        run("town", "new", file, "--data", folder)
    return run(*COMMANDS[name], "--model", f"{door.url}#m", "--data", folder, *flags, said="Hello.\nI sleep badly.\n")


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("allowed", [0, 1])
def test_every_command_obeys_the_call_limit(name: str, allowed: int, door: FakeEndpoint, folder: Path) -> None:
    done = spends(name, door, folder, "--max-calls", str(allowed))
    assert len(door.chats) <= allowed, done
    assert f"the limit of {allowed} calls is reached (spent: {allowed})" in done.out + done.err or allowed, done


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_obeys_the_token_limit(name: str, door: FakeEndpoint, folder: Path) -> None:
    done = spends(name, door, folder, "--max-tokens", "0")
    assert not door.chats and "the limit of 0 tokens is reached (spent: 0)" in done.out + done.err, done


@pytest.mark.parametrize("name", COMMANDS)
def test_a_money_limit_without_a_known_price_is_reported(name: str, door: FakeEndpoint, folder: Path) -> None:
    why = f"a limit in US dollars cannot be enforced for {door.url}#m, because no price is known; use a limit in tokens"
    done = spends(name, door, folder, "--max-usd", "1", "--max-calls", "1")
    assert why in done.out + done.err


def test_a_talker_with_a_spent_limit_reports_it(door: FakeEndpoint, folder: Path) -> None:
    done = spends("chat", door, folder, "--max-calls", "0")
    assert "is spent, so I can't answer" in done.out and "don't reach" not in done.out
