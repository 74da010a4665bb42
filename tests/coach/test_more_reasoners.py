"""A pack, or the command line, adds shipped reasoners; a conversation's reasoner may have tasks planned and solved."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_endpoint import FakeEndpoint, Says

from mindstream import Coach, Mind
from mindstream.coach.coach import named_reasoners
from mindstream.coach.packs.load import load
from mindstream.errors import SettingsError
from mindstream.models.model import Call
from mindstream.models.roles import Models
from mindstream.models.rules import Rules
from mindstream.service.minds import open_mind
from mindstream.service.solving import talk_tools
from mindstream.settings import Settings


async def test_a_pack_adds_reasoners_with_slots_of_their_own(folder: Path) -> None:
    pack = load("sleep").model_copy(update={"reasoners": ("reflect", "sleep")})
    async with Mind.open(folder, user="ann", model=Models(Rules()), responder=Coach.using(pack)) as mind:
        assert mind.reasoners.slots == ("sleep", "reflect", "night")
        await mind.send("I lie awake.")
        await mind.settled()


async def test_named_reasoners_join_those_of_the_pack(folder: Path) -> None:
    async with open_mind(Settings(data=folder), reasoners=["reflect", "reflect"]) as mind:
        assert mind.reasoners.slots == ("sleep", "reflect")
    with pytest.raises(SettingsError, match="there is no reasoner 'dream': the reasoners are reflect, sleep"):
        named_reasoners(["dream"], Models(Rules()))


async def test_a_conversation_has_the_planner_as_a_tool(folder: Path) -> None:
    plan = "#E1 = calculator[12 * 12]"
    with FakeEndpoint() as door:
        door.will(Says(plan), Says("144"))
        settings = Settings(data=folder, model=f"{door.url}#any")
        async with talk_tools(settings, ["calculator", "planner"], [], [], None) as tools:
            names = [each.spec.name for each in tools]
            assert names == ["calculator", "solve_task"]
            said = await tools[1](Call("solve_task", '{"task": "How much is twelve times twelve?"}'))
    assert "144" in str(said)
