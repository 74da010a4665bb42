"""Residents with a model use scenes: agreements, refusals, overhearing, secrets and insights are typed replies."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from fake_endpoint import FakeEndpoint
from hamlet import HAMLET
from keys import key_of_resident
from mindstream_town.events import (
    Acted,
    Asked,
    DayPlanned,
    Met,
    Perceived,
    ResultAsked,
    SceneBegan,
    StoodIn,
    Talked,
    TasksPlanned,
)
from mindstream_town.forking import fork
from mindstream_town.formats.town_file import parse_town
from mindstream_town.inspect.estimate import CallCount, Counting
from mindstream_town.inspect.history import read_history
from mindstream_town.inspect.why import explain
from mindstream_town.journal import resident_of, rows_after
from mindstream_town.metrics import trace_insights
from mindstream_town.profile import Profile
from mindstream_town.replay import record
from mindstream_town.residents.person import appointment_of
from mindstream_town.scenes.prompts import LetOn, PlanScenes, ReflectScenes, TalkScene, WhatCame
from mindstream_town.scenes.talk import SHORTEST
from mindstream_town.setting import Setting
from mindstream_town.source import setting_of
from mindstream_town.town import Order, Town
from mindstream_town.world.routes import read_walk
from over_http import over_http
from pydantic import TypeAdapter
from scene_minds import DAY, GUEST, HERMIT, HOST, HOUR, INN, INN_WORDS, LUNCH, SceneMind, day, liucun, talk

from mindstream.memory.curation.forgetting import ForgetRequest, find_removal, remove
from mindstream.memory.store.record import Kind
from mindstream.models.model import Part, Request
from mindstream.models.roles import Models
from mindstream.models.rules import Rules


async def remembered(town: Town, name: str, kinds: tuple[Kind, ...] = ("thought", "observation")) -> list[str]:
    """Return the texts of a resident's memories."""
    now = town.setting.moment(town.step)
    return [each.text for each in await town.store.latest(key_of_resident(name), kinds, 200, now=now)]


def agree(ask: TalkScene) -> dict[str, Any]:
    """Let the host and the guest agree on lunch for today and on a tea for tomorrow; the others talk."""
    if {side.who for side in ask.sides} != {HOST, GUEST}:
        return talk(ask)
    both = {"place": INN_WORDS, "who": [HOST, GUEST]}
    lunch = {"what": LUNCH, "day": "2024-06-03", "from": "12:00", "to": "13:00"}
    tea = {"what": "下午喝茶", "day": "2024-06-04", "from": "15:00", "to": "16:00"}
    return talk(ask, agreed=[lunch | both, tea | both])


async def test_an_agreement_in_chinese_changes_both_days(tmp_path: Path, door: FakeEndpoint) -> None:
    mind = SceneMind(talk_scene=agree)
    async with over_http(mind, door) as models, Town.open(tmp_path, liucun(), model=models) as town:
        await town.run(until=12 * HOUR + 60)
        for name in (HOST, GUEST):
            act = town.residents[name].state.act
            assert act is not None and (act.what, act.place) == (LUNCH, INN)
        hermit = town.residents[HERMIT].state.act
        assert hermit is not None and hermit.what != LUNCH, "she has no agreement"
        await town.run(until=13 * HOUR + 120)
        act = town.residents[HOST].state.act
        assert act is not None and act.what != LUNCH, "then the day continues"
        await town.run(until=DAY + HOUR)
        kept = await town.store.latest(key_of_resident(GUEST), ("thought",), 50, now=town.setting.moment(town.step))
    later = [at for each in kept if (at := appointment_of(each.data)) and at.start.day == 4]
    assert [at.what for at in later] == ["下午喝茶"] and later[0].who == tuple(sorted((HOST, GUEST)))
    tomorrow = [each for each in mind.of(PlanScenes) if each.who == GUEST][-1]
    assert any(each.appointment and each.appointment.what == "下午喝茶" for each in tomorrow.memories)


async def test_a_refused_resident_remembers_it_and_does_not_ask_again_soon(tmp_path: Path, door: FakeEndpoint) -> None:
    def refuse(ask: TalkScene) -> dict[str, Any]:
        one, two = (side.who for side in ask.sides)
        words = [{"who": one, "text": f"{two}今天不想说话。", "weight": 4}, {"who": two, "text": "不想说话。"}]
        return {"talk": False, "declined_by": two, "remember": words}

    mind = SceneMind(talk_scene=refuse)
    async with over_http(mind, door) as models, Town.open(tmp_path, liucun(), model=models) as town:
        await town.run(until=10 * HOUR)
        rows = [row async for row in rows_after(town.store)]
        one, two = (side.who for side in mind.of(TalkScene)[0].sides)
        assert f"{two}今天不想说话。" in await remembered(town, one)
    met = [row.event for row in rows if isinstance(row.event, Met)]
    assert met and {each.outcome for each in met} == {"declined"} and all(each.by for each in met)
    assert not any(isinstance(row.event, Talked) for row in rows)
    assert len(mind.of(TalkScene)) == 3, "once per pair"


async def test_a_resident_who_declines_is_left_alone(tmp_path: Path, door: FakeEndpoint) -> None:
    def decline(ask: TalkScene) -> dict[str, Any]:
        return talk(ask, declined_by=ask.sides[1].who)

    mind = SceneMind(talk_scene=decline)
    async with over_http(mind, door) as models, Town.open(tmp_path, liucun(), model=models) as town:
        await town.run(until=10 * HOUR)
        rows = [row async for row in rows_after(town.store)]
    met = [row.event for row in rows if isinstance(row.event, Met)]
    assert met and all(each.outcome == "declined" and each.by for each in met)
    assert any(isinstance(row.event, Talked) for row in rows), "the spoken words are stored"
    assert "until 10:00" in mind.of(TalkScene)[0].sides[1].doing, "the partner's current act is in the prompt"


