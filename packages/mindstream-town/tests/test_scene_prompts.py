"""The prompts of scenes: no hint at a secret, the people who were there, whole sentences, and each fact once."""

from __future__ import annotations

import re
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from keys import key_of_resident
from mindstream_town.events import Block, Met
from mindstream_town.formats.town_file import parse_town
from mindstream_town.journal import rows_after
from mindstream_town.residents.person import Person, Relation
from mindstream_town.residents.places import home_to_visit, is_common
from mindstream_town.residents.plan import FREE, PROMISED
from mindstream_town.residents.prompt_context import cut_at_word
from mindstream_town.scenes.day import (
    EVENING_TOKENS,
    RESERVED,
    RESERVED_TOKENS,
    SETTLED,
    TALK_TOKENS,
    affords,
    line_of,
    reserved_calls,
    without_repeats,
)
from mindstream_town.scenes.prompts import (
    Evening,
    LetOn,
    PlanScenes,
    ReflectScenes,
    SceneDay,
    Settle,
    TalkScene,
    WhatCame,
)
from mindstream_town.scenes.talk import BETWEEN
from mindstream_town.setting import Setting
from mindstream_town.source import setting_of
from mindstream_town.state import ResidentState
from mindstream_town.town import Town
from scene_minds import DAY, GUEST, HERMIT, HOST, HOUR, INN_WORDS, LUNCH, SceneMind, day, liucun, talk
from test_scenes import five, homely, out_all_day, out_all_day_at_the_inn, remembered, visit

from mindstream.memory.store.record import Record
from mindstream.models.roles import Models

SECRET = "王秀兰要把磨坊卖掉,没有告诉任何人。"
OPENLY, PRIVATELY, HINT = "整理旧账本", "看旧账本,想着怎么开口", "王秀兰最近老是看账本。"


def seeds(*lines: str) -> Any:
    """Return a change of the town's file: first memories of the host."""
    knows = 'knows = ["老茶馆:大堂:方桌"]'
    return lambda text: text.replace(knows, f"{knows}\nseeds = [{', '.join(lines)}]", 1)


def sides_of(mind: SceneMind, name: str) -> list[Any]:
    return [side for ask in mind.of(TalkScene) for side in ask.sides if side.who == name]


def number_of(lines: Any, text: str) -> list[int]:
    """Return the numbers of lines that contain a text, as `12. text` or by position."""
    return [int(each.partition(".")[0]) for each in lines if text in each]


def private(ask: PlanScenes) -> dict[str, Any]:
    """Let the host do something because of its secret before and after nine."""
    plan = day()
    if ask.who == HOST:
        because = [n for n, each in enumerate(ask.memories, 1) if SECRET in each.text]
        for item in (plan["items"][1], plan["items"][3]):
            item |= {"what": PRIVATELY, "seen": OPENLY, "weight": 6, "because": because}
    return plan


async def test_what_is_done_because_of_a_secret_is_in_no_conversation(tmp_path: Path) -> None:
    mind = SceneMind(plan_scenes=private, let_on=lambda _: {})
    setting = liucun(seeds(f'{{ text = "{SECRET}", weight = 9, secret = true }}'))
    async with Town.open(tmp_path, setting, model=Models(mind)) as town:
        await town.run(until=2 * DAY - 1)
        assert any(PRIVATELY in each for each in await remembered(town, HOST)), "the resident remembers it"
    shown = sides_of(mind, HOST)
    assert any(OPENLY in str(each.plan) for each in shown), "its plan is shown as others see it"
    assert not any(PRIVATELY in f"{each.plan} {each.memories} {each.doing}" for each in shown)


async def test_let_on_strikes_memories_by_number(tmp_path: Path) -> None:
    def lets_on(ask: LetOn) -> dict[str, Any]:
        return {"hides": number_of(ask.memories, HINT)}

    setting = liucun(seeds(f'{{ text = "{SECRET}", weight = 9, secret = true }}', f'"{HINT}"'))
    mind = SceneMind(let_on=lets_on)
    async with Town.open(tmp_path, setting, model=Models(mind)) as town:
        await town.run(until=10 * HOUR)
    assert any(HINT in each for ask in mind.of(LetOn) for each in ask.memories), "it is asked about"
    assert sides_of(mind, HOST) and not any(HINT in str(each.memories) for each in sides_of(mind, HOST))


async def test_without_a_briefing_a_resident_with_secrets_shows_no_memories(tmp_path: Path) -> None:
    setting = liucun(seeds(f'{{ text = "{SECRET}", weight = 9, secret = true }}', f'"{HINT}"'))
    mind = SceneMind(let_on=lambda _: "…")
    async with Town.open(tmp_path, setting, model=Models(mind)) as town:
        await town.run(until=10 * HOUR)
    assert sides_of(mind, HOST) and not any(HINT in str(each.memories) for each in sides_of(mind, HOST))


def learns(ask: TalkScene) -> dict[str, Any]:
    """Return a conversation of which both remember something of their own, by the hour."""
    kept = [{"who": each.who, "text": f"{each.who}听说了{ask.when[-5:]}的新闻。", "weight": 6} for each in ask.sides]
    return talk(ask, remember=kept)


async def test_a_keeper_of_secrets_is_asked_once_a_day(tmp_path: Path) -> None:
    """What its conversations leave in memory was written without the secret, and is shown without a new question."""
    mind = SceneMind(plan_scenes=out_all_day_at_the_inn, talk_scene=learns)
    setting = liucun(seeds(f'{{ text = "{SECRET}", weight = 9, secret = true }}', f'"{HINT}"'))
    async with Town.open(tmp_path, setting, model=Models(mind)) as town:
        await town.run(until=2 * DAY - 1)
    shown = sides_of(mind, HOST)
    assert len(shown) >= 4 and len(mind.of(LetOn)) == 2, "once each day"
    assert any("新闻" in str(each.memories) for each in shown), "news from a conversation comes up in the next ones"
    first, second = mind.of(LetOn)
    assert first.identity and first.plan and number_of(first.memories, HINT)
    assert not number_of(second.memories, HINT), "what has been judged is not asked about again"


async def test_new_memories_of_a_keeper_are_judged_before_they_are_shown(tmp_path: Path) -> None:
    told = "王秀兰听说磨坊有了买主。"

    def lets_on(ask: LetOn) -> dict[str, Any]:
        return {"hides": [*number_of(ask.memories, told), *number_of(ask.plan, "干活11")]}

    mind = SceneMind(plan_scenes=out_all_day_at_the_inn, let_on=lets_on)
    setting = liucun(seeds(f'{{ text = "{SECRET}", weight = 9, secret = true }}'))
    async with Town.open(tmp_path, setting, model=Models(mind)) as town:
        await town.run(until=12 * HOUR)
        before = len(mind.of(LetOn))
        await town.whisper(HOST, told)
        await town.run(until=DAY - 1)
    again = mind.of(LetOn)[before:]
    assert before == len(again) == 1 and number_of(again[0].memories, told)
    assert again[0].identity and again[0].plan, "with the person and the plan"
    assert sides_of(mind, HOST) and not any(told in str(each) for each in sides_of(mind, HOST))


async def test_a_new_secret_has_everything_judged_again(tmp_path: Path) -> None:
    """On the second day the host decides to keep a memory to itself, of which another memory is a hint."""

    def keeps(ask: PlanScenes) -> dict[str, Any]:
        plan = out_all_day_at_the_inn(ask)
        is_second = ask.who == HOST and len([each for each in mind.of(PlanScenes) if each.who == HOST]) == 2
        return plan | (
            {"keeps": [n for n, each in enumerate(ask.memories, 1) if OPENLY in each.text]} if is_second else {}
        )

    def lets_on(ask: LetOn) -> dict[str, Any]:
        return {"hides": number_of(ask.memories, HINT) if any(OPENLY in each for each in ask.secrets) else []}

    mind = SceneMind(let_on=lets_on, talk_scene=learns)
    mind.answers["plan_scenes"] = keeps
    setting = liucun(seeds(f'{{ text = "{SECRET}", weight = 9, secret = true }}', f'"{HINT}"', f'"王秀兰{OPENLY}。"'))
    async with Town.open(tmp_path, setting, model=Models(mind)) as town:
        await town.run(until=DAY - 1)
        talks = len(mind.of(TalkScene))
        await town.run(until=2 * DAY - 1)
    assert any(HINT in str(each.memories) for ask in mind.of(TalkScene)[:talks] for each in ask.sides)
    assert number_of(mind.of(LetOn)[-1].memories, HINT)
    later = mind.of(TalkScene)[talks:]
    assert later and not any(HINT in str(ask.sides) or OPENLY in str(ask.sides) for ask in later)


def unjudged(mind: SceneMind, name: str, text: str) -> list[str]:
    """Return the memories with a text that conversations showed of a keeper of secrets before `let_on` judged them."""
    judged, found = set[str](), list[str]()
    for ask in mind.asked:
        if isinstance(ask, LetOn) and ask.who == name:
            judged |= {each.partition(". ")[2] for each in ask.memories}
        sides = ask.sides if isinstance(ask, TalkScene) else ()
        shown = [each.partition(". ")[2] for side in sides if side.who == name for each in side.memories]
        found += [each for each in shown if text in each and not any(one in each for one in judged)]
    return found


async def test_after_a_secret_is_told_what_others_say_is_judged(tmp_path: Path) -> None:
    def lets_on(ask: LetOn) -> dict[str, Any]:
        return {"lets_on": [{"to": name, "says": "磨坊的事,别问。"} for name in (GUEST, HOST, "…")]}

    mind = SceneMind(plan_scenes=out_all_day_at_the_inn, let_on=lets_on, talk_scene=learns)
    setting = liucun(seeds(f'{{ text = "{SECRET}", weight = 9, secret = true }}'))
    async with Town.open(tmp_path, setting, model=Models(mind)) as town:
        await town.run(until=DAY - 1)
        assert town.residents[HOST].state.briefing.lets_on.keys() == {GUEST}  # type: ignore[union-attr]
        await town.run(until=2 * DAY - 1)
    assert not unjudged(mind, HOST, "新闻"), "others may have repeated it"
    assert any(number_of(ask.memories, "新闻") for ask in mind.of(LetOn))
    again = [ask for ask in mind.of(LetOn) if not ask.identity]
    assert again and not any(ask.plan or ask.recent for ask in again), "the same day only new memories are judged"
    hours = [(ask.when[:-6], int(ask.when[-5:-3]) * 60 + int(ask.when[-2:])) for ask in mind.of(LetOn)]
    assert all(one[0] != two[0] or two[1] - one[1] >= 240 for one, two in pairwise(hours)), "every four hours at most"
    told = [
        (GUEST in {side.who for side in ask.sides}, ask.when[:-6])
        for ask in mind.of(TalkScene)
        if any(side.who == HOST and "别问" in str(side.memories) for side in ask.sides)
    ]
    assert all(is_guest for is_guest, _ in told)
    assert len(told) == len({*told}) == 2, "to the guest, once a day"


async def test_small_news_of_a_keeper_waits_for_the_next_day(tmp_path: Path) -> None:
    def small(ask: TalkScene) -> dict[str, Any]:
        said = learns(ask)
        return said | {"remember": [each | {"weight": 5} for each in said["remember"]]}

    mind = SceneMind(plan_scenes=out_all_day_at_the_inn, talk_scene=small)
    mind.answers["let_on"] = partial(_given, {"lets_on": [{"to": GUEST, "says": "账本?只是旧账。"}]})
    setting = liucun(seeds(f'{{ text = "{SECRET}", weight = 9, secret = true }}'))
    async with Town.open(tmp_path, setting, model=Models(mind)) as town:
        await town.run(until=DAY - 1)
    assert len(mind.of(LetOn)) == 1 and not unjudged(mind, HOST, "新闻")


