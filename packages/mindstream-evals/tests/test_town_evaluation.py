"""The evaluation of a town offered by the operator, as an operation."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from fake_endpoint import Asked, FakeEndpoint, Says
from mindstream_town.formats.town_file import parse_town
from mindstream_town.source import setting_of
from mindstream_town.town import Town
from served import Served
from test_rooms import ended

from mindstream.service.operations.offered import Offered

HAMLET = """
[town]
name = "Hamlet"
[map]
rows = '''
#####
#aaa#
#####
'''
[map.places]
a = "House:room"
[[residents]]
name = "Ada Brook"
age = 34
learned = "Ada Brook bakes."
home = "House:room"
[[residents]]
name = "Ben Hale"
age = 36
learned = "Ben Hale tunes pianos."
home = "House:room"
"""


async def lived(folder: Path) -> None:
    async with Town.open(folder, setting_of(parse_town(HAMLET, Path()), seed=1)) as town:
        await town.run(until=3_000)


def mind(asked: Asked) -> Says:
    """Answer with an increasing number; prefer the smaller one."""
    user = asked.body["messages"][-1]["content"]
    if "<first>" not in user:
        return Says(f"It is {len(user)}.")
    return Says(json.dumps({"why": "so", "better": "first"}))


def test_evaluating_a_town_as_an_operation_needs_a_judge(tmp_path: Path, door: FakeEndpoint) -> None:
    asyncio.run(lived(tmp_path / "hamlet"))
    offered = Offered(towns={("local", "hamlet"): tmp_path / "hamlet"})
    ask = {"questions": 1, "pairs": 6, "claims": False, "conditions": ["full", "none"]}
    door.otherwise = mind
    with Served(tmp_path / "data", model=f"{door.url}#any", offered=offered) as served, served.client() as client:
        begun = client.post("/api/v1/towns/hamlet/evaluate", json=ask)
        assert begun.status_code == 202, begun.text
        done = ended(client, begun.json()["id"])
        assert done["state"] == "done", done
        found = done["result"]["findings"]
        assert found["judged"] == 2 and found["first_preferred"] == 1.0 and found["agreed_when_turned"] == 0.0
        assert done["progress"]
        wrong = client.post("/api/v1/towns/hamlet/evaluate", json=ask | {"conditions": ["half"]})
        assert wrong.status_code == 422
        person = [{"resident": "Nobody", "question": "self-1", "answer": "x"}]
        failed = ended(client, client.post("/api/v1/towns/hamlet/evaluate", json=ask | {"person": person}).json()["id"])
        assert failed["state"] == "failed" and "unknown resident 'Nobody'" in failed["problem"]
    with Served(tmp_path / "data", model="rules", offered=offered) as served, served.client() as client:
        failed = ended(client, client.post("/api/v1/towns/hamlet/evaluate", json=ask).json()["id"])
        assert failed["state"] == "failed" and "no model judges" in failed["problem"]
