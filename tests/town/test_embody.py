"""A person lives in a town as a resident or as a visitor: what it does is seen, remembered, kept, and had again."""

from __future__ import annotations

from pathlib import Path

import pytest
from hamlet import hamlet

from mindstream.errors import InputError
from mindstream.memory.store.store import read_all
from mindstream.town.town import Town

EIGHT, NINE = 8 * 360, 9 * 360
CAFE = "Hamlet:Oak Cafe:cafe"


async def memories(town: Town, name: str) -> list[str]:
    memory = town.residents[name].memory
    return [each.text async for part in read_all(town.store, memory.key) for each in part]


async def test_what_a_visitor_does_and_says_is_remembered_and_it_is_gone_when_it_leaves(tmp_path: Path) -> None:
    async with Town.open(tmp_path, hamlet()) as town:
        await town.run(EIGHT + 60)
        me = await town.embody("Maya", as_visitor=True, at="oak cafe:cafe")
        seen = await me.look()
        assert seen.where == "cafe of Oak Cafe" and [each.name for each in seen.people] == ["Ada Brook"]
        await me.do("juggling five lemons", 5, "piano")
        await me.say("Good morning, I am new here.")
        talk = await me.look(since=seen.step)
        assert [each.text for each in talk.happened if each.kind == "heard" and each.who == "Ada Brook"]
        await me.say("See you!")
        await me.leave()
        theirs = await memories(town, "Ada Brook")
        assert "Maya is juggling five lemons" in theirs and "Good morning, I am new here." in theirs
        assert any(text.startswith("Ada Brook talked with Maya") for text in theirs)
        assert any("Maya was juggling five lemons" in text for text in await memories(town, "Maya"))
        await town.run(NINE)
        assert not town.is_here("Maya")


ACTS = ("begin", "do", "say", "say", "go", "wait", "leave")


async def live_as(folder: Path, name: str = "Maya", *, together: bool) -> str:
    """Live two hours as somebody, in one process or in one for each act; return the journal's checksum."""
    async with Town.open(folder, hamlet()) as town:
        await town.run(EIGHT + 60)
    rest = list(ACTS)
    while rest:
        async with Town.open(folder) as town:
            for act in rest if together else rest[:1]:
                me = await town.embody(name, as_visitor=name == "Maya", at=CAFE if name == "Maya" else "")
                if act == "do":
                    await me.do("juggling", 5, "piano")
                elif act == "say":
                    await me.say("Hello again, Ada!")
                elif act == "go":
                    await me.go("oak cafe:cafe")
                elif act == "wait":
                    await me.wait(20)
                elif act == "leave":
                    await me.leave()
            rest = [] if together else rest[1:]
    async with Town.open(folder) as town:
        await town.run(NINE + 360)
        return await town.digest()


async def test_the_same_acts_at_the_same_steps_give_the_same_journal(tmp_path: Path) -> None:
    digest = await live_as(tmp_path / "a", together=True)
    assert await live_as(tmp_path / "b", together=True) == digest
    assert await live_as(tmp_path / "c", together=False) == digest, "in however many processes"