async def test_residents_nearby_overhear_a_conversation(tmp_path: Path, door: FakeEndpoint) -> None:
    def heard(ask: TalkScene) -> str:
        return f"{ask.sides[0].who}说磨坊要关门了,{ask.sides[1].who}不信。"

    mind = SceneMind(plan_scenes=out_all_day, talk_scene=lambda ask: talk(ask, overheard=heard(ask)))
    async with over_http(mind, door) as models, Town.open(tmp_path, five(), model=models) as town:
        await town.run(until=10 * HOUR)
        rows = [row.event async for row in rows_after(town.store) if isinstance(row.event, SceneBegan)]
        known = {name: await remembered(town, name) for name in town.residents}
        begins = {f"{town.setting.when(row.step):%H:%M}": row.step for row in rows}
    at_cafe, heard_by = 0, {}
    for ask in mind.of(TalkScene):
        begin = begins[ask.when[-5:]]
        others = {row.partner for row in rows if row.step <= begin + SHORTEST * 6 and begin <= row.until + 6}
        heard_by[ask] = {name for name in known if heard(ask) in known[name]}
        assert not heard_by[ask] & {side.who for side in ask.sides}
        if 8 * HOUR < begin < 10 * HOUR - SHORTEST * 6:  # all are at the café
            at_cafe += 1
            assert heard_by[ask] >= {*known} - others, "who is there at the end, and does not talk, overhears it"
    first = mind.of(TalkScene)[0]
    assert at_cafe > 2 and "Emil Kern" in {*first.near} - heard_by[first], "he has walked on"


def restless(ask: PlanScenes) -> dict[str, Any]:
    """Plan a day at the café in acts of seven or eight minutes, so that acts end during the talks of others."""
    often = 7 + len(ask.who) % 2
    times = [f"{minute // 60:02d}:{minute % 60:02d}" for minute in range(7 * 60, 9 * 60, often)]
    items = [
        {"from": start, "to": end, "what": f"{ask.who} at {start}", "place": "cafe of Oak Cafe", "open": "Who won?"}
        for start, end in pairwise(times)
    ]
    return {"items": items}


class Withheld(SceneMind):
    """Withhold the reply to each talk until the test allows it."""

    def __init__(self) -> None:
        super().__init__(plan_scenes=restless)
        self.allowed = asyncio.Event()

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        async for part in super().reply(request):
            if isinstance(request.prompt, TalkScene):
                await self.allowed.wait()
            yield part


@pytest.mark.parametrize("order", ["lockstep", "free"])
async def test_the_town_goes_on_while_a_talk_waits_for_its_reply(order: Order, tmp_path: Path) -> None:
    mind, passed = Withheld(), list[int]()

    def note(step: int) -> None:
        scenes = [each.state.scene for each in town.residents.values() if each.state.scene]
        passed.extend(step for each in scenes if step > each.step)
        if passed:
            mind.allowed.set()

    async with Town.open(tmp_path, five(), model=Models(mind), order=order) as town:
        await asyncio.wait_for(town.run(until=8 * HOUR, on_step=note), 60)
        rows = [row.event async for row in rows_after(town.store)]
        played: Any = await record(town.store, town.setting, None, None)
    assert passed, "the town goes on before the reply arrives"
    talks = [talk for each in played["people"] for talk in each["talks"]]
    assert talks and all(steps >= SHORTEST * 6 for _, _, steps, _ in talks), "a replay shows them from the beginning"
    begun = {each.step: each.until for each in rows if isinstance(each, SceneBegan)}
    assert {each.step for each in rows if isinstance(each, Met)} <= {*begun.values()}


@pytest.mark.parametrize("alarm", [False, True])
async def test_a_town_that_stops_during_a_scene_ends_it_in_the_same_way(alarm: bool, tmp_path: Path) -> None:
    def opened(name: str, new: Setting | None, order: Order) -> AbstractAsyncContextManager[Town]:
        mind = SceneMind(plan_scenes=restless)
        return Town.open(tmp_path / name, new, model=Models(mind), order=order)

    async def first_scene() -> int:
        async with opened("calm", five(), "lockstep") as town:
            await town.run(until=8 * HOUR)
            return min([row.event.step async for row in rows_after(town.store) if isinstance(row.event, SceneBegan)])

    began, digests = await first_scene(), list[str]()
    for name, order, stops in (("a", "lockstep", (2,)), ("b", "free", (2,)), ("c", "free", (0, 1, 2, 20))):
        new: Setting | None = five()
        for stop in stops:
            async with opened(name, new, order) as town:  # type: ignore[arg-type]
                new = None
                await town.run(until=began + stop)
                assert stop == 20 or any(each.state.scene for each in town.residents.values())
                if alarm and stop == 2:
                    await town.set_object("Hamlet:Oak Cafe:cafe:piano", "on fire", danger=True)
        async with opened(name, None, order) as town:  # type: ignore[arg-type]
            await town.run(until=8 * HOUR)
            rows = [row.event async for row in rows_after(town.store)]
            digests.append(await town.digest())
            met = sum(isinstance(each, Met) for each in rows)
            waiting = sum(each.state.scene is not None for each in town.residents.values())
            assert sum(isinstance(each, SceneBegan) for each in rows) == met + waiting
            found = sum(isinstance(each, Perceived) and each.result for each in rows)
            waiting = sum(each.state.result is not None for each in town.residents.values())
            assert sum(isinstance(each, ResultAsked) for each in rows) == found + waiting > 0
    assert len({*digests}) == 1


