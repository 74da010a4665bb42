"""A plan item ends at its own end; an impossible day is refused, with the expected form."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hamlet import hamlet
from mindstream_town.paper.prompts import Stroke, Strokes
from mindstream_town.prompts.plans import DayPlan, Item
from mindstream_town.residents.plan import Stretch, fill
from mindstream_town.residents.turn import ResidentTurn
from mindstream_town.scenes.prompts import SceneDay
from mindstream_town.town import Town
from pydantic import ValidationError

HOME, CAFE = "Hamlet:Mill House:room", "Hamlet:Oak Cafe:cafe"
Items = list[tuple[str, str, str, str]]


def minutes(clock: str) -> int:
    hours, _, rest = clock.partition(":")
    return int(hours) * 60 + int(rest)


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([("08:00", "09:00", "bathing", HOME), ("20:00", "21:00", "reading", HOME)],
         "07:00 being at home, 08:00 bathing, 09:00 being at home, 20:00 reading, 21:00 being at home"),
        ([("07:00", "12:00", "baking", HOME), ("12:05", "22:00", "resting", HOME)], "07:00 baking, 12:05 resting"),
        ([("07:00", "12:00", "baking", HOME), ("12:20", "22:00", "resting", HOME)],
         "07:00 baking, 12:00 having some time to oneself, 12:20 resting"),
        ([("07:00", "18:00", "working", HOME), ("12:00", "12:30", "lunch", HOME), ("18:00", "22:00", "resting", HOME)],
         "07:00 working, 12:00 lunch, 12:30 working, 18:00 resting"),
        ([("20:00", "22:00", "reading", HOME), ("07:00", "20:00", "working", HOME)], "07:00 working, 20:00 reading"),
        ([("07:00", "22:00", "resting", HOME), ("07:00", "22:00", "resting", HOME)], "07:00 resting"),
        ([("07:00", "21:57", "resting", HOME)], "07:00 resting"),
        ([("07:00", "30:00", "dancing", HOME)], "07:00 dancing"),
        ([], "07:00 being at home"),
    ],
)  # fmt: skip
async def test_time_between_plan_items_is_free(tmp_path: Path, items: Items, expected: str) -> None:
    async with Town.open(tmp_path, hamlet()) as town:
        resident = town.residents["Ada Brook"]
        turn = ResidentTurn(resident, 0, town.setting, resident.state)
        given = [Stretch(minutes(start), minutes(end), what, place) for start, end, what, place in items]
        blocks = fill(turn, given, 7 * 60, 22 * 60)
    assert ", ".join(f"{each.start // 60:02}:{each.start % 60:02} {each.what}" for each in blocks) == expected
    assert blocks[0].start == 7 * 60 and blocks[-1].end == 22 * 60
    assert all(before.end == after.start for before, after in pairwise(blocks))
    planned = {what for _, _, what, _ in items}
    assert all(each.fine != (each.what in planned) for each in blocks), "free time is not broken down"


def scenes(*items: tuple[str, str]) -> SceneDay:
    return SceneDay.model_validate({"items": [{"from": a, "to": b, "what": f"{n}"} for n, (a, b) in enumerate(items)]})


@pytest.mark.parametrize(
    "items",
    [
        [("10:00", "10:00")], [("10:00", "09:00")], [("08:00", "09:00"), ("12:00", "12:00"), ("13:00", "14:00")],
        [("23:00", "22:00"), ("08:00", "09:00")], [("08:00", "08:30")],
    ],
)  # fmt: skip
def test_an_impossible_day_of_scenes_is_refused(items: list[tuple[str, str]]) -> None:
    with pytest.raises(ValidationError, match=r"must end after it begins|plan from getting up"):
        scenes(*items)


@pytest.mark.parametrize(
    ("items", "order", "last"),
    [
        ([("06:00", "08:00"), ("20:00", "01:00"), ("01:00", "02:00")], "012", 26 * 60),
        ([("20:00", "21:00"), ("08:00", "09:00"), ("12:00", "13:00")], "120", 21 * 60),
        ([("18:00", "21:00"), ("21:00", "07:00"), ("07:00", "09:00")], "012", 33 * 60),
        ([("08:00", "09:00"), ("22:00", "22:00")], "01", 22 * 60),
        ([("00:30", "02:00"), ("08:00", "09:00"), ("07:00", "08:00")], "210", 26 * 60),
    ],
)  # fmt: skip
def test_scenes_are_sorted_by_time(items: list[tuple[str, str]], order: str, last: int) -> None:
    spans = scenes(*items).spans()
    assert "".join(each.what for _, _, each in spans) == order and max(end for _, end, _ in spans) == last


@pytest.mark.parametrize(("wake", "bed", "start"), [("10:00", "10:00", "11:00"), ("07:00", "07:20", "07:00"),
                                                    ("07:00", "22:00", "23:00")])  # fmt: skip
def test_a_day_without_hours_is_refused(wake: str, bed: str, start: str) -> None:
    with pytest.raises(ValidationError, match=r"waking minutes|nothing begins between"):
        DayPlan(wake=wake, bed=bed, items=[Item(start=start, minutes=60, what="reading")])
    with pytest.raises(ValidationError, match=r"waking minutes|nothing begins between"):
        Strokes(wake=wake, bed=bed, strokes=[Stroke(start=start, what="reading")])
