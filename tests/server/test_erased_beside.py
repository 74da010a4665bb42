"""Data of a person outside their memory is erased too: tokens, forks of towns, server notes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from served import Served
from test_embodied_life import CAFE, TOWN, Person, client, folders, served

from mindstream.clock import SystemClock
from mindstream.location import Location
from mindstream.memory.opening import open_store
from mindstream.service.calling import open_user_memory
from mindstream.service.operations.operation import SERVER
from mindstream.service.privacy import erase as erasing
from mindstream.service.privacy.erase import erase_outside_data, erase_person, find_outside_data
from mindstream.settings import Settings

__all__ = ["client", "folders", "served"]
MAYA, SESSION = "Mayalinde", "about my knee"


def holds(folder: Path, word: str) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file() and word.encode() in path.read_bytes()]


async def erase(folder: Path, user: str) -> erasing.UserData:
    async with open_user_memory(Settings(data=Location(folder), user=user)) as found:
        kept = await erasing.find_user_data(found, folder)
        await erasing.erase(found, folder, kept)
        return kept


@pytest.mark.parametrize(
    ("life", "name"),
    [({"visitor": True}, MAYA), ({"person": MAYA}, "Ada Brook"), ({"person": MAYA.upper()}, "Ada Brook")],
)
def test_erasing_deletes_the_town_forks_that_the_person_visited(
    life: dict[str, Any], name: str, client: httpx.Client, served: Served
) -> None:
    data = served.api_app.runtime.settings.data.beside

    def fork() -> str:
        made = client.post(f"{TOWN}/fork", json={"step": client.get(TOWN).json()["step"]})
        return str(made.raise_for_status().json()["town"])

    before = fork()  # before she arrives
    user = str(life.get("person", MAYA))
    Person(client, name, **life).begin(**({"place": CAFE} if "visitor" in life else {}))
    visited = fork()
    kept = asyncio.run(erase(data, user))
    assert set(kept.outside.visited) == {visited} and not kept.outside.named
    assert f"the fork {visited} of a town, which this person visited, was deleted" in kept.outside.describe_erased()
    assert holds(data, user) == []
    assert [each["town"] for each in client.get("/api/v1/towns").json()["forks"]] == [before]
    assert client.get(f"/api/v1/towns/{visited}").status_code == 404


@pytest.mark.parametrize("user", ["Ada Brook", "Ada"])
def test_erasing_only_lists_town_forks_that_name_the_person(user: str, client: httpx.Client, served: Served) -> None:
    data = served.api_app.runtime.settings.data.beside
    client.post(f"{TOWN}/fork", json={"step": client.get(TOWN).json()["step"]}).raise_for_status()
    client.post(f"/api/v1/users/{user}/memories", json={"text": "My knee."}).raise_for_status()
    kept = asyncio.run(erase(data, user))
    assert set(kept.outside.named) == {"village-2"} and not kept.outside.visited
    (told,) = [each for each in kept.stays if "village-2" in each]
    assert "DELETE /api/v1/towns/village-2" in told and str(kept.outside.named["village-2"]) in told
    client.get("/api/v1/towns/village-2").raise_for_status()


@pytest.mark.parametrize("tenant", ["local", "acme"])
def test_erasing_a_person_removes_their_tokens_and_server_state(data: str, tenant: str) -> None:
    with Served(data, model="rules", require_token=True) as served, served.client() as client:
        own, other = served.token(tenant, user=MAYA), served.token(tenant, user="Bob")
        keyed = {"Idempotency-Key": "once"}
        url = f"/api/v1/users/{MAYA}"
        said = {"text": "My knee hurts.", "session": SESSION}
        sent = client.post(f"{url}/send", json=said, headers=own | keyed)
        assert sent.json()["session"] == SESSION
        assert client.post(f"{url}/send", json=said, headers=own | keyed).json() == sent.json()
        client.post(f"{url}/memories", json={"text": "My knee."}, headers=own | keyed).raise_for_status()

        async def erased() -> str:
            wall = "" if tenant == "local" else tenant
            place, clock = Location.of(data), SystemClock()
            beside = await find_outside_data(place, wall, MAYA)
            assert len(beside.tokens) == 1 and not beside.visited and not beside.named
            await erase_outside_data(place, wall, beside, clock)
            async with open_store(data, wall) as store:
                await erase_person(store, MAYA, clock, place.beside)
            async with open_store(data) as ours:
                assert [row.did for row in await ours.audit() if row.did == "token_revoked"]
                return "\n".join(each.name + each.value for each in await ours.kept(SERVER))

        kept = asyncio.run(erased())
        assert MAYA not in kept and SESSION not in kept and "write:" in kept and "Bob" in kept
        assert client.get(f"{url}/memories", headers=own).status_code == 401
        assert client.get("/api/v1/users/Bob/memories", headers=other).status_code == 200


async def test_a_user_with_only_a_token_is_erased(folder: Path) -> None:
    from mindstream.server.tokens import Tokens

    async with open_store(folder) as store:
        await Tokens(lambda: store, SystemClock()).new("local", "read", 1, user=MAYA)
    kept = await erase(folder, MAYA)
    assert len(kept.outside.tokens) == 1 and holds(folder, MAYA) == []
