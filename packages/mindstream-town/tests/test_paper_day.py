"""Days step by step, hour after hour: times of arrival, walks, finished tasks, news, and conditions seen again."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import pytest
from mindstream_town.events import ActFinished, Block, DayPlanned, Decided, Perceived
from mindstream_town.inspect.history import read_history
from mindstream_town.paper.people import finish_act
from mindstream_town.paper.plan import rewrite_day, what_was_done
from mindstream_town.paper.prompts import PlanHours, PlanStrokes, PlanTasks, RewriteDay
from mindstream_town.prompts.conduct import ShouldAct, TakeFromTalk
from mindstream_town.residents.converse import Agreement
from mindstream_town.residents.person import Appointment
from mindstream_town.residents.turn import ResidentTurn
from mindstream_town.town import Town
from mindstream_town.world.world import clock, minute_of
from paper_mind import PaperMind, village_of
from villages import LIUCUN

from mindstream.models.prompt import Prompt
from mindstream.models.roles import Models

HOUR = 360
HOST, GUEST, INN = LIUCUN.host, LIUCUN.guest, LIUCUN.inn
COUNTER, TABLE = f"{INN}:柜台", f"{INN}:方桌"
MILL, HUT = LIUCUN.homes[:2]
SIGN, FACT = "挂着告示", "赵林下个月要去县城。"


class Unmoved(PaperMind):
    """Copies each line of the plan into the rewritten day, and adds the agreements and other strokes."""

    def __init__(self, *more: dict[str, Any]) -> None:
        super().__init__()
        self.more = more

    def _answer(self, ask: Prompt[Any]) -> Any:
        if not isinstance(ask, RewriteDay):
            return super()._answer(ask)
        agreed = {f"{each.appointment.start:%H:%M}": n for n, each in enumerate(ask.agreed, 1) if each.appointment}
        strokes: list[dict[str, Any]] = []
        for line in ask.plan:
            start, _, rest = line.partition(" ")
            what, _, place = rest.removesuffix(")").partition(" (")
            if start not in agreed:
                strokes.append({"start": start, "what": what, "place": [place]})
        strokes += [{"start": start, "what": "约会", "keeps": n} for start, n in agreed.items()]
        return {"strokes": [*strokes, *self.more]}


def day_of(*parts: tuple[str, str, str], bed: int) -> tuple[Block, ...]:
    """Return the blocks of a day from the starts, texts and places of its parts."""
    starts = [minute_of(start) for start, _, _ in parts]
    blocks = [
        Block(start=start, minutes=end - start, what=what, place=place)
        for start, end, (_, what, place) in zip(starts, [*starts[1:], bed], parts, strict=True)
    ]
    asleep = Block(start=bed, minutes=24 * 60 - bed, what="sleeping", place=MILL, asleep=True)
    return (*blocks, asleep) if asleep.minutes > 0 else tuple(blocks)


def agreement(start: int) -> Agreement:
    """Return an agreement for an hour of the day at the inn."""
    at = Appointment(
        what="约会",
        place=INN,
        start=datetime(2024, 6, 3, start, tzinfo=UTC),
        end=datetime(2024, 6, 3, start, 30, tzinfo=UTC),
        who=(HOST, GUEST),
    )
    return Agreement(at, f"{start}")


async def test_hours_that_a_rewriting_does_not_move_stay_where_they_are(tmp_path: Path) -> None:
    mind = Unmoved()
    async with Town.open(tmp_path, village_of(), model=Models(mind)) as town:
        await town.run(until=7 * HOUR)
        resident = town.residents[HOST]
        turn = ResidentTurn(resident, 8 * HOUR, town.setting, resident.state)
        plan = [("07:30", "磨面", MILL), ("11:56", "听课", INN), ("12:58", "回家", MILL), ("15:00", "读书", HUT)]
        plan += [("17:00", "写字", MILL), ("18:56", "看戏", INN)]
        blocks = day_of(*plan, bed=22 * 60)
        turn.write(DayPlanned(step=turn.step, day=0, currently="", broad=(), blocks=blocks))
        starts, shown = [], []
        for hour in (14, 16, 20):
            await rewrite_day(turn, [agreement(hour)])
            starts.append({each.what: each.start for each in turn.state.blocks if each.what != "约会"})
            shown.append(mind.of(RewriteDay)[-1].plan)
    before = {each.what: each.start for each in blocks}
    assert before | {"读书": starts[0]["读书"]} == starts[0], "only the way to what follows the new appointment is new"
    assert starts[0]["看戏"] == starts[1]["看戏"] == starts[2]["看戏"]
    arrivals = [next(line for line in plan if "听课" in line) for plan in shown]
    assert len({*arrivals}) == 1 and arrivals[0] > "11:57", "the plan shows the hour of the arrival"
    kept = [each.start for each in turn.state.blocks if each.what == "约会"]
    assert len(kept) == 3 and all(14 * 60 - 10 < start <= 20 * 60 for start in kept)


async def test_a_rewritten_evening_lasts_until_bed_after_midnight(tmp_path: Path) -> None:
    mind = Unmoved({"start": "00:30", "what": "收拾", "place": []})
    async with Town.open(tmp_path, village_of(), model=Models(mind)) as town:
        await town.run(until=7 * HOUR)
        resident = town.residents[HOST]
        turn = ResidentTurn(resident, 20 * HOUR, town.setting, resident.state)
        blocks = day_of(("19:00", "吃饭", MILL), ("23:00", "写信", MILL), ("24:00", "写信", MILL), bed=26 * 60)
        turn.write(DayPlanned(step=turn.step, day=0, currently="", broad=(), blocks=blocks))
        await rewrite_day(turn, [agreement(22)])
    (asked,) = mind.of(RewriteDay)
    assert asked.bed == "02:00" and sum("写信" in line for line in asked.plan) == 1
    late = [(clock(each.start), clock(each.end), each.what) for each in turn.state.blocks if each.start > 22 * 60]
    assert [each[1:] for each in late] == [("24:00", "写信"), ("00:30", "写信"), ("02:00", "收拾")]
    assert late[0][0] < "23:00" and late[2][0] == "00:30", "the way back from the appointment is new"


async def test_earlier_appointments_have_numbers_in_a_rewriting(tmp_path: Path) -> None:
    mind = Unmoved()
    async with Town.open(tmp_path, village_of(), model=Models(mind)) as town:
        await town.run(until=13 * HOUR)
        resident = town.residents[HOST]
        resident.begin(town.setting.moment(town.step))
        turn = ResidentTurn(resident, town.step, town.setting, resident.state)
        await rewrite_day(turn, [agreement(15)])
    numbered = [each.appointment.what for each in mind.of(RewriteDay)[-1].agreed]
    assert numbered[0] == "约会" and {*numbered[1:]} == {LIUCUN.supper, LIUCUN.rumour}
    kept = [(each.place, each.start) for each in turn.state.blocks if each.what == "约会"]
    assert len(kept) >= 2 and kept[0][0] == INN and 15 * 60 - 10 < kept[0][1] <= 15 * 60
    assert kept[1][0].startswith(MILL) and 18 * 60 - 10 < kept[1][1] <= 18 * 60, "at its own place and time"


class AtTheInn(PaperMind):
    """Two people spend the morning at the inn in tasks of five minutes, and the host leaves a sign on the counter; at
    eleven the guest goes home."""

    leaves: ClassVar[dict[int, str]] = {1: SIGN}

    def _answer(self, ask: Prompt[Any]) -> Any:
        match ask:
            case PlanStrokes() if ask.who in self.out:
                inn = INN.split(":")[1:]
                home = {"start": "11:00", "what": "在家歇着", "place": []}
                strokes = [
                    {"start": "06:30", "what": "起床", "place": []},
                    {"start": "08:00", "what": "在店里", "place": inn},
                ]
                return {"wake": "06:30", "bed": "22:00", "strokes": [*strokes, *([home] if ask.who == GUEST else [])]}
            case PlanHours():
                return {"hours": [{"start": ask.start, "what": ask.what}]}
            case PlanTasks():
                thing = ["柜台"] if "柜台" in " ".join(ask.things[: ask.here]) else []
                leaves = self.leaves if ask.who == HOST and thing else {}
                start = minute_of(ask.when)
                return {"tasks": [
                    {"minutes": 5, "what": f"{ask.what} {clock(start + 5 * n)}", "thing": thing,
                     "leaves": leaves.get(n, "")}
                    for n in range(max(1, ask.minutes // 5))
                ]}  # fmt: skip
            case RewriteDay():
                return {"strokes": [{"start": "12:00", "what": LIUCUN.lunch, "place": INN.split(":")[1:], "keeps": 1}]}
            case TakeFromTalk():
                return super()._answer(ask) | {"memo": [{"text": FACT}]}
            case _:
                return super()._answer(ask)


async def test_a_harmless_condition_is_not_asked_about_with_each_act(tmp_path: Path) -> None:
    mind = AtTheInn()
    async with Town.open(tmp_path, village_of(), model=Models(mind)) as town:
        await town.run(until=11 * HOUR)
    of_sign = [each.who for each in mind.of(ShouldAct) if SIGN in each.sees]
    assert HOST not in of_sign, "her own act has left it"
    assert 1 <= of_sign.count(GUEST) <= 2, "at the first sight, and when he first used it"


async def test_a_condition_that_an_act_is_changing_is_not_asked_about(tmp_path: Path) -> None:
    class Wipes(AtTheInn):
        leaves: ClassVar[dict[int, str]] = {1: SIGN, 3: "repaired", 5: SIGN, 7: "擦干净了"}

    mind = Wipes()
    async with Town.open(tmp_path, village_of(), model=Models(mind)) as town:
        await town.run(until=11 * HOUR)
    assert not [each.sees for each in mind.of(ShouldAct) if each.who == HOST]


@pytest.mark.parametrize(("condition", "most"), [("有点歪", 2), (LIUCUN.fire, 100)])
async def test_only_dangers_are_asked_about_with_each_act(tmp_path: Path, condition: str, most: int) -> None:
    class Leaves(AtTheInn):
        leaves: ClassVar[dict[int, str]] = {}

        def _answer(self, ask: Prompt[Any]) -> Any:
            return "no" if isinstance(ask, ShouldAct) else super()._answer(ask)

    mind = Leaves()
    async with Town.open(tmp_path, village_of(), model=Models(mind)) as town:
        await town.run(until=8 * HOUR + HOUR // 2)
        await town.set_object(COUNTER, condition)
        await town.run(until=9 * HOUR + HOUR // 2)
        history = await read_history(town.store)
    for name in (HOST, GUEST):
        asked = [each for each in mind.of(ShouldAct) if each.who == name and condition in each.sees]
        assert 1 <= len(asked) <= most and (most == 2 or len(asked) > 5)
        assert len(asked) == sum(event.place == COUNTER for _, event in history.events(name, Decided))


async def test_facts_of_todays_talks_stay_before_glimpses(tmp_path: Path) -> None:
    mind = AtTheInn()
    async with Town.open(tmp_path, village_of(), model=Models(mind)) as town:
        await town.run(until=11 * HOUR)
    last = [each for each in mind.of(PlanTasks) if each.who == HOST][-1]
    assert last.when >= "10:00" and any(FACT in line for line in last.lately)
    glimpses = [line for line in last.lately if f"{GUEST} is " in line]
    assert 1 <= len(glimpses) <= 4 and max(glimpses) == last.lately[-1]
    assert last.done[0].startswith("(earlier") and len(last.done) == 9


async def test_later_hours_see_the_rewritten_day(tmp_path: Path) -> None:
    mind = PaperMind()
    async with Town.open(tmp_path, village_of(), model=Models(mind)) as town:
        await town.run(until=13 * HOUR)
    last = [each for each in mind.of(PlanHours) if each.who == HOST][-1]
    assert last.start >= "11:50" and LIUCUN.says["inn"] not in " ".join(last.day)
    assert any(line == f"18:00 {LIUCUN.supper}" for line in last.day)


async def test_a_short_task_after_a_long_walk_takes_place(tmp_path: Path) -> None:
    mind = AtTheInn()
    async with Town.open(tmp_path, village_of(step_s=60), model=Models(mind)) as town:
        await town.run(until=9 * 60)
        history = await read_history(town.store)
    asked = [each for each in mind.of(PlanTasks) if each.who == HOST and "店里" in each.what]
    assert asked[0].walk >= 5, "longer than the first task"
    finished = [event.what for _, event in history.events(HOST, ActFinished)]
    assert f"在店里 {asked[0].when}" in finished


async def test_a_walk_that_a_talk_interrupts_is_among_the_days_acts(tmp_path: Path) -> None:
    async with Town.open(tmp_path, village_of(step_s=60), model=Models(AtTheInn())) as town:
        await town.run(until=8 * 60 + 2)
        turn = ResidentTurn(town.residents[HOST], town.step, town.setting, town.residents[HOST].state)
        assert turn.state.act is not None and not turn.state.act.has_arrived(turn.step)
        memories = turn.state.unrated
        await finish_act(turn, turn.state.act)
    assert "on the way to the 大堂" in what_was_done(turn)[-1] and turn.state.unrated == memories


async def test_a_resident_who_leaves_is_seen_on_the_way(tmp_path: Path) -> None:
    mind = AtTheInn()
    async with Town.open(tmp_path, village_of(), model=Models(mind)) as town:
        await town.run(until=11 * HOUR + HOUR // 2)
        history = await read_history(town.store)
    seen = [what for _, event in history.events(HOST, Perceived) for who, _, what in event.seen if who == GUEST]
    assert any(what.startswith("on the way to ") and "林屋" in what for what in seen)
    assert not any("在家歇着" in what for what in seen), "that act begins at his home"
