"""What comes into a town from outside: a stop in the midst of a step, a thought, a visitor, words for a place."""

from __future__ import annotations

from pathlib import Path

import pytest
from hamlet import hamlet

from mindstream.errors import InputError, ModelRefused
from mindstream.models.model import Model, Request
from mindstream.models.roles import Models
from mindstream.models.rules import Rules
from mindstream.town.interview import interview
from mindstream.town.journal import rows_after
from mindstream.town.lookup import find_object, find_place, find_resident, find_step
from mindstream.town.town import Town
from mindstream.town.turn import StepFailed
from mindstream.town.visiting import visit

NOON = 12 * 360


class Failing:
    """Answers as rules do, but one call in so many fails."""

    name = "failing"

    def __init__(self, every: int) -> None:
        self._rules, self._every, self.calls = Rules(), every, 0

    async def reply(self, request: Request):  # type: ignore[no-untyped-def]
        self.calls += 1
        if self.calls % self._every == 0:
            raise ModelRefused("the key is wrong")
        async for part in self._rules.reply(request):
            yield part


async def test_a_step_that_was_broken_off_is_lived_again(tmp_path: Path) -> None:
    async with Town.open(tmp_path / "a", hamlet()) as town:
        await town.run(NOON)
        straight = await town.digest()
    model: Model = Failing(every=13)
    stops = 0
    async with Town.open(tmp_path / "b", hamlet(), models=Models(model)) as town:
        while town.step < NOON:
            try:
                await town.run(NOON)
            except StepFailed:
                stops += 1
        assert stops > 2 and await town.digest() == straight, "in the same process"
    async with Town.open(tmp_path / "b") as town:
        assert await town.digest() == straight and town.step == NOON


async def test_a_whisper_is_remembered_and_written_by_nobody_there(tmp_path: Path) -> None:
    async with Town.open(tmp_path, hamlet()) as town:
        await town.run(NOON)
        await town.whisper("Cleo Marsh", "The bridge is closed on Sunday.")
        with pytest.raises(InputError, match="nobody in Hamlet"):
            await town.whisper("Cleo", "Hello.")
        with pytest.raises(InputError):
            await town.whisper("Cleo Marsh", "  ")
        await town.run(NOON + 360)
        assert "bridge" in (await interview(town, "Cleo Marsh", "Is the bridge closed?")).answer
        assert [row.mind async for row in rows_after(town.store) if row.by == "whisper"] == ["Cleo Marsh"]


async def test_a_visitor_is_answered_and_remembered_as_the_town_goes_on(tmp_path: Path) -> None:
    async with Town.open(tmp_path, hamlet()) as town:
        await town.run(NOON)
        async with visit(town, "Ada Brook", by="Maya") as mind:
            assert "reading evening" in await mind.say("What are you planning?")
            await mind.say("The fair in the park on Saturday begins at 3pm.")
            await mind.settled()
        await town.run(NOON + 720)
        records = await town.store.latest("Ada Brook", None, 200, now=town.setting.moment(town.step))
        said = {(each.kind, each.by) for each in records if "fair in the park" in each.text}
        assert ("chat", "Maya") in said, "what Maya said; what is to be made of it only a model could tell"
        assert "3pm" in (await interview(town, "Ada Brook", "When is the fair in the park?")).answer
        with pytest.raises(InputError, match="lives there"):
            async with visit(town, "Ada Brook", by="Ben Hale"):
                pass


def test_what_is_typed_is_found_or_told_with_its_nearest() -> None:
    town = hamlet()
    assert find_resident(town, "ada") == find_resident(town, "Ada Brook") == "Ada Brook"
    assert find_object(town, "piano") == find_object(town, "cafe:piano") == "Hamlet:Oak Cafe:cafe:piano"
    assert find_place(town, "oak cafe") == "Hamlet:Oak Cafe"
    for typed, said in (("Ada Brok", "did you mean 'Ada Brook'"), ("nobody at all", "there are 'Ada Brook'")):
        with pytest.raises(InputError, match=said):
            find_resident(town, typed)
    with pytest.raises(InputError, match="say which"):
        find_object(town, "bed")
    morning = 10 * 360
    for typed in ("Feb 13 10:00", "13 Feb 10:00", "February 13 10:00", "2023-02-13 10:00", "day 1 10:00", "step 3600"):
        assert find_step(town, typed, -1) == morning
    assert find_step(town, "10:00", 8_640) == morning + 8_640, "today is the second day"
    for typed in ("", "day 0 10:00", "Feb 12 10:00", "step -1"):
        with pytest.raises(InputError, match=r"begins on|day 1"):
            find_step(town, typed, -1)
    for typed in ("25:00", "Feb 30 10:00"):
        with pytest.raises(InputError, match=r"has no|there is no"):
            find_step(town, typed, -1)


def test_where_several_things_fit_all_are_named_as_they_can_be_typed() -> None:
    town = hamlet()
    with pytest.raises(InputError, match=r"is a place; in it are 'Oak Cafe:cafe:counter', .*: say which"):
        find_object(town, "cafe")
    with pytest.raises(InputError, match="did you mean 'Ada Brook'"):
        find_resident(town, "adda")