def _given(reply: dict[str, Any], _: LetOn) -> dict[str, Any]:
    return reply


def _all_but_the_hermit_at_the_inn(ask: PlanScenes) -> dict[str, Any]:
    return day("") if ask.who == HERMIT else out_all_day_at_the_inn(ask)


async def test_what_is_heard_is_judged_from_the_first_meeting_with_a_confidant_on(tmp_path: Path) -> None:
    """Words for someone whom the keeper does not meet, or who is unknown, change nothing; a pretext counts."""
    for to, is_shown in ((GUEST, False), (HERMIT, True), ("…", True)):
        mind = SceneMind(plan_scenes=_all_but_the_hermit_at_the_inn, talk_scene=learns)
        mind.answers["let_on"] = partial(_given, {"lets_on": [{"to": to, "says": "账本?只是旧账。"}]})
        setting = liucun(seeds(f'{{ text = "{SECRET}", weight = 9, secret = true }}'))
        async with Town.open(tmp_path / str(len(to)), setting, model=Models(mind)) as town:
            await town.run(until=DAY - 1)
            assert town.residents[HOST].state.confided != is_shown
        assert bool(unjudged(mind, HOST, "新闻")) == is_shown, to


async def test_each_side_of_an_agreement_has_its_own_part(tmp_path: Path) -> None:
    def agree(ask: TalkScene) -> dict[str, Any]:
        who = {side.who for side in ask.sides}
        if who != {"Ada Brook", "Ben Hale"} or ask.together:
            return talk(ask)
        both = {"place": "cafe of Oak Cafe", "day": "2023-02-13", "who": sorted(who)}
        parts = [{"who": "Ada Brook", "what": "folding pockets"}, {"who": "Ben", "what": "filling pockets"}]
        return talk(ask, agreed=[both | {"what": "making pockets", "from": "16:00", "to": "17:00", "parts": parts}])

    async with Town.open(tmp_path, five(), model=Models(SceneMind(plan_scenes=out_all_day, talk_scene=agree))) as town:
        await town.run(until=12 * HOUR)
        plans = {
            name: [each.what for each in town.residents[name].state.blocks if each.agreed]
            for name in ("Ada Brook", "Ben Hale")
        }
        known = await remembered(town, "Ada Brook")
    assert plans["Ada Brook"] == ["folding pockets"]
    assert plans["Ben Hale"] == ["filling pockets"]
    text = "Agreed by Ada Brook, Ben Hale: Ada Brook: folding pockets; Ben Hale: filling pockets"
    assert text in known, known


async def test_an_act_that_reveals_a_secret_is_named_by_its_place_only(tmp_path: Path) -> None:
    def plans(ask: PlanScenes) -> dict[str, Any]:
        plan = day()
        if ask.who == HOST:
            plan["items"][2] |= {"what": PRIVATELY, "weight": 6}
        return plan

    mind = SceneMind(plan_scenes=plans, let_on=lambda ask: {"hides": number_of(ask.plan, PRIVATELY)})
    setting = liucun(seeds(f'{{ text = "{SECRET}", weight = 9, secret = true }}'))
    async with Town.open(tmp_path, setting, model=Models(mind)) as town:
        await town.run(until=2 * DAY - 1)
        assert any(PRIVATELY in each for each in await remembered(town, HOST))
    shown = sides_of(mind, HOST)
    assert len(shown) >= 2 and not any(PRIVATELY in f"{each.doing}{each.plan}{each.memories}" for each in shown)


async def test_what_a_keeper_writes_of_itself_is_shown_only_if_it_says_so(tmp_path: Path) -> None:
    def clear(ask: LetOn) -> dict[str, Any]:
        return {"clear": number_of(ask.recent, "新的打算")}

    for folder, answer in (("shown", clear), ("kept", lambda _: {})):
        mind = SceneMind(let_on=answer, reflect_scenes=lambda ask: {"currently": f"{ask.who}有新的打算。"})
        setting = liucun(seeds(f'{{ text = "{SECRET}", weight = 9, secret = true }}'))
        async with Town.open(tmp_path / folder, setting, model=Models(mind)) as town:
            await town.run(until=DAY + 12 * HOUR)
        shown = sides_of(mind, HOST)
        assert shown and any(f"{HOST}有新的打算" in each.text for each in shown) == (folder == "shown")


async def test_an_agreed_act_is_remembered_and_a_settled_errand_is_not_repeated(tmp_path: Path) -> None:
    """The game was agreed on; the errand has been settled by a talk, whose memories say what happened."""

    def plans(ask: PlanScenes) -> dict[str, Any]:
        plan = day()
        if ask.who == GUEST:
            plan["items"][2] |= {"what": "问王秀兰借梯子", "with": [HOST], "weight": 7}
        return plan

    def agree(ask: TalkScene) -> dict[str, Any]:
        said = agrees_on(ask, "下棋", "16:00", "17:00")
        numbers = [n for side in ask.sides for n in number_of(side.plan, "借梯子")]
        for game in said.get("agreed", [])[:1]:
            said["agreed"] = [game, {**game, "what": "修船", "from": "17:00", "to": "18:00", "who": [GUEST]}]
        return said | {"results": [{"number": n, "text": "王秀兰答应借梯子。"} for n in numbers]}

    mind = SceneMind(plan_scenes=plans, talk_scene=agree)
    async with Town.open(tmp_path, liucun(), model=Models(mind)) as town:
        await town.run(until=20 * HOUR)
        latest = await town.store.latest(
            key_of_resident(GUEST), ("observation",), 50, now=town.setting.moment(town.step)
        )
    deeds = {
        what: [each.importance for each in latest if "deed" in each.data and what in each.text]
        for what in ("借梯子", "下棋", "修船")
    }
    assert deeds["借梯子"] and set(deeds["借梯子"]) == {3.0}
    assert deeds["下棋"] and deeds["修船"] == [5.0]


async def test_the_first_plan_has_the_concerns_of_the_file_and_the_next_one_the_insights_of_midnight(
    tmp_path: Path,
) -> None:
    """A resident that is awake at midnight reflects and plans in the same turn."""
    concern, insight = "赵林想造一条船。", "赵林在夜里明白了。"

    def plans(ask: PlanScenes) -> dict[str, Any]:
        plan = day()
        plan["items"][-1] |= {"from": "21:00", "to": "23:55"}
        return plan | {"items": [*plan["items"], {"from": "23:55", "to": "01:00", "what": "看星星"}]}

    def reflects(ask: ReflectScenes) -> dict[str, Any]:
        return {"insights": [{"text": insight, "because": [1, 2], "then": "去问木匠"}]} if ask.who == GUEST else {}

    def file(text: str) -> str:
        start = text.index(f'name = "{GUEST}"')
        return text[:start] + text[start:].replace("age = ", f'currently = "{concern}"\nage = ', 1)

    mind = SceneMind(plan_scenes=plans, reflect_scenes=reflects, talk_scene=learns)
    async with Town.open(tmp_path, liucun(file), model=Models(mind)) as town:
        await town.run(until=DAY + HOUR)
    first, second = (each for each in mind.of(PlanScenes) if each.who == GUEST)
    assert concern in first.identity
    assert [each for each in mind.of(ReflectScenes) if each.who == GUEST][-1].when.endswith("00:00")
    assert any(insight in each.text for each in second.memories)


async def test_what_may_not_be_told_is_no_news(tmp_path: Path) -> None:
    """A resident with a memory that forbids to tell it decides so with the day's plan."""
    forbidden = "王秀兰藏着灯塔的镜子,县里没有决定以前不许说。"

    def keeps(ask: PlanScenes) -> dict[str, Any]:
        return day() | {"keeps": [n for n, each in enumerate(ask.memories, 1) if forbidden in each.text]}

    mind = SceneMind(plan_scenes=keeps, let_on=lambda _: {})
    async with Town.open(tmp_path, liucun(seeds(f'"{forbidden}"')), model=Models(mind)) as town:
        await town.run(until=DAY + 10 * HOUR)
        assert len(town.residents[HOST].state.keeps) == 1
    assert sides_of(mind, HOST) and not any(forbidden in str(each.memories) for each in sides_of(mind, HOST))
    assert mind.of(LetOn) and all(forbidden in each.secrets for each in mind.of(LetOn)), "it is treated as a secret"
    first, second = (each for each in mind.of(PlanScenes) if each.who == HOST)
    assert any(forbidden in each.text and "not passed on" in each.written for each in first.memories)
    assert any(forbidden in each.text and "kept to oneself" in each.written for each in second.memories)
    assert not any(forbidden in each.text and "not passed on" in each.written for each in second.memories)


def agrees_on(ask: TalkScene, what: str, start: str, end: str, place: str = INN_WORDS) -> dict[str, Any]:
    """Return a conversation in which the host and the guest agree on something; others do not."""
    both = {side.who for side in ask.sides}
    if both != {HOST, GUEST} or ask.together:
        return talk(ask)
    agreed = {"what": what, "place": place, "day": "2024-06-03", "from": start, "to": end, "who": [HOST, GUEST]}
    return talk(ask, agreed=[agreed])


async def test_chance_meetings_leave_budget_for_an_appointment(tmp_path: Path) -> None:
    """In a café in which everyone always sees everyone, two have an appointment in the evening."""

    def agree(ask: TalkScene) -> dict[str, Any]:
        who = [side.who for side in ask.sides]
        if ask.when[-5:] > "09:00":
            return talk(ask)
        late = {"what": "playing chess", "place": "cafe of Oak Cafe", "from": "20:00", "to": "21:00", "who": who}
        return talk(ask, agreed=[late])

    mind = SceneMind(plan_scenes=out_all_day, talk_scene=agree)
    async with Town.open(tmp_path, five(day_calls=6), model=Models(mind)) as town:
        await town.run(until=DAY - 1)
    agreed = {frozenset(s.who for s in each.sides) for each in mind.of(TalkScene) if each.when[-5:] <= "09:00"}
    played = [ask for ask in mind.of(TalkScene) if ask.together == "playing chess"]
    played_together = [ask for ask in mind.of(Settle) if ask.did == "playing chess"]
    assert agreed and (played or played_together), "the budget of the day was not spent on chance meetings"


WIDE = f"""
[town]
name = "Longport"
start = 2024-06-03T00:00:00

[map]
rows = '''
{"#" * 66}
#{"w" * 4}#{"." * 24}#{"h" * 4}#{"." * 24}#{"e" * 4}#
#{"w" * 4}#{"." * 24}#{"h" * 4}#{"." * 24}#{"e" * 4}#
##.###{"." * 24}##.###{"." * 24}##.###
#{"q" * 64}#
#{"q" * 64}#
{"#" * 66}
'''
things = '''
{"." * 66}
{"." * 31}bt{"." * 33}
{"." * 66}
{"." * 66}
{"." * 66}
{"." * 66}
{"." * 66}
'''
[map.places]
w = "West Shed:room"
e = "East Shed:room"
h = "Home:room"
q = "Quay:stones"
[map.objects]
b = "bed"
t = "table"

[[residents]]
name = "Ann Lee"
home = "Home:room"
relations = [{{ who = "Bo Lee", as = "brother" }}]

[[residents]]
name = "Bo Lee"
home = "Home:room"
relations = [{{ who = "Ann Lee", as = "sister" }}]
"""