async def test_a_result_that_arrives_when_a_talk_begins_comes_up_in_it(tmp_path: Path) -> None:
    def curious(ask: PlanScenes) -> dict[str, Any]:
        plan = out_all_day(ask)
        plan["items"][4] |= {"open": "Who won?"}  # until 08:15, when the next talk begins
        return plan

    async with Town.open(tmp_path, five(), model=Models(SceneMind(plan_scenes=curious))) as town:
        await town.run(until=9 * HOUR)
        rows = [(resident_of(row), row.event) async for row in rows_after(town.store)]
    results = {(name, each.step): each.records for name, each in rows if isinstance(each, Perceived) and each.result}
    begun = {(name, each.step): each.mind for name, each in rows if isinstance(each, SceneBegan)}
    assert results.keys() & begun.keys()
    assert all({*results[both]} <= {*begun[both]} for both in results.keys() & begun.keys())


RUMOUR = "据说磨坊里藏着一匹会数数的斑马。"


def rumoured() -> Setting:
    """Return the village with a rumour among the host's first memories."""
    knows = 'knows = ["老茶馆:大堂:方桌"]'
    return liucun(lambda text: text.replace(knows, f'{knows}\nseeds = ["{RUMOUR}"]', 1))


async def test_a_request_is_repeated_without_memories_that_are_forgotten_or_lost(tmp_path: Path) -> None:
    """A town stops during the first talk, whose request contains a memory."""
    mind = SceneMind()
    async with Town.open(tmp_path / "town", rumoured(), model=Models(mind)) as town:
        while not any(each.state.scene for each in town.residents.values()):
            await town.run(until=town.step + 1)
        step, memory = town.step, town.residents[HOST].memory
        (rumour,) = [each for each in await memory.find(200, kinds=("note",)) if each.text == RUMOUR]
        rows = [row.event async for row in rows_after(town.store) if isinstance(row.event, SceneBegan)]
    assert RUMOUR in str(mind.of(TalkScene)[0].sides) and RUMOUR not in str(rows)
    await fork(tmp_path / "town", tmp_path / "same", step)
    await fork(tmp_path / "town", tmp_path / "fork", step, (rumour.id,))
    async with Town.open(tmp_path / "town", model=Models(SceneMind())) as town:
        memory = town.residents[HOST].memory
        await remove(memory, await find_removal(memory, ForgetRequest(ids=(rumour.id,))))
    for name, has_it in (("same", True), ("fork", False), ("town", False)):
        mind = SceneMind()
        async with Town.open(tmp_path / name, model=Models(mind)) as town:
            await town.run(until=step + SHORTEST * 6)
            assert town.residents[HOST].state.met
        assert (RUMOUR in str(mind.of(TalkScene)[0])) is has_it, name


async def test_a_user_who_takes_control_ends_the_scene_of_both(tmp_path: Path) -> None:
    async with Town.open(tmp_path, five(), model=Models(SceneMind(plan_scenes=out_all_day))) as town:
        while not (in_scene := [each for each in town.residents.values() if each.state.scene]):
            await town.run(until=town.step + 1)
        one, other = in_scene[0], town.residents[in_scene[0].state.partner]
        await town.embody(one.name, "Zoe")
        assert one.state.scene is None and other.state.scene is None
        assert one.state.act is not None and one.state.act.why == "wait" and other.name in one.state.met
        await town.run(until=8 * HOUR)
        rows = [row.event async for row in rows_after(town.store)]
    both = {one.name, other.name}
    met = [each.step for each in rows if isinstance(each, Met) and {each.other} < both]
    assert met[0] == met[1]


async def test_finished_acts_are_remembered_with_the_people_present(tmp_path: Path, door: FakeEndpoint) -> None:
    mind = SceneMind()
    async with over_http(mind, door) as models, Town.open(tmp_path, liucun(), model=models) as town:
        await town.run(until=11 * HOUR)
        deeds = await remembered(town, HOST, ("observation",))
    assert any("起床吃早饭" in text and "07:00-08:00" in text for text in deeds)
    assert any(text.startswith(f"{HOST}: 喝茶") and GUEST in text for text in deeds)


async def test_the_evening_reflection_is_in_the_next_plan(tmp_path: Path, door: FakeEndpoint) -> None:
    def evening(ask: ReflectScenes) -> dict[str, Any]:
        thought = {"text": f"{GUEST}常来茶馆。", "because": [1, 2, 99]}
        return {
            "insights": [thought, {"text": "无据。", "because": [99]}, {"text": "只有一条。", "because": [1]}],
            "currently": "磨坊要换新磨盘了。",
        }

    mind = SceneMind(reflect_scenes=evening)
    async with over_http(mind, door) as models, Town.open(tmp_path, liucun(), model=models) as town:
        await town.run(until=DAY + HOUR)
        thoughts = await remembered(town, HOST, ("thought",))
    first, second = (each for each in mind.of(PlanScenes) if each.who == HOST)
    assert "新磨盘" not in first.identity and "磨坊要换新磨盘了。" in second.identity
    assert f"{GUEST}常来茶馆。" in thoughts, "an insight from several memories is stored"
    assert not {"无据。", "只有一条。"} & set(thoughts), "one without evidence, or from one memory only, is not"


SECRET = "王秀兰要把磨坊卖了。"


def with_secret(text: str) -> str:
    seed = f'home = "磨坊:卧室"\nseeds = [{{ text = "{SECRET}", weight = 9, secret = true }}]'
    return text.replace('home = "磨坊:卧室"', seed, 1)


