"""Requests of a town page: the recording and its additions, knowledge, relations, changes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from hamlet import hamlet
from mindstream_town.town import Town
from served import Served
from test_rooms import ended

from mindstream.service.operations.offered import Offered

TOWN = "/api/v1/towns/hamlet"
NINE = 9 * 360


async def lived(folder: Path) -> None:
    async with Town.open(folder, hamlet()) as town:
        await town.run(until=NINE)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A server that offers a hamlet at nine o'clock."""
    asyncio.run(lived(tmp_path / "hamlet"))
    offered = Offered(towns={("local", "hamlet"): tmp_path / "hamlet"})
    with Served(tmp_path / "data", model="rules", offered=offered) as running:
        yield running


@pytest.fixture
def client(served: Served) -> Iterator[httpx.Client]:
    with served.client() as asking:
        yield asking


def run(client: httpx.Client, steps: int) -> None:
    assert ended(client, client.post(f"{TOWN}/run", json={"steps": steps}).json()["id"])["state"] == "done"


def test_a_page_gets_the_whole_recording_and_then_additions(client: httpx.Client) -> None:
    all_of_it = client.get(f"{TOWN}/recording").json()
    assert all_of_it["whole"] and all_of_it["step"] == NINE and {"map", "size", "tiles"} <= set(all_of_it["recording"])
    run(client, 360)
    more = client.get(f"{TOWN}/recording", params={"since": all_of_it["next"]}).json()
    assert not more["whole"] and more["step"] == NINE + 360 and "map" not in more["recording"]
    ben = more["recording"]["people"][1]
    assert ben["name"] == "Ben Hale" and 0 < len(ben["acts"]) < len(all_of_it["recording"]["people"][1]["acts"])
    again = client.get(f"{TOWN}/recording", params={"since": "of.another"}).json()
    assert again["whole"] and again["next"] == more["next"]


def test_a_span_is_requested_by_its_steps(client: httpx.Client) -> None:
    found = client.get(f"{TOWN}/recording", params={"first": 8 * 360, "last": 99_999}).json()
    assert found["next"] == "" and found["recording"]["first"] == 8 * 360 and found["recording"]["last"] == NINE
    assert client.get(f"{TOWN}/recording", params={"first": 99_999}).status_code == 422
    assert client.get(f"{TOWN}/recording", params={"first": 0, "since": "x"}).status_code == 422


def test_knowers_of_a_fact_are_listed_with_their_sources(client: httpx.Client) -> None:
    asked = client.get(f"{TOWN}/knows").json()
    assert asked["knowers"] == [] and asked["residents"] == 3
    assert asked["facts"][0]["knowers"] >= asked["facts"][-1]["knowers"] == 1
    run(client, 12 * 360)
    found = client.get(f"{TOWN}/knows", params={"fact": "reading evening"}).json()
    assert found["says"].startswith("Ada Brook is planning a reading evening")
    first, *told = found["knowers"]
    assert (first["name"], first["how"], first["by"]) == ("Ada Brook", "beginning", "")
    assert told and all(each["how"] == "told" and each["chain"][0] == "Ada Brook" for each in told)
    facts = {each["text"]: each["knowers"] for each in client.get(f"{TOWN}/knows").json()["facts"]}
    assert facts[found["says"]] == len(found["knowers"])
    assert client.get(f"{TOWN}/knows", params={"fact": "a submarine"}).status_code == 422


def test_acquaintance_is_reported_over_time(client: httpx.Client) -> None:
    before = client.get(f"{TOWN}/relations").json()
    run(client, 12 * 360)
    after = client.get(f"{TOWN}/relations").json()
    assert after["residents"] == ["Ada Brook", "Ben Hale", "Cleo Marsh"]
    assert after["pairs"][0]["names"] == ["Ada Brook", "Ben Hale"] and after["pairs"][0]["since"] == 0
    assert sum(len(each["talks"]) for each in after["pairs"]) > 0
    assert after["curve"][-1][0] == NINE + 12 * 360 and after["curve"][-1][1] >= before["curve"][-1][1] > 0


def test_a_changed_object_is_seen_by_residents_who_pass(served: Served, client: httpx.Client) -> None:
    done = client.post(f"{TOWN}/set", json={"object": "piano", "condition": "out of tune"}).json()
    assert done == {"object": "Hamlet:Oak Cafe:cafe:piano", "condition": "out of tune", "danger": False}
    assert client.get(TOWN).json()["conditions"] == {"Hamlet:Oak Cafe:cafe:piano": "out of tune"}
    assert client.post(f"{TOWN}/set", json={"object": "stove", "condition": "on fire"}).json()["danger"]
    assert client.post(f"{TOWN}/set", json={"object": "organ"}).status_code == 422
    client.post(f"{TOWN}/set", json={"object": "piano"})
    assert "Hamlet:Oak Cafe:cafe:piano" not in client.get(TOWN).json()["conditions"]
    other, reader = served.token("other"), served.token("local", "read")
    for room in ("recording", "knows", "relations"):
        assert client.get(f"{TOWN}/{room}", headers=other).status_code == 404
    assert client.post(f"{TOWN}/set", json={"object": "piano"}, headers=reader).status_code == 403