async def test_those_who_have_an_appointment_in_a_large_place_find_each_other(tmp_path: Path) -> None:
    """They come from the two ends of a quay that is longer than they can see."""

    def plans(ask: PlanScenes) -> dict[str, Any]:
        plan, shed = day(""), f"room of {'West' if ask.who == 'Ann Lee' else 'East'} Shed"
        for item in plan["items"]:
            item |= {"place": shed} if "09:00" <= item["from"] < "14:00" else {}
        return plan

    def agree(ask: TalkScene) -> dict[str, Any]:
        walk = {
            "what": "walking on the quay",
            "place": "stones of Quay",
            "day": "2024-06-03",
            "who": ["Ann Lee", "Bo Lee"],
        }
        return talk(ask, agreed=[] if ask.together else [walk | {"from": "12:00", "to": "13:00"}])

    mind = SceneMind(plan_scenes=plans, talk_scene=agree)
    async with Town.open(tmp_path, setting_of(parse_town(WIDE, Path()), seed=1), model=Models(mind)) as town:
        await town.run(until=14 * HOUR)
        kept = await remembered(town, "Ann Lee", ("observation",))
    assert any("walking on the quay" in each for each in kept) and not any("did not come" in each for each in kept)


async def test_an_appointment_without_a_conversation_is_remembered_with_those_who_were_there(tmp_path: Path) -> None:
    mind = SceneMind(talk_scene=lambda ask: agrees_on(ask, LUNCH, "12:00", "13:00"))
    async with Town.open(tmp_path, liucun(), model=Models(mind)) as town:
        await town.run(until=11 * HOUR)
        for name in (HOST, GUEST):
            state = town.residents[name].state
            town.residents[name].state = state.model_copy(update={"asked": (12, 16_000)})
        await town.run(until=14 * HOUR)
        (deed,) = [each for each in await remembered(town, HOST, ("observation",)) if f"{HOST}: {LUNCH}" in each]
    assert f"there: {GUEST}" in deed and "no talk" not in deed and "did not come" not in deed, "they ate together"


def _spend(town: Town, calls: int, tokens: int) -> None:
    """Let the host and the guest have used this much of their daily budgets."""
    for name in (HOST, GUEST):
        state = town.residents[name].state
        town.residents[name].state = state.model_copy(update={"asked": (calls, tokens)})


async def test_an_appointment_for_which_the_budget_allows_no_talk_has_one_result_for_all(tmp_path: Path) -> None:
    came = "王秀兰和赵林吃了面,说好明天修船。"
    mind = SceneMind(
        talk_scene=lambda ask: agrees_on(ask, LUNCH, "12:00", "13:00"), settle=lambda _: {"text": came, "weight": 6}
    )
    async with Town.open(tmp_path, liucun(), model=Models(mind)) as town:
        await town.run(until=11 * HOUR)
        _spend(town, 8, 13_500)
        await town.run(until=14 * HOUR)
        for name in (HOST, GUEST):
            assert (await remembered(town, name)).count(came) == 1
            assert town.residents[name].state.asked[1] < 16_000, "both pay for the call"
        (deed,) = [each for each in await remembered(town, HOST, ("observation",)) if f"{HOST}: {LUNCH}" in each]
    (asked,) = mind.of(Settle)
    names = [side.who for side in asked.sides]
    assert {*names} == {HOST, GUEST} and asked.did == LUNCH and not asked.question
    assert f"Together: <people>{', '.join(names)}</people>" in mind.rendered[mind.asked.index(asked)]
    assert not any(each.together for each in mind.of(TalkScene)) and "no talk" not in deed


async def test_the_result_of_an_act_is_asked_for_at_once_even_if_calls_are_reserved_for_talks(tmp_path: Path) -> None:
    def plans(ask: PlanScenes) -> dict[str, Any]:
        plan = day()
        if ask.who == HOST:
            plan["items"][4] |= {"what": "修方桌", "open": "方桌稳不稳", "weight": 3}
        return plan

    mind = SceneMind(plan_scenes=plans, talk_scene=partial(agrees_on, what=LUNCH, start="20:00", end="21:00"))
    async with Town.open(tmp_path, liucun(seeds('"茶馆的方桌不稳。"')), model=Models(mind)) as town:
        await town.run(until=11 * HOUR)
        _spend(town, 6, 13_000)
        await town.run(until=13 * HOUR)
        (asked,) = [each for each in mind.of(WhatCame) if each.question]
        assert (asked.when[-5:], asked.did) == ("12:00", "修方桌")
        assert any("方桌不稳" in line for line in asked.memories)
        _spend(town, 6, 11_000)
        await town.run(until=DAY - 1)
    assert LUNCH in {each.together for each in mind.of(TalkScene)}


async def test_an_appointment_that_ends_during_a_talk_is_remembered(tmp_path: Path) -> None:
    """The guest does not come; the host talks with the hermit beyond the end of the appointment."""

    def agree(ask: TalkScene) -> dict[str, Any]:
        if ask.when[-5:] < "12:00":
            return agrees_on(ask, LUNCH, "12:00", "13:00")
        lines = [{"who": side.who, "says": "话很长。" * 90} for side in ask.sides]
        return talk(ask, lines=lines)

    def plans(ask: PlanScenes) -> dict[str, Any]:
        plan = day()
        if ask.who == HERMIT:
            plan["items"][5] |= {"to": "12:50"}
            plan["items"].insert(6, {"from": "12:50", "to": "13:00", "what": "喝汤", "place": INN_WORDS})
        return plan

    mind = SceneMind(plan_scenes=plans, talk_scene=agree)
    async with Town.open(tmp_path, liucun(), model=Models(mind)) as town:
        await town.run(until=11 * HOUR)
        state = town.residents[GUEST].state
        home = town.setting.people[GUEST].home
        blocks = tuple(each.model_copy(update={"place": home, "agreed": ()}) for each in state.blocks)
        town.residents[GUEST].state = state.model_copy(update={"blocks": blocks})
        await town.run(until=14 * HOUR)
        texts = await remembered(town, HOST, ("observation",))
    assert any(ask.when[-5:] > "12:00" and HOST in {s.who for s in ask.sides} for ask in mind.of(TalkScene))
    assert [f"{GUEST} did not come" in each for each in texts if f"{HOST}: {LUNCH}" in each] == [True]


async def test_an_appointment_belongs_to_the_part_of_the_plan_that_has_most_of_its_time(tmp_path: Path) -> None:
    """On the second day the plan of each has work at the inn until five past noon, and a meal there after that."""

    def plans(ask: PlanScenes) -> dict[str, Any]:
        plan = day()
        plan["items"][4] |= {"to": "12:05", "place": INN_WORDS}
        plan["items"][5] |= {"from": "12:05", "what": "吃面", "place": INN_WORDS}
        return plan

    def agree(ask: TalkScene) -> dict[str, Any]:
        said = agrees_on(ask, LUNCH, "12:00", "13:00")
        for each in said.get("agreed", []):
            each["day"] = "2024-06-04"
        return said

    mind = SceneMind(plan_scenes=plans, talk_scene=agree)
    async with Town.open(tmp_path, liucun(), model=Models(mind)) as town:
        await town.run(until=DAY + 14 * HOUR)
        agreed = [[each.what for each in town.residents[name].state.blocks if each.agreed] for name in (HOST, GUEST)]
    assert agreed == [["吃面"], ["吃面"]]


async def test_appointments_at_one_place_and_time_are_one_appointment_at_which_each_talks_once(tmp_path: Path) -> None:
    """Ada agrees on the same evening with Ben and with Emil, on the day itself, or on the day before."""
    three = {"Ada Brook", "Ben Hale", "Emil Kern"}

    def agree(ask: TalkScene) -> dict[str, Any]:
        who = {side.who for side in ask.sides}
        if "Ada Brook" not in who or not who < three or ask.together or ask.when[-5:] > "12:00":
            return talk(ask)
        supper = {
            "what": "eating soup",
            "place": "cafe of Oak Cafe",
            "from": "18:00",
            "to": "19:00",
            "who": sorted(who),
        }
        return talk(ask, agreed=[supper | {"day": date}])

    for date, later in (("2023-02-13", 0), ("2023-02-14", DAY)):
        mind = SceneMind(plan_scenes=out_all_day, talk_scene=agree)
        async with Town.open(tmp_path / date, five(), model=Models(mind)) as town:
            await town.run(until=later + 17 * HOUR)
            (agreed,) = [
                each.agreed
                for each in town.residents["Ada Brook"].state.blocks
                if each.agreed and each.start <= 1081 < each.end
            ]
            await town.run(until=later + 20 * HOUR)
            (deed,) = [each for each in await remembered(town, "Ben Hale", ("observation",)) if "no talk" in each] or [
                ""
            ]
        assert {*agreed} == three, date
        (asked,) = mind.of(Settle)
        assert {side.who for side in asked.sides} == three and not deed, (date, asked, deed)
        assert not any(ask.together for ask in mind.of(TalkScene))


async def test_an_appointment_of_three_has_one_result_for_all_of_them(tmp_path: Path) -> None:
    """Ada, Ben and Emil have supper at a café in which everyone sees everyone, also Cleo and Dora."""
    three, result = {"Ada Brook", "Ben Hale", "Emil Kern"}, "The choir will sing on Sunday."

    def agree(ask: TalkScene) -> dict[str, Any]:
        who = {side.who for side in ask.sides}
        if "Ada Brook" not in who or not who < three or ask.when[-5:] > "12:00":
            return talk(ask)
        supper = {
            "what": "eating soup",
            "place": "cafe of Oak Cafe",
            "from": "18:00",
            "to": "19:00",
            "who": sorted(who),
        }
        return talk(ask, agreed=[supper])

    mind = SceneMind(plan_scenes=out_all_day, talk_scene=agree)
    mind.answers["settle"] = partial(_given, {"text": result, "weight": 6})
    async with Town.open(tmp_path, five(), model=Models(mind)) as town:
        await town.run(until=20 * HOUR)
        kept = {name: await remembered(town, name) for name in town.residents}
    assert all((result in kept[name]) == (name in three) for name in kept)
    (asked,) = mind.of(Settle)
    assert asked.when.endswith("18:30"), "when half of the time has passed, so that all can be there"


async def test_an_errand_to_several_people_is_settled_once(tmp_path: Path) -> None:
    """Ada, Ben and Emil haul a boat; each plan names the other two."""
    three = {"Ada Brook", "Ben Hale", "Emil Kern"}

    def plans(ask: PlanScenes) -> dict[str, Any]:
        plan = out_all_day(ask)
        items = [each for each in plan["items"] if not "10:00" <= each["from"] < "12:00"]
        hauling: dict[str, Any] = {"from": "10:00", "to": "12:00", "what": f"hauling the boat, {ask.who}"}
        hauling |= {"place": "cafe of Oak Cafe", "with": sorted(three - {ask.who}), "weight": 5}
        both = [*items, hauling] if ask.who in three else plan["items"]
        return {"items": sorted(both, key=lambda each: each["from"])}

    mind = SceneMind(plan_scenes=plans, settle=lambda _: {"text": "The boat is on the slip.", "weight": 5})
    async with Town.open(tmp_path, five(), model=Models(mind)) as town:
        await town.run(until=12 * HOUR)
    asked = [{side.who for side in ask.sides} for ask in mind.of(Settle) if ask.did.startswith("hauling")]
    assert asked == [three]


