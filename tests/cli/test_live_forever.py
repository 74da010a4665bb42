"""`mindstream live --forever` shows its proposals and its reasons to rest; its day has a limit in any case."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fake_endpoint import Asked, Behaviour, FakeEndpoint, Says
from living_door import GOAL, finish, lives
from running import mistaken, run

from mindstream.errors import InputError
from mindstream.service.living import read_beat

LOOKS = "nothing in your ledger can be done now"


def test_an_endless_life_proposes_work_and_prints_how_to_continue(door: FakeEndpoint, folder: Path) -> None:
    acts = lives({1: finish(), 2: finish(2)})

    def behave(asked: Asked) -> Behaviour:
        if LOOKS in asked.body["messages"][0]["content"]:
            return Says(json.dumps({"because": "The figures are old.", "tasks": ["Find the share of this year"]}))
        return acts(asked)

    door.otherwise = behave
    flags = ["--model", f"{door.url}#m", "--data", str(folder)]
    done = run("live", "--goal", GOAL, "--forever", "--beat", "2h", "--turns", "2", *flags)
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    shown = [lines.index(line) for line in (
        "· proposes: Find the share of this year: The figures are old.", "  · task 2: Find the share of this year",
        "  ✓ task 2 is done: Find the share of this year → 17.5 %",
    )]  # fmt: skip
    assert shown == sorted(shown)
    assert any("--forever" in line and "--beat 2h" in line for line in lines), (
        "the printed command that continues the life"
    )
    status = run("life", "status", "--data", folder, "--json").rows[0]
    assert 0 < status["spent"]["tokens_today"] == status["spent"]["tokens"]


def test_the_heartbeat_flag_needs_forever_and_at_least_a_minute(folder: Path) -> None:
    mistaken(run("live", "--goal", GOAL, "--beat", "2h", "--data", folder))
    mistaken(run("live", "--goal", GOAL, "--forever", "--beat", "2 s", "--data", folder))
    mistaken(run("live", "--goal", GOAL, "--dream-tools", "R,luck", "--data", folder))


@pytest.mark.parametrize("words", ["18:00", "monday 8:00", "tomorrow", "in", "", "1h at 8:00", "30 s"])
def test_a_heartbeat_is_a_time_span_and_no_time(words: str) -> None:
    with pytest.raises(InputError, match="is not a time span of at least a minute"):
        read_beat(words)


@pytest.mark.parametrize(
    ("words", "seconds"), [("30 min", 1_800), (" 1h ", 3_600), ("1 day and 2h", 93_600), ("in 2m", 120)]
)
def test_the_interval_of_heartbeats(words: str, seconds: float) -> None:
    assert read_beat(words) == seconds
