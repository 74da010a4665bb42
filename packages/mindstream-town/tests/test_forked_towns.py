"""Forking a town through REST: a copy with the same past and its own future."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import httpx
import pytest
from hamlet import hamlet
from mindstream_town.forking import fork
from mindstream_town.town import Town
from served import Served
from test_rooms import ended
from test_town_pages import NINE, TOWN, client, lived, served

from mindstream.cli import edge
from mindstream.errors import InputError, MindstreamError
from mindstream.location import Location
from mindstream.service.operations.forks import MAX_FORKS, Fork, ForkedTowns
from mindstream.service.operations.offered import Offered
from mindstream.service.operations.operation import Principal

__all__ = ["client", "served"]
FORK = "/api/v1/towns/hamlet-2"
EIGHT = 8 * 360


def step_of(client: httpx.Client, url: str) -> int:
    return int(client.get(url).raise_for_status().json()["step"])


def test_a_fork_has_the_same_past_and_continues_independently(client: httpx.Client) -> None:
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


def test_a_fork_survives_restarts_until_it_is_deleted(tmp_path: Path) -> None:
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


def test_impossible_forks_are_refused(client: httpx.Client, served: Served) -> None:
    assert client.post(f"{TOWN}/fork", json={"step": NINE + 1}).status_code == 422
    assert client.post("/api/v1/towns/ville/fork", json={"step": 0}).status_code == 404
    assert not any((served.api_app.runtime.settings.data.beside / "towns").iterdir())


def test_forks_are_isolated_by_tenant(served: Served, client: httpx.Client) -> None:
    client.post(f"{TOWN}/fork", json={"step": 0}).raise_for_status()
    header = served.token("acme")
    assert client.get(FORK, headers=header).status_code == 404
    assert client.get("/api/v1/towns", headers=header).json() == {"towns": [], "forks": []}


ACME, OTHER = Principal("acme", frozenset()), Principal("other", frozenset())


@pytest.fixture
def village(tmp_path: Path) -> Location:
    """A hamlet that has begun, to be forked at step 0."""

    async def begin() -> None:
        async with Town.open(tmp_path / "hamlet", hamlet()) as town:
            await town.run(until=1)

    asyncio.run(begin())
    return Location(tmp_path / "hamlet")


async def forked(
    forks: ForkedTowns, principal: Principal, source: Location, times: int
) -> list[Fork | MindstreamError]:
    each = (forks.add(principal, "ville", source, 0, ["ville", "ville-4"], fork) for _ in range(times))
    done = await asyncio.gather(*each, return_exceptions=True)
    for one in done:
        assert isinstance(one, Fork | MindstreamError), one
    return done  # type: ignore[return-value]


def test_concurrent_forks_of_several_servers_have_unique_names_within_the_limit(
    tmp_path: Path, village: Location
) -> None:
    data = Location(tmp_path / "data")
    here, there = ForkedTowns(data), ForkedTowns(data)

    async def all_at_once() -> list[Fork | MindstreamError]:
        groups = await asyncio.gather(
            forked(here, ACME, village, 13), forked(there, ACME, village, 10), forked(there, OTHER, village, 2)
        )
        assert all(isinstance(each, Fork) for each in groups[2]), "each tenant has its own limit"
        return [*groups[0], *groups[1]]

    answered = asyncio.run(all_at_once())
    made = [each.name for each in answered if isinstance(each, Fork)]
    refused = [each for each in answered if not isinstance(each, Fork)]
    assert len(made) == len(set(made)) == MAX_FORKS and not {"ville", "ville-4"} & set(made)
    assert len(refused) == 3 and all(isinstance(each, InputError) and "delete one" in str(each) for each in refused)
    assert sorted(made) == sorted(here.all(ACME)) and len(here.folders(ACME.tenant)) == MAX_FORKS
    here.drop(ACME, made[0])
    assert made[0] not in there.all(ACME) and len(there.folders(ACME.tenant)) == MAX_FORKS - 1


@pytest.mark.parametrize("content", ["", "{", "[]", '{"tenant": "acme"}', "\x00\xff", '{"step": "many", "name": 3}'])
def test_a_damaged_fork_is_reported_and_deleted_with_its_tenant(
    tmp_path: Path, village: Location, content: str
) -> None:
    url, offered = "/api/v1/towns", Offered(towns={("acme", "ville"): village})
    with Served(tmp_path / "data", model="rules", offered=offered) as served, served.client() as client:
        client.headers.update(served.token("acme"))
        for _ in range(2):
            client.post(f"{url}/ville/fork", json={"step": 0}).raise_for_status()
        damaged = served.api_app.runtime.forks.all(ACME)["ville-2"].place.beside
        (damaged / "fork.json").write_text(content, "latin-1")
        shown = client.get(url).json()
        assert shown["towns"] == ["ville", "ville-3"] and damaged.name in shown["notices"][0]
        assert client.get(f"{url}/ville-3").status_code == 200 and client.get(f"{url}/ville-2").status_code == 404
        assert client.post(f"{url}/ville/fork", json={"step": 0}).status_code == 201
        assert client.get(url, headers=served.token("other")).json() == {"towns": [], "forks": []}
    assert edge.run(["data", "delete-tenant", "acme", "--yes", "--data", str(tmp_path / "data")]) == 0
    assert list((tmp_path / "data" / "towns").iterdir()) == []


def test_forks_of_earlier_versions_and_interrupted_forks_are_handled(tmp_path: Path, village: Location) -> None:
    forks = ForkedTowns(Location(tmp_path / "data"))

    async def add() -> Fork:
        return await forks.add(ACME, "ville", village, 0, ["ville"], fork)

    first = asyncio.run(add())
    for name in ("aaaaaaaa", "bbbbbbbb"):  # one name twice, which earlier versions allowed
        old = first.place.beside.with_name(name)
        shutil.copytree(first.place.beside, old)
        told = {"tenant": "acme", "name": "ville-9", "of": "ville", "step": 0, "part": ""}
        (old / "fork.json").write_text(json.dumps(told))
    died = first.place.beside.with_name(f"{first.place.beside.name.partition('-')[0]}-cccccccc")
    shutil.copytree(first.place.beside, died)
    (died / "fork.json").rename(died / "fork.json.new")
    assert sorted(forks.all(ACME)) == ["ville-2", "ville-9.aaaaaaaa", "ville-9.bbbbbbbb"]
    assert len(forks.folders("acme")) == 4 and forks.folders("other") == []
    assert asyncio.run(add()).name == "ville-3" and not died.exists()
    forks.drop(ACME, "ville-9.aaaaaaaa")
    assert sorted(forks.all(ACME)) == ["ville-2", "ville-3", "ville-9"]