async def test_the_result_of_an_appointment_is_asked_for_without_secrets(tmp_path: Path) -> None:
    """Ada keeps a memory to herself, and would say something of it to Ben, not to Emil."""
    three = {"Ada Brook", "Ben Hale", "Emil Kern"}

    def keeps(ask: PlanScenes) -> dict[str, Any]:
        numbers = [n for n, each in enumerate(ask.memories, 1) if "The mill is sold." in each.text]
        return out_all_day(ask) | {"keeps": numbers}

    def agree(ask: TalkScene) -> dict[str, Any]:
        who = {side.who for side in ask.sides}
        if "Ada Brook" not in who or not who < three or ask.when[-5:] > "14:00":
            return talk(ask)
        supper = {"what": "eating soup", "place": "cafe of Oak Cafe", "from": "18:00", "to": "19:00"}
        return talk(ask, agreed=[supper | {"who": sorted(who)}])

    mind = SceneMind(plan_scenes=keeps, talk_scene=agree)
    mind.answers["let_on"] = partial(_given, {"lets_on": [{"to": "Ben Hale", "says": "Do not ask."}]})
    async with Town.open(tmp_path, five(), model=Models(mind)) as town:
        await town.whisper("Ada Brook", "The mill is sold.")
        await town.run(until=20 * HOUR)
    (asked,) = mind.of(Settle)
    assert {side.who for side in asked.sides} == three and "Ada Brook" in asked.sides[0].text
    assert not any(words in str(asked) for words in ("The mill is sold.", "Do not ask."))


async def test_a_partner_who_left_early_has_come(tmp_path: Path) -> None:
    mind = SceneMind(talk_scene=lambda ask: agrees_on(ask, LUNCH, "12:00", "13:00"))
    async with Town.open(tmp_path, liucun(), model=Models(mind)) as town:
        await town.run(until=11 * HOUR)
        for name in (HOST, GUEST):  # without budget they see each other and do not talk
            state = town.residents[name].state
            town.residents[name].state = state.model_copy(update={"asked": (12, 16_000)})
        state = town.residents[GUEST].state
        home = town.setting.people[GUEST].home
        short = Block(start=750, minutes=30, what="回家", place=home, fine=True)
        blocks = [
            each.model_copy(update={"minutes": 750 - each.start}) if each.what == LUNCH else each
            for each in state.blocks
        ]
        blocks = sorted((*blocks, short), key=lambda each: each.start)
        town.residents[GUEST].state = state.model_copy(update={"blocks": tuple(blocks)})
        await town.run(until=14 * HOUR)
        assert "回家" in str(await remembered(town, GUEST, ("observation",)))
        (deed,) = [each for each in await remembered(town, HOST, ("observation",)) if f"{HOST}: {LUNCH}" in each]
    assert "did not come" not in deed


async def test_a_visitor_names_the_host_it_did_not_find(tmp_path: Path) -> None:
    def plans(ask: PlanScenes) -> dict[str, Any]:
        return visit(ask) if ask.who in (GUEST, HERMIT) else out_all_day_at_the_inn(ask)

    async with Town.open(tmp_path, liucun(homely), model=Models(SceneMind(plan_scenes=plans))) as town:
        await town.run(until=9 * HOUR + 120)
        deeds = [each for each in await remembered(town, GUEST, ("observation",)) if f"{GUEST}: 喝茶" in each]
    assert deeds and all(f"{HOST}: not at home" in each and "nobody" not in each for each in deeds)


async def test_a_conversation_on_a_road_is_on_the_way(tmp_path: Path) -> None:
    mind = SceneMind()
    async with Town.open(tmp_path, liucun(), model=Models(mind)) as town:
        await town.run(until=10 * HOUR)
    assert mind.of(TalkScene)[0].place == "outdoors, on the way"


async def test_later_appointments_are_among_the_numbered_plans(tmp_path: Path) -> None:
    mind = SceneMind(talk_scene=lambda ask: agrees_on(ask, "下棋", "20:00", "21:00"))
    async with Town.open(tmp_path, liucun(), model=Models(mind)) as town:
        await town.run(until=10 * HOUR)
    with_guest = [n for n, ask in enumerate(mind.of(TalkScene)) if {s.who for s in ask.sides} == {HOST, GUEST}]
    later = [side for ask in mind.of(TalkScene)[with_guest[0] + 1 :] for side in ask.sides if side.who in (HOST, GUEST)]
    assert later and all(sum("下棋" in line for line in side.plan) == 1 for side in later)


async def test_an_appointment_leaves_no_slivers_of_the_plan(tmp_path: Path) -> None:
    """An hour from 11:06 to 11:50 cuts the work at eleven into six and ten minutes."""
    mind = SceneMind(talk_scene=lambda ask: agrees_on(ask, "看磨盘", "11:06", "11:50", "卧室 of 磨坊"))
    async with Town.open(tmp_path, liucun(), model=Models(mind)) as town:
        await town.run(until=10 * HOUR + 30)
        blocks = town.residents[HOST].state.blocks
    (agreed,) = [each for each in blocks if each.what == "看磨盘"]
    work = [each for each in blocks if each.what == "干活11"]
    assert not work, "no piece of it is left, neither before nor after"
    assert agreed.start <= 11 * 60 and all(each.minutes >= 10 for each in blocks)


def test_texts_are_cut_between_words() -> None:
    assert cut_at_word("telling him of the light in the tower", 24) == "telling him of the…"
    assert cut_at_word("short", 24) == "short" and cut_at_word("柳" * 30, 10) == f"{'柳' * 9}…"


async def test_plans_and_yesterday_are_whole_sentences(tmp_path: Path) -> None:
    long = "having tea and " + "talking about the mill and the stone " * 5 + "to the end."
    result = "The table was mended. " * 17 + "It stands."

    def plans(ask: PlanScenes) -> dict[str, Any]:
        plan = day()
        if ask.who == HOST:
            plan["items"][2] |= {"what": long[-200:].strip(), "open": "whether it stands"}
        return plan

    mind = SceneMind(plan_scenes=plans, what_came=lambda _: {"text": result})
    async with Town.open(tmp_path, liucun(), model=Models(mind)) as town:
        await town.run(until=DAY + HOUR)
    assert any("to the end. (" in line for side in sides_of(mind, HOST) for line in side.plan)
    assert result in [each for each in mind.of(PlanScenes) if each.who == HOST][1].yesterday


async def test_the_plan_recalls_no_spoken_lines(tmp_path: Path) -> None:
    said = "王秀兰计划、约定、答应了什么?"
    mind = SceneMind(talk_scene=lambda ask: talk(ask, lines=[{"who": ask.sides[0].who, "says": said}]))
    async with Town.open(tmp_path, liucun(), model=Models(mind)) as town:
        await town.run(until=2 * DAY + HOUR)
        chat = await town.store.latest(key_of_resident(HOST), ("chat",), 50, now=town.setting.moment(town.step))
    spoken = {each.text for each in chat}
    plans = [each for each in mind.of(PlanScenes) if each.who == HOST]
    assert said in spoken and not spoken & {each.text for ask in plans for each in ask.memories}


async def test_results_come_up_in_conversations_and_in_later_results(tmp_path: Path) -> None:
    came = "方桌的腿换好了,榫头还松。"

    def plans(ask: PlanScenes) -> dict[str, Any]:
        plan = day()
        if ask.who == HOST:
            for number in (1, 3):
                plan["items"][number] |= {"what": f"修方桌{number}", "open": "方桌稳不稳", "place": ""}
        return plan

    mind = SceneMind(plan_scenes=plans, what_came=lambda _: {"text": came, "weight": 1})
    old = seeds(*(f'{{ text = "旧事{number}。", weight = 9 }}' for number in range(20)))
    async with Town.open(tmp_path, liucun(old), model=Models(mind)) as town:
        await town.run(until=12 * HOUR)
    assert any(came in str(each.memories) for each in sides_of(mind, HOST)), "told soon after"
    first, second = mind.of(WhatCame)
    assert came not in str(first.memories) and came in str(second.memories)


async def test_no_result_is_invented_for_what_a_conversation_settles(tmp_path: Path) -> None:
    def plans(ask: PlanScenes) -> dict[str, Any]:
        plan = day()
        if ask.who == HOST:
            plan["items"][2] |= {"what": f"问{GUEST}要木料", "with": GUEST, "open": "有没有木料"}
        return plan

    mind = SceneMind(plan_scenes=plans, talk_scene=lambda _: {"talk": False})
    async with Town.open(tmp_path, liucun(), model=Models(mind)) as town:
        await town.run(until=11 * HOUR)
    assert mind.of(TalkScene) and not mind.of(WhatCame)


def test_relations_read_as_sentences() -> None:
    relations = (Relation("Ida Moe", "the new nurse"), Relation("Per Sol", "sells her fish"))
    person = Person(name="Ann Lie", home="House", relations=relations)
    assert person.acquaintances() == (
        "Ann Lie knows Ida Moe (the new nurse).",
        "Ann Lie knows Per Sol (sells her fish).",
    )


async def test_an_act_that_names_its_resident_is_told_without_the_name(tmp_path: Path) -> None:
    def agree(ask: TalkScene) -> dict[str, Any]:
        plan = f"{HOST} keeping a table"
        alone = {"what": plan, "place": INN_WORDS, "day": "2024-06-03", "from": "12:00", "to": "13:00", "who": [HOST]}
        return talk(ask, agreed=[alone]) if {s.who for s in ask.sides} == {HOST, GUEST} else talk(ask)

    async with Town.open(tmp_path, liucun(), model=Models(SceneMind(talk_scene=agree))) as town:
        await town.run(until=14 * HOUR)
        texts = await remembered(town, HOST)
    assert f"Agreed by {HOST}: keeping a table" in texts and not any(f"{HOST}: {HOST}" in each for each in texts)


async def test_an_appointment_that_names_one_of_the_two_is_seen_as_a_sentence(tmp_path: Path) -> None:
    brings = f"{HOST} bringing a cake"
    mind = SceneMind(talk_scene=lambda ask: agrees_on(ask, brings, "12:00", "13:00"))
    async with Town.open(tmp_path, liucun(), model=Models(mind)) as town:
        await town.run(until=14 * HOUR)
        seen = {name: await remembered(town, name, ("observation",)) for name in (HOST, GUEST)}
    assert f"{HOST} is bringing a cake" in seen[GUEST]
    assert f"{GUEST} is busy with: {HOST} bringing a cake" in seen[HOST]


NEWS_OF_ALL = "周六晚上老茶馆摆席,人人都请,谁都要通知到。"


def _tells(ask: TalkScene) -> dict[str, Any]:
    """Return a conversation in which each passes on what it has to tell now."""
    said = talk(ask)
    for side, line in zip(ask.sides, said["lines"], strict=True):
        line["tells"] = number_of([each for each in side.memories if "to be told now" in each], NEWS_OF_ALL)
    return said


def _plans_to_tell(*names: str, work: str = "") -> Any:
    """Return a plan in which the host has to tell the news to these names; the hermit stays at home."""

    def plans(ask: PlanScenes) -> dict[str, Any]:
        numbers = [n for n, each in enumerate(ask.memories, 1) if NEWS_OF_ALL in each.text]
        tell = [{"number": n, "to": list(names)} for n in [*numbers, 99]] if ask.who == HOST else []
        return day("" if ask.who == HERMIT else INN_WORDS) | {"tell": tell}

    return plans


