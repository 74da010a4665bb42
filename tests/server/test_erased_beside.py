"""Data of a person outside their memory is erased too: tokens, forks of towns, server notes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest
from served import Served
from test_embodied_life import CAFE, TOWN, Person, client, folders, served

from mindstream.clock import SystemClock
from mindstream.location import Location
from mindstream.memory.opening import open_store
from mindstream.service import erasing
from mindstream.service.calling import open_user_memory
from mindstream.service.operations.principal import SERVER
from mindstream.service.privacy.erase import erase_person, find_outside_data, revoke_tokens
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


def test_erasing_names_the_town_forks_that_mention_the_person(client: httpx.Client, served: Served) -> None:
    data = served.api_app.runtime.settings.data.beside
    client.post(f"{TOWN}/fork", json={"step": client.get(TOWN).json()["step"]}).raise_for_status()  # before she arrives
    Person(client, MAYA, visitor=True).begin(place=CAFE)
    client.post(f"{TOWN}/fork", json={"step": client.get(TOWN).json()["step"]}).raise_for_status()
    client.post(f"/api/v1/users/{MAYA}/memories", json={"text": "My knee."}).raise_for_status()
    kept = asyncio.run(erase(data, MAYA))
    assert set(kept.outside.forks) == {"village-3"}
    (told,) = [each for each in kept.stays if "village-3" in each]
    assert "DELETE /api/v1/towns/village-3" in told and str(kept.outside.forks["village-3"]) in told
    client.delete("/api/v1/towns/village-3").raise_for_status()
    assert holds(data, MAYA) == []


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
            assert len(beside.tokens) == 1 and not beside.forks
            await revoke_tokens(place, wall, beside, clock)
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
