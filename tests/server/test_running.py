"""The server process drains on SIGTERM, recovers open work and reports its health."""

from __future__ import annotations

import json
import signal
import threading
import time
from pathlib import Path

import httpx
from fake_endpoint import KEY, Fails, FakeEndpoint, Says, Stalls
from pytest import MonkeyPatch
from served import Served, ServerProcess

USER = "/api/v1/users/ann"
STREAM = {"Accept": "text/event-stream"}


def test_an_outage_of_the_model_is_one_line_on_standard_error(
    folder: Path, door: FakeEndpoint, monkeypatch: MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    door.otherwise = Fails(429, "slow down", {"Retry-After": "120"})
    with ServerProcess(folder, "--model", f"{door.url}#any") as server:
        asked = {"model": "companion", "messages": [{"role": "user", "content": "Where is the blue key?"}]}
        codes = [httpx.post(f"{server.url}/v1/chat/completions", json=asked, timeout=100).status_code for _ in range(2)]
        assert codes == [429, 503]
        server.end()
        assert server.process.stderr is not None
        lines = [line for line in server.process.stderr.read().splitlines() if "the model" in line]
        assert lines == [f"mindstream: the model {door.url}#any is not available: RateLimited"]


def test_on_sigterm_answers_finish_and_streams_get_an_end_event(
    folder: Path, door: FakeEndpoint, monkeypatch: MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    door.otherwise = Says("one two three four", pause_s=0.2)
    with ServerProcess(folder, "--model", f"{door.url}#any") as server:
        ended: list[str] = []

        def listen() -> None:
            with httpx.stream("GET", f"{server.url}/api/v1/events", timeout=100) as answer:
                ended.extend(line for line in answer.iter_lines() if line.startswith("event: "))

        thread = threading.Thread(target=listen)
        thread.start()
        with httpx.stream(
            "POST", f"{server.url}{USER}/send", json={"text": "Hello!"}, headers=STREAM, timeout=60
        ) as on:
            lines = on.iter_lines()
            assert next(lines) == "event: heard"
            server.process.send_signal(signal.SIGTERM)
            told = list(lines)
        assert "event: said" in told
        thread.join(60)
        assert ended[-1] == "event: end"
        assert server.process.wait(60) == 0


def test_unfinished_thoughts_are_resumed_by_the_next_server(
    folder: Path, door: FakeEndpoint, monkeypatch: MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    door.otherwise = Stalls()
    flags = ("--model", f"{door.url}#any")
    with ServerProcess(folder, *flags) as server:
        sent = httpx.post(f"{server.url}{USER}/send", json={"text": "Noise keeps me awake."}, timeout=100)
        assert sent.status_code == 202
        server.end(signal.SIGKILL)
    door.otherwise = lambda asked: Says("no" if "max_tokens" in asked.body else '{"thought": "noted", "patch": {}}')
    with ServerProcess(folder, *flags) as server, httpx.Client(base_url=server.url, timeout=100) as client:
        for _ in range(1_200):  # until its lease expires
            if client.get(f"{USER}/log", params={"kinds": "thought,set_aside"}).json()["rows"]:
                break
            time.sleep(0.1)
        else:
            raise AssertionError("nobody took it up")
        server.end()


def test_health_readiness_and_metrics_are_served(served: Served, client: httpx.Client) -> None:
    assert client.get("/healthz").json()["status"] == "ok"
    assert client.get("/readyz").status_code == 200
    client.get(f"{USER}/memories/none")
    told = client.get("/metrics")
    assert told.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert 'mindstream_requests_total{method="GET",status="404"} 1' in told.text
    served.api_app.runtime.is_ending = True
    assert client.get("/readyz").status_code == 503


def test_an_answer_is_streamed_in_the_ag_ui_format(client: httpx.Client, door: FakeEndpoint) -> None:
    door.otherwise = Says("Hello, ann.")
    accept = {"Accept": "text/event-stream; profile=ag-ui"}
    with client.stream("POST", f"{USER}/send", json={"text": "Hello!", "session": "s"}, headers=accept) as answer:
        events = [json.loads(line[6:]) for line in answer.iter_lines() if line.startswith("data: ")]
    kinds = [each["type"] for each in events]
    assert kinds[0] == "RUN_STARTED" and kinds[-1] == "RUN_FINISHED"
    assert events[0]["threadId"] == "s"
    assert kinds.index("TEXT_MESSAGE_START") < kinds.index("TEXT_MESSAGE_CONTENT") < kinds.index("TEXT_MESSAGE_END")
    said = "".join(each["delta"] for each in events if each["type"] == "TEXT_MESSAGE_CONTENT")
    assert "Hello" in said