async def test_a_secret_is_only_in_prompts_of_its_owner(tmp_path: Path) -> None:
    def evening(ask: ReflectScenes) -> dict[str, Any]:
        if ask.who != HOST:
            return {}
        numbers = [n for n, each in enumerate(ask.memories, 1) if SECRET in each] or [1]
        return {
            "insights": [{"text": f"想着:{SECRET}", "because": [*numbers, *({1, 2} - {*numbers})]}],
            "currently": f"忙着。{SECRET}",
        }

    def lets_on(ask: LetOn) -> dict[str, Any]:
        return {"lets_on": [{"to": name, "says": "磨坊生意不好。"} for name in (GUEST, HERMIT)]}

    mind = SceneMind(reflect_scenes=evening, let_on=lets_on)
    async with Town.open(tmp_path, liucun(with_secret), model=Models(mind)) as town:
        await town.run(until=2 * DAY - 1)
    own = [each for each, words in zip(mind.asked, mind.rendered, strict=True) if SECRET in words]
    assert own and all(getattr(each, "who", "") == HOST for each in own), "only in her own calls"
    talks = [each for each in mind.of(TalkScene) if HOST in {side.who for side in each.sides}]
    assert len(talks) >= 4 and all("磨坊生意不好。" in str(each.sides) for each in talks)
    assert {each.who for each in mind.of(LetOn)} == {HOST}


FIVE = "".join(
    f"""
[[residents]]
name = "{name}"
age = 30
learned = "{name} lives here."
home = "Elm House:room"
"""
    for name in ("Dora Lund", "Emil Kern")
)


def five(**profile: Any) -> Setting:
    return setting_of(parse_town(HAMLET + FIVE, Path()), seed=1, profile=Profile.model_validate(profile))


def out_all_day(ask: PlanScenes) -> dict[str, Any]:
    """Plan a day at the café, in quarters of an hour, in which everyone always sees everyone."""
    times = [f"{minute // 60:02d}:{minute % 60:02d}" for minute in range(7 * 60, 22 * 60 + 1, 15)]
    items = [
        {"from": start, "to": end, "what": f"{ask.who} at {start}", "place": "cafe of Oak Cafe"}
        for start, end in pairwise(times)
    ]
    return {"items": items}


async def test_model_calls_per_day_stay_within_the_budget(tmp_path: Path) -> None:
    mind = SceneMind(plan_scenes=out_all_day)
    async with Town.open(tmp_path, five(), model=Models(mind)) as town:
        await town.run(until=DAY - 1)
        spent = {name: resident.state.asked for name, resident in town.residents.items()}
        asked = [row.event async for row in rows_after(town.store) if isinstance(row.event, Asked)]
    of_days = len(mind.asked) - 5  # the importance of the town's first memories is requested once, at the beginning
    assert sum(calls for calls, _ in spent.values()) == sum(each.calls for each in asked) == of_days
    assert all(2 < calls <= 12 for calls, _ in spent.values()), spent
    assert all(tokens <= 16_000 for _, tokens in spent.values()), spent
    assert {each.who for each in mind.of(ReflectScenes)} == set(spent), "some budget remains for the evening"


async def test_a_smaller_budget_means_fewer_talks(tmp_path: Path) -> None:
    mind = SceneMind(plan_scenes=out_all_day)
    async with Town.open(tmp_path, five(day_calls=5), model=Models(mind)) as town:
        await town.run(until=DAY - 1)
        assert all(each.state.asked[0] <= 5 for each in town.residents.values())
    assert 0 < len(mind.of(TalkScene)) <= 5


async def test_interruptions_do_not_change_the_journal(tmp_path: Path) -> None:
    async def live(folder: Path, stops: tuple[int, ...]) -> str:
        begun: Setting | None = liucun(with_secret)
        for stop in stops:
            async with Town.open(folder, begun, model=Models(SceneMind(talk_scene=agree))) as town:
                await town.run(until=stop)
                digest = await town.digest()
            begun = None
        return digest

    end = DAY + 10 * HOUR
    straight = await live(tmp_path / "a", (end,))
    assert await live(tmp_path / "b", (end,)) == straight
    assert await live(tmp_path / "c", (8 * HOUR + 300, 9 * HOUR, 9 * HOUR + 1, 21 * HOUR, DAY, end)) == straight


async def test_a_newcomer_learns_a_place_from_a_conversation(tmp_path: Path) -> None:
    hall = "旧祠堂:厢房"

    def opened(text: str) -> str:
        at_home = f'home = "{hall}"\nbed = "{hall}:床"'
        text = text.replace(at_home, at_home.replace(hall, "林屋:小间")).replace(f', "{hall}"]', "]")
        text = text.replace('bed = "林屋:小间:床"\nknows', 'bed = "林屋:小间:床"\nknows')
        text = re.sub(r"\[\[residents.seeds\]\].*?\n\n", "", text, flags=re.DOTALL)
        return text.replace('knows = ["老茶馆:大堂:方桌"]', f'knows = ["老茶馆:大堂:方桌", "{hall}"]', 1)

    place = f"柳村:{hall}"
    visit = {"what": "看祠堂", "place": "厢房 of 旧祠堂", "from": "20:00", "to": "20:30"}
    mind = SceneMind(
        talk_scene=lambda ask: talk(
            ask,
            agreed=[visit | {"who": [side.who for side in ask.sides]}, visit | {"place": "nowhere", "from": "21:00"}],
        )
    )
    async with Town.open(tmp_path, liucun(opened), model=Models(mind)) as town:
        await town.run(until=6 * HOUR)
        assert place not in town.residents[GUEST].state.knows and place in town.residents[HOST].state.knows
        await town.run(until=DAY)
        assert place in town.residents[GUEST].state.knows
    first, second = ({each.address for each in ask.places} for ask in mind.of(PlanScenes) if ask.who == GUEST)
    assert place in second and place not in first


