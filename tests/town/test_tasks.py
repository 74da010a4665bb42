"""What is done minute by minute: each at its thing; what has happened comes first, and is mended."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hamlet import hamlet

from mindstream import caches
from mindstream.town.events import DayPlanned, TasksPlanned
from mindstream.town.journal import rows_after
from mindstream.town.plan import take_up
from mindstream.town.prompts.break_down import BreakDown, Task
from mindstream.town.rules import things
from mindstream.town.rules.tasks import break_down_by_habit
from mindstream.town.rules.things import find_thing
from mindstream.town.rules.times import names_time
from mindstream.town.rules.worth import worth
from mindstream.town.town import Town
from mindstream.town.turn import Turn

HOME = tuple(
    f"{thing} of Mill House" for thing in (
        "bed in the bedroom", "closet in the bedroom", "stove in the kitchen", "fridge in the kitchen",
        "table in the kitchen",
        "shower in the bathroom", "toilet in the bathroom", "bathroom sink in the bathroom",
    )
)  # fmt: skip


def tasks(what: str, minutes: int = 60, around: tuple[str, ...] = HOME, is_home: bool = True) -> list[Task]:
    ask = BreakDown(
        who="Jo",
        identity="Jo",
        what=what,
        when="08:00",
        minutes=minutes,
        around=around,
        is_home=is_home,
    )
    reply: list[Task] = break_down_by_habit(ask).tasks
    assert sum(task.minutes for task in reply) == minutes and all(0 < task.minutes <= 25 for task in reply)
    return reply


def thing(task: Task, around: tuple[str, ...] = HOME) -> str:
    return around[task.place - 1].partition(" in the ")[0] if task.place else ""


def test_a_morning_goes_by_its_things() -> None:
    done = [(task.what, thing(task)) for task in tasks("waking up and completing the morning routine", 50)]
    assert done[:5] == [
        ("getting out of bed", "bed"), ("using the toilet", "toilet"), ("brushing teeth", "bathroom sink"),
        ("taking a shower", "shower"), ("getting dressed", "closet"),
    ]  # fmt: skip
    meal = [thing(task) for task in tasks("having breakfast", 40)]
    assert meal == ["fridge", "stove", "table", "bathroom sink"]


@pytest.mark.parametrize("minutes", [1, 7, 20, 59, 60, 90])
@pytest.mark.parametrize("what", ["having dinner", "writing a novel", "getting ready for bed", "xyzzy"])
def test_tasks_fill_their_minutes(what: str, minutes: int) -> None:
    tasks(what, minutes)


def test_guests_stay_on_their_side_of_the_counter() -> None:
    names = ["behind the bar counter", "cooking area", "bar seating"]
    assert find_thing("having dinner (ordering food)", names, guest=True) == 2
    assert find_thing("working (serving customers)", names) == 0


CAFE = tuple(f"{each} in the cafe of Oak Cafe" for each in ("cafe counter", "cafe seating"))
LIBRARY = ("desk in the hall of Town Library", "lectern in the reading room of Town Library")


def at_place(what: str, where: str, around: tuple[str, ...], identity: str = "Jo") -> list[tuple[str, str]]:
    ask = BreakDown(who="Jo", identity=identity, what=what, where=where, when="09:00", minutes=60, around=around)
    return [(task.what, thing(task, around)) for task in break_down_by_habit(ask).tasks]


def test_nobody_serves_customers_but_who_works_there() -> None:
    novel = at_place("working on a novel at Oak Cafe", "cafe of Oak Cafe", CAFE, "Jo\nJo is a writer of novels.")
    assert {at for _, at in novel} == {"cafe seating"} and not any("customers" in what for what, _ in novel)
    guest = at_place("working", "cafe of Oak Cafe", CAFE, "Jo\nJo is a writer of novels.")
    assert not any("customers" in what for what, _ in guest)
    cook = at_place("working", "cafe of Oak Cafe", CAFE, "Jo\nJo is the cook of Oak Cafe.")
    assert any("customers" in what for what, _ in cook)


def test_the_room_that_is_named_is_where_it_is_done() -> None:
    assert {at for _, at in at_place("studying", "reading room of Town Library", LIBRARY)} <= {"lectern", ""}


def test_what_is_not_served_is_brought_and_what_is_not_there_is_not_used() -> None:
    lunch = [what for what, _ in at_place("having lunch", "hall of Town Library", LIBRARY)]
    assert lunch[0] == "unpacking food from home" and not any("ordering" in what for what in lunch)
    bare = [task.what for task in tasks("having dinner", 40, around=("chair in the room of Mill House",))]
    assert bare == ["getting food ready", "preparing something simple", "eating", "washing the dishes"]


def test_teeth_are_brushed_in_the_bathroom_whatever_the_kitchen_has() -> None:
    for basin in ("sink", "washbasin", "bathroom sink", "basin"):
        assert find_thing("brushing teeth", ["kitchen sink", basin]) == 1


async def test_days_have_no_gaps_and_everybody_sleeps_at_home(tmp_path: Path) -> None:
    async with Town.open(tmp_path, hamlet(talks=False, reflects=False)) as town:
        await town.run(until=3 * 8640)
        rows = [row async for row in rows_after(town.store)]
        homes = {name: person.home for name, person in town.setting.people.items()}
    plans = [(row.mind, row.event) for row in rows if isinstance(row.event, DayPlanned)]
    assert len(plans) == 3 * 4 or len(plans) == 3 * 3
    for who, plan in plans:
        today = [block for block in plan.blocks if block.start < 1440]
        assert today[0].start == 0 and all(a.end == b.start for a, b in pairwise(today))
        assert today[-1].end >= 1440 and sum(block.minutes for block in plan.blocks if block.asleep) >= 300
        assert all(block.place.startswith(homes[who]) for block in plan.blocks if block.asleep)


async def test_what_is_agreed_on_for_tonight_comes_into_the_day(tmp_path: Path) -> None:
    async with Town.open(tmp_path, hamlet()) as town:
        await town.run(until=12 * 360)
        resident = town.residents["Cleo Marsh"]
        turn = Turn(resident, 12 * 360, town.setting, resident.state)
        assert take_up(turn, "Cleo Marsh will come to a quiz at Oak Cafe tonight at 7pm.")
        event = turn.rows[-1].event
        assert isinstance(event, TasksPlanned) and event.blocks[0].place == "Hamlet:Oak Cafe:cafe"
        block = turn.state.block_at(19 * 60 + 10)
        assert block is not None and block.what == "attending the quiz"
        for too_late in (
            "Cleo Marsh will come to a quiz tomorrow at 7pm.",
            "Let us have a coffee some day.",
            "We met at 9am today.",
        ):
            assert not take_up(turn, too_late)


def test_no_rule_keeps_words_that_were_erased() -> None:
    told = "Zanzibar quilts are sold at noon"
    kept = [names_time, worth, things._fit, things._words]
    for asked in (worth(told), names_time(told), things._fit(told, "counter", False)):
        assert asked is not None
    assert all(function.cache_info().currsize for function in kept)  # type: ignore[attr-defined]
    caches.empty("Ada Brook")
    assert not any(function.cache_info().currsize for function in kept)  # type: ignore[attr-defined]
