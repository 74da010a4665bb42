"""A server killed in the middle of an answer has stored the message, and processes it once."""

from __future__ import annotations

import signal
from pathlib import Path

import httpx
import pytest
from chat_talks import Talk, talker
from fake_endpoint import KEY, FakeEndpoint, Says
from openai import OpenAI
from served import ServerProcess


def test_an_answer_survives_sigkill_during_the_stream(
    folder: Path, door: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    model = ("--model", f"{door.url}#any")
    body = {"model": "companion", "user": "ann", "messages": [{"role": "user", "content": "Count!"}], "stream": True}
    door.otherwise = Says("One two three four five.", step=True)
    door.go()
    with (
        ServerProcess(folder, *model) as server,
        pytest.raises(httpx.HTTPError),
        httpx.stream("POST", f"{server.url}/v1/chat/completions", json=body, timeout=100) as answer,
    ):
        for line in answer.iter_lines():
            if "One" in line:
                server.end(signal.SIGKILL)
    for _ in range(10):
        door.go()
    door.otherwise = talker("One, two.")
    with ServerProcess(folder, *model) as server:
        talk = Talk(OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0), "companion", user="ann")
        assert talk.say("Count!") == "One, two."
        rows = httpx.get(f"{server.url}/api/v1/users/ann/log", params={"kinds": "heard,said", "limit": 50}).json()[
            "rows"
        ]
        assert [(row["event"], row["text"]) for row in rows] == [("heard", "Count!"), ("said", "One, two.")]
        assert server.end() == 0
