"""A town is forked through REST: beside it stands another of the same past, with a future of its own."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
from served import Served
from test_rooms import ended
from test_town_pages import NINE, TOWN, client, lived, served

from mindstream.service.operations.offered import MOST_FORKS, Offered

__all__ = ["client", "served"]
FORK = "/api/v1/towns/hamlet-2"
EIGHT = 8 * 360


def step_of(client: httpx.Client, url: str) -> int:
    return int(client.get(url).raise_for_status().json()["step"])


def test_a_fork_has_the_past_and_lives_on_its_own(client: httpx.Client) -> None:
    made = client.post(f"{TOWN}/fork", json={"step": EIGHT})
    assert made.status_code == 201 and made.json() == {"town": "hamlet-2", "of": "hamlet", "step": EIGHT}
    assert client.get("/api/v1/towns").json() == {"towns": ["hamlet", "hamlet-2"], "forks": [made.json()]}
    assert step_of(client, FORK) == EIGHT and step_of(client, TOWN) == NINE
    whisper = {"resident": "Ben Hale", "text": "There is a fox in the garden."}
    client.post(f"{FORK}/whisper", json=whisper).raise_for_status()
    assert ended(client, client.post(f"{FORK}/run", json={"steps": 360}).json()["id"])["state"] == "done"
    here, there = (client.get(f"{url}/recording").json()["recording"] for url in (FORK, TOWN))
    assert whisper["text"] in here["texts"] and whisper["text"] not in there["texts"]
    ben, same = (next(each for each in one["people"] if each["name"] == "Ben Hale") for one in (here, there))
    assert len(ben["acts"]) > 1 and ben["home"] == same["home"]


def test_a_fork_is_there_after_a_restart_and_until_it_is_let_go(tmp_path: Path) -> None:
    asyncio.run(lived(tmp_path / "hamlet"))
    offered = Offered(towns={("local", "hamlet"): tmp_path / "hamlet"})
    with Served(tmp_path / "data", model="rules", offered=offered) as before, before.client() as client:
        client.post(f"{TOWN}/fork", json={"step": EIGHT}).raise_for_status()
        again = client.post(f"{FORK}/fork", json={"step": 0}).json()
        assert again == {"town": "hamlet-3", "of": "hamlet-2", "step": 0}
    with Served(tmp_path / "data", model="rules", offered=offered) as after, after.client() as client:
        assert step_of(client, FORK) == EIGHT
        assert client.delete(FORK).json()["towns"] == ["hamlet", "hamlet-3"]
        assert client.get(FORK).status_code == client.delete(FORK).status_code == 404
        assert client.delete(TOWN).status_code == 404 and step_of(client, TOWN) == NINE
        assert client.delete("/api/v1/towns/hamlet-3").status_code == 200
    assert list((tmp_path / "data" / "towns").iterdir()) == []


def test_what_cannot_be_forked_is_refused(client: httpx.Client, served: Served) -> None:
    assert client.post(f"{TOWN}/fork", json={"step": NINE + 1}).status_code == 422
    assert client.post("/api/v1/towns/ville/fork", json={"step": 0}).status_code == 404
    assert not any((served.doors.house.settings.data.beside / "towns").iterdir())
    for _ in range(MOST_FORKS):
        client.post(f"{TOWN}/fork", json={"step": 0}).raise_for_status()
    assert "let go of one" in client.post(f"{TOWN}/fork", json={"step": 0}).json()["detail"]


def test_another_tenant_sees_no_fork(served: Served, client: httpx.Client) -> None:
    client.post(f"{TOWN}/fork", json={"step": 0}).raise_for_status()
    header = served.token("acme")
    assert client.get(FORK, headers=header).status_code == 404
    assert client.get("/api/v1/towns", headers=header).json() == {"towns": [], "forks": []}