async def test_no_resident_enters_before_opening_hours(tmp_path: Path) -> None:
    def hours(text: str) -> str:
        return text + '\n[[places]]\naddress = "老茶馆:大堂"\nhours = "08:55-20:00"\n'

    mind = SceneMind()
    async with Town.open(tmp_path, liucun(hours), model=Models(mind)) as town:
        await town.run(until=10 * HOUR)
        history = await read_history(town.store)
    arrived = [
        act.arrives for name in (HOST, GUEST, HERMIT) for _, event in history.events(name, Acted)
        if (act := event.act).place == INN and act.why == "plan"
    ]  # fmt: skip
    assert arrived and min(arrived) >= 8 * HOUR + 55 * 6
    assert (mind.of(PlanScenes)[0].date, "08:55-20:00" in str(mind.of(PlanScenes)[0].places)) == (
        "Monday June 3, 2024", True,
    )  # fmt: skip


async def test_an_object_is_in_use_during_its_act_only(tmp_path: Path) -> None:
    def cooks(ask: PlanScenes) -> dict[str, Any]:
        plan = day()
        plan["items"][1] |= {"thing": "炉灶", "state": "正在用"} if ask.who == HOST else {}
        return plan

    async with Town.open(tmp_path, liucun(), model=Models(SceneMind(plan_scenes=cooks))) as town:
        await town.run(until=8 * HOUR + 30)
        act = town.residents[HOST].state.act
        assert act is not None and (act.place.rpartition(":")[2], act.state) == ("炉灶", "正在用")
        await town.run(until=9 * HOUR)
        act = town.residents[HOST].state.act
        assert act is not None and not act.state


async def test_without_a_planner_model_residents_follow_rules(tmp_path: Path) -> None:
    mind = SceneMind()
    async with Town.open(tmp_path, five(talks=False), model=Models(Rules(), {"reasoner": mind})) as town:
        await town.run(until=8 * HOUR)
        rows = [row async for row in rows_after(town.store)]
    assert not mind.of(PlanScenes) and not any(isinstance(row.event, Met | Asked) for row in rows)
    assert {resident_of(row) for row in rows if isinstance(row.event, Acted)} == set(five().people)


def overtaken(ask: TalkScene) -> dict[str, Any]:
    """Let the conversation move the host's work at eleven elsewhere."""
    changes = [
        {"number": int(number), "becomes": "去老茶馆帮忙", "place": INN_WORDS}
        for side in ask.sides if side.who == HOST for line in side.plan
        if (number := line.partition(".")[0]) and "11:00" in line
    ]  # fmt: skip
    return talk(ask, changes=[*changes, {"number": 99, "becomes": "nothing"}])


async def test_news_from_a_conversation_updates_plans_and_memories(tmp_path: Path, door: FakeEndpoint) -> None:
    mind = SceneMind(talk_scene=overtaken)
    async with over_http(mind, door) as models, Town.open(tmp_path, liucun(), model=models) as town:
        await town.run(until=11 * HOUR + 60)
        acts = {name: town.residents[name].state.act for name in (HOST, GUEST)}
        rows = [row async for row in rows_after(town.store)]
    host, guest = acts[HOST], acts[GUEST]
    assert host is not None and (host.what, host.place) == ("去老茶馆帮忙", INN)
    assert guest is not None and guest.what == "干活11", "only her plan changed"
    why = [row.event.because for row in rows if isinstance(row.event, TasksPlanned) and row.event.because]
    assert why and all("说了话" in each for each in why), "the change is explained by the conversation"
    first = mind.of(TalkScene)[0]
    numbers = [int(line.partition(".")[0]) for side in first.sides for line in (*side.memories, *side.plan)]
    assert len(numbers) == len(set(numbers)), "all numbers are unique"


async def test_plans_that_reveal_a_secret_are_hidden_from_conversations(tmp_path: Path) -> None:
    def lets_on(ask: LetOn) -> dict[str, Any]:
        return {"hides": [int(line.partition(".")[0]) for line in ask.plan if "干活10" not in line]}

    mind = SceneMind(let_on=lets_on)
    async with Town.open(tmp_path, liucun(with_secret), model=Models(mind)) as town:
        await town.run(until=10 * HOUR)
    shown = {side.who: side.plan for ask in mind.of(TalkScene) for side in ask.sides if "干活10" in str(side.plan)}
    assert len(shown[HOST]) == 1 and len(shown[GUEST]) > 1
    assert mind.of(LetOn)[0].when.endswith(mind.of(TalkScene)[0].when[-5:])


def homely(text: str) -> str:
    """Let the host and the guest know each other, and the guest keep away from the hermit."""
    host = 'relations = [{ who = "赵林", as = "老友" }]\n'
    guest = 'relations = [{ who = "王秀兰", as = "老友" }, { who = "石婆婆", as = "邻居", avoids = true }]\n'
    text = text.replace('knows = ["老茶馆:大堂:方桌"]', f'knows = ["老茶馆:大堂:方桌"]\n{host}', 1)
    return text.replace('knows = ["老茶馆:大堂:方桌", "旧', f'{guest}knows = ["老茶馆:大堂:方桌", "旧', 1)


def visit(ask: PlanScenes) -> dict[str, Any]:
    """Let the guest visit the host at home from nine to ten; the host is at home, or at the inn until ten."""
    home = next((each.words for each in ask.places if HOST in each.hosts), "")
    return day(home) if ask.who == GUEST else day("")


async def test_a_visit_takes_place_at_the_home_of_the_host(tmp_path: Path, door: FakeEndpoint) -> None:
    mind = SceneMind(plan_scenes=visit)
    async with over_http(mind, door) as models, Town.open(tmp_path, liucun(homely), model=models) as town:
        await town.run(until=9 * HOUR + 30)
        act = town.residents[GUEST].state.act
        assert act is not None and act.place == "柳村:磨坊:卧室"
        assert "(visiting 王秀兰)" in "\n".join(mind.rendered), "the prompt names the home as a place to visit"
    assert {side.who for side in mind.of(TalkScene)[0].sides} == {HOST, GUEST}, "they meet there"
    planned = next(each for each in mind.of(PlanScenes) if each.who == GUEST)
    assert not any(HERMIT in each.hosts for each in planned.places), "the home of an avoided person is not offered"


