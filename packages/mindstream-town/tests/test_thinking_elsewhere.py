"""Residents reason in worker processes, with the same journal as in one process."""

from __future__ import annotations

from pathlib import Path

import pytest
from doing import ENGINES, opened
from fake_endpoint import Fails, FakeEndpoint
from hamlet import hamlet, live
from mindstream_town.prompts.conduct import IsDanger
from over_http import OverHttp
from scene_minds import HOUR, SceneMind, liucun

from mindstream.errors import ModelDenied
from mindstream.models.prompt import ask
from mindstream.models.providers.provider import EngineModel
from mindstream.models.roles import Models
from mindstream.models.rules import Rules

MORNING = 10 * HOUR


@ENGINES
async def test_rules_in_worker_processes_give_the_same_journal(ray: bool, tmp_path: Path) -> None:
    async with opened(ray) as engine:
        elsewhere = await live(tmp_path / "a", hamlet(), MORNING, Models(EngineModel(Rules.name, engine)))
    assert elsewhere == await live(tmp_path / "b", hamlet(), MORNING)


@ENGINES
async def test_workers_call_the_endpoint_themselves(ray: bool, tmp_path: Path, door: FakeEndpoint) -> None:
    here = OverHttp(SceneMind(), door)
    alone = await live(tmp_path / "a", liucun(), MORNING, Models(here))
    asked = len(door.chats)
    await here.client.aclose()
    async with opened(ray) as engine:
        carried = OverHttp(SceneMind(), door)
        carried.client = EngineModel(f"{door.url}#any", engine)  # type: ignore[assignment]
        assert await live(tmp_path / "b", liucun(), MORNING, Models(carried)) == alone
    assert 0 < asked == len(door.chats) - asked, "workers made as many HTTP calls"


async def test_errors_of_workers_reach_the_caller_and_are_metered(door: FakeEndpoint) -> None:
    door.otherwise = Fails(401, "wrong key")
    told = list[str]()
    async with opened(False) as engine:
        models = Models.named(
            {"decider": f"{door.url}#any"}, engine=engine, on_call=lambda call: told.append(call.model)
        )
        with pytest.raises(ModelDenied, match="wrong key"):
            await ask(models.of("decider"), IsDanger(thing="the stove", condition="burning"))
    assert told
