"""Changed objects affect residents in a running town immediately; afterwards the plan continues."""

from __future__ import annotations

from pathlib import Path

import pytest
from hamlet import HAMLET, hamlet
from mindstream_town.events import Act, Acted, ObjectChanged
from mindstream_town.formats.town_file import parse_town
from mindstream_town.journal import resident_of, rows_after
from mindstream_town.profile import Profile
from mindstream_town.residents.react import number_aside
from mindstream_town.setting import Setting
from mindstream_town.source import setting_of
from mindstream_town.town import Town

HOUR = 360
ROOM, PIANO = "Hamlet:Mill House:room:", "Hamlet:Oak Cafe:cafe:piano"


async def lived(
    folder: Path, setting: Setting, start: float, minutes: int, *things: tuple[str, str]
) -> tuple[dict[str, list[Act]], list[ObjectChanged]]:
    """Run to an hour of the first day, set conditions, continue; return the acts since and the changes."""
    begun = int(start * HOUR)
    async with Town.open(folder, setting) as town:
        await town.run(until=begun)
        for thing, condition in things:
            await town.set_object(thing, condition)
        await town.run(until=begun + minutes * 6)
        rows = [row async for row in rows_after(town.store) if getattr(row.event, "step", -1) > begun]
    acts: dict[str, list[Act]] = {name: [] for name in setting.people}
    for row in rows:
        if isinstance(row.event, Acted):
            acts[resident_of(row)].append(row.event.act)
    return acts, [row.event for row in rows if isinstance(row.event, ObjectChanged)]


def about(acts: list[Act], thing: str) -> list[Act]:
    return [act for act in acts if act.sees_to == thing]


@pytest.mark.parametrize(
    ("condition", "does"), [("leaking", "mending"), ("burning", "ending a danger"), ("kaputt", "mending")]
)
async def test_a_resident_fixes_a_broken_object_at_home(tmp_path: Path, condition: str, does: str) -> None:
    acts, changes = await lived(tmp_path, hamlet(talks=False), 6.5, 70, (ROOM + "shower", condition))
    mine = about(acts["Ada Brook"], ROOM + "shower")
    assert mine and mine[0].since <= 6.5 * HOUR + 30 and any(does in act.what for act in mine)
    assert not about(acts["Ben Hale"], ROOM + "shower") or condition == "burning", "he sleeps, or leaves it to her"
    assert changes[0].by == "Ada Brook" and {each.condition for each in changes} == {""}
    assert acts["Ada Brook"][-1].why == "plan", "then the day continues"


async def test_a_harmless_condition_changes_nothing(tmp_path: Path) -> None:
    plain, _ = await lived(tmp_path / "plain", hamlet(talks=False), 6.5, 30)
    acts, changes = await lived(tmp_path / "odd", hamlet(talks=False), 6.5, 30, (ROOM + "shower", "Clean and tidy"))
    assert acts == plain and not changes


async def test_without_observation_there_are_no_reactions(tmp_path: Path) -> None:
    plain, _ = await lived(tmp_path / "plain", hamlet(observes=False), 6.1, 30)
    acts, _ = await lived(tmp_path / "odd", hamlet(observes=False), 6.1, 30, (ROOM + "shower", "burning"))
    assert acts == plain


async def test_only_one_of_two_witnesses_fixes_an_object(tmp_path: Path) -> None:
    acts, changes = await lived(tmp_path, hamlet(talks=False), 7.1, 60, (ROOM + "shower", "dripping"))
    assert [each.by for each in changes] == ["Ada Brook"]
    assert all(act.since < changes[0].step for act in about(acts["Ben Hale"], ROOM + "shower")), "he leaves it to her"


WRITES = '{ from = "09:30", to = "12:30", what = "writing a thesis", where = "desk", duty = true }'
PLAYS = '{ from = "09:30", to = "12:30", what = "practising", where = "Oak Cafe:cafe:piano" }'


async def test_after_reporting_a_broken_object_the_day_continues(tmp_path: Path) -> None:
    text = HAMLET.replace(WRITES, PLAYS)
    for thing in ("piano", "counter"):
        text = text.replace(f'where = "Oak Cafe:cafe:{thing}", duty', 'where = "Mill House:room", duty')
    setting = setting_of(parse_town(text, Path()), seed=1, profile=Profile(talks=False))
    acts, _ = await lived(tmp_path, setting, 9, 4 * 60, (PIANO, "out of tune"))
    cleo = acts["Cleo Marsh"]
    assert len(about(cleo, PIANO)) == 1, "the owner is told once"
    assert len([act for act in cleo if act.place == PIANO and act.why == "plan"]) <= 2
    lunch = next(act for act in cleo if act.what.startswith("having lunch"))
    assert lunch.since < 12 * HOUR, "acts that need it are skipped: the next one begins"


def test_the_place_to_wait_is_in_another_room_also_if_a_whole_room_is_occupied() -> None:
    things = ("V:House:bath:basin", "V:House:bath:toilet", "V:House:kitchen:stove", "V:House:bath", "V:Inn:hall:bar")
    for place in ("V:House:bath", "V:House:bath:basin"):
        assert number_aside(things, place) == 3
    assert number_aside(things, "V:House:kitchen:stove") == 1
    assert number_aside((*things[:2], *things[3:]), "V:House:bath") == 0