async def test_a_visitor_who_finds_nobody_goes_home_and_remembers_it(tmp_path: Path) -> None:
    def plans(ask: PlanScenes) -> dict[str, Any]:
        return visit(ask) if ask.who == GUEST else out_all_day_at_the_inn(ask)

    async with Town.open(tmp_path, liucun(homely), model=Models(SceneMind(plan_scenes=plans))) as town:
        await town.run(until=9 * HOUR + 120)
        act = town.residents[GUEST].state.act
        assert act is not None and act.place.startswith("柳村:林屋")
        assert any("喝茶" in text and f"{HOST}: not at home" in text for text in await remembered(town, GUEST))


MEND = "修好茶馆的方桌"


def open_question(ask: PlanScenes) -> dict[str, Any]:
    plan = day()
    if ask.who == HOST:
        plan["items"][2] |= {"what": MEND, "weight": 4, "open": "方桌还能不能用"}
    return plan


async def test_an_act_with_an_open_question_has_a_result(tmp_path: Path, door: FakeEndpoint) -> None:
    came = "方桌的腿换好了,可以用。"
    mind = SceneMind(
        plan_scenes=open_question, talk_scene=lambda _: {"talk": False}, what_came=lambda _: {"text": came}
    )
    async with over_http(mind, door) as models, Town.open(tmp_path, liucun(), model=models) as town:
        await town.run(until=DAY + HOUR)
        assert came in await remembered(town, HOST, ("thought",))
    (asked,) = [each for each in mind.of(WhatCame) if each.when.endswith("10:00")]
    assert (asked.who, asked.did, asked.question) == (HOST, MEND, "方桌还能不能用")
    second = [each for each in mind.of(PlanScenes) if each.who == HOST][1]
    assert came in second.yesterday and any(MEND in each and "-10:00" in each for each in second.yesterday)


async def test_a_result_from_a_conversation_is_not_asked_for_again(tmp_path: Path) -> None:
    answer = "赵林说方桌不用修了。"

    def answers(ask: TalkScene) -> dict[str, Any]:
        numbers = [line for side in ask.sides for line in side.plan if MEND in line]
        return talk(ask, results=[{"number": int(line.partition(".")[0]), "text": answer} for line in numbers])

    mind = SceneMind(plan_scenes=open_question, talk_scene=answers)
    async with Town.open(tmp_path, liucun(), model=Models(mind)) as town:
        await town.run(until=11 * HOUR)
        assert answer in await remembered(town, HOST, ("thought",))
        assert answer in await remembered(town, GUEST, ("thought",))
    assert not mind.of(WhatCame)


async def test_residents_talk_at_their_appointment_though_they_have_just_met(tmp_path: Path) -> None:
    def meets(ask: TalkScene) -> dict[str, Any]:
        if {side.who for side in ask.sides} != {HOST, GUEST} or ask.together:
            return talk(ask)
        soon = {"what": LUNCH, "place": INN_WORDS, "day": "2024-06-03", "from": "09:40", "to": "10:30"}
        return talk(ask, agreed=[soon | {"who": [HOST, GUEST]}])

    mind = SceneMind(talk_scene=meets)
    async with Town.open(tmp_path, liucun(), model=Models(mind)) as town:
        await town.run(until=11 * HOUR)
    both = [ask for ask in mind.of(TalkScene) if {side.who for side in ask.sides} == {HOST, GUEST}]
    assert [each.together for each in both] == ["", LUNCH], "after less than the usual pause"
    assert LUNCH in mind.rendered[mind.asked.index(both[1])]


async def test_who_does_not_come_to_an_appointment_is_missed(tmp_path: Path) -> None:
    def agrees(ask: TalkScene) -> dict[str, Any]:
        if {side.who for side in ask.sides} != {HOST, GUEST}:
            return talk(ask)
        tea = {"what": "看磨盘", "place": "卧室 of 磨坊", "day": "2024-06-03", "from": "12:00", "to": "13:00"}
        return talk(ask, agreed=[tea | {"who": [HOST, GUEST]}])

    mind = SceneMind(talk_scene=agrees)
    async with Town.open(tmp_path, liucun(), model=Models(mind)) as town:
        await town.run(until=11 * HOUR)
        state = town.residents[GUEST].state
        town.residents[GUEST].state = state.model_copy(
            update={"blocks": tuple(each.model_copy(update={"place": INN, "agreed": ()}) for each in state.blocks)}
        )
        await town.run(until=14 * HOUR)
        assert any("看磨盘" in text and f"{GUEST} did not come" in text for text in await remembered(town, HOST))


async def test_news_from_the_beginning_is_shown_until_it_is_told(tmp_path: Path) -> None:
    fence, rumour = "茶馆后墙的篱笆被人拆了。", "听说今晚旧祠堂里有人唱戏。"

    def with_news(text: str) -> str:
        return text.replace('knows = ["老茶馆:大堂:方桌"]', f'knows = ["老茶馆:大堂:方桌"]\nseeds = ["{fence}"]', 1)

    def tells(ask: TalkScene) -> dict[str, Any]:
        said = talk(ask)
        for side, line in zip(ask.sides, said["lines"], strict=True):
            line["tells"] = [int(each.partition(".")[0]) for each in side.memories if fence in each]
        return said

    mind = SceneMind(talk_scene=tells)
    async with Town.open(tmp_path, liucun(with_news), model=Models(mind)) as town:
        await town.run(until=DAY + HOUR)
    first = next(each for each in mind.of(PlanScenes) if each.who == HOST)
    assert any(fence in each.text and "not passed on yet" in each.written for each in first.memories)
    shown = [each for ask in mind.of(TalkScene) for side in ask.sides for each in side.memories]
    assert any(fence in each and "not passed on yet" in each for each in shown)
    assert any(rumour in each for each in shown), "a rumour from the beginning comes up too"
    later = [each for each in mind.of(PlanScenes) if each.who == HOST][1]
    assert not any("no one has heard" in each.written for each in later.memories if fence in each.text)


