"""A person lives in a town as a resident or as a visitor: what it does is seen, remembered, kept, and had again."""

from __future__ import annotations

from pathlib import Path

import pytest
from hamlet import hamlet

from mindstream.errors import InputError
from mindstream.town.town import Town

EIGHT, NINE = 8 * 360, 9 * 360
CAFE = "Hamlet:Oak Cafe:cafe"


async def memories(town: Town, name: str) -> list[str]:
    memory = town.residents[name].memory
    return [each.text for each in await memory.latest(("observation", "chat", "thought", "note"), 500)]


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
