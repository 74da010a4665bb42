"""The recordings shown at first by the studio: the same API below /recorded, complete, and read-only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from mindstream_studio.recorded import MIND, PACKED, RECORDINGS, add_recorded
from mindstream_studio.serve import add_studio
from served import Served

API = "/recorded/api/v1"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with the recordings, and no other data."""
    serving = Served(tmp_path_factory.mktemp("studio") / "data", model="rules")
    add_studio(serving.api_app)
    with serving as running:
        yield running


@pytest.fixture
def client(served: Served) -> Iterator[httpx.Client]:
    with served.client() as asking:
        yield asking


def got(client: httpx.Client, path: str, **asked: Any) -> dict[str, Any]:
    answer = client.get(f"{API}{path}", params=asked)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_listed_recordings_exist(client: httpx.Client) -> None:
    named = client.get("/studio/about.json").json()["recordings"]
    assert named == [each.model_dump() for each in RECORDINGS]
    users = got(client, "/users")["users"]
    for each in named:
        assert not each["user"] or each["user"] in users or each["page"] == "pools"
        assert not each["town"] or each["town"] in got(client, "/towns")["towns"]
        if each["pool"]:
            assert each["pool"] in [one["pool"] for one in got(client, f"/users/{each['user']}/pools")["pools"]]
    assert PACKED.stat().st_size < 700_000


def test_a_conversation_is_recorded_with_its_beliefs_over_time(client: httpx.Client) -> None:
    rows = got(client, "/users/ann/log", limit=200)["rows"]
    heard = [row for row in rows if row["event"] == "heard"]
    said = [row for row in rows if row["event"] == "said"]
    assert heard[0]["text"].startswith("Hey, I need your help") and said[0]["answers"] == heard[0]["seq"]
    assert {row["model"] for row in said} == {"playback:a language mind"}
    first = next(row["seq"] for row in rows if row["event"] == "belief_changed")
    assert got(client, "/users/ann/belief", seq=first - 1)["beliefs"] == []
    (then,), (now,) = (got(client, "/users/ann/belief", **asked)["beliefs"] for asked in ({"seq": first}, {}))
    assert then["version"] == 1 and now["version"] > 5 and "rents a flat above a bar" in now["text"]
    assert got(client, "/users/ann/plan")["beliefs"][0]["version"] == 6


def test_recorded_answers_contain_the_reason_for_waiting(client: httpx.Client) -> None:
    rows = got(client, "/users/ann/log", limit=200, kinds="heard,waiting,decided,judged,said")["rows"]
    decided = {row["answers"]: row for row in rows if row["event"] == "decided"}
    judged = {row["about"]: row for row in rows if row["event"] == "judged"}
    assert {row["answers"] for row in rows if row["event"] == "waiting"} == {
        heard for heard, row in decided.items() if row["waits"]
    }
    assert len(decided) == len(judged) == 7 and {row["gate"] for row in decided.values()} == {"belief"}
    assert any(row["needed"] for row in judged.values()) and not all(row["needed"] for row in judged.values())


def test_a_recorded_memory_has_recall_lineage_and_sleep(client: httpx.Client) -> None:
    asked = client.post(f"{API}/users/ann/memories/recall", json={"query": "where does she live?", "kinds": ["note"]})
    found = next(each for each in asked.json()["memories"] if "flat" in each["text"])
    lineage = got(client, f"/users/ann/memories/{found['id']}/lineage")
    assert "I rent a flat above a bar" in lineage["from"][0]["text"]
    nights = got(client, "/users/ann/nights")["nights"]
    assert any(night["forgotten"] and night["dream"] for night in nights)
    held = got(client, f"/users/ann/memories/{found['id']}/strength")
    assert held["laws"] and held["now"] < 1.79e9, "the clock stops at the end of the recording"