async def test_news_to_pass_on_is_shown_as_untold_until_it_was_told(tmp_path: Path) -> None:
    """The host meets the guest, and not the hermit, on each of three days."""
    mind = SceneMind(plan_scenes=_plans_to_tell(GUEST, HERMIT, HOST, "…"), talk_scene=_tells)
    async with Town.open(tmp_path, liucun(seeds(f'"{NEWS_OF_ALL}"')), model=Models(mind)) as town:
        await town.run(until=HOUR)
        (told,) = town.residents[HOST].state.tells.values()
        await town.run(until=DAY + HOUR)
    assert {*told} == {GUEST, HERMIT}, "only other residents, and only of memories that were shown"
    with_guest = [ask for ask in mind.of(TalkScene) if {s.who for s in ask.sides} == {HOST, GUEST}]
    assert f"{NEWS_OF_ALL} (to be told now)" in str(with_guest[0].sides)
    assert with_guest[0].sides[0].who == HOST, "who has to tell something begins"
    first, second = (each for each in mind.of(PlanScenes) if each.who == HOST)
    assert not any("still to be told" in each.written for each in first.memories)
    (written,) = (each.written for each in second.memories if NEWS_OF_ALL in each.text)
    assert written.endswith(f"still to be told to {HERMIT}"), written


FLOOD = "水闸星期三早上八点打开,河滩会被淹,谁也不要去。"


def tells_all(ask: TalkScene) -> dict[str, Any]:
    """Return a conversation in which each passes on every numbered memory about the flood, and remembers small talk."""
    said = talk(ask)
    for line, side in zip(said["lines"], ask.sides, strict=True):
        line["tells"] = number_of(side.memories, FLOOD)
    return said | {"remember": [{"who": each.who, "text": f"{each.who}打了招呼。", "weight": 1} for each in ask.sides]}


async def test_who_is_told_something_keeps_it_once_and_can_pass_it_on(tmp_path: Path) -> None:
    setting = liucun(seeds(f'{{ text = "{FLOOD}", weight = 8 }}'))
    mind = SceneMind(plan_scenes=out_all_day_at_the_inn, talk_scene=tells_all)
    async with Town.open(tmp_path, setting, model=Models(mind)) as town:
        await town.run(until=DAY - 1)
        for name in (HOST, GUEST, HERMIT):
            kept = [each for each in await remembered(town, name, ("note", "thought")) if FLOOD in each]
            assert len(kept) == 1, name
    assert any(FLOOD in str(side.memories) for side in (*sides_of(mind, GUEST), *sides_of(mind, HERMIT)))


async def test_what_the_reply_remembers_of_the_news_is_not_kept_twice(tmp_path: Path) -> None:
    again = FLOOD.replace("打开", "就打开")

    def said(ask: TalkScene) -> dict[str, Any]:
        return tells_all(ask) | {"remember": [{"who": each.who, "text": again, "weight": 7} for each in ask.sides]}

    setting = liucun(seeds(f'{{ text = "{FLOOD}", weight = 8 }}'))
    mind = SceneMind(plan_scenes=out_all_day_at_the_inn, talk_scene=said)
    async with Town.open(tmp_path, setting, model=Models(mind)) as town:
        await town.run(until=10 * HOUR)
        assert again in await remembered(town, GUEST) and FLOOD not in await remembered(town, GUEST)


async def test_what_mattered_most_today_comes_up_in_every_talk(tmp_path: Path) -> None:
    """Eight memories of one talk about the other fill the prompt, but not its place for the news of the day."""
    news = "渡船明天停开,要过河的人今天就得走。"

    def said(ask: TalkScene) -> dict[str, Any]:
        first = not any(news in str(each) for each in mind.asked[:-1]) and GUEST in {each.who for each in ask.sides}
        small = [{"who": GUEST, "text": f"第{n}件小事,跟{HOST}有关:{'甲乙丙丁戊己庚'[n]}。"} for n in range(6)]
        kept = [{"who": GUEST, "text": news, "weight": 8}, *small[:5]]
        return talk(ask, remember=kept if first else small)

    mind = SceneMind(plan_scenes=out_all_day_at_the_inn, talk_scene=said)
    async with Town.open(tmp_path, liucun(), model=Models(mind)) as town:
        await town.run(until=DAY - 1)
    guest = sides_of(mind, GUEST)
    assert len(guest) > 3 and all(news in str(each.memories) for each in guest[1:])


async def test_what_is_secret_is_not_to_be_told(tmp_path: Path) -> None:
    mind = SceneMind(plan_scenes=_plans_to_tell(GUEST), talk_scene=_tells)
    setting = liucun(seeds(f'{{ text = "{NEWS_OF_ALL}", secret = true }}'))
    async with Town.open(tmp_path, setting, model=Models(mind)) as town:
        await town.run(until=10 * HOUR)
        assert not town.residents[HOST].state.tells
    assert sides_of(mind, HOST) and not any(NEWS_OF_ALL in str(each) for each in sides_of(mind, HOST))


async def test_an_unreadable_plan_keeps_what_is_to_be_told(tmp_path: Path) -> None:
    mind = SceneMind(plan_scenes=_plans_to_tell(HERMIT))
    async with Town.open(tmp_path, liucun(seeds(f'"{NEWS_OF_ALL}"')), model=Models(mind)) as town:
        await town.run(until=HOUR)
        before = town.residents[HOST].state.tells
        mind.answers["plan_scenes"] = lambda _: "…"
        await town.run(until=DAY + HOUR)
        assert before and town.residents[HOST].state.tells == before


async def test_news_is_told_in_passing_when_the_budget_allows_no_talk(tmp_path: Path) -> None:
    """Ada has to tell Emil; the second time, she keeps a secret and has not judged the news yet."""

    async def told(folder: Path, *, keeps: bool, errand: bool = False) -> tuple[int, int]:
        def plans(ask: PlanScenes) -> dict[str, Any]:
            plan = out_all_day(ask)
            for each in plan["items"] if errand and ask.who == "Ada Brook" else ():
                each |= {"with": ["Emil Kern"], "weight": 5} if each["from"] == "19:45" else {}
            numbers = [n for n, each in enumerate(ask.memories, 1) if NEWS_OF_ALL in each.text]
            kept = [n for n, each in enumerate(ask.memories, 1) if "The mill is sold." in each.text]
            return plan | {"tell": [{"number": n, "to": ["Emil Kern"]} for n in numbers], "keeps": kept}

        mind = SceneMind(plan_scenes=plans, talk_scene=lambda ask: {"talk": False})
        async with Town.open(folder, five(), model=Models(mind)) as town:
            await town.whisper("Ada Brook", NEWS_OF_ALL)
            if keeps:
                await town.whisper("Ada Brook", "The mill is sold.")
            await town.run(until=6 * HOUR)
            for name, resident in town.residents.items():
                town.residents[name].state = resident.state.model_copy(update={"asked": (9, 17_000)})
            await town.run(until=20 * HOUR - 6)
            events = [row.event async for row in rows_after(town.store)]
            heard = (await remembered(town, "Emil Kern", ("thought",))).count(NEWS_OF_ALL)
        return heard, sum(isinstance(each, Met) and each.outcome == "told" for each in events)

    assert await told(tmp_path / "told", keeps=False) == (1, 2)
    assert await told(tmp_path / "errand", keeps=False, errand=True) == (1, 2), "no budget allows the errand"
    assert await told(tmp_path / "unjudged", keeps=True) == (0, 0)


async def test_a_refuted_rumour_is_not_shown_again(tmp_path: Path) -> None:
    rumour = "听说磨坊的水轮坏了。"

    def refutes(ask: TalkScene) -> dict[str, Any]:
        said = talk(ask)
        for entry, side in zip(said["remember"], ask.sides, strict=True):
            entry |= {"corrects": number_of(side.memories, rumour), "text": f"{side.who}知道水轮没有坏。"}
        return said

    mind = SceneMind(talk_scene=refutes)
    async with Town.open(tmp_path, liucun(seeds(f'"{rumour}"')), model=Models(mind)) as town:
        await town.run(until=DAY + 10 * HOUR)
    first, *later = sides_of(mind, HOST)
    assert rumour in str(first.memories) and later and not any(rumour in str(each.memories) for each in later)
    assert rumour not in str([each for each in mind.of(PlanScenes) if each.who == HOST][1].memories)


def test_surplus_insights_are_left_out() -> None:
    given = [{"text": f"insight {number}", "because": [1, 2]} for number in range(5)]
    assert [each.text for each in Evening.model_validate({"insights": given}).insights] == ["insight 0", "insight 1"]


async def test_who_needs_an_answer_asks_the_person_in_sight(tmp_path: Path) -> None:
    """In a café in which everyone always sees everyone, an act is done with one of them. The two have talked at nine,
    so that they do not meet by chance at ten."""
    emil = ["Emil Kern"]

    async def met_at_ten(folder: Path, **needs: Any) -> bool:
        def plans(ask: PlanScenes) -> dict[str, Any]:
            plan = out_all_day(ask)
            if ask.who == "Ada Brook":
                plan["items"][8] |= {"what": "greeting Emil Kern", "with": emil, "weight": 9}
                plan["items"][12] |= {"what": "asking Emil Kern", **needs}
            return plan

        mind = SceneMind(plan_scenes=plans, let_on=lambda _: {})
        async with Town.open(folder, five(), model=Models(mind)) as town:
            await town.run(until=11 * HOUR)
        asked = (*mind.of(TalkScene), *mind.of(Settle))
        scenes = [ask for ask in asked if "10:00" <= ask.when[-5:] < "10:15"]
        return any({side.who for side in ask.sides} == {"Ada Brook", "Emil Kern"} for ask in scenes)

    assert not await met_at_ten(tmp_path / "chance", open="whether the boat is ready")
    assert not await met_at_ten(tmp_path / "beside", **{"with": emil, "weight": 1})
    assert await met_at_ten(tmp_path / "matters", **{"with": emil, "weight": 4})
    assert await met_at_ten(tmp_path / "errand", **{"with": emil, "open": "whether the boat is ready"})


async def test_the_last_call_for_a_talk_is_left_for_the_one_that_matters_most(tmp_path: Path) -> None:
    """Ada has small matters for Emil in every quarter of an hour, and a great one for Ben at six."""

    def plans(ask: PlanScenes) -> dict[str, Any]:
        plan = out_all_day(ask)
        for item in plan["items"] if ask.who == "Ada Brook" else ():
            great = item["from"] == "18:00"
            item |= {"with": ["Ben Hale" if great else "Emil Kern"], "weight": 9 if great else 2}
        return plan

    async with Town.open(tmp_path, five(), model=Models(SceneMind(plan_scenes=plans))) as town:
        await town.run(until=11 * HOUR)
        while town.residents["Ada Brook"].state.is_talking(town.step):
            await town.run(until=town.step + 60)
        setting, state = town.setting, town.residents["Ada Brook"].state
    last = setting.profile.day_calls - RESERVED - 1
    for calls, small, great in ((last - 1, True, True), (last, False, True), (last + 1, False, False)):
        asked = state.model_copy(update={"asked": (calls, 5_000)})
        assert [affords(asked, setting, town.step, errand=weight) for weight in (2, 9)] == [small, great]
        assert not affords(asked, setting, town.step), "a chance meeting gets less"
    most = setting.profile.day_tokens - TALK_TOKENS
    for tokens, small, great in (
        (most - EVENING_TOKENS - RESERVED_TOKENS - 1, True, True),
        (most - EVENING_TOKENS - RESERVED_TOKENS, False, True),
        (most - 1, False, True),
        (most, False, False),
    ):
        asked = state.model_copy(update={"asked": (4, tokens)})
        assert [affords(asked, setting, town.step, errand=weight) for weight in (2, 9)] == [small, great]


