"""One command records a demo anew: it says to a new mind what the present recording was told."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_endpoint import Asked, FakeEndpoint, Says

from mindstream.log.events import BeliefChanged, Heard, Said, Unknown
from mindstream.service import demos
from mindstream.service.demos import load_demo

RECORDS = Path(__file__).parents[2] / "benchmarks" / "record_demo.py"


@pytest.fixture
def door() -> Iterator[FakeEndpoint]:
    with FakeEndpoint() as opened:
        yield opened


def answer(asked: Asked) -> Says:
    """A mind that answers everything briefly, in the form that is asked for."""
    words = json.dumps(asked.body)
    if "predicate" in words:
        return Says(json.dumps({"facts": []}))
    if "intermediate" in words or "follow_up" in words:
        return Says(json.dumps({"thought": "so", "patch": {"goals": ["to sleep"]}}))
    if "response_format" in asked.body:
        return Says(json.dumps({"reason": "so", "phase": "understanding"}))
    return Says("I hear you.")


def test_a_talk_is_recorded_by_one_command(door: FakeEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    door.otherwise = answer
    said = tmp_path / "said.txt"
    said.write_text("I lie awake.\nSince the spring.\n", "utf-8")
    model = ("--model", f"{door.url}#any", "--who", "A double", "--said", said, "--into", tmp_path / "coach.jsonl")
    command = [sys.executable, str(RECORDS), "coach", *map(str, model)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    monkeypatch.setattr(demos, "FOLDER", tmp_path)
    demo = load_demo("coach")
    events = [row.event for row in demo.rows]
    assert demo.head.who == "A double" and demo.head.timed and demo.head.source == "Christakopoulou 2024"
    assert [event.text for event in events if isinstance(event, Heard)] == ["I lie awake.", "Since the spring."]
    assert [event.model for event in events if isinstance(event, Said)] == ["A double"] * 2
    assert any(isinstance(event, BeliefChanged) for event in events)
    assert not any(isinstance(event, Unknown) for event in events) and "127.0.0.1" not in done.stdout.splitlines()[-1]
    assert "127.0.0.1" not in (tmp_path / "coach.jsonl").read_text("utf-8")
