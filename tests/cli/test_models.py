from __future__ import annotations

import json
import subprocess
from pathlib import Path

from fake_endpoint import Fails, FakeEndpoint, Says, Stalls
from running import COMMAND, PATIENCE_S, run

UTTERANCE = "The noise keeps me awake.\n"


def talks(door: FakeEndpoint, name: str = "one") -> list[str]:
    """The flags of a conversation in which rules do everything except talk."""
    return ["--model", "rules", "--role", f"talker={door.url}#{name}"]


def test_role_flags_can_be_repeated_or_combined(folder: Path, door: FakeEndpoint) -> None:
    door.otherwise = Says("Hello from the talker.")
    table = (f"talker={door.url}#one", "reasoner=rules")
    for flags in (("--role", *table), [word for each in table for word in ("--role", each)]):
        done = run("chat", "--data", folder, "--json", *flags, said=UTTERANCE)
        assert done.events("said")[0]["text"] == "Hello from the talker."
        calls = done.events("model_called")
        assert sorted(row["prompt"] for row in calls) == ["talk", "think"]
        assert {row["role"]: row["model"] for row in calls} == {
            "talker": f"{door.url}#one", "reasoner": "rules",
        }  # fmt: skip


def test_a_role_without_a_model_is_named_before_any_message_is_read(folder: Path) -> None:
    done = run("chat", "--data", folder, "--role", "talker=http://127.0.0.1:9/v1#m", said=UTTERANCE)
    assert (done.code, done.out) == (2, "") and "no model is configured for the role 'reasoner'" in done.err
    assert "--role reasoner=MODEL" in done.err and " = " not in done.err, "only the typed form"


def test_a_conversation_needs_one_configured_responder(folder: Path, door: FakeEndpoint) -> None:
    door.otherwise = Fails(401)
    flags = ["--data", str(folder), "--json", *talks(door)]
    done = run("chat", *flags, said=UTTERANCE * 2)
    assert done.code == 2 and [row["model"] for row in done.events("said")] == ["unavailable"] * 2
    assert len(done.events("heard")) == 2, "the conversation is stored"
    door.otherwise = Says("Hello.")
    assert run("chat", *flags, said=UTTERANCE).code == 0


def test_the_timeout_of_a_silent_model_can_be_set(folder: Path, door: FakeEndpoint) -> None:
    door.otherwise = Stalls()
    done = run("chat", "--data", folder, "--json", "--model", f"{door.url}#one", "--patience", ".2", said=UTTERANCE)
    assert "sent nothing for 0.2 s" in str(done.events("error")[0]["text"])


def test_with_no_wait_lines_are_accepted_during_an_answer(folder: Path, door: FakeEndpoint) -> None:
    door.will(Says("Wait for it", step=True))
    process = subprocess.Popen(
        [*COMMAND, "chat", "--data", folder, "--json", "--no-wait", *talks(door, "slow")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin and process.stdout
    process.stdin.write(UTTERANCE.encode() * 5)
    process.stdin.close()
    heard = 0
    while heard < 5:
        event = json.loads(process.stdout.readline())["event"]
        assert event != "said"
        heard += event == "heard"
    for _ in range(3):
        door.go()
    rows = [json.loads(line) for line in process.stdout]
    process.stdout.close()
    assert process.wait(PATIENCE_S) == 0
    assert next(row["text"] for row in rows if row["event"] == "said") == "Wait for it"
    assert sum(row["event"] == "said" for row in rows) == 5


def test_a_recorded_conversation_plays_back(folder: Path, tmp_path: Path, door: FakeEndpoint) -> None:
    door.otherwise = Says("Words that no rule would find.")
    calls = tmp_path / "calls.jsonl"
    run("chat", "--data", folder, *talks(door), "--record", calls, said=UTTERANCE)
    done = run("chat", "--data", tmp_path / "new", "--json", "--model", f"playback:{calls}", said=UTTERANCE)
    assert done.events("said")[0]["text"] == "Words that no rule would find."


def test_a_model_failure_is_explained_in_full_once(folder: Path, door: FakeEndpoint) -> None:
    door.otherwise = Fails(401, "Incorrect API key provided")
    done = run("chat", "--data", folder, "--model", f"{door.url}#one", said=UTTERANCE * 3)
    assert done.code == 2
    assert done.out.count("refuses the key") == 1 and "the same error again" in done.out
    assert done.out.count("\ncoach: ") == 3


def test_after_a_spent_budget_only_a_fallback_answers(folder: Path, door: FakeEndpoint) -> None:
    door.otherwise = Says("Many words.", usage=(7_000, 2_000))
    for fallback, answers in (((), "unavailable"), (("--fallback", "rules"), "rules")):
        model = ("--max-tokens", "9000", *talks(door), *fallback)
        done = run("chat", "--data", folder, "--json", *model, said=UTTERANCE * 2)
        assert done.code == 0
        assert [row["model"] for row in done.events("said")] == [f"{door.url}#one", answers]
        assert fallback or "the limit of 9000 tokens is reached" in done.events("error")[0]["text"]


def test_custom_prompts_are_sent_to_the_model(folder: Path, tmp_path: Path, door: FakeEndpoint) -> None:
    (tmp_path / "talk.md").write_text("# user\nSay it in rhyme: {{ utterance }}")
    run("chat", "--data", folder, *talks(door), "--prompts", tmp_path, said=UTTERANCE)
    (asked,) = door.chats
    assert asked.body["messages"][-1]["content"] == "Say it in rhyme: The noise keeps me awake."
