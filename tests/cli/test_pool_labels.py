"""A model labels which exemplars make an answer likely (Gao 2024, eq. 1), for `mindstream pool train`."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fake_endpoint import Asked, Behaviour, Fails, FakeEndpoint, Says, Sends
from running import Done, run
from test_pool_learning import write_pairs

from mindstream.sharing.learning import LEAST
from mindstream.sharing.pool import Pool

SIZE = 2 * LEAST
ASKED = re.compile(r"Write (.+?) thing (\d+)")
NO_COMPLETIONS = Fails(404, "This is a chat model")


def named(asked: Asked) -> str:
    """Return the name of the prompt of a request, from its reply schema."""
    return str(asked.body.get("response_format", {}).get("json_schema", {}).get("name", ""))


def states(alike: Callable[[tuple[str, str], tuple[str, str]], bool]) -> Callable[[Asked], Behaviour]:
    """Answer `does_it_help` with 90 for similar examples and 10 for others, as a chat-only endpoint."""

    def answer(asked: Asked) -> Behaviour:
        if named(asked) != "does_it_help":
            return NO_COMPLETIONS
        question, *examples = ASKED.findall(asked.body["messages"][-1]["content"])
        return Says(json.dumps({"likely": [90 if alike(question, each) else 10 for each in examples]}))

    return answer


def form(one: tuple[str, str], other: tuple[str, str]) -> bool:
    return one[0] == other[0]


def parity(one: tuple[str, str], other: tuple[str, str]) -> bool:
    return int(one[1]) % 2 == int(other[1]) % 2


def filled(folder: Path, tmp_path: Path) -> tuple[str | Path, ...]:
    where = ("--data", folder, "--user", "olga")
    run("pool", "create", "verse", "--open", "--embedder", "wordllama", *where)
    assert run("pool", "import", "verse", write_pairs(tmp_path / "own.jsonl", SIZE), *where).code == 0
    return where


def train(door: FakeEndpoint, where: tuple[str | Path, ...], *more: str) -> Done:
    return run("pool", "train", "verse", "--role", f"labeller={door.url}#any", *more, *where)


def weights(folder: Path) -> Any:
    async def read() -> bytes:
        async with Pool.open(folder, "verse") as pool:
            kept = await pool.memory.store.checkpoint(pool.memory.key, "retriever")
        assert kept is not None
        return kept.data

    return json.loads(asyncio.run(read()))["matrix"]


def test_stated_labels_are_used_for_training_and_each_labeller_gives_a_version(
    door: FakeEndpoint, tmp_path: Path
) -> None:
    made = []
    for name, alike in (("one", form), ("two", parity)):
        where, door.otherwise = filled(tmp_path / name, tmp_path), states(alike)
        done = train(door, where, "--json")
        row = done.rows[0]
        assert (row["basis"], row["labeller"], row["number"]) == ("stated", f"{door.url}#any", 2)
        assert f"labels {SIZE} exemplars by its own estimates: about {SIZE} model calls" in done.err
        made.append(weights(tmp_path / name) if row["held"] else None)
    assert made[0] is not None and made[0] != made[1]
    again = train(door, where)
    assert "labels 0 exemplars" in again.err and "mixed" not in again.out
    assert "was taught by" not in again.out
    told = run("pool", "train", "verse", *where)
    assert "was taught by stated numbers of" in told.out and "this one by text similarity" in told.out
    assert "no model is configured: rules label" in told.err


def test_a_failing_labeller_is_an_error_and_its_labels_are_kept(door: FakeEndpoint, tmp_path: Path) -> None:
    where = filled(tmp_path / "data", tmp_path)
    labelled = 0

    def breaks_off(asked: Asked) -> Behaviour:
        nonlocal labelled
        labelled += named(asked) == "does_it_help"
        return states(form)(asked) if labelled <= 20 else Fails(400, "no more of that")

    door.otherwise = breaks_off
    failed = train(door, where)
    assert failed.code == 2 and "no more of that" in failed.err and failed.out == ""
    assert [each["number"] for each in run("pool", "curve", "verse", "--json", *where).rows[2]["points"]] == [1]
    door.otherwise = states(form)
    done = train(door, where)
    left = int(re.findall(r"labels (\d+) exemplars", done.err)[0])
    assert SIZE - 20 <= left <= SIZE - 16 and "version 2, after version 1" in done.out


def test_labels_without_numbers_train_nothing(door: FakeEndpoint, tmp_path: Path) -> None:
    where = filled(tmp_path / "data", tmp_path)
    door.otherwise = lambda asked: Says("They all help.") if named(asked) else NO_COMPLETIONS
    failed = train(door, where)
    assert failed.code == 2 and "does_it_help" in failed.err
    assert len(run("pool", "curve", "verse", "--json", *where).rows[2]["points"]) == 1


def echoed(asked: Asked) -> Behaviour:
    """Answer like vLLM: the prompt is returned with the log-probabilities of its tokens, one per word."""
    if not asked.path.endswith("/v1/completions"):
        return Fails(500, "only completions")
    text = asked.body["prompt"]
    tokens = re.findall(r"\s*\S+", text)
    question = ASKED.findall(text)
    likely = -0.1 if len(question) > 1 and form(question[0], question[1]) else -2.0
    told = {"tokens": [*tokens, " so"], "token_logprobs": [None, *[likely] * (len(tokens) - 1), -9.0]}
    return Sends(json.dumps({"choices": [{"text": text, "logprobs": told}]}))


def test_log_probabilities_are_used_for_training_within_the_call_limit(door: FakeEndpoint, tmp_path: Path) -> None:
    where = filled(tmp_path / "data", tmp_path)
    door.otherwise = echoed
    limited = train(door, where, "--max-calls", "100")
    assert limited.code == 2 and "the limit of 100 calls is reached" in limited.err
    row = train(door, where, "--json").rows[0]
    assert (row["basis"], row["held"]) == ("logprobs", True)
    assert SIZE * 16 + 2 <= len(door.asked) < SIZE * 17 + 2, "only the pairs of the interrupted batch"
