"""Days without a model: the usual day of the town's file, hosted events and agreements."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest
from hamlet import HAMLET, hamlet
from mindstream_town.events import DayPlanned
from mindstream_town.formats.town_file import parse_town
from mindstream_town.journal import resident_of, rows_after
from mindstream_town.prompts.plans import DayPlan, Memory, PlanDay, Usual
from mindstream_town.residents.person import Appointment
from mindstream_town.residents.places import find_home, known_places, may_use
from mindstream_town.source import setting_of
from mindstream_town.town import Town

from mindstream.models.rules import Rules

FEAST = Appointment(
    what="feiern", place="v:Inn:Saal", start=datetime(2024, 5, 14, 18, tzinfo=UTC),
    end=datetime(2024, 5, 14, 20, tzinfo=UTC), host="Mara Voss", who=("Jo Kim",),
)  # fmt: skip
TOLD = Memory(text="祭りがある", appointment=FEAST)
WORK = Usual(start=540, end=1020, what="Brot backen", place=2, duty=True)
USUAL = (Usual(start=360, end=420, what="frühstücken", place=1), WORK)


def planned(
    who: str, *memories: Memory, usual: tuple[Usual, ...] = USUAL, date: str = "Tuesday May 14, 2024"
) -> DayPlan:
    ask = PlanDay(who=who, identity=who, date=date, memories=memories, usual=usual, places=())
    return Rules().answer(ask)


def said(plan: DayPlan) -> list[tuple[str, str, int]]:
    return [(item.start, item.what, item.place) for item in plan.items]


def test_the_usual_day_is_kept_in_any_language_with_gaps_at_home() -> None:
    plan = planned("Jo Kim")
    assert said(plan) == [("06:00", "frühstücken", 1), ("07:00", "being at home", 0), ("09:00", "Brot backen", 2)]
    assert (plan.wake, plan.bed, plan.currently) == ("06:00", "17:00", "")
    night = planned("Jo Kim", usual=(Usual(start=1200, end=1380, what="a"), Usual(start=1380, end=1680, what="b")))
    assert (night.wake, night.bed, len(night.items)) == ("20:00", "04:00", 2)
    nothing = planned("Jo Kim", usual=())
    assert (nothing.wake, nothing.bed, len(nothing.items)) == ("07:00", "23:00", 1)


@pytest.mark.parametrize(("who", "comes"), [("Mara Voss", True), ("Jo Kim", True), ("Al Day", False)])
def test_hosts_and_residents_who_agreed_attend(who: str, comes: bool) -> None:
    kept = [item for item in planned(who, TOLD).items if item.keeps]
    assert [(item.start, item.minutes, item.what, item.keeps) for item in kept] == [("18:00", 120, "feiern", 1)] * comes
    assert not any(item.keeps for item in planned(who, TOLD, date="Monday May 13, 2024").items)


async def test_days_have_no_gaps_and_all_residents_sleep_at_home(tmp_path: Path) -> None:
    async with Town.open(tmp_path, hamlet(talks=False)) as town:
        await town.run(until=3 * 8640)
        rows = [row async for row in rows_after(town.store)]
        homes = {name: person.home for name, person in town.setting.people.items()}
    plans = [(resident_of(row), row.event) for row in rows if isinstance(row.event, DayPlanned)]
    assert len(plans) == 3 * 4 or len(plans) == 3 * 3
    for who, plan in plans:
        today = [block for block in plan.blocks if block.start < 1440]
        assert today[0].start == 0 and all(a.end == b.start for a, b in pairwise(today))
        assert today[-1].end >= 1440 and sum(block.minutes for block in plan.blocks if block.asleep) >= 300
        assert all(block.place.startswith(homes[who]) for block in plan.blocks if block.asleep)
    evening = {who: [b.what for b in plan.blocks if b.start == 17 * 60] for who, plan in plans if plan.day == 1}
    assert evening["Ada Brook"] == ["reading to each other"] and evening["Ben Hale"] == [], "he was not told about it"


def test_keys_of_the_town_file_define_access_to_places() -> None:
    keys = """
[[places]]
address = "Elm House:room"
public = true
[[places]]
address = "Elm House:room:desk"
owners = ["Cleo Marsh"]
[[places]]
address = "Oak Cafe:cafe:counter"
public = false
"""
    setting = setting_of(parse_town(HAMLET.replace("[[residents]]", keys + "\n[[residents]]", 1), Path()))
    ben, ada = setting.people["Ben Hale"], setting.people["Ada Brook"]
    assert may_use(setting, ben, "Hamlet:Elm House:room") and not may_use(setting, ben, "Hamlet:Elm House:room:desk")
    assert not may_use(setting, ben, "Hamlet:Oak Cafe:cafe:counter")
    assert may_use(setting, ada, "Hamlet:Oak Cafe:cafe:counter"), "her own day takes place there"
    assert not may_use(hamlet(), ben, "Hamlet:Elm House:room"), "by default a home is for its residents"
    _, knows = find_home(hamlet(), hamlet().people["Cleo Marsh"])
    places = known_places(hamlet(), hamlet().people["Cleo Marsh"], knows, hamlet().when(0))
    assert not any("Mill" in address for address, _ in places)
    assert ("Hamlet:Elm House:room:desk", "desk in the room of Elm House") in [(at, each.words) for at, each in places]