async def test_a_grudge_lasts_and_keeps_residents_apart(tmp_path: Path) -> None:
    grudge = "为了拆掉的篱笆生王秀兰的气"

    def quarrel(ask: TalkScene) -> dict[str, Any]:
        if {side.who for side in ask.sides} != {HOST, GUEST}:
            return {"talk": False}
        return talk(ask, stance=[{"who": GUEST, "text": grudge, "avoids": True}])

    mind = SceneMind(plan_scenes=out_all_day_at_the_inn, talk_scene=quarrel)
    async with Town.open(tmp_path, liucun(), model=Models(mind)) as town:
        await town.run(until=DAY + HOUR)
        assert town.residents[GUEST].state.stances == {HOST: grudge}
        assert town.residents[GUEST].state.avoids == {HOST: True}
    both = [each for each in mind.of(TalkScene) if {side.who for side in each.sides} == {HOST, GUEST}]
    assert len(both) > 1 and all(each.sides[0].who == HOST for each in both[1:]), "only the host still comes up"
    assert grudge in next(side.stance for side in both[1].sides if side.who == GUEST)
    second = [each for each in mind.of(PlanScenes) if each.who == GUEST][1]
    assert second.avoids == (HOST,) and grudge in second.identity


def out_all_day_at_the_inn(ask: PlanScenes) -> dict[str, Any]:
    items = [
        {"from": f"{hour:02}:00", "to": f"{hour + 1:02}:00", "what": f"{ask.who} {hour}", "place": INN_WORDS}
        for hour in range(7, 22)
    ]
    return {"items": items}


YARD = '''
[town]
name = "Yard"
start = 2024-06-03T00:00:00
[map]
rows = """
#############
#aaa#bbb#ccc#
#aaa.bbb.ccc#
###.#####.###
#...........#
#############
"""
[map.places]
a = "Mill:room"
b = "Forge:room"
c = "Inn:taproom"
'''


async def test_a_resident_walks_around_the_house_of_whom_it_avoids(tmp_path: Path) -> None:
    def yard(avoids: str) -> Setting:
        people = f"""
[[residents]]
name = "Ada Brook"
home = "Mill:room"
bed = "Mill:room"
relations = [{{ who = "Ben Smith", as = "neighbour"{avoids} }}]
[[residents]]
name = "Ben Smith"
home = "Forge:room"
bed = "Forge:room"
"""
        return setting_of(parse_town(YARD + people, Path()), seed=1, profile=Profile())

    def to_the_inn(ask: PlanScenes) -> dict[str, Any]:
        return day("taproom of Inn" if ask.who == "Ada Brook" else "")

    walked = {}
    for avoids in ("", ", avoids = true"):
        folder = tmp_path / str(len(avoids))
        async with Town.open(folder, yard(avoids), model=Models(SceneMind(plan_scenes=to_the_inn))) as town:
            await town.run(until=9 * HOUR)
            history = await read_history(town.store)
            acts = [
                event.act for _, event in history.events("Ada Brook", Acted) if event.act.place == "Yard:Inn:taproom"
            ]
            world = town.setting.world
            walked[avoids] = {str(world.address_at(spot).upto(2)) for spot in read_walk(acts[0].path)}
    assert "Yard:Forge" in walked[""] and "Yard:Forge" not in walked[", avoids = true"]


async def test_a_scene_is_explained_by_its_lines(tmp_path: Path) -> None:
    async with Town.open(tmp_path, liucun(), model=Models(SceneMind(talk_scene=agree))) as town:
        await town.run(until=11 * HOUR)
        history = await read_history(town.store)
    name, talk = next((name, talk) for name, talk in history.talks() if 0 < talk.since < talk.step)
    text = "\n".join(explain(history, name, talk.since).lines())
    assert f"talks with {talk.partner}; began it" in text and all(line.text in text for line in talk.lines)


async def test_an_unreadable_reply_costs_one_decision_and_not_the_town(tmp_path: Path, door: FakeEndpoint) -> None:
    def talks(ask: TalkScene) -> Any:
        return "…" if ask.when < "Monday, June 3, 2024, 09:00" else talk(ask)

    def plans(ask: PlanScenes) -> Any:
        return "{" if ask.who == HERMIT else out_all_day_at_the_inn(ask)

    mind = SceneMind(talk_scene=talks, plan_scenes=plans)
    async with over_http(mind, door) as models, Town.open(tmp_path, liucun(), model=models) as town:
        await town.run(until=DAY + HOUR)
        rows = [row.event async for row in rows_after(town.store)]
        assert {each.prompt for each in rows if isinstance(each, StoodIn)} == {"talk_scene", "plan_scenes"}
        assert town.residents[HERMIT].state.day == 1, "she lives her usual day"
        assert any(each.state.talked for each in town.residents.values()), "later conversations take place"