async def test_an_appointment_reserves_nothing_against_its_own_talk(tmp_path: Path) -> None:
    async with Town.open(tmp_path, five(), model=Models(SceneMind())) as town:
        await town.run(until=9 * HOUR)
        setting, state, minute = town.setting, town.residents["Ada Brook"].state, town.setting.minute(town.step)
    met = Block(start=minute - 5, minutes=30, what="x", place="y", agreed=("Ada Brook", "Emil Kern"))
    state = state.model_copy(update={"blocks": (met,)})
    assert reserved_calls(setting, town.step, state) == 1
    assert reserved_calls(setting, town.step, state, partner="Ben Hale") == 1
    assert reserved_calls(setting, town.step, state, partner="Emil Kern") == 0
    later = state.model_copy(update={"blocks": (met.model_copy(update={"start": minute + 5}),)})
    assert reserved_calls(setting, town.step, later, partner="Emil Kern") == 1


async def test_what_one_talk_has_settled_is_neither_asked_again_nor_remembered_as_missed(tmp_path: Path) -> None:
    """Ada means to speak to Emil at eight and again at ten; their first talk gives the result of both."""

    def plans(ask: PlanScenes) -> dict[str, Any]:
        plan = out_all_day(ask)
        for item in plan["items"] if ask.who == "Ada Brook" else ():
            if item["from"] in ("08:00", "10:00"):
                item |= {"what": "asking Emil Kern for oars", "with": "Emil Kern", "weight": 6}
        return plan

    def settles(ask: TalkScene) -> dict[str, Any]:
        numbers = [int(line.split(".")[0]) for side in ask.sides for line in side.plan if "oars" in line]
        return talk(ask, results=[{"number": each, "text": "Emil Kern lends the oars."} for each in numbers])

    mind = SceneMind(plan_scenes=plans, talk_scene=settles, let_on=lambda _: {})
    async with Town.open(tmp_path, five(), model=Models(mind)) as town:
        await town.run(until=9 * HOUR)
        later = [each for each in town.residents["Ada Brook"].state.blocks if each.start == 10 * 60]
        await town.run(until=11 * HOUR)
        deeds = await remembered(town, "Ada Brook", ("observation",))
    assert [(each.what, each.whom) for each in later] == [("serving guests", ())], "her duty, in place of asking again"
    assert [each for each in deeds if "oars" in each] and not any("no talk with Emil" in each for each in deeds), deeds


async def test_an_errand_of_ones_own_leaves_an_appointment_with_others_whole(tmp_path: Path) -> None:
    def agree(ask: TalkScene) -> dict[str, Any]:
        said = agrees_on(ask, "下棋", "16:00", "17:00")
        for game in said.get("agreed", [])[:1]:
            own = {"what": "告诉石婆婆", "from": "16:40", "to": "17:20", "who": [HOST], "with": [HERMIT]}
            said["agreed"] = [game, {**game, **own}]
        return said

    mind = SceneMind(plan_scenes=out_all_day_at_the_inn, talk_scene=agree)
    async with Town.open(tmp_path, liucun(), model=Models(mind)) as town:
        await town.run(until=16 * HOUR)
        blocks = [each for each in town.residents[HOST].state.blocks if each.agreed]
    game, errand = (next(each for each in blocks if name in each.what) for name in ("下棋", "石婆婆"))
    assert (game.start, game.end, errand.start, errand.end) == (16 * 60, 17 * 60, 17 * 60, 17 * 60 + 20)
    assert errand.whom == (HERMIT,)


ASK, AWAY = "问石婆婆借锄头", "去磨坊"


def errand_at_four(weight: int, where: str = INN_WORDS) -> Any:
    """Return a plan in which the host asks the hermit for something at four, is free at five, and works at the inn."""

    def plan(ask: PlanScenes) -> dict[str, Any]:
        items = out_all_day_at_the_inn(ask)["items"]
        items = [each for each in items if each["from"] != "17:00" or ask.who != HOST]
        for each in items:
            if ask.who == HOST and each["from"] == "16:00":
                each |= {"what": ASK, "with": [HERMIT], "weight": weight, "place": where}
        return {"items": items}

    return plan


async def blocks_after_agreement(tmp_path: Path, plan: Any, **more: Any) -> list[Block]:
    """Return the host's plan after it has agreed with the guest to go somewhere at four."""

    def agree(ask: TalkScene) -> dict[str, Any]:
        said = agrees_on(ask, AWAY, "16:00", "17:00")
        return said | ({"agreed": [{**each, **more} for each in said["agreed"]]} if "agreed" in said else {})

    mind = SceneMind(plan_scenes=plan, talk_scene=agree)
    async with Town.open(tmp_path, liucun(), model=Models(mind)) as town:
        await town.run(until=12 * HOUR)
        return list(town.residents[HOST].state.blocks)


async def test_an_errand_at_the_place_of_an_agreement_is_done_as_well(tmp_path: Path) -> None:
    blocks = await blocks_after_agreement(tmp_path, errand_at_four(5))
    (both,) = (each for each in blocks if AWAY in each.what)
    assert both.what == f"{ASK}; {AWAY}" and both.whom == (HERMIT,) and both.agreed == tuple(sorted((HOST, GUEST)))
    assert (both.start, both.end, both.weight) == (16 * 60, 17 * 60, 5)


async def test_an_overtaken_errand_moves_to_the_next_free_time(tmp_path: Path) -> None:
    home = "卧室 of 磨坊"
    blocks = await blocks_after_agreement(tmp_path / "errand", errand_at_four(5, home))
    (moved,) = (each for each in blocks if each.what == ASK)
    assert moved.start >= 17 * 60 and moved.whom == (HERMIT,) and any(each.what == AWAY for each in blocks)
    blocks = await blocks_after_agreement(tmp_path / "chore", errand_at_four(2, home))
    assert not any(ASK in each.what for each in blocks), "anything else is replaced"


async def test_calls_are_reserved_for_what_is_promised(tmp_path: Path) -> None:
    """What a resident has agreed to tell somebody counts as a talk to come; a chance meeting leaves its call."""
    own = {"who": [HOST], "with": [HERMIT]}
    blocks = await blocks_after_agreement(tmp_path, out_all_day_at_the_inn, **own)
    (promised,) = (each for each in blocks if AWAY in each.what)
    assert promised.whom == (HERMIT,) and promised.weight == PROMISED
    state = ResidentState(name=HOST, day=0, blocks=(promised,))
    setting = liucun()
    assert [reserved_calls(setting, 12 * HOUR, state, above=weight) for weight in (PROMISED - 1, PROMISED)] == [1, 0]


async def test_concerns_that_are_over_are_no_memories(tmp_path: Path) -> None:
    old = "王秀兰要在星期一之前修好水车。"
    setting = liucun(
        lambda text: text.replace('learned = "王秀兰开磨坊。"', f'learned = "王秀兰开磨坊。"\ncurrently = "{old}"', 1)
    )

    def evening(ask: ReflectScenes) -> dict[str, Any]:
        return {"insights": [], "currently": "水车修好了。", "about": ""}

    mind = SceneMind(plan_scenes=out_all_day_at_the_inn, reflect_scenes=evening)
    async with Town.open(tmp_path, setting, model=Models(mind)) as town:
        await town.run(until=2 * DAY - 1)
    second = [ask for ask in mind.of(TalkScene) if "June 4" in ask.when]
    assert second and not any(old in str(ask.sides) for ask in second)
    assert any(f"In the morning: {old}" in str(ask.sides) for ask in mind.of(TalkScene)), "on the first day"
    first, *_, last = [ask for ask in mind.of(PlanScenes) if ask.who == HOST]
    assert old in first.identity and old not in str(last)


async def test_free_time_is_no_part_of_a_plan_in_a_talk(tmp_path: Path) -> None:
    def with_pauses(ask: PlanScenes) -> dict[str, Any]:
        items = out_all_day_at_the_inn(ask)["items"]
        return {"items": [each | {"to": each["from"].replace(":00", ":40")} for each in items]}

    mind = SceneMind(plan_scenes=with_pauses)
    async with Town.open(tmp_path, liucun(), model=Models(mind)) as town:
        await town.run(until=18 * HOUR)
        assert any(each.what == FREE for each in town.residents[HOST].state.blocks)
    assert sides_of(mind, HOST) and not any(FREE in str(side.plan) for side in sides_of(mind, HOST))


async def test_a_changed_plan_keeps_those_whom_the_reply_names(tmp_path: Path) -> None:
    def change(ask: TalkScene) -> dict[str, Any]:
        numbers = [n for side in ask.sides if side.who == HOST for n in number_of(side.plan, ASK)]
        changes = [{"number": n, "becomes": "还石婆婆锄头", "with": [HERMIT, "…"]} for n in numbers]
        return talk(ask, changes=changes if GUEST in {each.who for each in ask.sides} else [])

    mind = SceneMind(plan_scenes=errand_at_four(5), talk_scene=change)
    async with Town.open(tmp_path, liucun(), model=Models(mind)) as town:
        await town.run(until=12 * HOUR)
        (block,) = (each for each in town.residents[HOST].state.blocks if "锄头" in each.what)
    assert (block.what, block.whom, block.weight) == ("还石婆婆锄头", (HERMIT,), 5)


