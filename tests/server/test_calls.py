"""Every model call: owner, log row, cost; where stored, the full text."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from fake_endpoint import KEY, Asked, Fails, FakeEndpoint, Says
from hamlet import PROSE
from mindstream_town.opened import begin, find_setting, read_profile
from served import Served

from mindstream.service.operations.offered import Offered
from mindstream.settings import Settings

USER = "/api/v1/users/ann"


@pytest.fixture
def served(folder: Path, door: FakeEndpoint, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A server that stores the full text of model calls."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    settings = Settings(model=f"{door.url}#any", keep_prompts=True)
    with Served(folder, settings=settings) as running:
        yield running


def say(client: httpx.Client, text: str) -> int:
    """Send a message, wait for the answer, and return the row of the message."""
    with client.stream("POST", f"{USER}/send", json={"text": text}, headers={"Accept": "text/event-stream"}) as answer:
        rows = [json.loads(line[5:]) for line in answer.iter_lines() if line.startswith("data:")]
    return next(int(row["seq"]) for row in rows if row["event"] == "heard")


def calls(client: httpx.Client, **asked: Any) -> list[dict[str, Any]]:
    """Return all calls, page by page."""
    found: list[dict[str, Any]] = []
    cursor = ""
    while True:
        page = client.get(f"{USER}/calls", params={"limit": 2, "cursor": cursor, **asked}).json()
        found += page["calls"]
        if not (cursor := page["next"]):
            return found


def called(client: httpx.Client, role: str, **asked: Any) -> dict[str, Any]:
    """Wait until there is a call of a role, and return the newest."""
    for _ in range(4_000):
        if found := calls(client, role=role, **asked):
            return found[0]
        asyncio.run(asyncio.sleep(0.05))
    raise AssertionError(calls(client))


def test_a_call_and_its_utterance_are_found_from_each_other(client: httpx.Client, door: FakeEndpoint) -> None:
    door.otherwise = Says("Good to hear from you, ann.")
    first, second = say(client, "The owl sat on the roof."), say(client, "And it hooted.")
    one = called(client, "talker", about=second)
    assert one["about"] == [second] and one["kept"] and one["model"].endswith("any") and one["seconds"] >= 0
    whole = client.get(f"{USER}/calls/{one['seq']}").json()
    assert whole["answered"] == "Good to hear from you, ann."
    assert "And it hooted." in "".join(each["text"] for each in whole["messages"])
    assert [row["text"] for row in whole["about"]] == ["And it hooted."]
    assert called(client, "talker", about=first)["seq"] < one["seq"]
    trace = client.get(f"{USER}/traces/{second}").json()["rows"]
    back = next(row for row in trace if row["seq"] == one["seq"])
    assert back["event"] == "model_called" and "asked" not in back, "texts are returned only for a single call"
    thinking = called(client, "reasoner")
    assert set(thinking["about"]) <= {first, second} and thinking["about"]


def test_calls_are_listed_newest_first_in_pages_and_filtered(client: httpx.Client, door: FakeEndpoint) -> None:
    door.otherwise = Says("Yes.")
    for number in range(4):
        say(client, f"number {number}")
    called(client, "reasoner")
    found = calls(client, role="talker")
    assert [each["seq"] for each in found] == sorted((each["seq"] for each in found), reverse=True) and len(found) >= 4
    assert {each["prompt"] for each in calls(client, prompt="talk")} == {"talk"}
    assert calls(client, role="nobody") == [] and calls(client, since=found[0]["at"] + 1e6) == []
    assert len(calls(client, role="talker", until=found[2]["at"])) < len(found)
    assert client.get("/api/v1/users/bob/calls").json()["calls"] == []
    assert client.get(f"/api/v1/users/bob/calls/{found[0]['seq']}").status_code == 404
    assert client.get(f"{USER}/calls/1").status_code == 404


def test_failed_calls_are_found(client: httpx.Client, door: FakeEndpoint) -> None:
    door.otherwise = Fails(400)
    say(client, "Hello?")
    assert called(client, "talker", failed=True)["error"]


def test_forgetting_also_removes_the_words_from_stored_prompts(client: httpx.Client, door: FakeEndpoint) -> None:
    door.otherwise = Says("I see.")
    seq = say(client, "The treasure lies beneath the crooked pear tree.")
    one = called(client, "talker", about=seq)
    record = next(each for each in client.get(f"{USER}/memories").json()["memories"] if "pear" in each["text"])
    client.delete(f"{USER}/memories/{record['id']}")
    assert "pear" not in client.get(f"{USER}/calls/{one['seq']}").text


def test_cost_is_reported_by_day_and_role_with_its_limits(
    served: Served, client: httpx.Client, door: FakeEndpoint
) -> None:
    door.otherwise = Says("Fine.")
    say(client, "Hello!")
    called(client, "talker")
    bill = client.get("/api/v1/cost").json()
    ((_, roles),) = bill["days"].items()
    assert "talker" in [each["name"] for each in roles] and bill["limits"] is None
    assert sum(each["calls"] for each in roles) == bill["total"]["calls"]
    assert client.get("/api/v1/cost", headers=served.token("acme")).json()["days"] == {}


def mind(asked: Asked) -> Says:
    """Plan one activity for the day."""
    return Says(json.dumps({"items": [{"from": "00:00", "to": "24:00", "what": "resting", "place": ""}]}))


def test_calls_of_a_town_name_the_resident_and_the_time(
    tmp_path: Path, door: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    file = tmp_path / "hamlet.toml"
    file.write_text(PROSE)
    asyncio.run(begin(Settings(data=tmp_path / "hamlet"), find_setting(str(file), 1, read_profile((), ()))))
    door.otherwise = mind
    offered = Offered(towns={("local", "hamlet"): tmp_path / "hamlet"})
    settings = Settings(model=f"{door.url}#any", keep_prompts=True)
    with Served(tmp_path / "data", settings=settings, offered=offered) as served, served.client() as client:
        one = client.post("/api/v1/towns/hamlet/run", json={"steps": 5}).json()
        for _ in range(4_000):
            if client.get(f"/api/v1/operations/{one['id']}").json()["state"] != "running":
                break
            asyncio.run(asyncio.sleep(0.05))
        found = client.get("/api/v1/towns/hamlet/calls").json()["calls"]
        assert found and {each["resident"] for each in found} <= {"Ada Brook", "Ben Hale", "Cleo Marsh"}
        ada = client.get("/api/v1/towns/hamlet/calls", params={"resident": "ada", "step": 0}).json()["calls"]
        assert ada and {(each["resident"], each["step"]) for each in ada} == {("Ada Brook", 0)}
        whole = client.get(f"/api/v1/towns/hamlet/calls/{ada[0]['seq']}").json()
        assert "Ada Brook" in "".join(each["text"] for each in whole["messages"]) and whole["answered"]
        assert client.get("/api/v1/towns/hamlet/cost").json()["total"]["calls"] == len(
            client.get("/api/v1/towns/hamlet/calls", params={"limit": 200}).json()["calls"]
        )


@pytest.mark.parametrize(
    ("spent", "ask"),
    [
        ({"tokens": 100}, {"run": {"steps": 2_000}}),
        ({"tokens": 100}, {"embody/Ada%20Brook": {}, "embody/Ada%20Brook/act": {"act": "say", "text": "Hello, Ben!"}}),
        ({"usd": 0.01}, {"run": {"steps": 5}}),
    ],
)
def test_a_town_asks_no_model_for_a_token_whose_budget_is_spent(
    tmp_path: Path,
    door: FakeEndpoint,
    monkeypatch: pytest.MonkeyPatch,
    spent: dict[str, Any],
    ask: dict[str, dict[str, Any]],
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    file = tmp_path / "hamlet.toml"
    file.write_text(PROSE)
    asyncio.run(begin(Settings(data=tmp_path / "hamlet"), find_setting(str(file), 1, read_profile((), ()))))
    door.otherwise = Says("Hello.", usage=(500, 500))
    offered = Offered(towns={("acme", "hamlet"): tmp_path / "hamlet"})
    settings = Settings(model=f"{door.url}#any")
    with Served(tmp_path / "data", settings=settings, offered=offered, require_token=True) as served:
        poor = served.token("acme", **spent)
        with served.client(headers=poor) as client:
            chat = {"model": "companion", "user": "ann", "messages": [{"role": "user", "content": "Hello!"}]}
            client.post("/v1/chat/completions", json=chat)
            asyncio.run(asyncio.sleep(0.3))
            before = len(door.asked)
            for path, body in ask.items():
                answer = client.post(f"/api/v1/towns/hamlet/{path}", json=body)
                assert answer.status_code < 600
                while "run" in path:
                    done = client.get(f"/api/v1/operations/{answer.json()['id']}").json()
                    if done["state"] != "running":
                        assert done["state"] == "failed" and ("spent" in done["problem"] or "price" in done["problem"])
                        break
                    asyncio.run(asyncio.sleep(0.05))
            assert len(door.asked) == before


def test_calls_and_cost_are_shown_up_to_a_log_row(client: httpx.Client, door: FakeEndpoint) -> None:
    door.otherwise = Says("Yes.")
    for number in range(3):
        say(client, f"number {number}")
    called(client, "reasoner")
    end = max(each["seq"] for each in calls(client))
    found = calls(client, upto=end)
    assert [each["seq"] for each in found] == [each["seq"] for each in calls(client) if each["seq"] <= end]
    for at, one in enumerate(found):
        assert calls(client, upto=one["seq"]) == found[at:], "that call is the newest and paging continues below it"
        assert calls(client, upto=one["seq"] - 1)[:1] == found[at + 1 : at + 2]
    assert calls(client, upto=found[1]["seq"], role="talker") == [
        each for each in found[1:] if each["role"] == "talker"
    ]
    assert calls(client, upto=0) == [] and calls(client, upto=10**9)[-len(found) :] == found
    bill = client.get("/api/v1/cost", params={"user": "ann", "upto": found[1]["seq"]}).json()
    assert bill["total"]["calls"] == len(found) - 1
    assert client.get(f"{USER}/calls", params={"upto": -1}).status_code == 422