async def test_an_unavailable_model_stops_the_town_at_the_step(tmp_path: Path) -> None:
    from mindstream_town.residents.turn import StepFailed

    from mindstream.errors import ModelUnavailable

    failing = iter((True, True, False))

    def sometimes(ask: TalkScene) -> Any:
        if next(failing, False):
            raise ModelUnavailable("the endpoint is down")
        return agree(ask)

    async with Town.open(tmp_path / "a", liucun(), model=Models(SceneMind(talk_scene=agree))) as town:
        await town.run(until=11 * HOUR)
        straight = await town.digest()
    failed = 0
    async with Town.open(tmp_path / "b", liucun(), model=Models(SceneMind(talk_scene=sometimes))) as town:
        while town.step < 11 * HOUR:
            try:
                await town.run(until=11 * HOUR)
            except StepFailed:
                failed += 1
        assert failed and await town.digest() == straight


async def test_let_on_hides_lines_of_the_description(tmp_path: Path) -> None:
    def hinting(text: str) -> str:
        return with_secret(text).replace(
            'learned = "王秀兰开磨坊。"', 'learned = "王秀兰开磨坊。"\nabout = "她在找买主。"'
        )

    def lets_on(ask: LetOn) -> dict[str, Any]:
        return {"hides": [int(line.partition(".")[0]) for line in ask.identity if "买主" in line]}

    mind = SceneMind(let_on=lets_on)
    async with Town.open(tmp_path, liucun(hinting), model=Models(mind)) as town:
        await town.run(until=10 * HOUR)
    assert any("买主" in line for line in mind.of(LetOn)[0].identity)
    assert all(SECRET in each.secrets for each in mind.of(LetOn)), "the question is about the real secret"
    assert mind.of(TalkScene) and not any("买主" in side.text for each in mind.of(TalkScene) for side in each.sides)


async def test_others_see_a_private_act_only_from_outside(tmp_path: Path) -> None:
    def reads(ask: PlanScenes) -> dict[str, Any]:
        plan = day()
        if ask.who == HOST:
            plan["items"][2] |= {"what": "读医院的信", "seen": "看信"}
        return plan

    mind = SceneMind(plan_scenes=reads)
    async with Town.open(tmp_path, liucun(), model=Models(mind)) as town:
        await town.run(until=11 * HOUR)
        guest = await remembered(town, GUEST)
        assert any("读医院的信" in each for each in await remembered(town, HOST))
    assert any("看信" in each for each in guest) and not any("医院" in each for each in guest)
    assert not any("医院" in side.doing for each in mind.of(TalkScene) for side in each.sides)


async def test_an_insight_leads_to_something_that_cites_it(tmp_path: Path) -> None:
    insight, then = "赵林和石婆婆都不知道磨坊在找帮手。", "明天问赵林愿不愿意来帮忙"

    def evening(ask: ReflectScenes) -> dict[str, Any]:
        return {"insights": [{"text": insight, "because": [1, 2], "then": then}], "about": f"{ask.who}的新故事。"}

    def cites(ask: PlanScenes) -> dict[str, Any]:
        plan = day()
        plan["items"][1]["because"] = [n for n, each in enumerate(ask.memories, 1) if insight in each.text]
        return plan

    mind = SceneMind(reflect_scenes=evening, plan_scenes=cites)
    async with Town.open(tmp_path, liucun(), model=Models(mind)) as town:
        await town.run(until=DAY + HOUR)
        rows = [row.event async for row in rows_after(town.store)]
        known = await town.store.latest(key_of_resident(HOST), ("thought",), 50, now=town.setting.moment(town.step))
        history = await read_history(town.store)
    second = [each for each in mind.of(PlanScenes) if each.who == HOST][1]
    assert any(each.text == f"{insight} -> {then}" for each in second.memories)
    assert f"{HOST}的新故事。" in second.identity, "a statement that no longer holds is replaced"
    cited = {id_ for event in rows if isinstance(event, DayPlanned) for id_ in event.cites}
    assert any(each.text == insight and each.id in cited for each in known)
    followed = trace_insights(history)
    assert (followed.insights, followed.residents) == (3, 3) and followed.cited == 3


async def test_the_newest_insights_are_shown_for_the_plan(tmp_path: Path) -> None:
    def reflects(ask: ReflectScenes) -> dict[str, Any]:
        found = [
            {"text": f"Insight of {ask.when}, number {n}.", "because": [1, 2], "then": f"Go on {n}."} for n in range(3)
        ]
        return {"insights": found}

    mind = SceneMind(reflect_scenes=reflects)
    async with Town.open(tmp_path, liucun(), model=Models(mind)) as town:
        await town.run(until=3 * DAY + HOUR)
    evenings = [ask.when for ask in mind.of(ReflectScenes) if ask.who == HOST]
    last = [ask for ask in mind.of(PlanScenes) if ask.who == HOST][-1]
    shown = [each.text for each in last.memories if each.text.startswith("Insight of")]
    assert len(evenings) >= 2 and shown
    assert all(text.startswith(f"Insight of {evenings[-1]}") for text in shown[-3:]), shown


def test_limits_of_replies_are_in_the_prompts() -> None:
    for prompt in (PlanScenes, TalkScene, ReflectScenes, LetOn, WhatCame):
        schema = json.dumps(TypeAdapter(prompt.reply_type()).json_schema())
        limits = set(re.findall(r'"maxLength": (\d+)', schema)) - {"80", "100", "200"}
        assert all(f"{limit} characters" in prompt.words() for limit in limits), (prompt.label(), limits)


def test_an_estimate_counts_the_first_calls_once() -> None:
    counted = Counting(by_kind={"plan_scenes": CallCount(8, 100, 50, 10), "rate_importance": CallCount(8, 40, 4, 8)})
    both = counted.scaled(2.0, {"rate_importance"}).by_kind
    assert (both["plan_scenes"], both["rate_importance"]) == (CallCount(16, 200, 100, 20), CallCount(8, 40, 4, 8))