def test_a_task_is_recorded_with_three_strategies_and_its_calls(client: httpx.Client) -> None:
    runs = got(client, "/users/dora/plans")["runs"]
    ways = {run["how"]: run for run in runs if run["task"].startswith("What is the hometown")}
    assert set(ways) == {"rewoo", "react", "plan-execute"} and all(
        run["answer"].startswith("Sexten") for run in ways.values()
    )
    assert all(run["spent"]["model_calls"] > 0 for run in runs) and any(run["unanswered"] for run in runs)
    assert {(run["spent"]["cost_usd"], run["spent"]["unpriced"]) for run in runs} == {(0.0, 0)}, "playback is free"
    calls = got(client, "/users/dora/calls")["calls"]
    whole = got(client, f"/users/dora/calls/{calls[0]['seq']}")
    assert calls[0]["kept"] and whole["messages"] and whole["answered"]
    assert [row["event"] for row in whole["about"]] == ["solving"]


def test_a_recorded_life_has_a_ledger_and_calls(client: httpx.Client) -> None:
    life = got(client, "/users/museum/life")
    assert life["goal"].startswith("Write an honest account of the ferry Marta") and life["tasks"]
    calls = got(client, "/users/museum/calls", role="M2")["calls"]
    (asked,) = got(client, f"/users/museum/calls/{calls[0]['seq']}")["about"]
    assert life["turn"] >= 30 and asked["event"] == "asked" and asked["role"] == "M2"


def test_recorded_pools_contain_verdicts_and_training_versions(client: httpx.Client) -> None:
    pairs = got(client, "/users/olga/pools/tongues/pairs")["pairs"]
    graded = [each for each in pairs if each["by"] == "playback:a language mind"]
    assert len(graded) == 3 and all(each["verdict"] == "admitted" and len(each["grades"]) == 6 for each in graded)
    assert any(each["unserved"] for each in pairs)
    rejected = [each for each in pairs if each["verdict"] == "rejected"]
    assert rejected and all(each["reasons"] and not each["served"] for each in rejected)
    versions = got(client, "/users/olga/pools/answers/details")["versions"]
    assert versions[-1]["held"] and versions[-1]["learned_from"] > 100


def test_the_recorded_hamlet_is_complete(client: httpx.Client) -> None:
    found = got(client, "/towns/hamlet/recording")
    assert found["whole"] and found["step"] == 17_279 and len(found["recording"]["people"]) == 6


def test_recordings_are_read_only_and_errors_name_the_command_to_start(served: Served, client: httpx.Client) -> None:
    writes: dict[str, tuple[dict[str, object], str]] = {
        "/users/ann/memories": ({"text": "x"}, "mindstream chat"),
        "/users/ann/send": ({"text": "x"}, "mindstream chat"),
        "/users/dora/plans": ({"task": "x"}, "mindstream solve"), "/users/museum/life/pause": ({}, "mindstream live"),
        "/users/olga/pools/new": ({}, "mindstream pool create"),
        "/towns/hamlet/run": ({"steps": 1}, "mindstream town open recorded"),
    }  # fmt: skip
    for path, (body, begin) in writes.items():
        refused = client.post(f"{API}{path}", json=body)
        assert refused.status_code == 403 and refused.headers["content-type"] == "application/problem+json", (
            refused.text
        )
        assert "recordings are read-only" in refused.json()["detail"] and f"`{begin}`" in refused.json()["detail"]
    memory = got(client, "/users/ann/memories")["memories"][0]
    assert client.delete(f"{API}/users/ann/memories/{memory['id']}").status_code == 403
    assert client.get("/api/v1/users").json()["users"] == [], "they are separate from the user's own data"
    assert client.get(f"{API}/nothing").status_code == 404
    with client.stream("GET", f"{API}/events", params={"user": "ann", "after": 0}) as events:
        assert next(line for line in events.iter_lines() if line.startswith("event:")) == "event: opened"


def test_recordings_need_a_token_if_the_server_does(tmp_path: Path) -> None:
    serving = Served(tmp_path / "data", model="rules", require_token=True)
    add_recorded(serving.api_app)
    with serving as running, running.client() as client:
        assert client.get(f"{API}/users").status_code == 401
        assert client.get(f"{API}/users", headers=running.token("acme")).status_code == 200


def test_recordings_name_the_kind_of_model() -> None:
    assert {each.who for each in RECORDINGS} == {MIND, "Stand-ins"}