async def test_an_errand_for_which_the_budget_allows_no_talk_is_settled_in_short(tmp_path: Path) -> None:
    def lends(ask: Settle) -> dict[str, Any]:
        digging = {"what": "挖地", "from": "20:00", "to": "21:00", "who": [side.who for side in ask.sides]}
        return {"text": "石婆婆借出锄头。", "weight": 6, "agreed": [digging]}

    mind = SceneMind(plan_scenes=errand_at_four(5), settle=lends)
    async with Town.open(tmp_path, liucun(), model=Models(mind)) as town:
        await town.run(until=15 * HOUR + HOUR // 2)
        _spend(town, 8, 13_500)
        await town.run(until=18 * HOUR)
        for name in (HOST, HERMIT):
            assert (await remembered(town, name)).count("石婆婆借出锄头。") == 1
        (deed,) = [each for each in await remembered(town, HOST, ("observation",)) if f"{HOST}: {ASK}" in each]
    (asked,) = mind.of(Settle)
    assert [side.who for side in asked.sides] == [HOST, HERMIT] and asked.did == ASK and "no talk" not in deed
    for name in (HOST, HERMIT):
        (block,) = (each for each in town.residents[name].state.blocks if "挖地" in each.what)
        assert (block.start, {*block.agreed}) == (20 * 60, {HOST, HERMIT}), "both agreed to it"


async def test_a_secret_meant_for_one_person_is_told_on_the_visit_for_it_after_an_earlier_meeting(
    tmp_path: Path,
) -> None:
    """The host meets the hermit in the morning, and tells it the secret at four, for which it has come."""
    news, told = "陈伯要把茶馆送给石婆婆。", "陈伯要把茶馆送给你。"

    def plans(ask: PlanScenes) -> Any:
        plan = errand_at_four(7)(ask)
        for each in plan["items"]:
            each |= {"because": number_of_memory(ask, news)} if each["what"] == ASK else {}
        return plan

    mind = SceneMind(plan_scenes=plans, let_on=lambda _: {"lets_on": [{"to": HERMIT, "says": told}]})
    secret = seeds(f'{{ text = "{news}", secret = true }}')
    async with Town.open(tmp_path, liucun(secret), model=Models(mind)) as town:
        await town.run(until=18 * HOUR)
    talks = [ask for ask in mind.of(TalkScene) if {side.who for side in ask.sides} == {HOST, HERMIT}]
    (first, *_, last) = talks
    assert first.when[-5:] < "12:00" and last.when[-5:] >= "16:00"
    assert any(told in line for side in last.sides for line in side.memories)
    assert mind.of(LetOn)[0].plan[-1] == f"{ASK}, with {HERMIT}"


async def test_what_two_learned_together_may_reveal_a_secret_and_is_shown_to_no_one_else(tmp_path: Path) -> None:
    """At nine the host tells the guest of its secret; nothing that it learns later is known to be free of it. At four
    it asks the hermit for the hoe, alone, and at six they speak again; at seven it speaks with the guest."""
    result = "石婆婆因为茶馆的事借出锄头。"

    def plans(ask: PlanScenes) -> Any:
        plan, whom = errand_at_four(5)(ask), {"18:00": HERMIT, "19:00": GUEST}
        for each in plan["items"]:
            if ask.who == HOST and each["from"] in whom:
                each |= {"what": f"商量明天的事 {each['from']}", "with": [whom[each["from"]]], "weight": 7}
            elif ask.who == (HERMIT if each["from"] < "16:00" else GUEST) and "10:00" <= each["from"] < "19:00":
                each |= {"place": ""}
        return plan

    mind = SceneMind(
        plan_scenes=plans,
        let_on=lambda ask: {
            "lets_on": [{"to": GUEST, "says": "茶馆要关。"}],
            "hides": number_of(ask.memories, result),
        },
        settle=lambda _: {"text": result, "weight": 7},
    )
    setting = liucun(seeds(f'{{ text = "{SECRET}", weight = 9, secret = true }}'))
    async with Town.open(tmp_path, setting, model=Models(mind)) as town:
        await town.run(until=21 * HOUR)
    shown = {
        next(side.who for side in ask.sides if side.who != HOST): [line for line in side.memories if result in line]
        for ask in mind.of(TalkScene)
        if ask.when[-5:] >= "17:30"
        for side in ask.sides
        if side.who == HOST
    }
    assert shown.keys() == {HERMIT, GUEST} and not shown[GUEST]
    assert len(shown[HERMIT]) == 1 and shown[HERMIT][0].endswith(f"({BETWEEN})")


async def test_a_long_memory_is_told_and_agreed_on_in_full(tmp_path: Path) -> None:
    """A town's file may have memories, and an agreement may have parts, that are longer than a text of a reply."""
    news, part = "河边的船漏了,先要拿出木板,再要涂上油。" * 25, "先把木板拿到河边,再把船翻过来,然后涂上油。" * 9

    def tell(ask: TalkScene) -> dict[str, Any]:
        sides = {side.who: side for side in ask.sides}
        if {*sides} != {HOST, GUEST}:
            return talk(ask)
        lines = [{"who": HOST, "says": "听我说。", "tells": number_of(sides[HOST].memories, news[:20])}]
        parts = [{"who": who, "what": part[: 190 + n]} for n, who in enumerate((HOST, GUEST))]
        both = {
            "what": "修船",
            "who": [HOST, GUEST],
            "parts": parts,
            "day": "2024-06-03",
            "from": "20:00",
            "to": "21:00",
        }
        return talk(ask, lines=lines, agreed=[both | {"place": INN_WORDS}])

    mind = SceneMind(talk_scene=tell)
    async with Town.open(tmp_path, liucun(seeds(f'"{news}"')), model=Models(mind)) as town:
        await town.run(until=12 * HOUR)
        kept = await remembered(town, GUEST)
    assert news in kept and any(part[:190] in each and part[:191] in each for each in kept)


def number_of_memory(ask: PlanScenes, text: str) -> list[int]:
    """Return the numbers of the memories in a day's plan that contain a text."""
    return [n for n, each in enumerate(ask.memories, 1) if text in each.text]


async def test_an_errand_of_little_weight_is_settled_in_short_and_corrects_what_was_false(tmp_path: Path) -> None:
    """The host believes that the hermit's hoe is lost; in the evening it does not remember that any more."""
    rumour = "石婆婆的锄头丢了。"

    def lends(ask: Settle) -> dict[str, Any]:
        numbers = [n for side in ask.sides for n in number_of(side.memories, rumour)]
        return {"text": "石婆婆的锄头在家,借给王秀兰。", "weight": 6, "corrects": numbers}

    for weight, is_short in ((5, True), (6, False)):
        mind = SceneMind(plan_scenes=errand_at_four(weight), settle=lends)
        setting = liucun(seeds(f'"{rumour}"'))
        async with Town.open(tmp_path / str(weight), setting, model=Models(mind)) as town:
            await town.run(until=DAY - 1)
        assert bool(mind.of(Settle)) == is_short
        evening = [ask for ask in mind.of(ReflectScenes) if ask.who == HOST]
        assert evening and not (is_short and any(rumour in line for line in evening[-1].memories))


async def test_a_short_meeting_is_overheard_and_settles_later_plans(tmp_path: Path) -> None:
    """At four, the host asks the hermit for the hoe. At six, the hermit would ask the host about it, and at seven the
    guest."""
    later, heard = "问要不要锄头", "石婆婆把锄头借给了王秀兰。"

    def plans(ask: PlanScenes) -> dict[str, Any]:
        plan, whom = errand_at_four(5)(ask), {"18:00": HOST, "19:00": GUEST}
        for each in plan["items"] if ask.who == HERMIT else ():
            if each["from"] in whom:
                each |= {"what": f"{later} {each['from']}", "with": [whom[each["from"]]], "weight": 5}
        return plan  # type: ignore[no-any-return]

    def lends(ask: Settle) -> dict[str, Any]:
        numbers = [n for side in ask.sides for n in number_of(side.plan, later)]
        return {"text": "石婆婆借出锄头。", "weight": 6, "settles": numbers, "overheard": heard}

    mind = SceneMind(plan_scenes=plans, settle=lends)
    async with Town.open(tmp_path, liucun(), model=Models(mind)) as town:
        await town.run(until=17 * HOUR)
        blocks = town.residents[HERMIT].state.blocks
        assert not [each for each in blocks if later in each.what]
        assert [each.minutes for each in blocks if each.start in (18 * 60, 19 * 60)] == [60, 60], "nothing else moves"
        counts = [(await remembered(town, name)).count(heard) for name in (HOST, HERMIT, GUEST)]
    assert counts == [0, 0, 1], "the guest sits near by"


async def test_something_that_a_resident_agreed_to_do_alone_has_a_result(tmp_path: Path) -> None:
    def promise(ask: TalkScene) -> dict[str, Any]:
        if HOST not in {side.who for side in ask.sides} or ask.when[-5:] > "12:00":
            return talk(ask)
        agreed = {"what": AWAY, "place": INN_WORDS, "day": "2024-06-03", "from": "15:00", "to": "16:00", "who": [HOST]}
        return talk(ask, agreed=[agreed])

    mind = SceneMind(talk_scene=promise)
    async with Town.open(tmp_path, liucun(), model=Models(mind)) as town:
        await town.run(until=20 * HOUR)
    assert [ask.question for ask in mind.of(WhatCame) if ask.who == HOST] == [AWAY]


async def test_an_errand_to_two_is_settled_with_both(tmp_path: Path) -> None:
    """The host has to decide something with the hermit and the guest at four, in the inn where all three sit."""

    def plans(ask: PlanScenes) -> dict[str, Any]:
        plan = errand_at_four(9)(ask)
        for each in plan["items"] if ask.who == HOST else ():
            each |= {"with": [HERMIT, GUEST]} if each["what"] == ASK else {}
        return plan  # type: ignore[no-any-return]

    mind = SceneMind(plan_scenes=plans, settle=lambda _: {"text": "锄头归赵林。", "weight": 8})
    async with Town.open(tmp_path, liucun(), model=Models(mind)) as town:
        await town.run(until=18 * HOUR)
        for name in (HOST, GUEST, HERMIT):
            assert (await remembered(town, name, ("thought",))).count("锄头归赵林。") == 1
        (deed,) = [each for each in await remembered(town, HOST, ("observation",)) if f"{HOST}: {ASK}" in each]
    (asked,) = mind.of(Settle)
    assert [side.who for side in asked.sides] == [HOST, *sorted((HERMIT, GUEST))] and asked.did == ASK
    assert "no talk" not in deed


async def test_an_act_with_several_partners_stays_open_for_those_who_were_not_asked(tmp_path: Path) -> None:
    """The host wants to ask both at four; a talk with the hermit before gives the result for the hermit alone."""

    def plans(ask: PlanScenes) -> dict[str, Any]:
        plan = errand_at_four(5)(ask)
        for each in plan["items"] if ask.who == HOST else ():
            each |= {"with": [HERMIT, GUEST]} if each["what"] == ASK else {}
        return plan  # type: ignore[no-any-return]

    def settle(ask: TalkScene) -> dict[str, Any]:
        numbers = [n for side in ask.sides if side.who == HOST for n in number_of(side.plan, ASK)]
        is_met = HERMIT in {each.who for each in ask.sides} and int(ask.when[-5:-3]) < 16
        return talk(ask, results=[{"number": n, "text": "石婆婆借出锄头。"} for n in numbers] if is_met else [])

    mind = SceneMind(plan_scenes=plans, talk_scene=settle)
    async with Town.open(tmp_path, liucun(), model=Models(mind)) as town:
        await town.run(until=9 * HOUR)
        (block,) = (each for each in town.residents[HOST].state.blocks if each.what == ASK)
    assert block.whom == (GUEST,) and not block.settled and block.weight == 5


async def test_an_errand_that_was_settled_before_is_dropped_and_one_that_had_begun_is_shown_as_settled(
    tmp_path: Path,
) -> None:
    for settled_at, is_left in ((range(16), False), (range(16, 17), True)):

        def settle(ask: TalkScene, hours: range = settled_at) -> dict[str, Any]:
            numbers = [n for side in ask.sides if side.who == HOST for n in number_of(side.plan, ASK)]
            is_met = HERMIT in {each.who for each in ask.sides} and int(ask.when[-5:-3]) in hours
            return talk(ask, results=[{"number": n, "text": "石婆婆借出锄头。"} for n in numbers] if is_met else [])

        mind = SceneMind(plan_scenes=errand_at_four(6), talk_scene=settle)
        async with Town.open(tmp_path / str(is_left), liucun(), model=Models(mind)) as town:
            await town.run(until=DAY - 1)
            blocks = [each for each in town.residents[HOST].state.blocks if each.what == ASK]
        assert any(ASK in line for side in sides_of(mind, HOST) for line in side.plan)
        assert [SETTLED in line_of(each) for each in blocks[-1:]] == [True] * is_left


async def test_who_walks_within_a_room_is_not_on_the_way_to_it(tmp_path: Path) -> None:
    def plans(ask: PlanScenes) -> dict[str, Any]:
        plan = out_all_day_at_the_inn(ask)
        for at, each in enumerate(plan["items"]):
            each |= {"object": ("方桌", "灶台", "柜台")[at % 3]}
        return plan

    mind = SceneMind(plan_scenes=plans)
    async with Town.open(tmp_path, liucun(), model=Models(mind)) as town:
        await town.run(until=2 * DAY - 1)
    here = [side.doing for ask in mind.of(TalkScene) if ask.place == INN_WORDS for side in ask.sides]
    assert here and not any("on the way" in each for each in here), here


async def test_the_result_of_an_act_can_name_the_things_of_its_place(tmp_path: Path) -> None:
    plan = day()
    plan["items"][2] |= {"open": "茶叶还够不够"}
    mind = SceneMind(plan_scenes=lambda _: plan)
    async with Town.open(tmp_path, liucun(), model=Models(mind)) as town:
        await town.set_object("柳村:老茶馆:大堂:方桌", "桌脚断了")
        await town.run(until=11 * HOUR)
    asked = mind.of(WhatCame)
    assert asked and any("方桌 (桌脚断了)" in each.things for each in asked)
    assert any("方桌 (桌脚断了)" in words and "茶叶" in words for words in mind.rendered)


async def test_an_appointment_and_a_stance_are_told_once(tmp_path: Path) -> None:
    grudge = "为了篱笆生气"

    def agree(ask: TalkScene) -> dict[str, Any]:
        said = agrees_on(ask, "下棋", "20:00", "21:00")
        return said | {"stance": [{"who": HOST, "text": grudge}]} if HERMIT not in {s.who for s in ask.sides} else said

    mind = SceneMind(plan_scenes=out_all_day_at_the_inn, talk_scene=agree)
    async with Town.open(tmp_path, liucun(), model=Models(mind)) as town:
        await town.run(until=19 * HOUR)
    talks = [(ask, mind.rendered[n]) for n, ask in enumerate(mind.asked) if isinstance(ask, TalkScene)]
    both = [(ask, words) for ask, words in talks if {HOST, GUEST} == {side.who for side in ask.sides}]
    assert len(both) > 1
    for ask, words in both[1:]:
        assert words.count("下棋") == 2, "once in each plan"
        assert words.count(grudge) == 1 and grudge in next(side.stance for side in ask.sides if side.who == HOST)


HARBOUR = """
[town]
name = "Port"
start = 2025-10-09T00:00:00
[[places]]
address = "Dike House:bathroom"
objects = ["bathtub"]
owners = ["Ann Lee", "Bo Lee"]
capacity = 1
[[places]]
address = "Dike House:attic"
objects = ["chest"]
owners = ["Ann Lee", "Bo Lee"]
[[places]]
address = "Dike House:kitchen"
objects = ["table"]
owners = ["Ann Lee", "Bo Lee"]
[[places]]
address = "Dike House:bedroom"
objects = ["bed"]
owners = ["Ann Lee", "Bo Lee"]
[[places]]
address = "School:classroom"
objects = ["desk"]
hours = "08:00-15:00"
[[places]]
address = "Quay:landing"
objects = ["bench"]
[[places]]
address = "Cottage:room"
objects = ["bed"]
owners = ["Cy Holm"]
[[roads]]
from = "Dike House:kitchen"
to = "Dike House:bathroom"
steps = 1
[[roads]]
from = "Dike House:kitchen"
to = "Dike House:attic"
steps = 1
[[roads]]
from = "Dike House:kitchen"
to = "Dike House:bedroom"
steps = 1
[[roads]]
from = "Dike House:kitchen"
to = "School:classroom"
steps = 5
[[roads]]
from = "School:classroom"
to = "Quay:landing"
steps = 5
[[roads]]
from = "Cottage:room"
to = "Quay:landing"
steps = 5
[[residents]]
name = "Ann Lee"
age = 40
lifestyle = "Ann Lee has supper at 6pm."
routine = "Ann Lee is on the quay from 9am to 11am."
home = "Dike House:bedroom"
[[residents]]
name = "Bo Lee"
age = 41
lifestyle = "Bo Lee rises at 5am."
home = "Dike House:bedroom"
[[residents]]
name = "Cy Holm"
age = 50
home = "Cottage:room"
relations = [{ who = "Ann Lee", as = "friend" }]
"""


def harbour(text: str = HARBOUR) -> Setting:
    return setting_of(parse_town(text, Path()), seed=1)


def test_hours_after_midnight_end_the_day() -> None:
    for last in (("24:00", "24:30"), ("00:00", "00:30"), ("24:00", "00:30")):
        times = (("08:00", "16:00"), ("16:00", "24:00"), last)
        day = SceneDay.model_validate({"items": [{"from": one, "to": two, "what": "x"} for one, two in times]})
        assert day.spans()[-1][:2] == (1_440, 1_470)


async def test_an_act_after_midnight_is_not_in_the_morning_of_the_first_day(tmp_path: Path) -> None:
    late = {"from": "24:00", "to": "24:30", "what": "lies awake", "place": "bedroom of Dike House", "thing": "bed"}
    items = [{"from": "08:00", "to": "16:00", "what": "rests"}, {"from": "16:00", "to": "24:00", "what": "reads"}, late]
    async with Town.open(tmp_path, harbour(), model=Models(SceneMind(plan_scenes=lambda _: {"items": items}))) as town:
        await town.run(until=HOUR)
        blocks = town.residents["Ann Lee"].state.blocks
        assert blocks[0].asleep and blocks[0].end == 8 * 60
        assert (blocks[-1].what, blocks[-1].start, blocks[-1].end) == ("lies awake", 1_440, 1_470)
        await town.run(until=DAY + 10)
        act = town.residents["Ann Lee"].state.act
        assert act is not None and act.what == "lies awake"
        await town.run(until=DAY + HOUR)
        act = town.residents["Ann Lee"].state.act
        assert act is not None and act.asleep


def test_visitors_are_received_in_the_room_through_which_one_enters() -> None:
    assert home_to_visit(harbour(), "Ann Lee") == "Port:Dike House:kitchen"
    assert home_to_visit(harbour(), "Cy Holm") == "Port:Cottage:room"


def test_only_places_that_belong_to_nobody_are_common() -> None:
    setting = harbour()
    common = {each for each, at in setting.addresses.items() if at.level == 3 and is_common(setting, at)}
    assert common == {"Port:Quay:landing"}


async def test_plans_show_the_habits_of_the_household_and_of_acquaintances(tmp_path: Path) -> None:
    mind = SceneMind(plan_scenes=lambda _: day(""))
    async with Town.open(tmp_path, harbour(), model=Models(mind)) as town:
        await town.run(until=HOUR)
    asked = {each.who: each for each in mind.of(PlanScenes)}
    assert asked["Bo Lee"].at_home == ("Ann Lee has supper at 6pm. Ann Lee is on the quay from 9am to 11am.",)
    assert asked["Cy Holm"].habits == ("Ann Lee is on the quay from 9am to 11am.",) and not asked["Bo Lee"].habits


async def test_plans_show_the_hours_of_acquaintances_that_the_resident_knows_of(tmp_path: Path) -> None:
    """Cy knows of Ann's duties and of their hour on the quay, not of her time at home or alone elsewhere."""
    hours = [
        ("07:00", "07:30", "kitchen:table", False),
        ("08:00", "12:00", "School:classroom:desk", True),
        ("13:00", "15:00", "School:classroom:desk", True),
        ("16:00", "17:00", "Quay:landing:bench", False),
        ("18:00", "19:00", "Quay:landing:bench", False),
    ]

    def day_of(parts: Any) -> str:
        rows = [
            f'{{ from = "{start}", to = "{end}", what = "x", where = "{where}", duty = {str(duty).lower()} }}'
            for start, end, where, duty in parts
        ]
        return f"day = [{', '.join(rows)}]\n"

    fishing = [("16:30", "17:30", "Quay:landing:bench", False)]
    text = HARBOUR.replace('lifestyle = "Ann Lee', f'{day_of(hours)}lifestyle = "Ann Lee', 1)
    text = text.replace("age = 50\n", f"age = 50\n{day_of(fishing)}", 1)
    mind = SceneMind(plan_scenes=lambda _: day(""))
    async with Town.open(tmp_path, harbour(text), model=Models(mind)) as town:
        await town.run(until=HOUR)
    (cy,) = (each for each in mind.of(PlanScenes) if each.who == "Cy Holm")
    assert cy.habits == ("Ann Lee: classroom of School 08:00-12:00, 13:00-15:00; landing of Quay 16:00-17:00",)
    (bo,) = (each for each in mind.of(PlanScenes) if each.who == "Bo Lee")
    away = "classroom of School 08:00-12:00, 13:00-15:00; landing of Quay 16:00-17:00, 18:00-19:00"
    assert bo.at_home == ("Ann Lee: 07:00-07:30 x (kitchen)",) and bo.habits == (f"Ann Lee: {away}",), (
        "who lives with her"
    )


async def test_plans_show_the_hours_of_those_whom_the_resident_avoids(tmp_path: Path) -> None:
    work = 'day = [{ from = "08:00", to = "12:00", what = "x", where = "School:classroom:desk", duty = true }]\n'
    text = HARBOUR.replace('lifestyle = "Ann Lee', f'{work}lifestyle = "Ann Lee', 1)
    mind = SceneMind(plan_scenes=lambda _: day(""))
    async with Town.open(
        tmp_path, harbour(re.sub(r'as = "[^"]*" \}', 'as = "rival", avoids = true }', text)), model=Models(mind)
    ) as town:
        await town.run(until=HOUR)
    (cy,) = (each for each in mind.of(PlanScenes) if each.who == "Cy Holm")
    assert cy.avoids == ("Ann Lee",) and cy.habits == ("Ann Lee: classroom of School 08:00-12:00",)


async def test_people_who_may_know_each_other_by_name_are_no_strangers(tmp_path: Path) -> None:
    mind = SceneMind(plan_scenes=lambda _: day("landing of Quay"), talk_scene=lambda _: {"talk": False})
    async with Town.open(tmp_path, harbour(), model=Models(mind)) as town:
        await town.run(until=10 * HOUR)
        for name in town.residents:
            assert not any(" met " in each for each in await remembered(town, name)), "a nod is not remembered"
    scenes = {frozenset(side.who for side in ask.sides): ask for ask in mind.of(TalkScene)}
    assert scenes and not any(ask.strangers for ask in scenes.values()), "Cy knows Bo's wife"
    home = [
        words for ask, words in zip(mind.asked, mind.rendered, strict=True) if getattr(ask, "at_home", False) is True
    ]
    assert all("is at home with" in words and "comes up to" not in words for words in home)


def test_a_result_replaces_its_act_and_its_repetition() -> None:
    def record(number: int, text: str, evidence: tuple[str, ...], **data: Any) -> Record:
        return Record(
            id=str(number), stream=key_of_resident("Ann"), text=text, kind="thought", created=0.0, accessed=0.0,
            evidence=evidence, data=data,
        )  # fmt: skip

    act = record(1, "Ann: asks about the boat", (), deed=True)
    result = record(2, "Bo told Ann on Thursday that the boat will not come on Monday.", ("1", "9"), outcome=True)
    again = record(3, "Bo told Ann that the boat will not come on Monday.", ("1", "9"))
    other = record(4, "Ann lends Bo a saw.", ("1", "9"))
    assert [each.id for each in without_repeats([act, result, again, other])] == ["2", "4"]
    yes = (
        "Clara Winter said on Friday, June 7th, that she carries the banner at the fair on Saturday, June 8th, at 10am."
    )
    promise = (
        "Oskar Brandt promised Clara Winter on Friday, June 7th, to carry the chairs to the fair himself; Clara Winter"
        " said that nobody else would do that, and that the banner can wait until the fair on Saturday."
    )
    long = [record(5, promise, ("7",)), record(6, yes, ("7",))]
    assert without_repeats(long) == long, "long texts with the same names and days are not one text"


def test_a_part_of_a_day_is_shown_outwardly_without_its_place() -> None:
    block = Block(start=21 * 60, minutes=30, what="meeting Ned", seen="taking a walk", place="a:b:c", secret=True)
    assert line_of(block, outwardly=True) == "21:00 taking a walk"
    assert line_of(block).startswith("21:00 meeting Ned (")
